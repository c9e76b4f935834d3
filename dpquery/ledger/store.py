"""What the ledger asks of a store: transactions that are serial and durable. Who may spend what is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from dpquery.ledger.model import Account, Row, Shown

T = TypeVar("T")


class Transaction(Protocol):
    """A consistent view of the ledger, and what may be done to it. The log only grows."""

    def head(self) -> tuple[int, str]:
        """The number and link of the last line of the log; (0, the start of the chain) where it is empty."""
        ...

    def rows(self, first: int, most: int = -1) -> Sequence[Row]:
        """The lines of the log from number `first` on, in order; at most `most` of them where that is not negative."""
        ...

    def row(self, entry: str) -> Row | None:
        """The line with this id."""
        ...

    def outcome(self, entry: str) -> Row | None:
        """The line that says how the charge `entry` ended."""
        ...

    def registered(self) -> Sequence[Row]:
        """The lines that admit a data version, in order."""
        ...

    def balanced(self) -> Row | None:
        """The last line that holds all accounts."""
        ...

    def account(self, key: str) -> Account | None:
        """One account as it stands."""
        ...

    def changed(self, key: str) -> bool:
        """Whether this transaction put the account: then it stands as it was put, and the log's line about it is not read yet."""
        ...

    def accounts(self) -> dict[str, Account]:
        """All accounts as they stand."""
        ...

    def append(self, row: Row) -> None:
        """The log has one more line."""
        ...

    def put(self, account: Account) -> None:
        """The account stands like this from now on."""
        ...

    def secret(self) -> bytes:
        """The owner's key."""
        ...

    def seen(self, identity: str) -> str | None:
        """The line that says which data version was last found behind this identity of the source."""
        ...

    def see(self, identity: str, line: str) -> None:
        """That line says which data version was last found behind this identity."""
        ...

    def looked(self) -> Mapping[str, str]:
        """The line about each identity."""
        ...

    def keep(self, entry: str, question: str, content: bytes) -> None:
        """The answer that the charge `entry` paid for is stored."""
        ...

    def kept(self, entry: str) -> bytes | None:
        """The stored answer that the charge `entry` paid for."""
        ...

    def show(self, entry: str, account: str, line: str) -> None:
        """The account was shown that answer, as the line of the log with this id says."""
        ...

    def shown(self, question: str) -> Sequence[Shown]:
        """Who was shown which stored answers to the question."""
        ...

    def answers(self) -> Sequence[tuple[str, str]]:
        """The charge and the question of each stored answer."""
        ...

    def shows(self) -> Sequence[Shown]:
        """Who was shown which stored answers, whatever was asked."""
        ...


class Store(Protocol):
    """A ledger's home. Whatever goes wrong in it is a Fault, and then nothing was written."""

    def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns on one consistent view."""
        ...

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns, after all that it did is durable. Writers follow one another; `work` may be called again after a clash."""
        ...

    def damage(self) -> Sequence[str]:
        """What the store itself finds wrong with its files."""
        ...

    def backup(self, where: Path) -> None:
        """A copy of the ledger as it is, in a file of its own. FileExistsError where something lies there."""
        ...

    def attended(self, alone: Callable[[], None]) -> AbstractContextManager[None]:
        """Meanwhile others see that charges made here are attended to. `alone` is called before that, if nobody attends to any."""
        ...

    def close(self) -> None:
        """Nothing is left open."""
        ...
