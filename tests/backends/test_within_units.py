"""Aggregates within a unit on a real engine: plain DuckDB's on clean values, total on dirty ones, whatever stands around a unit's rows."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpquery.backends.inside import reduced
from dpquery.backends.scalar import scan
from dpquery.plan.inside import ADDED, BITS, PAIRS, SHAPES, WINDOWS, Reduce, Reduction, Sort, Whole
from dpquery.plan.scalar import Column
from dpquery.values.types import BOOLEAN, FLOAT, INTEGER, STRING, Type

F, N, S, B, G = (Column(k, name, kind) for k, (name, kind) in enumerate((("f", FLOAT), ("i", INTEGER), ("s", STRING), ("b", BOOLEAN), ("g", FLOAT))))
NAMES = {column.id: column.name for column in (F, N, S, B, G)}
WIDE, FINE, ROUGH = Whole(Fraction(1, 64), -640, 6400), Whole(Fraction(1), -50, 900), Whole(Fraction(1, 4), -40, 400)
PLAIN = {
    Reduce.FIRST: "first({x} ORDER BY {y} DESC NULLS LAST, {x})",
    Reduce.TEXTS: "string_agg(s, '; ' ORDER BY {y} DESC NULLS FIRST, s)",
    Reduce.SQUARES: "regr_sxx(1, {x})",
    Reduce.ARG_MIN: "arg_min({x}, {y})",
    Reduce.ARG_MAX: "arg_max({x}, {y})",
}
CLEAN = """
CREATE TABLE t AS SELECT i % 7 AS u, ((i * 37 % 90) - 8) / 8.0::DOUBLE AS f, (i * 13 % 60)::BIGINT - 20 AS i, 'v' || i % 4 AS s, i % 3 > 0 AS b,
  (i * 11 % 13)::DOUBLE AS g FROM range(80) r(i);
INSERT INTO t VALUES (7, 2.5, 3, 'one', TRUE, 4), (8, NULL, NULL, NULL, NULL, NULL), (9, 1, 1, 'x', FALSE, NULL), (9, NULL, 2, 'y', NULL, 3),
  (10, 2, 2, 'a', TRUE, 1), (10, 4, 2, 'b', TRUE, 1), (11, 3, -1, 'a', TRUE, 2), (11, 3, -1, 'a', TRUE, 6), (12, 0, 0, 'a', FALSE, 0);
