"""What a transaction reads and writes, in the SQL that all stores share. Each store makes the tables in its own words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, Self, TypeVar

from dpquery.ledger.amounts import parsed, text
from dpquery.ledger.chain import START, canonical
from dpquery.ledger.model import Account, Amounts, Kind, Limit, Row, Shown
from dpquery.ledger.replay import amounts, periods

T = TypeVar("T")
KEY: Final = 32  # bytes of the owner's key
EVERY: Final = 2**62  # lines that no log has
COLUMNS: Final = (
    *("key", "kind", "name", "member_of", "tested"),
    *("cap_epsilon", "cap_delta", "largest_epsilon", "largest_delta", "delta_conv"),
    *("epsilon", "rho", "delta", "entries", "timeouts", "strikes"),
    *("granted_epsilon", "granted_delta", "periods"),
)
CONTENT: Final = ("entries", "accounts", "seen", "stored", "shown")  # the tables, but for the key's
ACCOUNT: Final = ", ".join(COLUMNS)
PUT: Final = (
    f"INSERT INTO accounts ({ACCOUNT}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    f"ON CONFLICT (key) DO UPDATE SET {', '.join(f'{one} = excluded.{one}' for one in COLUMNS[1:])}"
)


class Found(Protocol):
    """The rows that a statement gave."""

    @property
    def description(self) -> Any:
        """Of each column its name, and more."""
        ...

    def fetchone(self) -> Any:
        """The next row; None where there is none."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """The rows in order."""
        ...


class Execute(Protocol):
    """Runs a statement with `?` for each value."""

    def __call__(self, statement: str, values: Sequence[object], /) -> Found:
        """What the statement gives."""
        ...


class Lost(Exception):
    """A transaction of which nothing is left; the cause is what undid it."""


class Tables:
    """One open transaction on the ledger's tables: the same statements for every store."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._head: tuple[int, str] | None = None
        self._put: dict[str, Account] = {}
        self._found: dict[str, Account | None] = {}  # as the transaction found them: nobody else writes meanwhile
        self.last: str | None = None  # the id of the last line that it wrote

    def attempted(self, work: Callable[[Self], T]) -> T:
        """What `work` returns; where it raises, nothing of what it did here is left. Lost where that cannot be."""
        head, put, last = self._head, dict(self._put), self.last
        self._execute("SAVEPOINT attempt", ())
        try:
            result = work(self)
            self._execute("RELEASE SAVEPOINT attempt", ())
        except BaseException as error:
            self._head, self._put, self.last = head, put, last
            try:
                self._execute("ROLLBACK TO SAVEPOINT attempt", ())
                self._execute("RELEASE SAVEPOINT attempt", ())
            except Exception:
                if isinstance(error, Exception):
                    raise Lost from error
            raise
        return result

    def head(self) -> tuple[int, str]:
        """The number and link of the last line of the log."""
        if self._head is None:
            found = self._one("SELECT seq, link FROM entries ORDER BY seq DESC LIMIT 1")
            self._head = (0, START) if found is None else (found[0], found[1])
        return self._head

    def rows(self, first: int, most: int = -1) -> Sequence[Row]:
        """The lines of the log from number `first` on, in order."""
        return self._rows("WHERE seq >= ? ORDER BY seq LIMIT ?", first, most if most >= 0 else EVERY)

    def row(self, entry: str) -> Row | None:
        """The line with this id."""
        return next(iter(self._rows("WHERE id = ?", entry)), None)

    def outcome(self, entry: str) -> Row | None:
        """The line that says how the charge `entry` ended."""
        return next(iter(self._rows("WHERE ref = ?", entry)), None)

    def registered(self) -> Sequence[Row]:
        """The lines that admit a data version, in order."""
        return self._rows("WHERE event = 'registered' ORDER BY seq")

    def balanced(self) -> Row | None:
        """The last line that holds all accounts."""
        return next(iter(self._rows("WHERE event = 'balanced' ORDER BY seq DESC LIMIT 1")), None)

    def account(self, key: str) -> Account | None:
        """One account as it stands."""
        if key not in self._put and key not in self._found:
            found = self._one(f"SELECT {ACCOUNT} FROM accounts WHERE key = ?", key)
            self._found[key] = None if found is None else _account(found)
        return self._put.get(key) or self._found[key]

    def accounts(self) -> dict[str, Account]:
        """All accounts as they stand."""
        found = (_account(columns) for columns in self._execute(f"SELECT {ACCOUNT} FROM accounts", ()))
        return {account.key: account for account in found} | self._put

    def append(self, row: Row) -> None:
        """The log has one more line."""
        self._execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", (row.seq, row.id, row.event, row.ref, row.body, row.link))
        self._head, self.last = (row.seq, row.link), row.id

    def put(self, account: Account) -> None:
        """The account stands like this from now on; the table says so when the transaction is flushed."""
        self._put[account.key] = account

    def flush(self) -> None:
        """The table holds the accounts that were put, each once however often it was. To be called before the commit."""
        for account in self._put.values():
            self._execute(PUT, _columns(account))

    def changed(self, key: str) -> bool:
        """Whether this transaction put the account."""
        return key in self._put

    def secret(self) -> bytes:
        """The owner's key."""
        found = self._one("SELECT value FROM secret WHERE name = 'owner'")
        if found is None or not isinstance(found[0], bytes) or len(found[0]) != KEY:
            raise ValueError("the owner's key is gone")
        return found[0]

    def seen(self, identity: str) -> str | None:
        """The line that says which data version was last found behind this identity of the source."""
        found = self._one("SELECT line FROM seen WHERE identity = ?", identity)
        return None if found is None else str(found[0])

    def see(self, identity: str, line: str) -> None:
        """That line says which data version was last found behind this identity."""
        self._execute("INSERT INTO seen VALUES (?, ?) ON CONFLICT (identity) DO UPDATE SET line = excluded.line", (identity, line))

    def looked(self) -> dict[str, str]:
        """The line about each identity."""
        return dict(self._execute("SELECT identity, line FROM seen", ()))

    def keep(self, entry: str, question: str, content: bytes) -> None:
        """The answer that the charge `entry` paid for is stored."""
        self._execute("INSERT INTO stored VALUES (?, ?, ?)", (entry, question, content))

    def kept(self, entry: str) -> bytes | None:
        """The stored answer that the charge `entry` paid for."""
        found = self._one("SELECT content FROM stored WHERE entry = ?", entry)
        return None if found is None else bytes(found[0])

    def show(self, entry: str, account: str, line: str) -> None:
        """The account was shown that answer, as the line of the log with this id says."""
        self._execute("INSERT INTO shown VALUES (?, ?, ?)", (entry, account, line))

    def shown(self, question: str) -> Sequence[Shown]:
        """Who was shown which stored answers to the question."""
        text = "SELECT w.entry, w.account, w.line FROM stored AS s JOIN shown AS w ON w.entry = s.entry WHERE s.question = ?"
        return [Shown(*found) for found in self._execute(text, (question,))]

    def answers(self) -> Sequence[tuple[str, str]]:
        """The charge and the question of each stored answer."""
        return [(entry, question) for entry, question in self._execute("SELECT entry, question FROM stored ORDER BY 1", ())]

    def shows(self) -> Sequence[Shown]:
        """Who was shown which stored answers, whatever was asked."""
        return [Shown(*found) for found in self._execute("SELECT entry, account, line FROM shown", ())]

    def _rows(self, where: str, *values: object) -> Sequence[Row]:
        return [Row(*found) for found in self._execute(f"SELECT seq, id, event, ref, body, link FROM entries {where}", values)]

    def _one(self, statement: str, *values: object) -> Any:
        return self._execute(statement, values).fetchone()


