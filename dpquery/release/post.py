"""What happens above the noise: plain SQL over the noisy table, in a sealed engine that has never seen anything else."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dpquery.backends.values import type_name
from dpquery.errors import Fault, Refused
from dpquery.plan.draft import Post
from dpquery.schema.model import Limits
from dpquery.turns import Turn
from dpquery.values.types import Kind, Type, Value

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Column = tuple[str, Type, Sequence[Value]]
CHECK_SECONDS = 5.0  # that binding, and a run over no rows, may take


class _Engine:
    """The connection kept by this process: a fresh one costs more than most answers. One statement at a time."""

    def __init__(self) -> None:
        self.lock = Turn()
        self.key: tuple[int, int] | None = None
        self.con: duckdb.DuckDBPyConnection | None = None

    def connection(self, limits: Limits | None) -> duckdb.DuckDBPyConnection:
        """The kept connection, made anew for other limits (None: any will do) and in a forked process, where an engine's threads are gone."""
        from dpquery.backends.seal import Allowance, connect, seal

        wanted = limits or Limits()
        key = (wanted.memory, wanted.threads)
        if self.con is None or (limits is not None and self.key != key):
            self.con = connect(Allowance(wanted.memory, wanted.threads))
            seal(self.con)
            self.key = key
        return self.con


_ENGINE = _Engine()
_ABANDONED: list[object] = []


def _after_fork() -> None:
    """The parent's engine is left as it is, neither used nor ended: its threads are not here."""
    _ABANDONED.append(_ENGINE.con)
    _ENGINE.con = None


if hasattr(os, "register_at_fork"):  # pragma: no branch: where there is no fork, there is none to come after
    os.register_at_fork(after_in_child=_after_fork)


def run(post: Post, columns: Sequence[Column], limits: Limits) -> pa.Table:
    """The statement's answer from the noisy table's columns. A Fault in constant words where it cannot be had."""
    import duckdb
    import pyarrow as pa

    try:
        with _noisy(columns, limits, float(limits.timeout)) as con:
            return _answer(con, post.sql)
    except (duckdb.Error, pa.ArrowException, MemoryError, OverflowError, ValueError, TypeError):
        raise Fault("POST_FAILED", "what the statement does with the released values failed", instead="ask for the released values alone") from None


def check(post: Post, columns: Sequence[Column], limits: Limits | None = None) -> None:
    """Nothing, or Refused where the statement cannot be run over a table of these columns. Their values do not count: it runs over none."""
    import duckdb

    try:
        with _noisy([(name, kind, ()) for name, kind, _ in columns], limits, CHECK_SECONDS) as con:
            answer = _answer(con, post.sql)
    except duckdb.InterruptException:
        message = "what the statement does with the released values takes too long, even without any"
        raise Refused("POST_TOO_SLOW", message, instead="leave out what generates rows by itself") from None
    except duckdb.Error as error:
        message = f"what the statement does with the released values is not valid: {_said(error)}"
        raise Refused("POST_INVALID", message, instead="mend the expression; the rules are DuckDB's") from None
    for field in answer.schema:
        if not _shown(field.type):
            message = f"a column of the answer is of a type that cannot be handed over: {field.type}"
            raise Refused("OUTPUT_TYPE", message, instead="date_diff('day', a, b) for what lies between two moments; CAST(x AS VARCHAR)")


def _shown(kind: pa.DataType) -> bool:
    """Whether every format can show values of this type."""
    import pyarrow.types as t

    simple = (t.is_boolean, t.is_integer, t.is_floating, t.is_string, t.is_date32, t.is_timestamp, t.is_decimal128, t.is_null)
    return any(fits(kind) for fits in simple)


def _said(error: Exception) -> str:
    """The engine's complaint in one line. It knows nothing but the statement: this engine has no data."""
    line = str(error).strip().partition("\n")[0]
    kind, colon, rest = line.partition(" Error: ")
    return (rest if colon and kind.replace(" ", "").isalpha() else line)[:300] or "no reason given"


def _answer(con: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    import duckdb

    found = con.extract_statements(sql)
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise duckdb.InvalidInputException("a single SELECT is wanted")
    answer: pa.Table = con.sql(sql).to_arrow_table()
    return _dated(answer)


def _dated(answer: pa.Table) -> pa.Table:
    """The table, its dates beyond the years 1 to 9999 NULL as what overflows is: nobody but the engine has such dates."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(answer.schema):
        if pa.types.is_date32(field.type) or pa.types.is_timestamp(field.type):
            ends = [pa.scalar(end, field.type) for end in (datetime.min, datetime.max)]
            column = answer.column(place)
            kept = pc.and_(pc.greater_equal(column, ends[0]), pc.less_equal(column, ends[1]))
            answer = answer.set_column(place, field, pc.if_else(kept, column, pa.scalar(None, field.type)))
    return answer


@contextmanager
def _noisy(columns: Sequence[Column], limits: Limits | None, seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The engine with table `noisy` in it, for so many seconds."""
    import pyarrow as pa

    with _ENGINE.lock, _keyboard():
        con = _ENGINE.connection(limits)
        given = pa.table({name: pa.array(_plain(values, kind), _arrow(kind)) for name, kind, values in columns})
        items = ", ".join(f'CAST("{name}" AS {_sql(kind)}) AS "{name}"' for name, kind, _ in columns)
        timer = threading.Timer(seconds, con.interrupt)
        timer.daemon = True
        try:
            con.register("noisy_columns", given)
            con.execute(f"CREATE OR REPLACE TABLE noisy AS SELECT {items} FROM noisy_columns")
            con.unregister("noisy_columns")
            timer.start()
            yield con
        except BaseException:
            _ENGINE.con = None  # whatever state it is in, the next statement gets another
            raise
        finally:
            timer.cancel()


@contextmanager
def _keyboard() -> Iterator[None]:
    """An interrupt from the keyboard stays one: the engine makes an error of its own of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def _plain(values: Sequence[Value], kind: Type) -> list[Any]:
    return [None if v is None else str(v) for v in values] if kind.kind is Kind.UUID else list(values)


def _arrow(kind: Type) -> pa.DataType:
    import pyarrow as pa

    match kind.kind:
        case Kind.DECIMAL:
            return pa.decimal128(38, kind.scale)
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.INTEGER:
            return pa.int64()
        case Kind.FLOAT:
            return pa.float64()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us")
        case Kind.NULL:
            return pa.int32()
        case _:
            return pa.string()


def _sql(kind: Type) -> str:
    return "INTEGER" if kind.kind is Kind.NULL else type_name(kind)  # an untyped NULL is an INTEGER in an answer, as it is in DuckDB's own