"""
DIRTY = "('inf'), ('-inf'), ('nan'), ('-0.0'), ('1e308'), ('-1e308'), ('5e-324'), (NULL), ('0.1'), ('0.3'), ('7'), ('1e16')"
HUGE = "(NULL), (9223372036854775807), (-9223372036854775808), (0), (1), (-1), (4611686018427387904)"


def item(function: Reduce, of: Column = F, by: Column = G, distinct: bool = False) -> Reduction:
    """The aggregate of a column that suits it."""
    if function in PAIRS:
        return Reduction(function, of, FLOAT, by=by, whole=grid(function, of), beside=grid(function, by))
    if function in (Reduce.ARG_MIN, Reduce.ARG_MAX):
        return Reduction(function, of, of.type, by=by)
    if function in (Reduce.FIRST, Reduce.TEXTS):
        texts = function is Reduce.TEXTS
        sort = Sort(descending=True, nulls_first=texts, separator="; " if texts else None)
        return Reduction(function, S if texts else of, STRING if texts else of.type, distinct=distinct, by=None if distinct else by, sort=sort)
    of = N if function in BITS else S if function is Reduce.ENTROPY else B if function in (Reduce.ALL, Reduce.ANY) else of
    own = function in (Reduce.SUM, Reduce.MIN, Reduce.MAX, Reduce.QUANTILE_DISC, Reduce.ALL, Reduce.ANY, *BITS)
    kind: Type = INTEGER if function is Reduce.COUNT else of.type if own else FLOAT
    fraction = Fraction(1, 4) if function in (Reduce.QUANTILE_CONT, Reduce.QUANTILE_DISC) else None
    return Reduction(function, of, kind, distinct=distinct, fraction=fraction, whole=grid(function, of) if function in ADDED else None)


def grid(function: Reduce, of: Column) -> Whole:
    return FINE if of == N else ROUGH if of == G else WIDE


def plain(function: Reduce, of: Column = F, by: Column = G, each: str = "") -> str:
    of = N if function in BITS else S if function is Reduce.ENTROPY else B if function in (Reduce.ALL, Reduce.ANY) else of
    if function in (*PAIRS, *PLAIN):
        return PLAIN.get(function, f"{function}({{x}}, {{y}})").format(x=of.name, y=by.name)
    if function in (Reduce.QUANTILE_CONT, Reduce.QUANTILE_DISC):
        return f"{function}({of.name}, 0.25)"
    return f"exp(avg({each}ln({of.name})))" if function is Reduce.GEOMEAN else f"{function}({each}{of.name})"


def near(one: object, other: object) -> bool:
    """What plain DuckDB calls NaN is NULL here."""
    if isinstance(other, float) and other != other:
        other = None
    return one == pytest.approx(other, rel=1e-9, abs=1e-9) if isinstance(one, float) and isinstance(other, float | int) else one == other


@pytest.fixture(scope="module")
def clean() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(CLEAN)
    return con


@pytest.mark.parametrize("of", [F, N])
@pytest.mark.parametrize("each", ["", "DISTINCT "])
def test_on_clean_values_each_aggregate_is_plain_duckdbs(of: Column, each: str, clean: duckdb.DuckDBPyConnection) -> None:
    functions = [one for one in Reduce if not each or one not in (*PAIRS, *PLAIN, Reduce.QUANTILE_CONT, Reduce.QUANTILE_DISC)]
    made = ", ".join(f"{reduced(item(one, of, distinct=bool(each)), NAMES)}, {plain(one, of, each=each)}" for one in functions)
    for row in clean.execute(f"SELECT u, {made} FROM t GROUP BY u").fetchall():
        for place, function in enumerate(functions):
            assert near(*row[1 + 2 * place : 3 + 2 * place]), (row[0], function, row[1 + 2 * place : 3 + 2 * place])


def test_on_clean_values_each_window_is_plain_duckdbs(clean: duckdb.DuckDBPyConnection) -> None:
    over, functions = (
        " OVER (PARTITION BY u ORDER BY i RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        [one for one in WINDOWS if one not in (Reduce.SQUARES, Reduce.GEOMEAN)],
    )
    made = ", ".join(f"{reduced(item(one), NAMES, over)}, {plain(one)}{over}" for one in functions)
    for row in clean.execute(f"SELECT u, {made} FROM t").fetchall():
        for place, function in enumerate(functions):
            assert near(*row[1 + 2 * place : 3 + 2 * place]), (row[0], function, row[1 + 2 * place : 3 + 2 * place])


def test_on_dirty_values_no_aggregate_fails_and_none_depends_on_other_rows_their_order_or_threads() -> None:
    """The same bits for each unit, whether the values are canonical or not."""
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE all_ AS SELECT (hash(f, i, k) % 40)::INT AS u, f::DOUBLE AS f, i::BIGINT AS i, f AS s, i > 0 AS b, f::DOUBLE * k AS g"
        f" FROM (VALUES {DIRTY}) a(f), (VALUES {HUGE}) b(i), range(3) r(k)"
    )
    functions = [item(one) for one in Reduce] + [item(one, N, F) for one in (*PAIRS, *SHAPES, Reduce.PRODUCT, Reduce.GEOMEAN, Reduce.MAD)]
    made = ", ".join(reduced(one, NAMES) for one in functions)
    windows = ", ".join(reduced(item(one), NAMES, " OVER (PARTITION BY u)") for one in WINDOWS)
    canonical = f"SELECT u, {scan('f', FLOAT)} AS f, i, s, b, {scan('g', FLOAT)} AS g FROM t"
    seen = []
    for order, threads, kept in (("u, f, i, g", 1, "TRUE"), ("hash(f, i), g", 4, "TRUE"), ("i, g, f", 4, "u % 2 = 0")):
        con.execute(f"SET threads = {threads}; CREATE OR REPLACE TABLE t AS SELECT * FROM all_ WHERE {kept} ORDER BY {order}")
        con.execute(f"SELECT u, {made} FROM t GROUP BY u").fetchall()  # as they stand: other values, no failure
        rows = con.execute(f"SELECT u, {made} FROM ({canonical}) GROUP BY u").fetchall()
        for one in rows:
            assert not any(isinstance(value, float) and value != value for value in one)
        over = con.execute(f"SELECT DISTINCT u, {windows} FROM ({canonical})").fetchall()
        seen.append({repr(row) for row in [*rows, *over] if row[0] % 2 == 0})
    assert seen[0] == seen[1] == seen[2]
