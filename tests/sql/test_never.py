"""A condition that as declared no row meets is answered and charged, with a word on it that no data has a part in."""

from __future__ import annotations

from time import process_time

import pytest
from sql_shop import ask

COUNT = "SELECT COUNT(*) FROM users WHERE "
XX = "'XX' is none of the declared values of country, so that as declared no row has it."
BEYOND = "age {}: age is declared from 0 to 120, so that as declared no row meets it."


def said(sql: str) -> list[str]:
    return [one for one in ask(sql).warnings if "as declared" in one or "declared ones" in one]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"{COUNT}country = 'XX'", [XX]),
        (f"{COUNT}'XX' = country OR age > 3", [XX]),
        (f"{COUNT}country <> 'XX'", [XX]),
        (f"{COUNT}country IN ('DE', 'XX')", [XX]),
        ("SELECT COUNT(*) FILTER (WHERE country = 'XX') FROM users", [XX]),
        ("SELECT COUNT(*) FROM (SELECT user_id FROM users WHERE country = 'XX')", [XX]),
        ("SELECT country, COUNT(*) FROM users WHERE country IN ('DE', 'XX') GROUP BY country", [XX]),
        (f"{COUNT}country = 'de'", ["'de' is none of the declared values of country, so that as declared no row has it (did you mean 'DE'?)."]),
        (f"{COUNT}age > 120", [BEYOND.format("> 120")]),
        (f"{COUNT}0 > age", [BEYOND.format("< 0")]),
        (f"{COUNT}age = 121 AND country = 'DE'", [BEYOND.format("= 121")]),
        (f"{COUNT}age BETWEEN 130 AND 140", [BEYOND.format(">= 130")]),
        (f"{COUNT}age >= 120 AND age <= 0 AND country = 'DE'", []),
        (f"{COUNT}age > 130 OR country = 'DE'", []),
    ],
)
def test_what_no_row_meets_is_said(sql: str, words: list[str]) -> None:
    assert said(sql) == words


def test_of_many_values_three_are_named() -> None:
    start = process_time()
    found = said(f"{COUNT}country IN ({', '.join(map(repr, map(str, range(9000))))})")
    assert len(found) == 4
    assert found[-1] == "8,997 more values beside country are none of its declared ones."
    assert process_time() - start < 3
