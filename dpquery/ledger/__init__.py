"""MEMORY: what was spent of each account, in a log that only grows."""

from dpquery.ledger.creation import create, files, vacant
from dpquery.ledger.ledger import Ledger, open, verify
from dpquery.ledger.model import Amounts, Balance, Entry, Finding, Left, Limit, Logged, Outcome, Rung

__all__ = [
    "Amounts",
    "Balance",
    "Entry",
    "Finding",
    "Ledger",
    "Left",
    "Limit",
    "Logged",
    "Outcome",
    "Rung",
    "create",
    "files",
    "open",
    "vacant",
    "verify",
]
