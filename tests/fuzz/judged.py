"""One statement through the engine, all that it gives to engines read on the way; and what must be as it was before."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import texts
from grounds import Ground
from ruamel.yaml import YAML

from dpquery.backends.port import Backend, BoundedSQL
from dpquery.backends.source import Identity
from dpquery.engine import asking, create_ledger, data, open_session
from dpquery.engine.session import Session
from dpquery.errors import Error, Fault, OverBudget, Refused
from dpquery.plan.draft import Post
from dpquery.plan.rel import Public
from dpquery.release import post
from dpquery.schema.physical import PhysicalTable
from dpquery.values.exact import Exact
from dpquery.values.types import INTEGER, Type, Value

CPU_SECONDS = 10.0  # of this process, that one statement may take
MEMORY = 600 * 2**20  # bytes by which one statement may make this process grow
UNFORESEEN = frozenset({"UNREADABLE", "UNANSWERABLE"})  # refusals that stand for a failure of the reader
HEAVY = frozenset({"ENGINE_TIMEOUT", "ENGINE_MEMORY"})  # what a statement that asks for much may end in
STATE = f"""
SELECT 'setting', name, value FROM duckdb_settings() WHERE name NOT IN ('secret_directory')
UNION ALL SELECT 'table', database_name || '.' || schema_name, table_name FROM duckdb_tables() WHERE table_name NOT SIMILAR TO '{texts.GIVEN.pattern}'
UNION ALL SELECT 'view', database_name || '.' || schema_name, view_name FROM duckdb_views() WHERE NOT internal
UNION ALL SELECT 'database', database_name, path FROM duckdb_databases()
UNION ALL SELECT 'schema', database_name, schema_name FROM duckdb_schemas()
UNION ALL SELECT 'functions', NULL, count(*)::VARCHAR FROM duckdb_functions() -- an extension brings some
UNION ALL SELECT 'function', function_name, function_type FROM duckdb_functions() WHERE NOT internal
UNION ALL SELECT 'sequence', schema_name, sequence_name FROM duckdb_sequences()
UNION ALL SELECT 'type', schema_name, type_name FROM duckdb_types() WHERE NOT internal
UNION ALL SELECT 'variable', name, value::VARCHAR FROM duckdb_variables()
ORDER BY ALL"""


class Hang(BaseException):
    """A statement took too much time."""


class Reading(Backend):
    """A backend whose every text is read first. What nodes the texts are made of gathers in `nodes`."""

    def __init__(self, inner: Backend, session: Session) -> None:
        self.inner, self.session, self.nodes = inner, session, set[str]()
        self.con = duckdb.connect()

    def shape(self, text: str) -> texts.Shape:
        found = texts.shape(self.con, text)
        self.nodes |= found.nodes
        return found

    @property
    def opened(self) -> Identity:
        return self.inner.opened

    def describe(self) -> Mapping[str, PhysicalTable]:
        return self.inner.describe()

    def owner_rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.inner.owner_rows(sql)

    def prepare(self, publics: Sequence[Public]) -> None:
        for public in publics:
            texts.check_public(self.shape(public.sql), self.session.schema, public.sql)
        self.inner.prepare(publics)

    def public_rows(self, sql: str, types: Sequence[Type]) -> list[tuple[Value, ...]]:
        texts.check_public(self.shape(sql), self.session.schema, sql)
        return self.inner.public_rows(sql, types)

    def bind(self, lowered: BoundedSQL) -> None:
        texts.check_private(self.shape(lowered.text), self.session.schema, lowered.text)
        self.inner.bind(lowered)

    def run(self, lowered: BoundedSQL, key_types: Sequence[Type], parts: int) -> Exact:
        texts.check_private(self.shape(lowered.text), self.session.schema, lowered.text)
        return self.inner.run(lowered, key_types, parts)

    def close(self) -> None:
        self.inner.close()
        self.con.close()


class Judge:
    """An open session on a ground, and how it all was in the beginning."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        self.folder, name = folder, YAML(typ="safe").load(ground.schema)["source"]["path"]
        with duckdb.connect(str(folder / name)) as con:
            ground.fill(con)
        file = folder / f"{ground.name}.yaml"
        file.write_text(ground.schema)
        create_ledger(file)
        self.session = open_session(file)
        self.backend = Reading(self.session.backend, self.session)
        self.session._backend = self.backend
        self.before = self.state()

    def outcome(self, text: str, dialect: str, run: bool) -> tuple[str, frozenset[str]]:
        """How the statement ends (`accepted`, `answered` or the code of its error) and what is new to look at in how it got there.

        Any other end is an AssertionError, or the error that should not have been.
        """
        self.backend.nodes.clear()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            with timed():
                prepared = self.session._prepare(text, asking.call(), dialect)
                for text_above in (prepared.question.post.sql, *(feed.sql for block in prepared.blocks for feed in block.feeds)):
                    texts.check_noisy(self.backend.shape(text_above), text_above)
                if run:
                    self.session.query(text, dialect=dialect)
        except Error as error:
            return _end(error)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) * 1024
        assert grown < MEMORY, f"grew by {grown} bytes"
        return "answered" if run else "accepted", frozenset(self.backend.nodes)

    def state(self) -> dict[str, Any]:
        """All that no statement may change: settings and catalogues of both engines, files, descriptors, the environment."""
        given = {"noisy": [("k0", INTEGER, [])]}
        post.run(Post("SELECT k0 FROM noisy", ()), given, self.session.schema.limits)  # one that failed is followed by another
        engine = post._ENGINE.con
        assert engine is not None
        return {
            "private": self.backend.owner_rows(STATE),
            "noisy": engine.execute(STATE).fetchall(),
            "data": data.fingerprint(self.session.schema),
            "files": sorted(path.name for path in self.folder.iterdir() if ".ledger" not in path.name),
            "here": sorted(os.listdir()),
            "home": sorted(os.listdir(Path.home())),
            "environment": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
            "sockets": [link for link in _open_files(self.backend.inner._worker.pid) if link.startswith("socket:")],
        }

    def check_untouched(self) -> None:
        """Nothing but the ledger has changed."""
        after = self.state()
        changed = {name: (self.before[name], after[name]) for name in after if after[name] != self.before[name]}
        assert not changed, changed

    def close(self) -> None:
        self.session.close()


def _end(error: Error) -> tuple[str, frozenset[str]]:
    """The code of an error that may be, and how it came about."""
    allowed = error.code in HEAVY if isinstance(error, Fault) else isinstance(error, Refused | OverBudget) and error.code not in UNFORESEEN
    assert allowed, f"{error.code} {error.message}: {error.__context__!r}"
    assert str(error)
    assert error.message
    return error.code, frozenset(_path(error))


def _path(error: Error) -> Iterator[str]:
    """The lines of dpquery that an error came through, the last few, and its code."""
    trace, lines = error.__traceback__, list[str]()
    while trace is not None:
        lines.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    yield f"{error.code} {' '.join(lines[-3:])}"


def _open_files(pid: int) -> list[str]:
    folder = Path(f"/proc/{pid}/fd")
    return [os.readlink(link) for link in folder.iterdir() if link.is_symlink()] if folder.exists() else []


@contextmanager
def timed() -> Iterator[None]:
    """Hang is raised after so many seconds of this process's own time."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {CPU_SECONDS} seconds")

    old = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


@contextmanager
def judge(ground: Ground) -> Iterator[Judge]:
    """A judge with a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        made = Judge(ground, Path(folder))
        try:
            yield made
        finally:
            made.close()
