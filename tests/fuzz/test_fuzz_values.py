"""Values instead of statements: prices, options, schema files, paths and names. Whatever they are, an error of dpquery's own or an answer."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from grounds import ROOT, TESTS, ground
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import UNFORESEEN, Judge, judge, timed
from mutants import mutant
from ruamel.yaml import YAML

from dpquery.engine import open_session
from dpquery.errors import Fault, OverBudget, Refused, SchemaError
from dpquery.schema.read import loads

COUNT = "SELECT country, count(*), sum(age), avg(age) FROM users GROUP BY country"


@pytest.fixture(scope="module")
def base() -> Iterator[Judge]:
    with judge(ground("base")) as made:
        yield made


# ---- prices --------------------------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.none(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.fractions(),
    st.decimals(),
    st.sampled_from(
        ["1e-100", "1e-99", "1e25", "1e400", "1e-401", "-0", "0x1", "1_0", " 1", "", "nan", "inf", "½", "१", "1e", "--1", "1/2", "9" * 101]
    ),
    st.sampled_from([1e-300, 5e-324, 1e308, True, Decimal("sNaN"), Decimal("1e-999999"), Fraction(1, 3**900), 10**4000]),
    st.text(max_size=8),
    st.builds(lambda a, b: f"{a}e{b}", st.integers(0, 999), st.integers(-120, 30)),
)
ANYTHING = st.one_of(NUMBERS, st.binary(max_size=4), st.lists(st.integers(), max_size=2), st.complex_numbers(), st.just(object()))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(epsilon=ANYTHING, delta=NUMBERS, rho=st.one_of(st.none(), st.none(), NUMBERS), confidence=st.one_of(st.none(), ANYTHING))
def test_prices(epsilon: Any, delta: Any, rho: Any, confidence: Any, base: Judge) -> None:
    """Answered or refused: noise of whatever size is drawn, shown and put on a receipt."""
    try:
        with timed():
            answer = base.session.query(COUNT, epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
    except (Refused, OverBudget) as refused:
        if refused.code in UNFORESEEN:
            raise AssertionError(repr(refused.__context__)) from refused
    else:
        assert answer.receipt["price"]


OPTIONS = (
    *("epsilon", "delta", "rho", "noise", "confidence_level", "max_groups_contributed", "max_rows_per_group", "max_rows_contributed"),
    *("privacy_unit_column", "group_selection_strategy", "group_selection_epsilon", "min_privacy_units_per_group", "nothing", "EPSILON"),
)
WRITTEN = st.one_of(
    st.builds(str, st.integers(-(10**30), 10**30)),
    st.builds(lambda a, b: f"{a}e{b}", st.integers(-9, 999), st.integers(-410, 410)),
    st.sampled_from(
        ["gaussian", "LAPLACE", "'laplace'", "public_groups", "laplace_threshold", "NULL", "TRUE", "users.user_id", "user_id", '"user_id"']
    ),
    st.sampled_from(
        ["(1, 2)", "(SELECT 1)", "1 + 1", "-1", "- -1", "1.", ".5", "'1'", "random()", "[1]", "x -> x", "DATE '2024-01-01'", "", "1 1", "$1"]
    ),
    st.text(max_size=6),
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(listed=st.lists(st.tuples(st.sampled_from(OPTIONS), WRITTEN), max_size=4), sign=st.sampled_from(["=", "=", "=", "=>", ":=", "", " = = "]))
def test_options(listed: list[tuple[str, str]], sign: str, base: Judge) -> None:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({', '.join(f'{name}{sign}{value}' for name, value in listed)}) {COUNT.removeprefix('SELECT ')}"
    base.outcome(text, "duckdb", run=True)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(statement=st.one_of(st.text(max_size=12), ANYTHING), dialect=st.one_of(st.sampled_from(["DuckDB", "spark", "mysql", ""]), ANYTHING))
def test_statements_and_dialects_that_are_none(statement: Any, dialect: Any, base: Judge) -> None:
    with pytest.raises(Refused):
        base.session.query(statement, dialect=dialect)


# ---- schema files --------------------------------------------------------------------------------------------------------------------

sys.path.append(str(TESTS / "schema"))
from schema_samples import FILES, GOOD, LOOSE  # noqa: E402

SCHEMAS = [GOOD, FILES, LOOSE, *(path.read_text() for path in sorted([*(ROOT / "schemas").glob("*.yaml"), *(TESTS / "cases").glob("*.yaml")]))]
YAML_WORDS = (
    *(
        "&a",
        "*a",
        "<<: *a",
        "!!python/object:os.system",
        "!!binary",
        "!x",
        "%YAML 1.1",
        "---",
        "...",
        "? ",
        "- ",
        "| ",
        "> ",
        "{",
        "}",
        "[",
        "]",
        "#",
        "\t",
    ),
    *(
        "null",
        "~",
        "yes",
        "NO",
        "0x1F",
        "0o7",
        "1_000",
        "1:30",
        ".inf",
        "-.INF",
        ".nan",
        "1e999",
        "1e-999",
        "-0.0",
        "9" * 30,
        "2024-01-31",
        "'",
        '"',
        "''",
    ),
    *(
        "\n",
        "\n  ",
        ":",
        ": ",
        ",",
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
        "é",
        "../../etc/passwd",
        "/",
        "x.parquet",
        "*.csv",
        "duckdb",
        "1KB",
        "4GB",
        "true",
    ),
    *("type: decimal", "type: 'decimal(38,38)'", "type: uuid", "unique: true", "public: true", "lower: 5", "upper: -5", "step: 0.3", "values: [1]"),
    *(
        "epsilon: 0",
        "delta: 1",
        "oversubscribe: true",
        "unsafe_testing: true",
        "adjacency: replace_one",
        "unit: {via: a, references: b.c}",
        "path: [a]",
    ),
)


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63, -(2**64), 0.5, 1e300, 1e-300, float("inf"), float("nan"), "", "x", "null", "1", "user_id", "users.user_id"),
    *([], {}, [1], ["US", "US"], {"a": 1}, "decimal(9,2)", "date", "2024-02-30", "4GB", "*.csv", "../x", "a" * 5000, "\x01", "\ud800", "é", "users"),
)


def spoilt(random: Random, text: str, other: str) -> str:
    """The file with words, lines or nodes changed."""
    if random.random() < 0.6:
        return json.dumps(grafted(random, deepcopy(tree_of(text)), tree_of(other)))
    if random.random() < 0.5:
        return mutant(random, text, other, YAML_WORDS)
    at = random.randrange(len(text))
    return text[:at] + random.choice(YAML_WORDS) + text[at + random.choice((0, 0, 1, 5, 40)) :]


@cache
def tree_of(text: str) -> Any:
    return YAML(typ="safe").load(text)


def grafted(random: Random, tree: Any, donor: Any) -> Any:
    """The tree with one or two of its nodes changed, added or gone."""
    for _ in range(random.choice((1, 1, 1, 2))):
        holder, key = random.choice(list(nodes(tree)))
        there = [holding[place] for holding, place in nodes(donor) if place == key or random.random() < 0.1]
        new = deepcopy(random.choice([random.choice(VALUES), *there]))
        match random.randrange(10):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice([place for _, place in nodes(donor) if isinstance(place, str)])] = new
            case 2 | 3 | 4 if not isinstance(holder[key], dict | list):
                holder[key] = deepcopy(random.choice(VALUES))
            case _:
                holder[key] = new
        if not tree:
            break
    return tree


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a tree, as what holds it and its key there."""
    for key, node in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(node, dict | list):
            yield from nodes(node)


