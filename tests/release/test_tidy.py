"""Tidied values beside released ones: functions of these alone, which tidy once, with bars that hold whenever the released ones' do."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import dpquery
from dpquery.plan.draft import Affine, Edge, Either, Output, Ratio
from dpquery.plan.release import Aggregate, NoKeys, Quantile
from dpquery.plan.scalar import Interval
from dpquery.release import tidy
from dpquery.release.bars import Released
from dpquery.values.types import FLOAT, INTEGER, Kind, Type

C95 = Fraction(95, 100)


def aggregate(name: str, card: str, low: int, high: int, type: Type = INTEGER, **more: Any) -> Aggregate:
    return Aggregate(name, "x", card, (0,), type, Fraction(1), Interval(Fraction(low), Fraction(high)), **more)


def middle(name: str, over: int, part: int) -> Aggregate:
    made = aggregate(name, "quantile_by_rank", 0, 9, FLOAT, quantile=Quantile((Fraction(over, 10),), 0, 9, (1,)))
    return cast(Aggregate, SimpleNamespace(**{field: getattr(made, field) for field in made.__slots__} | {"parts": (part,)}))


AGGREGATES = (
    aggregate("a0", "count", 0, 3),
    aggregate("a1", "total", 0, 9, Type(Kind.DECIMAL, 2)),
    aggregate("a2", "total", -9, 0),
    aggregate("a3", "total", -9, 9),
    aggregate("a4", "mean", 0, 9, FLOAT),
    middle("a5", 9, 0),
    middle("a6", 5, 1),
)
PART = SimpleNamespace(row="x", where=None)
TABLES = {
    "t": Released(
        cast(Any, SimpleNamespace(aggregates=AGGREGATES, keys=NoKeys(), table=SimpleNamespace(parts=(PART, PART)))),
        cast(Any, None),
        cast(Any, None),
        range(3),
    )
}
N = Output("n", Affine("a0"), True)


def completed(outputs: tuple[Output, ...], columns: dict[str, Any], bars: tuple[Any, ...], *, wanted: bool = True) -> tuple[pa.Table, Any]:
    return tidy.completed(outputs, pa.table(columns), bars, TABLES, C95, wanted)


def test_a_count_below_zero_is_zero_with_its_bar_and_the_released_one_stays() -> None:
    bars = ((-16, 8), (-30, -6), (70, 94))
    table, found = completed((N,), {"n": [-4, -18, 82]}, (bars,))
    assert table.to_pydict() == {"n": [-4, -18, 82], "n_tidy": [0, 0, 82]}
    assert found == (bars, ((0, 8), (0, 0), (70, 94)))
    assert table.schema.field("n_tidy").type == table.schema.field("n").type
    assert completed((N,), {"n": [-4, -18, 82]}, (bars,), wanted=False)[0].column_names == ["n"]


def test_sums_stay_on_their_side_of_zero_and_others_have_no_second_column() -> None:
    outputs = tuple(Output(name, Affine(f"a{i}"), True) for i, name in enumerate(("up", "down", "both", "mean"), start=1))
    money = [Decimal("-1.50"), Decimal("2.00"), None]
    table, _ = completed(
        outputs, {"up": pa.array(money, pa.decimal128(38, 2)), "down": [3, -2, 0], "both": [-1, 1, 0], "mean": [0.5] * 3}, (None,) * 4
    )
    assert table.column_names == ["up", "up_tidy", "down", "down_tidy", "both", "mean"]
    assert table.column("up_tidy").to_pylist() == [Decimal("0.00"), Decimal("2.00"), None]
    assert table.column("down_tidy").to_pylist() == [0, -2, 0]


def test_quantiles_of_the_same_values_come_in_their_order() -> None:
    outputs = Output("high", Affine("a5"), True), Output("middle", Affine("a6"), True)
    table, bars = completed(outputs, {"high": [7.5, 2.5, 3.5], "middle": [4.5, 6.5, 3.5]}, (((7.0, 8.0), (2.0, 3.0), None), None))
    assert table.column("high_tidy").to_pylist() == [7.5, 6.5, 3.5]
    assert table.column("middle_tidy").to_pylist() == [4.5, 2.5, 3.5]
    assert bars[1] == ((7.0, 8.0), (2.0, 6.5), None)


@pytest.mark.parametrize(
    "how", [Affine("a0", Fraction(2)), Affine("a0", Fraction(1), Fraction(-5)), Affine("a0", place=1), Ratio("a0", "a0"), None, Affine("a3")]
)
def test_what_is_computed_further_is_not_tidied(how: Any) -> None:
    assert completed((Output("x", how, True),), {"x": [-1, 2, 3]}, (None,))[0].column_names == ["x"]


def test_branches_are_tidied_where_they_agree_and_ends_of_bars_never() -> None:
    same, other = Either((Affine("t.a0"), Affine("t.a1"))), Either((Affine("t.a0"), Affine("t.a2")))
    assert completed((Output("x", same, True),), {"x": [-1, 2, 3]}, (None,))[0].column_names == ["x", "x_tidy"]
    assert completed((Output("x", other, True),), {"x": [-1, 2, 3]}, (None,))[0].column_names == ["x"]
    low = Output("low", Affine("a0"), True, edge=Edge.LOW)
    assert completed((low,), {"low": [None] * 3}, (((-1, 1),) * 3,))[0].column_names == ["low"]


def test_a_name_that_is_taken_is_not_taken_twice() -> None:
    table, _ = completed((N, Output("n_tidy")), {"n": [1, 2, 3], "n_tidy": ["a", "b", "c"]}, (None, None))
    assert table.column_names == ["n", "n_tidy_1", "n_tidy"]


def test_to_tidy_twice_is_to_tidy_once_and_bars_hold_what_the_released_ones_held() -> None:
    random, outputs = Random(1), (N, Output("high", Affine("a5"), True), Output("middle", Affine("a6"), True))
    for _ in range(200):
        values = {one.name: [random.randint(-9, 9) for _ in range(3)] for one in outputs}
        bars = tuple(tuple((value - random.randint(0, 5), value + random.randint(0, 5)) for value in column) for column in values.values())
        once = list(tidy.tidied(outputs, pa.table(values), bars, TABLES))
        again = list(tidy.tidied(outputs, pa.table({one.name: two.values for one, two in zip(outputs, once, strict=True)}), bars, TABLES))
        assert [one.values for one in once] == [one.values for one in again]
        for one in once:
            for value, bar, (low, high) in zip(one.values, one.bars, bars[one.place], strict=True):
                assert bar is not None
                assert bar[0] <= value <= bar[1]
                possible = range(0 if one.place == 0 else low, high + 1)
                assert all(bar[0] <= truth <= bar[1] for truth in possible if truth >= low)


def test_it_costs_nothing_and_changes_nothing_that_was_released(shop: Callable[[Path], Path], tmp_path: Path) -> None:
    sql = "SELECT status, count(*) AS n, sum(amount) AS s FROM orders WHERE amount > 499.99 GROUP BY status ORDER BY n"
    with dpquery.connect(shop(tmp_path / "demo")) as con:
        released = con.query(sql, epsilon="0.01")
        spent = con.budget().spent
        tidied = con.query(sql, epsilon="0.01", tidy=True)
        assert con.budget().spent == spent
    assert tidied.columns == ["status", "n", "n_tidy", "s", "s_tidy"]
    rows = tidied.fetchall()
    assert [(row[0], row[1], row[3]) for row in rows] == released.fetchall()
    assert [row[2] for row in rows] == [max(0, row[1]) for row in rows]
    assert tidied.intervals["n"] == released.intervals["n"]
    assert all(low >= 0 for low, _ in tidied.intervals["n_tidy"])
