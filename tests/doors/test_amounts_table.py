"""Odd amounts at every entrance: the product does with each what the table of docs/budgets.md says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import people
import pytest
from command_line import Command

from dpquery import ledger
from dpquery.engine import grant
from dpquery.engine.session import Session
from dpquery.errors import Error, Refused
from dpquery.ledger import Kind, Limit
from dpquery.schema.read import read

WIDE = """
budget: {epsilon: 8, delta: 0.5}
per_query: {epsilon: 1, delta: 1e-9}
contribution: {max_groups_contributed: 4, max_rows_per_group: 10}
"""
COUNT = "SELECT count(*) AS n FROM people"
PRIVATE = "SELECT country, count(*) AS n FROM people GROUP BY country"


def options(said: str, sql: str = COUNT) -> str:
    return sql.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({said})", 1)


def table() -> Iterator[tuple[str, str, str]]:
    """(entrance, value, what is done with it), as the documentation says it."""
    text = (Path(__file__).parents[2] / "docs" / "budgets.md").read_text()
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text[: text.index("### Grants")], re.M)
    ]
    values = rows[0][1:]
    for entrance, *cells in rows[2:]:
        yield from zip([entrance.replace("`", "")] * len(values), values, cells, strict=True)


CALLS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "epsilon of a call": lambda x: {"epsilon": x},
    "rho of a call": lambda x: {"rho": x, "delta": "1e-6"},
    "delta of a call": lambda x: {"delta": x},
    "confidence of a call": lambda x: {"confidence": x},
    "error of a call, of a count": lambda x: {"error": x},
    "error, as X% of 20000": lambda x: {"error": f"{x}% of 20000"},
    "error, as 5% of X": lambda x: {"error": f"5% of {x}"},
}
STATEMENTS: dict[str, Callable[[str], str]] = {
    "OPTIONS(epsilon = X)": lambda x: options(f"epsilon = {x}"),
    "OPTIONS(rho = X)": lambda x: options(f"rho = {x}, delta = 1e-6"),
    "OPTIONS(delta = X)": lambda x: options(f"delta = {x}"),
    "OPTIONS(group_selection_epsilon = X)": lambda x: options(f"epsilon = 1, delta = 1e-6, group_selection_epsilon = {x}", PRIVATE),
    "OPTIONS(loss_epsilon = X)": lambda x: options(f"epsilon = 1, loss_epsilon = {x}"),
    "OPTIONS(confidence_level = X)": lambda x: options(f"confidence_level = {x}"),
    "count(*, epsilon => X)": lambda x: f"SELECT count(*, epsilon => {x}) AS n, count(DISTINCT country) AS c FROM people",
}
GRANTS: dict[str, str] = {"a grant of epsilon": "epsilon", "a grant of delta": "delta"}
SCHEMAS: dict[str, tuple[str, ...]] = {
    "a cap's or per_query's epsilon in a schema": ("{epsilon: 8, delta: 0.5}", "{epsilon: 1, delta: 1e-9}"),
    "their delta": ("delta: 0.5", "delta: 1e-9"),
}
NATIVE = {"0.1": 0.1, "0": 0, "-1": -1.0, "1e-320": 1e-320, "1e308": 1e308, "nan": math.nan, "inf": Decimal("inf")}
SAID = list(table())
OF = {
    one: [(e, v, c) for e, v, c in SAID if e in made] for one, made in (("call", CALLS), ("sql", STATEMENTS), ("grant", GRANTS), ("schema", SCHEMAS))
}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("amounts") / "people", terms=WIDE)


@pytest.fixture(scope="module")
def session(wide: Path) -> Iterator[Session]:
    with people.opened(wide) as (one,):
        yield one


def done(work: Callable[[], object]) -> str:
    """`taken`, or the code of the refusal, and whether it goes on for too long."""
    try:
        work()
    except Error as error:
        return error.code if len(str(error)) < 600 else str(error)
    return "taken"


def test_the_table_is_of_all_entrances() -> None:
    assert {entrance for entrance, _, _ in SAID} == {*CALLS, *STATEMENTS, *GRANTS, *SCHEMAS}


@pytest.mark.parametrize(("entrance", "value", "said"), OF["call"])
def test_amounts_of_a_call(session: Session, entrance: str, value: str, said: str) -> None:
    value = value.strip('"')
    for given in {value, NATIVE.get(value, value)} if entrance.startswith("epsilon") else {value}:
        assert done(lambda given=given: session.explain(COUNT, **CALLS[entrance](given))) == said


@pytest.mark.parametrize(("entrance", "value", "said"), [*OF["call"][::9], OF["call"][7]])  # each value and each entrance once
def test_amounts_on_the_command_line(command: Command, wide: Path, entrance: str, value: str, said: str) -> None:
    words = [f"--{name}={given}" for name, given in CALLS[entrance](value.strip('"')).items()]
    told = command("explain", COUNT, "--schema", wide, *words)
    assert told.err.startswith("" if said == "taken" else f"Error: {said}:")
    assert (told.status == 0) == (said == "taken")


@pytest.mark.parametrize(("entrance", "value", "said"), OF["sql"])
def test_amounts_in_a_statement(session: Session, entrance: str, value: str, said: str) -> None:
    assert done(lambda: session.explain(STATEMENTS[entrance](value.replace('"', "'")))) == said


@pytest.mark.parametrize(("entrance", "value", "said"), OF["grant"])
def test_amounts_of_a_grant(wide: Path, entrance: str, value: str, said: str) -> None:
    more: dict[str, Any] = {GRANTS[entrance]: value.strip('"')}
    assert done(lambda: grant(wide, dataset=True, reason="why", **more)) == said


@pytest.mark.parametrize("amount", ["NaN", "sNaN", "Infinity", "-Infinity", "-1", "1e-101", "1e308"])
def test_no_grant_of_what_is_no_amount_harms_the_ledger(wide: Path, amount: str) -> None:
    schema = read(wide)
    with ledger.open(schema.default_ledger, schema) as opened:
        for more in (Limit(Decimal(amount), Decimal(0)), Limit(Decimal(0), Decimal(amount))):
            with pytest.raises(Refused, match="BAD_GRANT"):
                opened.grant(Kind.DATASET, "dataset", more, "why")
        assert opened.verify() == ()


@pytest.mark.parametrize(("entrance", "value", "said"), OF["schema"])
def test_amounts_in_a_schema(wide: Path, tmp_path: Path, entrance: str, value: str, said: str) -> None:
    text, key = wide.read_text(), "delta" if "delta" in entrance else "epsilon"
    for place in SCHEMAS[entrance]:
        assert place in text
        (tmp_path / "shop.yaml").write_text(text.replace(place, re.sub(rf"{key}: [^,}}]+", f"{key}: {value}", place)))
        assert done(lambda: read(tmp_path / "shop.yaml")) == said