def test_schema_files() -> None:
    """1,000 spoilt ones: read, or a SchemaError with its words, in little time."""
    ends = Counter[str]()
    for number in range(1000):
        random = Random(f"schema {number}")
        text = spoilt(random, random.choice(SCHEMAS), random.choice(SCHEMAS))
        try:
            with timed():
                ends["read" if loads(text, Path("/nowhere/schema.yaml")).digest else ""] += 1
        except SchemaError as error:
            ends[error.code if error.message and str(error) else ""] += 1
    assert not ends[""]
    assert ends["read"] > 100, ends
    assert len(ends) > 15, ends


# ---- paths and names -----------------------------------------------------------------------------------------------------------------

SEGMENTS = st.one_of(
    st.sampled_from(
        ["..", ".", "", "~", "/", "//", "x", "base.yaml", "base.duckdb", "file:x?mode=ro", ":memory:", "x.ledger", "%00", "a" * 300, "-x", "\\"]
    ),
    st.text(max_size=6),
)
PATHS = st.builds("/".join, st.lists(SEGMENTS, max_size=4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("paths")
    (made / "base.yaml").write_text(ground("base").schema)
    return made


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(path=PATHS)
def test_paths_of_ledgers_and_schemas(path: str, folder: Path) -> None:
    """A path that leads to no ledger makes none, and a path that leads to no schema reads none."""
    before = sorted(os.listdir(folder))
    for target in (path, f"{folder}/{path}"):
        with pytest.raises((Fault, SchemaError)):
            open_session(folder / "base.yaml", ledger=target or "x").budget()
        with pytest.raises((Fault, SchemaError)):
            open_session(target, ledger=target or "x").budget()
    assert sorted(os.listdir(folder)) == before


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(name=st.one_of(st.text(max_size=200), ANYTHING))
def test_names_of_analysts(name: Any, base: Judge) -> None:
    with suppress(Refused):
        other = open_session(base.session.schema.file, name)
        assert other.budget().account
        other.close()
