"""MEMORY: what was spent of each account, in a log that only grows."""

from dpquery.ledger.checkpoint import Key, Unsound, read_key
from dpquery.ledger.creation import create, files, vacant
from dpquery.ledger.evidence import Proof, proved
from dpquery.ledger.joining import join, joins
from dpquery.ledger.ledger import Ledger, open
from dpquery.ledger.model import Amounts, Balance, Entry, Finding, Kind, Left, Limit, Logged, Outcome, Rung
from dpquery.ledger.room import Room
from dpquery.ledger.shown import Kept, Seen, Stored
from dpquery.ledger.verifying import verify
from dpquery.schema.address import Address, Place, place

__all__ = [
    "Address",
    "Amounts",
    "Balance",
    "Entry",
    "Finding",
    "Kept",
    "Key",
    "Kind",
    "Ledger",
    "Left",
    "Limit",
    "Logged",
    "Outcome",
    "Place",
    "Proof",
    "Room",
    "Rung",
    "Seen",
    "Stored",
    "Unsound",
    "create",
    "files",
    "join",
    "joins",
    "open",
    "place",
    "proved",
    "read_key",
    "vacant",
    "verify",
]
