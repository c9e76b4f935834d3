"""Error bars as columns: ends of bars, and BigQuery's reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpquery
from dpquery.errors import Refused


@pytest.fixture(scope="module")
def con(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    with dpquery.connect(shop(tmp_path_factory.mktemp("edges") / "demo")) as opened:
        yield opened


def test_the_ends_of_a_bar_are_those_of_its_column(con: Any) -> None:
    sql = (
        "SELECT status, count(*) AS n, DP_INTERVAL_LOW(n) AS low, dp_interval_high(n) AS high, "
        "SUM(amount) / count(*) AS per, DP_INTERVAL_HIGH(per) FROM orders GROUP BY ALL ORDER BY n"
    )
    found = con.query(sql, epsilon="0.01", dialect="snowflake")
    rows = found.fetchall()
    assert [(row[2], row[3]) for row in rows] == [(float(low), float(high)) for low, high in found.intervals["n"]]
    assert [row[5] for row in rows] == [None if bar is None else bar[1] for bar in found.intervals["per"]]
    assert set(found.intervals) == {"n", "per"}
    assert found.types[2:4] == ["DOUBLE", "DOUBLE"]


def test_a_report_is_the_value_with_its_noise(con: Any) -> None:
    sql = "SELECT COUNT(*, report_format => 'JSON') AS n, COUNT(*) AS again, AVG(amount, REPORT_FORMAT => json) AS m, SUM(amount) AS s FROM orders"
    found = con.query(sql, epsilon="0.01", confidence="0.9")
    n, again, m, _ = found.fetchone()
    report = json.loads(n)
    assert report["result"]["value"] == again
    assert (report["noise_confidence_interval"]["lower_bound"], report["noise_confidence_interval"]["upper_bound"]) == found.intervals["again"][0]
    assert report["noise_confidence_interval"]["confidence_level"] == 0.9
    assert report["bounding_report"] == {"lower_bound": 0.0, "upper_bound": 40.0}
    scale = Fraction(found.receipt["releases"][0]["scale"])
    assert report["result"]["standard_deviation"] == pytest.approx(float(scale) * 2**0.5, rel=1e-3)
    assert json.loads(m).keys() == {"result", "noise_confidence_interval", "bounding_report"}
    assert len(found.receipt["releases"]) == 3
    assert found.types == ["VARCHAR", "BIGINT", "VARCHAR", "DECIMAL(38,2)"]


def test_rows_are_ordered_by_the_value_of_a_report(con: Any) -> None:
    sql = "SELECT status, COUNT(*, report_format => 'JSON') AS n FROM orders GROUP BY status HAVING n > 0 ORDER BY n DESC"
    values = [json.loads(report)["result"]["value"] for _, report in con.query(sql, epsilon="0.05").fetchall()]
    assert values == sorted(values, reverse=True)


def test_ends_are_read_by_filters_and_expressions(con: Any) -> None:
    """As columns of the noisy table they are the ends that the answer shows, at its own confidence."""
    sql = (
        "SELECT status, COUNT(*) AS n, SUM(amount) AS s, DP_INTERVAL_LOW(n) AS low, n - DP_INTERVAL_LOW(n) AS half, "
        "DP_INTERVAL_HIGH(10 - 2 * SUM(amount)) + 0 AS turned, MAX(DP_INTERVAL_LOW(n)) OVER () AS most FROM orders GROUP BY status {} ORDER BY n"
    )
    found = con.query(sql.format(""), epsilon="0.01", confidence="0.9")
    rows, bars = found.fetchall(), found.intervals
    assert [n - half for _, n, _, _, half, *_ in rows] == pytest.approx([float(low) for low, _ in bars["n"]])
    assert [row[5] for row in rows] == pytest.approx([10 - 2 * float(low) for low, _ in bars["s"]])
    assert {row[6] for row in rows} == {max(row[3] for row in rows)}
    least = sorted(row[3] for row in rows)[1]
    kept = [row for row in rows if row[3] > least]
    for clause in (f"HAVING low > {least!r}", f"QUALIFY DP_INTERVAL_LOW(n) > {least!r}"):
        again = con.query(sql.format(clause), epsilon="0.01", confidence="0.9")
        assert [row[:4] for row in again.fetchall()] == [row[:4] for row in kept]
    below = "SELECT status, COUNT(*) AS n, SUM(amount) AS s, DP_INTERVAL_LOW(n) AS low FROM orders GROUP BY status"
    inner = f"SELECT status, n FROM ({below}) WHERE low > {least!r}"
    assert sorted(con.query(inner, epsilon="0.01", confidence="0.9").fetchall()) == sorted(row[:2] for row in kept)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*, report_format => 'JSON') + 1 FROM orders", "REPORT_FORMAT"),
        ("SELECT COUNT(*) FROM orders HAVING COUNT(*, report_format => 'JSON') > 1", "REPORT_FORMAT"),
        ("SELECT SUM(COUNT(*, report_format => 'JSON')) OVER () FROM orders", "REPORT_FORMAT"),
        ("SELECT COUNT(*) FROM orders ORDER BY COUNT(*, report_format => 'JSON')", "REPORT_FORMAT"),
        ("SELECT COUNT(*, report_format => 'PROTO') FROM orders", "REPORT_FORMAT"),
        ("SELECT COUNT(*, report_format => 3) FROM orders", "REPORT_FORMAT"),
        ("SELECT DISTINCT COUNT(*, report_format => 'JSON') FROM orders", "DP_INTERVAL"),
        ("SELECT AVG(amount) AS m, DP_INTERVAL_LOW(m) + 1 FROM orders", "DP_INTERVAL"),
        ("SELECT status, SUM(amount) / COUNT(*) AS m FROM orders GROUP BY status HAVING DP_INTERVAL_LOW(m) > 1", "DP_INTERVAL"),
        ("SELECT status FROM orders GROUP BY status HAVING DP_INTERVAL_LOW(status) > 1", "DP_INTERVAL"),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM orders) WHERE DP_INTERVAL_LOW(n) > 1", "DP_INTERVAL"),
        ("SELECT COUNT(*) FROM orders WHERE amount > (SELECT DP_INTERVAL_LOW(COUNT(*)) FROM users)", "DP_INTERVAL"),
        ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n + (SELECT COUNT(*) FROM users)) + 1 FROM orders", "DP_INTERVAL"),
        ("SELECT m FROM (SELECT COUNT(*, report_format => 'JSON') AS m FROM orders)", "DP_INTERVAL"),
        ("SELECT DISTINCT COUNT(*) AS n, DP_INTERVAL_LOW(n) FROM orders", "DP_INTERVAL"),
        ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(1) FROM orders", "DP_INTERVAL"),
        ("SELECT status, COUNT(*), DP_INTERVAL_LOW(status) FROM orders GROUP BY status", "DP_INTERVAL"),
        ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 2) FROM orders", "WRONG_ARGUMENTS"),
        ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW() FROM orders", "WRONG_ARGUMENTS"),
        ("SELECT COUNT(*) FROM orders WHERE DP_INTERVAL_LOW(amount) > 1", "UNKNOWN_FUNCTION"),
    ],
)
def test_they_stand_alone_in_select(con: Any, sql: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        con.explain(sql)
    assert caught.value.code == code
    assert caught.value.position is not None
