"""A whole workload is priced in order before its first statement is asked: what `dpquery budget --what-if FILE.sql` says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import people
import pytest
from command_line import Command

import dpquery
from dpquery.errors import OverBudget, Refused
from dpquery.sql.workload import statements

WORKLOAD = """
-- the weekly report; a comment ends nothing
SELECT count(*) AS n FROM people;
SELECT menu, ';' AS mark, count(*) AS n /* ; */ FROM people GROUP BY menu;

SELECT max(age) FROM people;
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1.5) count(*) AS n FROM visits;
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.125) count(*) AS n FROM visits;;
"""
MANY = "SELECT s, count(*) AS n, sum(x) AS t, avg(x) AS m FROM visits WHERE s IN ('s1', 's2', 's3', 's4', 's5') GROUP BY s"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("ordinary") / "people", terms=people.ORDINARY)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';' ; SELECT \"a;b\"; ", ["SELECT ';'", 'SELECT "a;b"']),
        ("/* a; */ SELECT 1 -- b;\n; SELECT $x", ["SELECT 1 -- b;", "SELECT $x"]),
        ("SELECT $$;$$; SELECT 2", ["SELECT $$;$$", "SELECT 2"]),
    ],
)
def test_statements_end_at_semicolons_that_are_no_part_of_them(text: str, found: list[str]) -> None:
    assert list(statements(text)) == found


@pytest.mark.parametrize(
    ("text", "dialect", "code"),
    [
        *((text, "duckdb", "SYNTAX") for text in ("SELECT 'a; SELECT 2", "", " ;; ", "-- nothing")),
        ("SELECT 1", "db2", "DIALECT"),
        (" " * 2**21, "duckdb", "TOO_LONG"),
    ],
)
def test_what_cannot_be_taken_apart(text: str, dialect: str, code: str) -> None:
    with pytest.raises(Refused, match=code):
        statements(text, dialect)


def test_each_price_whether_it_fits_after_those_before_it_and_the_sums(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        found = con.what_if(WORKLOAD, delta=0)
        content = found.as_dict()
        assert [line["charged"] and line["charged"]["epsilon"] for line in content["statements"]] == ["0.5", "0.5", None, "1.5", "0.125"]
        assert [line["fits"] for line in content["statements"]] == [True, True, False, False, True]
        assert [line["error"] and line["error"]["code"] for line in content["statements"]] == [None, None, "MIN_MAX", "OVER_BUDGET", None]
        assert "4: OVER_BUDGET: the price (" in repr(found)
        assert (content["total"]["epsilon"], content["charged"]["epsilon"], content["left"]["epsilon"]) == ("2.625", "1.125", "0.875")
        assert not content["fits"]
        assert "those that fit" in repr(found)
        assert con.budget().entries == 0, "nothing was charged"


def test_an_explanation_is_free(schema: Path) -> None:
    """As it is when it is asked; what it explains is refused as ever."""
    with dpquery.connect(schema) as con:
        found = con.what_if("EXPLAIN SELECT count(*) AS n FROM people; EXPLAIN SELECT max(age) FROM people; SELECT count(*) AS n FROM people")
        one, refused, other = found.as_dict()["statements"]
        assert (one["price"], one["charged"]["epsilon"], one["noises"], one["fits"], one["stored"]) == (
            {"epsilon": "0", "delta": "0"},
            "0",
            [],
            True,
            False,
        )
        assert refused["error"]["code"] == "MIN_MAX"
        assert (other["stored"], other["charged"]) == (False, found.total.as_dict()), "it stores no answer"
        assert "free" in repr(found)
        with pytest.raises(dpquery.Error, match="NOT_A_TEXT"):
            con.what_if("SELECT 1", dialect=5)  # type: ignore[arg-type]


def test_what_was_foreseen_is_what_happens(schema: Path, tmp_path: Path) -> None:
    with dpquery.connect(people.copied(schema, tmp_path / "copy")) as con:
        found = con.what_if(WORKLOAD, delta=0)
        for line in found.lines:
            if line.refused is None and line.fits:
                con.query(line.statement, delta=0)
            else:
                with pytest.raises((OverBudget, Refused)):
                    con.query(line.statement, delta=0)
        assert (con.budget().spent, con.budget().left) == (found.spent, found.left)
        assert all(not line.fits for line in con.what_if("SELECT count(*) AS n FROM people", epsilon=1, delta=0).lines)


def test_a_workload_is_told_where_its_epsilon_becomes_infinite(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        found = con.what_if(f"SELECT count(*) FROM people; {MANY}; {MANY}", epsilon="0.25")
        assert [len(line.warnings) for line in found.lines] == [0, 1, 0]
        assert "0.25 so far" in found.lines[1].warnings[0]
        assert found.charged.epsilon is None
        assert "at most epsilon" in repr(found)
        assert con.what_if(MANY, epsilon=1, noise="laplace").spent.epsilon == Decimal(1)


def test_many_small_questions(schema: Path) -> None:
    """As many as explain says that fit."""
    with dpquery.connect(schema) as con:
        fits = con.explain("SELECT count(*) FROM people", epsilon="0.3", delta=0).as_dict()["now"]["fits"]
        lines = con.what_if(";".join(f"SELECT count(*) FROM people WHERE age > {n}" for n in range(9)), epsilon="0.3", delta=0).lines
        assert [line.fits for line in lines] == [True] * fits + [False] * (9 - fits)


def test_an_error_is_met_with_what_is_left_by_then(schema: Path) -> None:
    with dpquery.connect(schema) as con:
        lines = con.what_if("SELECT count(*) AS n FROM people; SELECT count(DISTINCT pid) AS n FROM visits", error=2, delta=0).lines
        assert [line.fits for line in lines] == [True, False]


def test_it_knows_nothing_of_private_rows(schema: Path, tmp_path: Path) -> None:
    empty = people.made(tmp_path / "empty", people.DATA + people.EMPTY, terms=people.ORDINARY)
    with dpquery.connect(schema) as con, dpquery.connect(empty) as other:
        assert con.what_if(WORKLOAD).as_dict() == other.what_if(WORKLOAD).as_dict()


def test_the_command_line(schema: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weekly.sql"
    file.write_text(WORKLOAD)
    words: list[Any] = ["budget", "--schema", schema]
    told = command(*words, "--what-if", file, "--delta", "0", "--format", "json")
    assert (told.status, told.json["left"]["epsilon"]) == (0, "0.875")
    shown = command(*words, "--what-if", file, "--epsilon", "0.1", "--delta", "0", "--noise", "laplace").out
    assert "3: MIN_MAX" in shown
    assert "SELECT menu" in shown
    assert "the weekly report" not in shown
    with file.open("rb") as source:
        monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": source})())
        assert command(*words, "--what-if", "-", "--delta", "0", "--format", "json").json == told.json
    assert command(*words, "--epsilon", "0.1").status == 2
    assert command(*words, "--what-if", file, "--units", "3").status == 2
    assert command(*words, "--what-if", tmp_path / "none.sql").status == 2


def test_what_was_answered_costs_nothing_and_what_is_asked_twice_once(schema: Path, tmp_path: Path) -> None:
    """Whatever the spelling; at a larger price anew, at a smaller one not."""
    with dpquery.connect(people.copied(schema, tmp_path / "copy")) as con:
        con.query("SELECT count(*) AS n FROM people", epsilon="0.5", delta=0)
        text = """
        SELECT count(*) AS how_many FROM people;
        SELECT menu, count(*) AS n FROM people GROUP BY menu;
        SELECT count(*) AS n, p.menu FROM people AS p GROUP BY p.menu ORDER BY n;
        SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.75) menu, count(*) AS n FROM people GROUP BY menu;
        SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25) menu, count(*) AS n FROM people GROUP BY menu;
        """
        found = con.what_if(text, delta=0)
        assert [line.stored for line in found.lines] == [True, False, True, False, True]
        assert [line.charged and line.charged.epsilon for line in found.lines] == [0, Decimal("0.5"), 0, Decimal("0.75"), 0]
        assert found.fits
        assert repr(found).count("free: stored by then") == 3
        for line in found.lines:
            con.query(line.statement, delta=0)
        assert con.budget().spent == found.spent
