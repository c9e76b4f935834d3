"""Totality: no allowed function can make the engine raise, whatever the data and wherever the expression stands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from extremes import EXPRESSIONS, split, values
from scalars import IDS, TYPES, scalar

from dpquery.backends.scalar import sql
from dpquery.backends.values import scan, type_name
from dpquery.errors import Refused
from dpquery.plan.coerce import LONGEST
from dpquery.plan.functions import FUNCTIONS
from dpquery.plan.scalar import Call, Cast, columns, walk
from dpquery.values.types import Kind


def names_of(text: str) -> list[str]:
    """The columns an expression reads, in the order of the table of types."""
    return sorted((column.name for column in columns(EXPRESSIONS[text])), key=list(TYPES).index)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """On disk, so that the optimizer has exact statistics: one table of all values per column, and one table per value."""
    path = tmp_path_factory.mktemp("total") / "total.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("SET threads = 1")
        for name in TYPES:
            con.execute(f"CREATE TABLE all_{name} AS SELECT * FROM (VALUES {', '.join(f'({value})' for value in values(name))}) v({name})")
            for place, value in enumerate(values(name)):
                con.execute(f"CREATE TABLE one_{name}_{place} AS SELECT {value} AS {name}")
        con.execute("CHECKPOINT")
        yield con


def test_every_function_is_tried() -> None:
    tried = {node.function for found in EXPRESSIONS.values() for node in walk(found) if isinstance(node, Call)}
    assert tried == set(FUNCTIONS)


def test_every_cast_is_tried() -> None:
    from dpquery.plan.coerce import CASTS

    tried = {(node.arg.type.kind, node.type.kind) for found in EXPRESSIONS.values() for node in walk(found) if isinstance(node, Cast)}
    allowed = {(source, to) for source, targets in CASTS.items() for to in targets if source is not Kind.NULL}
    assert allowed <= tried


IDS_TO_NAMES = {place: name for name, place in IDS.items()}
GROUPS = {
    names: [text for text in EXPRESSIONS if tuple(names_of(text)) == names] for names in dict.fromkeys(tuple(names_of(text)) for text in EXPRESSIONS)
}
"""The expressions by the columns they read: those of a group run in one statement."""


def run(con: duckdb.DuckDBPyConnection, shape: str, made: dict[str, str]) -> None:
    """Runs `shape` with the expressions in place of `{}`; where that raises, with each alone, to name it."""
    try:
        con.execute(shape.format(", ".join(made.values()))).fetchall()
    except duckdb.Error:
        for text, one in made.items():
            try:
                con.execute(shape.format(one)).fetchall()
            except duckdb.Error as error:
                pytest.fail(f"{text}: {error}")
        raise


@pytest.mark.parametrize("names", GROUPS, ids=",".join)
def test_nothing_raises(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Raw columns, not canonical ones: selected, as a condition, as a join condition, and on one-row tables whose statistics say it all."""
    made = {text: sql(EXPRESSIONS[text], IDS_TO_NAMES) for text in GROUPS[names]}
    tables = [f"all_{name}" for name in names]
    run(con, f"SELECT {{}} FROM {' CROSS JOIN '.join(tables)}", made)
    conditions = {text: one if EXPRESSIONS[text].type.kind is Kind.BOOLEAN else f"({one}) IS NOT NULL" for text, one in made.items()}
    for text, one in conditions.items():
        run(con, f"SELECT count(*) FROM {' CROSS JOIN '.join(tables)} WHERE {{}}", {text: one})
        if len(names) == 2:
            run(con, f"SELECT count(*) FROM {tables[0]} LEFT JOIN {tables[1]} ON {{}}", {text: one})
    for name in names:
        others = [f"all_{other}" for other in names if other != name]
        for place in range(len(values(name))):
            source = " CROSS JOIN ".join([f"one_{name}_{place}", *others])
            run(con, f"SELECT {{}} FROM {source}", {text: f"max({one})" for text, one in made.items()})
            run(con, f"SELECT {{}} FROM {source}", {text: f"count(*) FILTER (WHERE {one})" for text, one in conditions.items()})


