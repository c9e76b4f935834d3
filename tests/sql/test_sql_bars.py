"""How the error bar of an output is read off its expression; and which outputs are noisy at all."""

from __future__ import annotations

import pytest
from sql_shop import ask, output

BARS = {
    "round(avg(age), 1)": "round(1 * a0 + 0; 1)",
    "round(sum(age), -3)": "round(1 * a0 + 0; -3)",
    "avg(age)::DECIMAL(10, 2)": "round(1 * a0 + 0; 2)",
    "avg(age)::DECIMAL(10)": "round(1 * a0 + 0)",
    "count(*)::INT": "round(1 * a0 + 0)",
    "floor(avg(age) / 10)": "floor(1/10 * a0 + 0)",
    "ceil(avg(age))": "ceil(1 * a0 + 0)",
    "round(100.0 * sum(age) / count(*), 1)": "round(100 * a0 / a1; 1)",
    "round(avg(age) * 10) / 10": "/(round(10 * a0 + 0), 10)",
    "greatest(count(*), 0)": "greatest(1 * a0 + 0, 0)",
    "least(100, avg(age))": "least(100, 1 * a0 + 0)",
    "abs(-sum(age))": "abs(-1 * a0 + 0)",
    "sqrt(avg(age * age) - avg(age) * avg(age))": "sqrt(-(1 * a0 + 0, *(1 * a1 + 0, 1 * a1 + 0)))",
    "avg(age) FILTER (WHERE age > 40) - avg(age)": "-(1 * a0 + 0, 1 * a1 + 0)",
    "1000 / count(*)": "/(1000, 1 * a0 + 0)",
    "-(count(*) + sum(age))": "-(0, +(1 * a0 + 0, 1 * a1 + 0))",
    "coalesce(round(sum(age) / nullif(count(*), 0)), 0)": "round(1 * a0 / a1)",
}
NONE = ["avg(age) ** 2", "ln(count(*))", "count(*) // 2", "CASE WHEN count(*) > 5 THEN 1 ELSE 0 END", "avg(age)::FLOAT", "count(*) > 5"]


@pytest.mark.parametrize("expression", BARS)
def test_arithmetic_has_the_bar_of_what_it_is_computed_from(expression: str) -> None:
    found = ask(f"SELECT {expression} AS x FROM users").post.outputs[0]
    assert output(found) == f"x ~ {BARS[expression]}"
    assert found.noisy


@pytest.mark.parametrize("expression", NONE)
def test_other_expressions_have_none_and_are_noisy(expression: str) -> None:
    found = ask(f"SELECT {expression} AS x FROM users").post.outputs[0]
    assert found.interval is None
    assert found.noisy


def test_keys_and_literals_are_not_noisy_and_windows_are() -> None:
    windows = "rank() OVER (ORDER BY count(*)) AS place, count(*) / sum(count(*)) OVER () AS part"
    found = ask(f"SELECT country, upper(country) AS big, 7 AS seven, {windows} FROM users GROUP BY country").post.outputs
    assert [(one.name, one.noisy) for one in found] == [("country", False), ("big", False), ("seven", False), ("place", True), ("part", True)]
    assert all(one.interval is None for one in found)


def test_long_expressions_are_not_looked_at() -> None:
    found = ask(f"SELECT {' + '.join(['count(*)', 'sum(age)'] * 60)} AS x FROM users").post.outputs[0]
    assert found.interval is None
    assert found.noisy
