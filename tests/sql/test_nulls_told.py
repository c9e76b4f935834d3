"""Where an output is NULL the answer says why in the words of the statement, or nothing where the text says it all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dpquery

COUNTED = "SELECT country, count(*) AS n, {} AS p FROM users GROUP BY country"
LAGGED = COUNTED.format("lag(n) OVER (ORDER BY country)")
TOLD = {
    LAGGED: None,
    COUNTED.format("n - lag(n) OVER (ORDER BY country)"): "NULL in 1 of 12 rows: LAG has no row there, or it overflows above the noise.",
    COUNTED.format("avg(n) OVER (ORDER BY country ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)"): None,
    COUNTED.format("nullif(n, n)"): None,
    COUNTED.format(
        "CASE WHEN n < -9999 THEN n / 2 END"
    ): "NULL in 12 of 12 rows: no branch of CASE gives a value, or it divides by zero above the noise.",
    COUNTED.format("n / 0"): "NULL in 12 of 12 rows: it divides by zero above the noise.",
    COUNTED.format("sqrt(-n - 9999)"): "NULL in 12 of 12 rows: it is not defined or overflows above the noise.",
    f"SELECT country, p FROM ({LAGGED})": None,
    f"SELECT country, p * 2 AS p FROM ({LAGGED})": "NULL in 1 of 12 rows: LAG has no row there, or it overflows above the noise.",
}


@pytest.fixture(scope="module")
def con(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpquery.Connection]:
    with dpquery.connect(shop(tmp_path_factory.mktemp("nulls") / "demo")) as opened:
        yield opened


@pytest.mark.parametrize("sql", TOLD)
def test_why_it_is_null(con: dpquery.Connection, sql: str) -> None:
    said = [warning.removeprefix("p: ") for warning in con.query(sql, epsilon=0.1).warnings if warning.startswith("p: NULL")]
    assert said == ([TOLD[sql]] if TOLD[sql] else [])
