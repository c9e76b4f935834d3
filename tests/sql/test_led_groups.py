"""Which statements choose a group (C17), and which keep the largest of noisy numbers; what the chosen ones say."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from people import DATA, ORDINARY, made, opened, rows
from sql_shop import ask

from dpquery.engine.session import Session
from dpquery.plan.leading import Lead

ONE = "SELECT country, COUNT(*) AS n FROM users GROUP BY country"
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({})"


def lead(sql: str, dialect: str = "duckdb") -> Lead | None:
    """How the group is chosen; no statement here makes several releases."""
    (block,) = ask(sql, dialect=dialect).blocks
    return block.draft.lead


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT arg_max(country, n) FROM ({ONE})",
        f"SELECT arg_max(t.country, t.n) || '!' AS best FROM ({ONE}) AS t",
        f"SELECT ARGMAX(Country, N) FROM (({ONE})) t",
        f"WITH w AS ({ONE}) SELECT max_by(country, n) FROM w",
        f"WITH w AS ({ONE}), v AS (SELECT max_by(x.country, x.n) AS top FROM w x) SELECT a.top, b.top FROM v a, v b",
        f"SELECT (SELECT arg_max(country, n) FROM ({ONE})) AS top",
        "SELECT arg_max(c, n) FROM (SELECT country AS c, age > 30 AS old, COUNT(DISTINCT user_id) AS n FROM users GROUP BY ALL)",
        "SELECT arg_max(paid, s) FROM (SELECT paid, SUM(amount) FILTER (WHERE amount > 3) AS s FROM orders GROUP BY paid)",
        f"SELECT arg_max(country, n) FROM ({ONE.replace('COUNT(*)', 'COUNT_IF(age > 30)')})",
        f"SELECT arg_max(country, n) FROM ({ONE.replace('SELECT', CLAUSE.format('epsilon = 0.3'))})",
    ],
)
def test_what_only_compares_groups_chooses_one(sql: str) -> None:
    found = lead(sql)
    assert found is not None
    assert found.most


def test_the_least_and_other_dialects() -> None:
    for name in ("arg_min", "min_by"):
        assert lead(f"SELECT {name}(country, n) FROM ({ONE})") == Lead(False, 0, "arg_min(country, n)")
    for dialect in ("bigquery", "snowflake", "spark", "duckdb"):
        assert lead(f"SELECT MAX_BY(country, n) AS c FROM ({ONE}) AS t", dialect) == Lead(True, 0, "arg_max(country, n)")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT arg_max(country, n), max(n) AS most FROM ({ONE})",
        f"SELECT arg_max(country, n) FROM ({ONE}) WHERE n > 10",
        f"SELECT arg_max(country, n) FROM ({ONE}) GROUP BY country",
        f"SELECT arg_max(country, n) FILTER (WHERE country <> 'US') FROM ({ONE})",
        f"SELECT arg_max(country, n) || max(country) AS b FROM ({ONE})",
        f"SELECT arg_max(n, n) FROM ({ONE})",
        f"SELECT arg_max(country, -n) FROM ({ONE})",
        f"SELECT arg_max(upper(country), n) FROM ({ONE})",
        f"SELECT arg_max(country, n) FROM ({ONE} HAVING COUNT(*) > 3)",
        f"SELECT arg_max(country, n) FROM ({ONE} ORDER BY n LIMIT 1)",
        "SELECT arg_max(country, m) FROM (SELECT country, COUNT(*) / 2 AS m FROM users GROUP BY country)",
        "SELECT arg_max(country, a) FROM (SELECT country, AVG(age) AS a FROM users GROUP BY country)",
        "SELECT arg_max(country, n) FROM (SELECT country, COUNT(*) AS n, SUM(age) AS s FROM users GROUP BY country)",
        f"SELECT arg_max(c, m) FROM ({ONE}) AS t(c, m)",
        f"WITH w AS ({ONE}) SELECT arg_max(country, n), (SELECT max(n) FROM w) AS most FROM w",
        f"WITH w AS ({ONE}) SELECT arg_max(country, n) FROM w UNION ALL SELECT CAST(max(n) AS VARCHAR) FROM w",
        f"WITH w AS ({ONE}), v AS (SELECT * FROM w) SELECT arg_max(country, n) FROM v",
        "SELECT arg_max(age, n) FROM (SELECT age, COUNT(*) AS n FROM users GROUP BY age)",
        f"SELECT arg_max(country, n) FROM ({ONE.replace('SELECT', CLAUSE.format('noise = LAPLACE'))})",
        f"SELECT arg_max(country, n) FROM ({ONE.replace('SELECT', CLAUSE.format('min_privacy_units_per_group = 5'))})",
        f"SELECT arg_max(country, n) FROM ({ONE.replace('SELECT', CLAUSE.format('epsilon = 1, loss_epsilon = 0.5'))})",
        "SELECT country FROM users GROUP BY country ORDER BY COUNT(*) DESC LIMIT 1",
    ],
)
def test_what_reads_more_keeps_the_largest_noisy_number(sql: str) -> None:
    assert lead(sql) is None


# ---- end to end ----------------------------------------------------------------------------------------------------------------------

IN = "k IN (0, 1, 2, 3, 4)"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Session]]:
    folder = tmp_path_factory.mktemp("led")
    with opened(made(folder / "silent"), made(folder / "ordinary", terms=ORDINARY, name="ordinary")) as sessions:
        yield sessions  # type: ignore[misc]


@pytest.mark.parametrize("score", ["COUNT(*)", "SUM(x)", "COUNT(DISTINCT s)", "COUNT(DISTINCT pid)", "COUNT(*) FILTER (WHERE x > 2)"])
@pytest.mark.parametrize("name", ["arg_max", "arg_min"])
def test_without_noise_it_is_one_of_the_extreme_groups(people: tuple[Session, Session], name: str, score: str) -> None:
    below = f"SELECT k, {score} AS n FROM visits WHERE {IN} AND pid IS NOT NULL GROUP BY k"
    shown = rows(people[0], f"SELECT {name}(k, n) FROM ({below})")
    with duckdb.connect() as con:
        con.execute(DATA)
        values = dict(con.execute(below).fetchall())
    extreme = (max if name == "arg_max" else min)(values.values())
    assert shown[0][0] in {k for k, n in values.items() if n == extreme}


def test_explain_and_receipt_say_what_is_chosen_and_how_sure_it_is(people: tuple[Session, Session]) -> None:
    sql = f"SELECT arg_max(k, n) AS best FROM (SELECT k, COUNT(*) AS n FROM visits WHERE {IN} GROUP BY k)"
    explained = people[1].explain(sql).as_dict()
    (row,) = explained["releases"]
    assert (row["aggregate"], row["noise"], row["lemma"], row["scale"]) == ("arg_max(k, n)", "permute_and_flip", "C17", 20.0)
    assert row["cap_skipped"] == "nothing is shown but which group has the most, or the least"
    assert "C17" in explained["lemmas"]
    assert row["notes"][0].startswith("one of 5 groups, chosen for having the most")
    said = "arg_max(k, n): with 95% confidence, the group shown has at most 74 less than the one that has the most."
    assert said in explained["warnings"]
    answer = people[1].query(sql)
    assert said in answer.warnings
    assert not [word for word in answer.warnings if word.startswith("No error bar")]
    assert answer.receipt["releases"][0]["noise"] == "permute_and_flip"
    assert answer.table.to_pylist()[0]["best"] in range(5)
    again = people[1].query(sql.replace("AS best", "AS top"))
    assert again.table.column(0).to_pylist() == answer.table.column(0).to_pylist(), "the same release, from the store"


def test_a_group_that_is_chosen_is_a_literal_of_a_later_release(people: tuple[Session, Session]) -> None:
    best = f"SELECT arg_max(k, n) FROM (SELECT k, COUNT(*) AS n FROM visits WHERE {IN} GROUP BY k)"
    assert rows(people[0], f"SELECT COUNT(*) AS n FROM visits WHERE k = ({best})")[0][0] > 0
