"""What happens above the noise: plain SQL over the noisy table, in a sealed engine that has never seen anything else."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from math import isfinite, prod
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dpquery.backends import public
from dpquery.backends.canonical import canonical
from dpquery.backends.values import type_name
from dpquery.errors import Fault, Position, Refused
from dpquery.plan.draft import Feed, Post, Product
from dpquery.plan.rel import Filling
from dpquery.schema.model import Limits
from dpquery.turns import Turn
from dpquery.values.types import Kind, Shown, Type, Value

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Column = tuple[str, Type, Sequence[Shown]]
Tables = Mapping[str, Sequence[Column]]
MOST_FED = 10_000  # rows of what a later release reads
MOST_SOUND = 1000  # statements that are remembered as sound
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
_SOUND: set[bytes] = set()  # digests of statements, with the types of what they read, that were checked: they are nothing but text


def _after_fork() -> None:
    """The parent's engine is left as it is, neither used nor ended: its threads are not here."""
    _ABANDONED.append(_ENGINE.con)
    _ENGINE.con = None


if hasattr(os, "register_at_fork"):  # pragma: no branch: where there is no fork, there is none to come after
    os.register_at_fork(after_in_child=_after_fork)


def run(post: Post, tables: Tables, limits: Limits) -> pa.Table:
    """The statement's answer from the noisy tables. A Fault in constant words where it cannot be had."""
    import duckdb
    import pyarrow as pa

    try:
        with _noisy(tables, limits, float(limits.timeout)) as con:
            return _answer(con, post.sql)
    except (duckdb.Error, pa.ArrowException, MemoryError, OverflowError, ValueError, TypeError):
        raise Fault("POST_FAILED", "what the statement does with the released values failed", instead="ask for the released values alone") from None


def rows(feed: Feed, tables: Tables, limits: Limits) -> tuple[list[tuple[Value, ...]], bool]:
    """The released values that a later release reads, as different rows in their own order, and whether they are all: so many at most.

    Where they cannot be had there are none; of what stands for one row, a row of NULLs.
    """
    most = 1 if feed.filling is Filling.ROW else MOST_FED
    order = ", ".join(f"c{i} NULLS LAST" for i in range(len(feed.types)))
    named = ", ".join(f"c{i}" for i in range(len(feed.types)))
    try:
        table = run(Post(f"SELECT {named} FROM ({feed.sql}) AS f({named}) ORDER BY {order} LIMIT {most + 1}", (), rows=()), tables, limits)
    except Fault:
        return [(None,) * len(feed.types)] if feed.filling is Filling.ROW else [], False
    found = zip(*(table.column(i).to_pylist() for i in range(len(feed.types))), strict=True)
    fitting = dict.fromkeys(one for one in (canonical(_values(row, feed.types), feed.types) for row in found) if one is not None)
    return list(fitting)[:most], table.num_rows <= most


def _values(row: Sequence[Any], types: Sequence[Type]) -> tuple[Value, ...]:
    return tuple(UUID(v) if v is not None and kind.kind is Kind.UUID else _finite(v) for v, kind in zip(row, types, strict=True))


def _finite(value: Value) -> Value:
    """NULL where arithmetic has no finite number."""
    return None if isinstance(value, float) and not isfinite(value) else value


def check(post: Post, tables: Tables, limits: Limits | None = None) -> None:
    """Nothing, or Refused where the statement cannot be run over tables of these columns. Their values do not count: it runs over none."""
    empty: Tables = {table: [(name, kind, ()) for name, kind, _ in columns] for table, columns in tables.items()}
    asked = sha256(repr((post.sql, empty)).encode(errors="surrogatepass")).digest()
    if asked in _SOUND:
        return
    _check(post, empty, limits)
    if len(_SOUND) >= MOST_SOUND:
        _SOUND.clear()
    _SOUND.add(asked)


def _check(post: Post, empty: Tables, limits: Limits | None) -> None:
    import duckdb

    try:
        with _noisy(empty, limits, CHECK_SECONDS) as con:
            answer = _answer(con, post.sql)
    except duckdb.InterruptException:
        message = "what the statement does with the released values takes too long, even without any"
        raise Refused("POST_TOO_SLOW", message, instead="leave out what generates rows by itself") from None
    except duckdb.Error as error:
        message = f"what the statement does with the released values is not valid: {_said(error)}"
        instead = "mend the expression; the rules are DuckDB's"
        raise Refused("POST_INVALID", message, instead=instead, position=_culprit(post, empty, limits)) from None
    for place, field in enumerate(answer.schema):
        if not _shown(field.type):
            message = f"a column of the answer is of a type that cannot be handed over: {field.type}"
            instead = "date_diff('day', a, b) for what lies between two moments; CAST(x AS VARCHAR)"
            raise Refused("OUTPUT_TYPE", message, instead=instead, position=post.places[place][1] if place < len(post.places) else None)


