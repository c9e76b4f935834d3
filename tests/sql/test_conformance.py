"""docs/dialects.md is what the dialects are read as today."""

from __future__ import annotations

import conformance
import pytest
from conformance import EXPRESSIONS, OTHERS, PAGE, ROW, WHOLE, code_or_summary


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == conformance.page(), "make docs"


@pytest.mark.parametrize("one", [*WHOLE, *EXPRESSIONS], ids=lambda one: one.title)
def test_duckdb_reads_its_own(one: conformance.Construct) -> None:
    shape = "{}" if one in WHOLE else ROW
    for text in (one.duckdb, *one.means):
        assert not isinstance(code_or_summary(shape.format(text)), str), text


def test_most_is_read_alike() -> None:
    cells = [cell for row in conformance.rows() for cell in row[1:]]
    assert sum(cell.startswith("`") for cell in cells) < len(cells) / 8
    assert len(OTHERS) == 5


@pytest.mark.parametrize("call", ["LEFT(channel, (-2))", "LEFT(channel, -2)", "RIGHT(channel, -1)", "SUBSTR(channel, 0)", "SUBSTR(channel, 00, 1)"])
@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "spark"])
def test_what_differs_is_refused_in_brackets_too(call: str, dialect: str) -> None:
    assert code_or_summary(ROW.format(call), dialect) == "DIALECT_DIFFERS"


def test_snowflakes_rounding_above_the_noise() -> None:
    sql = "SELECT ROUND(AVG(amount), 2) AS m FROM orders"
    assert code_or_summary(sql, "snowflake") == code_or_summary(sql)
