"""A backend within the test's own process: one catalogue of a world's engine, without a worker, limits or time-outs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from grammar import renamed
from worlds import MAIN, SHUFFLED, THREADS, World

from dpquery.backends import exact, names, relation
from dpquery.backends.port import BoundedSQL
from dpquery.backends.source import Identity
from dpquery.plan.rel import Public
from dpquery.schema.physical import PhysicalTable
from dpquery.values.exact import Exact
from dpquery.values.types import Type, Value


class Inside:
    """The data set in one catalogue. Statements name the source's tables in full, so the catalogue's name is put in place of the source's."""

    def __init__(self, made: World, catalogue: str = MAIN) -> None:
        self.con, self.catalogue, self.made = made.con, catalogue, made

    def prepare(self, publics: Sequence[Public]) -> None:
        self.close()
        self.con.execute(f"USE {self.catalogue}")
        for public in publics:
            self.con.execute(relation.made(public))
            self.made.materialised.append(public.name)

    def public_rows(self, sql: str, types: Sequence[Type]) -> list[tuple[Value, ...]]:
        result = self.con.sql(sql).to_arrow_table()
        return list(zip(*(exact.values(result.column(i), kind) for i, kind in enumerate(types)), strict=True))

    def bind(self, lowered: BoundedSQL) -> None:
        self.con.sql(self._text(lowered))  # not run: bound, in a third of the time of an EXPLAIN

    def run(self, lowered: BoundedSQL, key_types: Sequence[Type], parts: int) -> Exact:
        return self.typed(lowered, key_types, parts)[0]

    def typed(self, lowered: BoundedSQL, key_types: Sequence[Type], parts: int) -> tuple[Exact, tuple[str, ...]]:
        """The exact sums, and the engine's types of the result's columns. Rows in another order are read by more threads.

        `sql()`, which the engine says is better, binds each statement twice: that takes longer than a copy of few rows.
        """
        with self._threads(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = self.con.execute(self._text(lowered)).to_arrow_table()
        return exact.exact(result, lowered, key_types, parts), tuple(str(field.type) for field in result.schema)

    def close(self) -> None:
        while self.made.materialised:
            self.con.execute(f"DROP TABLE {names.public(self.made.materialised.pop())}")

    @property
    def opened(self) -> Identity:
        return []

    def describe(self) -> Mapping[str, PhysicalTable]:
        raise NotImplementedError

    def owner_rows(self, sql: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    @contextmanager
    def _threads(self) -> Iterator[None]:
        if self.catalogue != SHUFFLED:
            yield
            return
        self.con.execute(f"SET threads = {THREADS}")
        try:
            yield
        finally:
            self.con.execute("SET threads = 1")

    def _text(self, lowered: BoundedSQL) -> str:
        return renamed(lowered.text, names.SOURCE, self.catalogue)