def _account(columns: Sequence[Any]) -> Account:
    """The account in a row of `accounts`. ValueError where the row was tampered with beyond reading."""
    key, kind, name, group, tested, *amount = columns[:10]
    cap_epsilon, cap_delta, largest_epsilon, largest_delta, delta_conv = (parsed(a) for a in amount)
    spent = amounts(dict(zip(("epsilon", "rho", "delta"), columns[10:13], strict=True)))
    cap, largest = Limit(cap_epsilon, cap_delta), Limit(largest_epsilon, largest_delta)
    entries, timeouts, strikes, granted_epsilon, granted_delta, held = columns[13:]
    granted = Limit(parsed(granted_epsilon), parsed(granted_delta))
    renewing = None if held is None else periods(json.loads(held))
    sums = (spent, entries, timeouts, strikes, granted, renewing)
    return Account(key, Kind(kind), name, group, bool(tested), cap, largest, delta_conv, *sums)


def _columns(a: Account) -> tuple[object, ...]:
    limits = (a.cap.epsilon, a.cap.delta, a.largest.epsilon, a.largest.delta, a.delta_conv)
    granted, renewing = a.granted.as_dict(), None if a.periods is None else canonical(a.periods.as_dict())
    counts = (a.entries, a.timeouts, a.strikes)
    named = (a.key, str(a.kind), a.name, a.group, int(a.tested))
    return (*named, *map(text, limits), *_sums(a.spent), *counts, granted["epsilon"], granted["delta"], renewing)


def _sums(spent: Amounts) -> tuple[str, str, str]:
    written = spent.as_dict()
    return written["epsilon"], written["rho"], written["delta"]


def copy(here: Tables, there: Tables) -> None:
    """All that one ledger holds is in the other, which holds a key and nothing else."""
    for table in CONTENT:
        found = here._execute(f"SELECT * FROM {table}", ())
        names = [column[0] for column in found.description]
        for row in found:
            there._execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", row)
