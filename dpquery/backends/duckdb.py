"""DuckDB, in a worker process of its own: sealed, limited, started early, and started again when a query has ended it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from dpquery.backends import exact, inspect, names, relation
from dpquery.backends.port import Backend, BoundedSQL
from dpquery.backends.process import Worker
from dpquery.backends.source import Identity, allowed, contents, find, fingerprint, identity, opening, shown
from dpquery.errors import Fault
from dpquery.plan.rel import Public
from dpquery.schema.model import Schema
from dpquery.schema.physical import PhysicalTable
from dpquery.turns import Turn
from dpquery.values.exact import Exact
from dpquery.values.types import Type, Value

MOST_TAKEN = 1000  # statements that are remembered as taken

__all__ = ["DuckDB", "Identity", "contents", "fingerprint", "identity", "open"]


def open(schema: Schema) -> Backend:
    """The schema's source, being opened: the worker starts now and is waited for when it is first asked. A Fault where a file is missing."""
    return DuckDB(schema)


class DuckDB:
    """A source held open by a worker. A worker that died, or whose files were replaced, is followed by a new one with the same public relations."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lock = Turn()
        self._publics: dict[str, Public] = {}
        self._taken: set[bytes] = set()  # digests of statements that the worker took, with the public relations that stand
        self._worker, self._opened = self._start()

    @property
    def opened(self) -> Identity:
        """The files that it answers from, as they were just before the worker opened them."""
        return self._opened

    def describe(self) -> Mapping[str, PhysicalTable]:
        """What stands behind each declared table, by its declared name."""
        return inspect.describe(self._schema, find(self._schema), self.owner_rows)

    def owner_rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of the owner's own statement; no time limit."""
        return _rows(exact.table(self._ask({"do": "rows", "sql": sql}, timeout=None)))

    def prepare(self, publics: Sequence[Public]) -> None:
        """Nothing; each public relation now stands as a table of its name, made anew unless it stands already."""
        with self._lock:
            self._fresh()
            wanted = {p.name: p for p in publics}
            statements = [f"DROP TABLE {names.public(name)}" for name, old in self._publics.items() if wanted.get(name) != old]
            statements += [relation.made(new) for name, new in wanted.items() if self._publics.get(name) != new]
            if statements:
                self._publics = {}
                self._taken.clear()
                self._ask({"do": "execute", "statements": statements, "reads": self._open_names(wanted)})
            self._publics = wanted

    def public_rows(self, sql: str, types: Sequence[Type]) -> list[tuple[Value, ...]]:
        """The rows of a statement that reads public relations only."""
        result = exact.table(self._ask({"do": "rows", "sql": sql, "reads": self._open_names(self._publics)}))
        return list(zip(*(exact.values(result.column(i), kind) for i, kind in enumerate(types)), strict=True))

    def bind(self, lowered: BoundedSQL) -> None:
        """Nothing; a Fault where the engine would not take the statement. What it took it is not asked of again, under whatever salt."""
        likeness = sha256(lowered.likeness.encode()).digest()
        with self._lock:
            self._fresh()
            if likeness not in self._taken:
                self._ask({"do": "bind", "sql": lowered.text})
                if len(self._taken) >= MOST_TAKEN:
                    self._taken.clear()
                self._taken.add(likeness)

    def run(self, lowered: BoundedSQL, key_types: Sequence[Type], parts: int) -> Exact:
        """The exact, bounded sums."""
        body = self._ask({"do": "rows", "sql": lowered.text})
        try:
            return exact.exact(exact.table(body), lowered, key_types, parts)
        except (ValueError, OverflowError):
            raise Fault("ENGINE_FAILED", "the engine's result is not what was asked for", instead="report it to the data owner") from None

    def close(self) -> None:
        """Nothing is left running."""
        with self._lock:
            self._publics = {}
            self._worker.kill()

    def _open_names(self, publics: Iterable[str]) -> list[str]:
        """The names of all that a statement over public tables may read: the worker holds its text to them once more, in the engine's own reading."""
        return [*publics, *(t.physical.rpartition(".")[2] for t in self._schema.tables.values() if t.public)]

    def _ask(self, request: Mapping[str, Any], timeout: float | str | None = "limit") -> bytes:
        limit = float(self._schema.limits.timeout) if isinstance(timeout, str) else timeout
        with self._lock:
            self._fresh()
            return self._worker.ask(request, limit)

    def _start(self) -> tuple[Worker, Identity]:
        seen, source, limits = identity(self._schema), find(self._schema), self._schema.limits
        config = {
            "memory": limits.memory,
            "threads": limits.threads,
            "allowed": allowed(source),
            "statements": opening(self._schema, source),
            "shown": shown(self._schema),
            "use": names.SHOWN,
        }
        return Worker(config), seen

    def _fresh(self) -> None:
        """Nothing; the worker lives and holds the files that are there now, public relations included."""
        if self._worker.alive and self._opened == identity(self._schema):
            return
        again, self._publics = self._publics, {}
        self._taken.clear()
        self._worker.kill()
        self._worker, self._opened = self._start()
        if again:
            made = {"do": "execute", "statements": [relation.made(p) for p in again.values()], "reads": self._open_names(again)}
            self._worker.ask(made, float(self._schema.limits.timeout))
            self._publics = again


def _rows(result: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table."""
    columns = [column.to_pylist() for column in result.columns]
    return list(zip(*columns, strict=True)) if columns else []
