"""The tables of a ledger's file, and those of the format before, which is upgraded."""

from __future__ import annotations

from typing import Final

_ACCOUNTS: Final = (
    "CREATE TABLE accounts (key TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, member_of TEXT, tested INTEGER NOT NULL, "
    "cap_epsilon TEXT NOT NULL, cap_delta TEXT NOT NULL, largest_epsilon TEXT NOT NULL, largest_delta TEXT NOT NULL, delta_conv TEXT NOT NULL, "
    "epsilon TEXT NOT NULL, rho TEXT NOT NULL, delta TEXT NOT NULL, "
    "entries INTEGER NOT NULL, timeouts INTEGER NOT NULL, strikes INTEGER NOT NULL, "
    "granted_epsilon TEXT NOT NULL, granted_delta TEXT NOT NULL, periods TEXT) STRICT"
)
_KEEP: Final = "CREATE TRIGGER accounts_keep BEFORE DELETE ON accounts BEGIN SELECT RAISE(ABORT, 'accounts stay'); END"
_KEPT: Final = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event TEXT NOT NULL, ref TEXT UNIQUE, "
    "body TEXT NOT NULL, link TEXT NOT NULL) STRICT",
    "CREATE INDEX registered ON entries (seq) WHERE event = 'registered'",
    "CREATE INDEX balanced ON entries (seq) WHERE event = 'balanced'",
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
    "CREATE TRIGGER entries_keep BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
    "CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
)
_LOOKED: Final = "CREATE TABLE seen (identity TEXT PRIMARY KEY, line TEXT NOT NULL) STRICT"  # the line of the log says which data version was found
_STORED: Final = (  # answers, by the charge that paid for them; which account saw one, by the line of the log that says so
    "CREATE TABLE stored (entry TEXT PRIMARY KEY, question TEXT NOT NULL, content BLOB NOT NULL) STRICT",
    "CREATE INDEX questions ON stored (question)",
    "CREATE TABLE shown (entry TEXT NOT NULL, account TEXT NOT NULL, line TEXT NOT NULL, PRIMARY KEY (entry, account)) STRICT, WITHOUT ROWID",
)
TABLES: Final = (*_KEPT, _ACCOUNTS, _KEEP, _LOOKED, *_STORED)

# A ledger of format 1, and what makes one of format 2 out of it; accounts are written anew, files are looked at
# anew.
_SEEN_1: Final = "CREATE TABLE seen (identity TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT"
FORMAT_1: Final = (*_KEPT, _ACCOUNTS.replace(", granted_epsilon TEXT NOT NULL, granted_delta TEXT NOT NULL, periods TEXT", ""), _KEEP, _SEEN_1)
UPGRADE: Final = ("DROP TABLE accounts", "DROP TABLE seen", _ACCOUNTS, _KEEP, _LOOKED, *_STORED)
UPGRADED: Final = f"INSERT INTO accounts VALUES ({', '.join('?' * 16)}, '0', '0', NULL)"