@pytest.mark.parametrize("names", GROUPS, ids=",".join)
def test_constants_do_not_raise(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Constants are folded while the statement is planned; that must not raise either."""
    chosen = list(itertools.product(*(values(name) for name in names)))
    for some in chosen[:: max(1, len(chosen) // 40)]:
        given = {IDS[name]: value for name, value in zip(names, some, strict=True)}
        run(con, "SELECT {}", {text: sql(EXPRESSIONS[text], given) for text in GROUPS[names]})


@pytest.mark.parametrize("names", GROUPS, ids=",".join)
def test_results_are_canonical(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Over scanned columns: the type that the plan says, no NaN, no -0.0, no text beyond the limit."""
    sources = " CROSS JOIN ".join(f"(SELECT {scan(f'r.{name}', TYPES[name])} AS {name} FROM all_{name} r)" for name in names)
    for text in GROUPS[names]:
        kind, made = EXPRESSIONS[text].type, sql(EXPRESSIONS[text], IDS_TO_NAMES)
        wrong = {
            Kind.FLOAT: "count(*) FILTER (WHERE isnan(r) OR (r = 0 AND signbit(r)))",
            Kind.STRING: f"count(*) FILTER (WHERE length(r) > {LONGEST})",
        }
        query = f"SELECT min(typeof(r)), max(typeof(r)), {wrong.get(kind.kind, '0')} FROM (SELECT {made} AS r FROM {sources})"
        assert con.execute(query).fetchall() == [(type_name(kind), type_name(kind), 0)], text


def test_parquet_columns_do_not_raise(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Files bring statistics and dictionaries of their own."""
    for name in TYPES:
        con.execute(f"COPY (SELECT * FROM all_{name}, range(50)) TO '{tmp_path}/{name}.parquet'")
    for names, texts in GROUPS.items():
        if len(names) == 1:
            run(con, f"SELECT {{}} FROM '{tmp_path}/{names[0]}.parquet'", {text: f"max({sql(EXPRESSIONS[text], IDS_TO_NAMES)})" for text in texts})


PLAIN = split("""
i + j ; i - j ; i * j ; -i ; abs(i) ; i // j ; i % j ; p + q ; p * q ; round(i, -1) ; round(z, -1) ; CAST(x AS BIGINT) ; CAST(s AS DATE)
d + INTERVAL 1 MONTH ; date_trunc('month', d) ; last_day(d) ; date_diff('microsecond', ts, tu) ; CAST(d AS TIMESTAMP) ; d + 3652059
""")


@pytest.mark.parametrize("text", PLAIN)
def test_plain_forms_do_raise(con: duckdb.DuckDBPyConnection, text: str) -> None:
    """The extreme values are extreme enough: without total forms these fail."""
    with pytest.raises(duckdb.Error):
        con.execute(f"SELECT {text} FROM {' CROSS JOIN '.join(f'all_{name}' for name in names_of(text))}").fetchall()


def test_nothing_is_named_too_often() -> None:
    """Divisions within divisors double the text each time: refused long before the engine would choke on it, and not by a stack that overflows."""
    deep = "x"
    for _ in range(40):
        deep = f"1 / ({deep})"
    with pytest.raises(Refused) as refused:
        sql(scalar(deep), IDS_TO_NAMES)
    assert refused.value.code == "TOO_COMPLEX"
    assert len(sql(scalar(" + ".join(["x"] * 150)), IDS_TO_NAMES)) < 10_000
    assert len(sql(scalar(f"i IN ({', '.join(map(str, range(10_000)))})"), IDS_TO_NAMES)) < 100_000


def test_the_deepest_expression_is_lowered(con: duckdb.DuckDBPyConnection) -> None:
    deep = "x"
    for _ in range(195):
        deep = f"abs({deep})"
    con.execute(f"SELECT max({sql(scalar(deep), IDS_TO_NAMES)}) FROM all_x").fetchall()
    assert hash(scalar(deep)) == hash(scalar(deep))
