"""The corridor between the doors and the rooms."""

from __future__ import annotations

from dpquery.engine.door import Report, check, create_ledger, draft_schema, open_session
from dpquery.engine.explain import Explanation
from dpquery.engine.session import Session
from dpquery.release.answer import Answer

__all__ = ["Answer", "Explanation", "Report", "Session", "check", "create_ledger", "draft_schema", "open_session"]
