"""The process that holds the data: `python -m dpquery.backends.worker`, fed through standard input, answering on standard output.

A query that runs away ends here, under a limit of the operating system, and takes nothing else with it. Only codes and results leave: never
an engine's message, which may hold a private value.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, BinaryIO

import duckdb

from dpquery.backends import wire
from dpquery.backends.seal import Allowance, connect, seal, unopened
from dpquery.without import without

PR_SET_DUMPABLE = 4
BLANK = 64 * 2**20  # what the engine without tables may use, which only reads statements
KEPT, SHORT = 8, 65_536  # statements that are read once, to be bound and run; no longer than so many characters, lest they eat into the margin
MARGIN = 512 * 2**20  # address space that a query needs beyond the engine's own limit: stacks, what threads reserve, results on their way out


class Broken(Exception):
    """A failure that has a code of its own."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Engine:
    """The source, and an engine without any table, which only reads statements."""

    def __init__(self, con: duckdb.DuckDBPyConnection, blank: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self._kept = lru_cache(maxsize=KEPT)(con.extract_statements)
        self._names = lru_cache(maxsize=KEPT)(blank.get_table_names)

    def statements(self, sql: str) -> list[duckdb.Statement]:
        """What a text holds, read once while it is among the latest."""
        return self._kept(sql) if len(sql) <= SHORT else self.con.extract_statements(sql)

    def names(self, sql: str) -> set[str]:
        """The tables that a statement reads.

        Asked of an engine without tables, for which a name is only a name: one with the files' views would look into these, and fail.
        """
        return self._names(sql)


def main() -> None:
    """Serves requests until standard input ends or the parent is gone."""
    without("numpy")  # pyarrow imports it where it is there: a fifth of the start, and threads and memory
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints nowhere
    warnings.simplefilter("ignore")
    first, _ = wire.unpacked(lambda n: _exactly(requests, n))
    _alone(int(first["parent"]), str(first["folder"]))
    try:
        with contextlib.suppress(EOFError, BrokenPipeError):
            _serve(first, requests, replies)
    finally:
        shutil.rmtree(str(first["folder"]), ignore_errors=True)


def _serve(first: dict[str, Any], requests: BinaryIO, replies: BinaryIO) -> None:
    """Opens the source and answers one request after another."""
    try:
        engine = _Engine(_opened(first), _blank())
    except Exception as error:
        _reply(replies, {"error": _code(error, opening=True), "spoilt": True})
        return
    _reply(replies, {"ok": True})
    while True:
        request, _ = wire.unpacked(lambda n: _exactly(requests, n))
        _reply(replies, *_served(engine, request))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def _reply(stream: BinaryIO, header: dict[str, Any], body: bytes = b"") -> None:
    stream.write(wire.packed(header, body))
    stream.flush()


def _alone(parent: int, folder: str) -> None:
    """No core dumps, and no life without the parent.

    The kernel's own signal at a parent's death (PR_SET_PDEATHSIG) is one at the death of the parent's thread that started this process: too early.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # a core file's limit does not hold where cores are piped to a collector

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _blank() -> duckdb.DuckDBPyConnection:
    """An engine without any table."""
    con = connect(Allowance(BLANK, threads=1))
    seal(con)
    return con


def _opened(first: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """The source, open read-only as catalogue `data`, and everything else shut."""
    con = connect(Allowance(int(first["memory"]), int(first["threads"]), str(first["folder"])))
    con.execute("SET preserve_insertion_order = false")
    con.execute("SET allowed_paths = " + str(first["allowed"]))
    for statement in first["statements"]:
        con.execute(statement)
    for statement in first["shown"]:
        with contextlib.suppress(duckdb.CatalogException):  # a public table that is missing: `check` says so
            con.execute(statement)
    con.execute("USE " + str(first["use"]))
    seal(con)
    import pyarrow  # noqa: F401  (what it takes belongs to the base of the limit)

    _limited(int(first["memory"]))
    return con


def _limited(memory: int) -> None:
    """Address space is bounded to what the open engine has, and room for what it may use: the engine's own limit does not count every string."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as statm:
            base = int(statm.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    limit = base + _room(memory)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _room(memory: int) -> int:
    """Address space for an engine that may use so much memory.

    Twice as much: a statement that spills was seen to map 1.6 times what it may use, presumably as addresses of what was freed are kept.
    """
    return 2 * memory + MARGIN


def _served(engine: _Engine, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The reply to one request, whatever happens."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        engine.con.interrupt()

    timer = None if request["timeout"] is None else threading.Timer(float(request["timeout"]), stop)
    try:
        if timer is not None:
            timer.daemon = True
            timer.start()
        return {"ok": True}, _done(engine, request)
    except Exception as error:
        code = "ENGINE_TIMEOUT" if late.is_set() else _code(error)
        spoilt = code != "ENGINE_FAILED" or isinstance(error, duckdb.FatalException | duckdb.InternalException)
        return {"error": code, "spoilt": spoilt}, b""
    finally:
        if timer is not None:
            timer.cancel()


def _done(engine: _Engine, request: dict[str, Any]) -> bytes:
    match request["do"]:
        case "execute":
            for statement in request["statements"]:
                engine.con.execute(_single(engine, _reading(engine, statement, request.get("reads"))))
            return b""
        case "bind":
            _select(engine, request["sql"])
            engine.con.execute("PREPARE bound AS " + request["sql"])  # to EXPLAIN it would plan it too, by what the engine knows of the rows
            return b""
        case "rows":
            return _rows(engine, _reading(engine, request["sql"], request.get("reads")))
        case _:
            raise Broken("ENGINE_FAILED")


def _single(engine: _Engine, sql: str) -> duckdb.Statement:
    found = engine.statements(sql)
    if len(found) != 1:
        raise Broken("ENGINE_FAILED")
    return found[0]


def _reading(engine: _Engine, sql: str, names: Sequence[str] | None) -> str:
    """The statement, which reads and makes no table but these; None: whatever it reads."""
    if names is not None and not sql.startswith("DROP TABLE ") and not {n.casefold() for n in engine.names(sql)} <= {n.casefold() for n in names}:
        raise Broken("ENGINE_FAILED")
    return sql


def _select(engine: _Engine, sql: str) -> duckdb.Statement:
    found = _single(engine, sql)
    if found.type != duckdb.StatementType.SELECT:
        raise Broken("ENGINE_FAILED")
    return found


def _rows(engine: _Engine, sql: str) -> bytes:
    """The result as an Arrow stream. It is executed, not asked for by `sql()`, which reads and plans a statement twice."""
    import pyarrow as pa

    table: Any = engine.con.execute(_select(engine, sql)).to_arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _code(error: BaseException, *, opening: bool = False) -> str:
    match error:
        case Broken(code=code):
            return code
        case MemoryError() | duckdb.OutOfMemoryException():
            return "ENGINE_MEMORY"
        case duckdb.Error() if opening:
            return unopened(error)
        case _:
            return "ENGINE_FAILED"


if __name__ == "__main__":
    main()
