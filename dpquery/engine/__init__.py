"""The corridor between the doors and the rooms.

Its names are loaded on first use: what looks at a ledger alone needs nothing of what reads statements.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpquery.engine.aim import Aim
    from dpquery.engine.asking import Wanted
    from dpquery.engine.books import fits, grant, open_ledger, verify_ledger
    from dpquery.engine.cost import Now
    from dpquery.engine.door import Report, check, create_ledger, draft_schema, import_policy, open_session
    from dpquery.engine.explain import Explanation
    from dpquery.engine.session import Session
    from dpquery.engine.workload import Workload
    from dpquery.ledger import Balance, Finding, Logged
    from dpquery.release.answer import Answer
    from dpquery.schema.describe import TableInfo

__all__ = [
    "Aim",
    "Answer",
    "Balance",
    "Explanation",
    "Finding",
    "Logged",
    "Now",
    "Report",
    "Session",
    "TableInfo",
    "Wanted",
    "Workload",
    "check",
    "create_ledger",
    "draft_schema",
    "fits",
    "grant",
    "import_policy",
    "open_ledger",
    "open_session",
    "verify_ledger",
]

_HOME = {
    "Aim": "dpquery.engine.aim",
    "Wanted": "dpquery.engine.asking",
    **dict.fromkeys(("fits", "grant", "open_ledger", "verify_ledger"), "dpquery.engine.books"),
    "Now": "dpquery.engine.cost",
    **dict.fromkeys(("Report", "check", "create_ledger", "draft_schema", "import_policy", "open_session"), "dpquery.engine.door"),
    "Explanation": "dpquery.engine.explain",
    "Session": "dpquery.engine.session",
    "Workload": "dpquery.engine.workload",
    **dict.fromkeys(("Balance", "Finding", "Logged"), "dpquery.ledger"),
    "Answer": "dpquery.release.answer",
    "TableInfo": "dpquery.schema.describe",
}


def __getattr__(name: str) -> Any:
    """A name from the module that holds it."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dpquery.engine' has no attribute {name!r}")
