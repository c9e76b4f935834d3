"""The corridor between the doors and the rooms."""

from __future__ import annotations

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