def check_pairs(products: Sequence[Product], tables: Tables, limits: Limits) -> None:
    """Refused where a join without an equality has too many pairs of rows of what is known of the tables, before any is made; inner ones first."""
    import duckdb

    if not products:
        return
    try:
        with _noisy(tables, limits, CHECK_SECONDS) as con:
            for one in products:
                left, right = (_size(con, side, tables, unsure) for side, unsure in zip(one.sides, one.unsure, strict=True))
                public.check_pairs(one, left * right)
    except duckdb.Error:
        message, instead = "what the statement does with public tables takes too long", "subqueries of the rows that are needed, (SELECT .. WHERE ..)"
        raise Refused("POST_TOO_SLOW", message, instead=instead, position=products[0].position) from None


def _size(con: duckdb.DuckDBPyConnection, side: str, tables: Tables, unsure: bool) -> int:
    """How many rows an item of FROM has at most; where none meet yet, private keys decide: as many as the greatest of what it reads.

    Noisy values are NULL so far. Where conditions read them it is all combinations of rows, or those of two branches of a set operation, one by one.
    """
    read = [len(tables[name][0][2]) for name in re.findall(r"\b(?:FROM|JOIN) (\w+)", side) if tables.get(name)]
    if unsure:
        return prod(max(rows, 2) for rows in read)
    counted = int(_answer(con, f"SELECT count(*) AS n FROM {side} AS q").column(0)[0].as_py())
    return counted or max(read, default=1) or 1


def _culprit(post: Post, empty: Tables, limits: Limits | None) -> Position | None:
    """Where the analyst wrote the expression without which the statement can be run; None where no single one is it."""
    import duckdb

    for text, position in dict(post.places).items():
        for stand_in in ("NULL", "(CASE WHEN FALSE THEN TRUE END)"):
            try:
                with _noisy(empty, limits, CHECK_SECONDS) as con:
                    _answer(con, post.sql.replace(text, stand_in))
                return position
            except duckdb.Error:
                continue
    return None


def _shown(kind: pa.DataType) -> bool:
    """Whether every format can show values of this type, or lists of them."""
    import pyarrow.types as t

    kind = kind.value_type if t.is_list(kind) else kind
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
    return _dated(_plainly_listed(answer))


def _plainly_listed(answer: pa.Table) -> pa.Table:
    """The table, its lists of the type that Arrow itself makes of one: the engine names their items otherwise."""
    import pyarrow as pa

    for place, field in enumerate(answer.schema):
        if pa.types.is_list(field.type):
            kind = pa.list_(field.type.value_type)
            answer = answer.set_column(place, pa.field(field.name, kind), answer.column(place).cast(kind))
    return answer


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
def _noisy(tables: Tables, limits: Limits | None, seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The engine with the noisy tables in it, for so many seconds."""
    with _ENGINE.lock, _keyboard():
        con = _ENGINE.connection(limits)
        timer = threading.Timer(seconds, con.interrupt)
        timer.daemon = True
        try:
            for name, columns in tables.items():
                _stand(con, name, columns)
            timer.start()
            yield con
        except BaseException:
            _ENGINE.con = None  # whatever state it is in, the next statement gets another
            raise
        finally:
            timer.cancel()


def _stand(con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[Column]) -> None:
    """The table stands in the engine, in place of what had its name."""
    import pyarrow as pa

    if not any(len(values) for _, _, values in columns):
        con.execute(f"CREATE OR REPLACE TABLE {table} (" + ", ".join(f'"{name}" {_sql(kind)}' for name, kind, _ in columns) + ")")
        return
    con.register("columns_of_table", pa.table({name: pa.array(_plain(values, kind), _arrow(kind)) for name, kind, values in columns}))
    items = ", ".join(f'CAST("{name}" AS {_sql(kind)}) AS "{name}"' for name, kind, _ in columns)
    con.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT {items} FROM columns_of_table")
    con.unregister("columns_of_table")


@contextmanager
def _keyboard() -> Iterator[None]:
    """An interrupt from the keyboard stays one: the engine makes an error of its own of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def _plain(values: Sequence[Shown], kind: Type) -> list[Any]:
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
        case Kind.LIST:
            return pa.list_(_arrow(kind.element))
        case _:
            return pa.string()


def _sql(kind: Type) -> str:
    return "INTEGER" if kind.kind is Kind.NULL else type_name(kind)  # an untyped NULL is an INTEGER in an answer, as it is in DuckDB's own
