"""What every backend does. Foreign exceptions end behind it: a Fault with a constant message is all that comes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpquery.backends.source import Identity
from dpquery.plan.rel import Public
from dpquery.plan.release import Enforced
from dpquery.schema.physical import PhysicalTable
from dpquery.values.exact import Exact
from dpquery.values.types import Type, Value


@dataclass(frozen=True, slots=True)
class BoundedSQL:
    """One lowered statement, with the bounds that its text enforces. Not a str: only what was lowered can be run.

    Its result has the group's columns, then one integer per part. `listed` is the key list where there is one: the single group column
    then holds places in it, and keys without rows are missing. `numbers` is how many integers each part has in a group: where any has several, there
    are three more columns, and for each of its integers that may not be 0 a row of group, part, place and integer. `way` says in words what it does.
    `salt` is what its choices were drawn with.
    """

    text: str
    enforced: Enforced
    listed: tuple[tuple[Value, ...], ...] | None = field(default=None, repr=False)
    numbers: tuple[int, ...] = ()
    way: str = ""
    salt: int = field(default=0, repr=False)

    @property
    def likeness(self) -> str:
        """The text but for its salt: an engine takes all statements of one likeness, or none."""
        return self.text.replace(f"{self.salt:d}::UBIGINT", "salt")


class Backend(Protocol):
    """An engine that holds one data set's source open, sealed and limited."""

    @property
    def opened(self) -> Identity:
        """The files that it answers from, as they were when it opened them."""

    def describe(self) -> Mapping[str, PhysicalTable]:
        """What stands behind each declared table, by its declared name; a table that is not there is left out. For the owner."""

    def owner_rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement of the owner's own, at registration only."""

    def prepare(self, publics: Sequence[Public]) -> None:
        """Nothing; each public relation now stands as a table of its name."""

    def public_rows(self, sql: str, types: Sequence[Type]) -> list[tuple[Value, ...]]:
        """The rows of a statement that reads public relations only."""

    def bind(self, lowered: BoundedSQL) -> None:
        """Nothing; a Fault where the engine would not take the statement. No private row is read."""

    def run(self, lowered: BoundedSQL, key_types: Sequence[Type], parts: int) -> Exact:
        """The exact, bounded sums of a statement whose price was charged."""

    def close(self) -> None:
        """Nothing is left running."""
