"""MODE: what is read off exact counts, ties, and how far a value has to lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from people import ORDINARY, made, opened

from dpquery.aggregates import CARDS, mode
from dpquery.errors import Refused
from dpquery.mechanisms import Noise, SystemBits, choose, sample
from dpquery.plan.draft import AggregateAsk, Contributions
from dpquery.plan.release import Aggregate, Bins, Choosing, Mechanism, Units
from dpquery.plan.scalar import Case as Choice
from dpquery.plan.scalar import Column, Interval, Literal, Scalar
from dpquery.values.types import BOOLEAN, INTEGER, STRING, Type, Value

CARD = CARDS["mode"]
ROW = 2**20
C95 = Fraction(95, 100)
LAPLACE = Noise(Mechanism.LAPLACE, Fraction(3 * ROW))
GAUSSIAN = Noise(Mechanism.GAUSSIAN, Fraction(4 * ROW) ** 2)
COUNTRY = ("US", "DE", "FR", "JP")


def asked(values: Sequence[Value] = COUNTRY, kind: Type = STRING, argument: Scalar | None = None) -> AggregateAsk:
    return AggregateAsk("a0", "mode(x)", "mode", argument or Column(0, "x", kind), None, values=tuple(values))


def given(groups: int | None = 1, rows: int = 3) -> Contributions:
    return Contributions(1, rows, 1, listed=groups)


def of(values: Sequence[Value] = COUNTRY, kind: Type = STRING) -> Aggregate:
    found = CARD.plan(asked(values, kind), given(), None)
    return Aggregate("a0", "mode(x)", "mode", (0,), found.type, found.step, found.bounds, notes=found.notes, values=found.values)


def test_it_is_one_part_with_a_bin_for_each_value() -> None:
    (part,) = CARD.plan(asked(), given(), None).parts
    assert part.cell == Bins(3, 1, 4)
    assert isinstance(part.row, Units)
    assert (part.row.step, part.row.low, part.row.high, part.row.centred) == (Fraction(1), 0, 3, False)
    assert isinstance(part.row.value, Choice)
    assert part.row.value.otherwise is None, "what is not on the list is not counted"
    assert [branch for _, branch in part.row.value.branches] == [Literal(i, INTEGER) for i in range(4)]
    assert CARD.plan(asked(), given(), 2).parts[0].cell == Bins(2, 1, 4), "no unit has more rows than two"


def test_the_largest_count_of_each_group_is_shown() -> None:
    assert CARD.finish(of(), [[0, 5, 3, -2, -7, -9, -3, -4]]) == ["DE", "FR"]
    assert CARD.finish(of((False, True), BOOLEAN), [[4, 9, 3, 2]]) == [True, False]
    assert CARD.finish(of(), [[]]) == []


def test_of_equal_counts_it_is_the_first_of_the_list() -> None:
    assert CARD.finish(of(), [[0, 0, 0, 0, 1, 7, 7, 0]]) == ["US", "DE"]


@pytest.mark.parametrize(
    ("ask", "groups"),
    [
        (asked(("US",)), 1),
        (asked(()), 1),
        (asked(range(257), INTEGER), 1),
        (asked(range(256), INTEGER), 2**13 + 1),
        (replace(asked(), per_row=Interval(Fraction(0), Fraction(1))), 1),
        (replace(asked(), per_group=Interval(Fraction(0), Fraction(1))), 1),
        (replace(asked(), argument=None), 1),
    ],
)
def test_what_no_list_or_bounds_fit_is_refused(ask: AggregateAsk, groups: int) -> None:
    with pytest.raises(Refused):
        CARD.plan(ask, given(groups), None)


def test_row_weights_are_refused() -> None:
    with pytest.raises(Refused, match="max_rows_contributed"):
        CARD.plan(asked(), replace(given(), weights=3), None)


def test_as_many_values_as_may_be() -> None:
    for groups in (None, 0, 1, 2**13):
        assert CARD.plan(asked(range(256), INTEGER), given(groups), None).parts[0].numbers == 256


# ---- how far it has to lead ----------------------------------------------------------------------------------------------------------


def noisy(exact: Sequence[int], law: Noise, draws: int) -> list[int]:
    return [int(n) * ROW + int(z) for n, z in zip(np.tile(exact, draws), sample(law, len(exact) * draws, SystemBits()), strict=True)]


@pytest.mark.parametrize("mechanism", Choosing)
@pytest.mark.parametrize("count", [2, 4, 40])
def test_a_value_that_leads_by_the_expected_error_is_chosen(mechanism: Choosing, count: int) -> None:
    """As often as the confidence says (of 20,000, 6 deviations off once in 10^9), and hardly longer: a lead a tenth less is not enough for 94 %."""
    one, law = of(tuple(range(count)), INTEGER), Noise(mechanism, Fraction(3 * ROW))
    error = CARD.expected_error(one, [law], C95)
    assert isinstance(error, float)
    for part, most in ((1.0, 0.05), (0.8, None)):
        scores = [0] * (count - 1) + [round(part * error * ROW)]
        shown = CARD.finish(one, [choose(law, scores * 20_000, count, SystemBits())])
        missed = sum(1 for value in shown if value != count - 1) / 20_000
        assert missed <= most + 6 * 0.0016 if most else missed > 0.055
    assert mode.close(one, [[0] * count], [law], C95) == [False]


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("count", [2, 4, 40])
def test_a_value_that_leads_by_the_expected_error_is_shown(law: Noise, count: int) -> None:
    """As often as the confidence says, and the lead is not much longer than that needs."""
    one = of(tuple(range(count)), INTEGER)
    error = CARD.expected_error(one, [law], C95)
    assert isinstance(error, float)
    shown = CARD.finish(one, [noisy([0] * (count - 1) + [int(error) + 1], law, 3000)])
    missed = sum(1 for value in shown if value != count - 1) / 3000
    assert missed <= 0.05 + 0.02
    less = CARD.finish(one, [noisy([0] * (count - 1) + [int(error / 2)], law, 3000)])
    assert sum(1 for value in less if value != count - 1) / 3000 > 0.05


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("exact", [[9, 9], [9, 8, 8, 8], [0, 0, 5, 12], [30, 2, 2]])
def test_a_value_that_is_not_doubtful_is_the_right_one(law: Noise, exact: list[int]) -> None:
    """It is another one, and not said to be doubtful, at most as seldom as the confidence says."""
    one = of(tuple(range(len(exact))), INTEGER)
    sums = [noisy(exact, law, 3000)]
    wrong = [exact[int(str(value))] < max(exact) for value in CARD.finish(one, sums)]
    doubtful = mode.close(one, sums, [law], C95)
    assert sum(1 for bad, told in zip(wrong, doubtful, strict=True) if bad and not told) / 3000 <= 0.05 + 0.02


@pytest.mark.parametrize("law", [*(Noise(one, Fraction(3 * ROW)) for one in Choosing), LAPLACE, GAUSSIAN], ids=lambda law: str(law.mechanism))
@pytest.mark.parametrize("falls", [(1.0,) * 11, (0.3, 0.9, 1.0, 1.0, 2.0), (0.0, 0.0, 1.0)])
def test_what_is_shown_is_as_near_to_the_most_frequent_as_is_said(law: Noise, falls: tuple[float, ...]) -> None:
    """Whatever the counts: ties, near ones, all at the very distance. `falls` is how far the others lie below, in the distance that is said."""
    one = of(tuple(range(len(falls) + 1)), INTEGER)
    rows = ceil(CARD.expected_error(one, [law], C95))  # type: ignore[arg-type]
    assert f" at most {rows} rows fewer " in mode.assured("m", one, [law], C95)
    exact = [1000, *(1000 - round(fall * rows) for fall in falls)]
    if isinstance(law.mechanism, Choosing):
        shown = CARD.finish(one, [choose(law, [n * ROW for n in exact] * 10_000, len(exact), SystemBits())])
    else:
        shown = CARD.finish(one, [noisy(exact, law, 3000)])
    far = sum(1 for value in shown if exact[int(str(value))] <= 1000 - rows)
    assert far / len(shown) <= 0.05 + 0.025


def test_it_has_no_error_bar() -> None:
    assert CARD.interval(of(), [[0] * 8], [LAPLACE], C95) == [None, None]


def test_more_noise_takes_a_longer_lead() -> None:
    wide = replace(LAPLACE, parameter=LAPLACE.parameter * 7)
    small, large = (CARD.expected_error(of(), [law], C95) for law in (LAPLACE, wide))
    assert isinstance(small, float)
    assert isinstance(large, float)
    assert large == pytest.approx(7 * small, rel=0.01)


# ---- from the statement on -----------------------------------------------------------------------------------------------------------


def test_a_statement_says_where_a_mode_is_doubtful(tmp_path: Path) -> None:
    """US, DE and FR have about as many people; nearly all of them are older than 20."""
    with opened(made(tmp_path)) as (session,):
        noisy = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = LAPLACE)"
        even = session.query(f"{noisy} MODE(menu) AS m FROM people WHERE pid < 40")
        chosen = session.query("SELECT MODE(menu) AS m FROM people WHERE pid < 40")
        clear = session.query("SELECT MODE(age > 20) AS m, MODE(menu) FILTER (WHERE menu = 'FR') AS f FROM people")
    assert even.table.to_pylist() == [{"m": "US"}]
    assert any("another value may be as frequent" in said for said in even.warnings)
    assert chosen.table.to_pylist() != [{"m": "JP"}]
    assert not any("another value may be as frequent" in said for said in chosen.warnings), "a choice does not tell"
    assert clear.table.to_pylist() == [{"m": True, "f": "FR"}]
    assert not any("another value may be as frequent" in said for said in clear.warnings)
    assert clear.types == ("BOOLEAN", "VARCHAR")
    for found, label in ((even, "mode(menu)"), (chosen, "mode(menu)")):
        assert any(said.startswith(f"{label}: with 95% confidence, at most ") for said in found.warnings), found.warnings
    assert sum(" confidence, at most " in said for said in clear.warnings) == 2
    assert clear.intervals == (None, None)


def test_explain_says_how_it_is_chosen(tmp_path: Path) -> None:
    """In the column of its noise, with the scale of the scores."""
    with opened(made(tmp_path, terms=ORDINARY)) as (session,):
        said = {
            options: session.explain(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1{options}) MODE(menu) FROM people").as_dict()["releases"][
                0
            ]
            for options in ("", ", noise = LAPLACE")
        }
        answer = session.query("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) MODE(menu) AS m FROM people")
    assert {row["noise"] for row in said.values()} == {"permute_and_flip", "laplace"}
    assert said[""]["scale"] == said[", noise = LAPLACE"]["scale"]
    assert said[""]["expected_error"] < 0.8 * said[", noise = LAPLACE"]["expected_error"]
    assert answer.receipt["releases"][0]["noise"] == "permute_and_flip"
    assert "C11" in answer.receipt["lemmas"]


def test_it_costs_what_its_counts_cost(tmp_path: Path) -> None:
    with opened(made(tmp_path, terms=ORDINARY)) as (session,):
        told = session.explain("SELECT MODE(menu) FROM people").as_dict()
    (row,) = told["releases"]
    assert (row["l0"], row["l1"], row["scale"], row["lemma"], row["bounds"]) == (4, 1, 2.0, "C10", None)
    assert "4 values" in row["notes"][0]
    assert row["expected_error"] > 2 * row["scale"]
