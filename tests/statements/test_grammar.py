"""The harness has everything: random statements make each function, card, plan node, join, source of keys, clause, option, and node above the noise
that the product knows. What is added to the product without a production fails here; README.md beside this file says how to add one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import chain, islice, pairwise
from random import Random
from typing import Any

import calls
import long
import nodes
import pytest
import sqlglot
import upper
from checked import check
from grammar import Grammar, Statement, renamed
from led import led
from relations import views
from released import automatic, lists, summed
from several import ABOVE, combined, usable
from sought import LEAVES, NAMES_OF_FROM, is_made, with_views
from sqlglot import exp
from statements import about, attempted
from worlds import World, world

from dpquery.aggregates import CARDS
from dpquery.errors import Refused
from dpquery.plan.draft import Question
from dpquery.plan.functions import FUNCTIONS, NAMES, REWRITTEN
from dpquery.plan.scalar import Call
from dpquery.sql import allowed, joinkinds, options, perwindow, quantiles, read, reductions, scalar, stacks, standins, united, windows
from dpquery.sql.aggregates import ARGUMENTS, MOMENTS
from dpquery.sql.dialect import parse
from dpquery.sql.statement import Clauses
from dpquery.values.types import Kind

WORLDS, EACH = 18, 130


@cache
def made() -> tuple[tuple[Statement, Question | None], ...]:
    """Random statements over a few data sets, read; None where one is refused. They are not run: whether a row answers them is not asked."""
    found = []
    for seed in range(WORLDS):
        one = world(seed)
        views(one)
        for i in range(EACH):
            random = attempted(Grammar(Random(f"gram {seed}/{i}"), one))
            try:
                found.append((random, read(random.dp, one.schema)))
            except Refused:
                found.append((random, None))
    return tuple(found)


def questions() -> list[Question]:
    return [question for _, question in made() if question is not None]


@cache
def texts() -> str:
    return "\n".join(one.dp for one, _ in made())


@cache
def shown() -> frozenset[str]:
    return frozenset(what for question in (*questions(), *several(), *computing()) for what in nodes.shown(question, LEAVES))


@cache
def several() -> tuple[Question, ...]:
    """Statements of several releases over the same data sets."""
    found = []
    for i, above in enumerate(ABOVE):
        one = world(i % WORLDS)
        views(one)
        plain = [random for j in range(12) if usable(random := attempted(Grammar(Random(f"several {i}/{j}"), one)))]
        for a, b in pairwise(plain):
            with suppress(Refused):
                found.append(read(combined(above, a, b).dp, one.schema))
        unit = one.schema.privacy_unit_table
        found.append(read(f"SELECT count(*) AS n, (SELECT count(*) FROM {unit}) AS m FROM {unit}", one.schema))
        found.append(read(f"SELECT count(*) AS n FROM {unit} UNION ALL SELECT count(*) FROM {unit}", one.schema))
        found.append(read(f"SELECT count(*) AS n FROM {unit} WHERE 3 < (SELECT count(*) FROM {unit})", one.schema))
        some = one.tables[unit].columns[-1].name
        found += [read(f"SELECT {times}count({some}) / count(*) AS share FROM {unit}", one.schema) for times in ("", "100 * ")]
        found += [read(text, one.schema) for text in (*lists(one), *automatic(one))]
        for text, _ in led(one, Random(f"led {i}")):
            with suppress(Refused):
                found.append(read(text, one.schema))
        found += [read(text, schema) for schema, text in summed(one)[:1]]
        found.append(read(f"SELECT count(*) / count(DISTINCT uid) AS n FROM {unit}", one.schema))
    return tuple(found)


@cache
def over_computed(name: str) -> tuple[tuple[World, Statement], ...]:
    """Statements over columns that are computed below, and above, what this production of FROM makes."""
    found = []
    for seed in range(4):
        found += [(with_views(seed), random) for random in islice(long.statements(with_views(seed), NAMES_OF_FROM[name], f"long {seed}"), 2)]
    return tuple(found)


SEVERAL_ROWS = ("distinct", "grouped", "windowed", "with_partner", "half_joined", "stacked")  # productions that look at more than a row and its match


@cache
def crossed(name: str) -> tuple[tuple[World, Statement], ...]:
    """Statements over what this production makes of what others make: which of them stands on which is not left to chance."""
    found = []
    for below in SEVERAL_ROWS:
        for seed in range(2 if below != name else 4):
            some = long.statements(with_views(seed), NAMES_OF_FROM[name], f"crossed {below} {seed}", NAMES_OF_FROM[below])
            found += [(with_views(seed), random) for random in islice(some, 2)]
    return tuple(found)


@cache
def computing() -> tuple[Question, ...]:
    found = []
    for made, random in (*(one for name in NAMES_OF_FROM for one in over_computed(name)), *(one for name in SEVERAL_ROWS for one in crossed(name))):
        with suppress(Refused):
            found.append(read(random.dp, made.schema))
    return tuple(found)


@pytest.mark.parametrize("name", NAMES_OF_FROM)
def test_what_stands_around_a_computed_column_is_what_plain_sql_says(name: str) -> None:
    _checked(over_computed(name))


@pytest.mark.parametrize("name", SEVERAL_ROWS)
def test_what_stands_on_several_rows_is_what_plain_sql_says(name: str) -> None:
    _checked(crossed(name))


def _checked(statements: tuple[tuple[World, Statement], ...]) -> None:
    said = []
    for i, (made, random) in enumerate(statements):
        try:
            said.append(check(made, random, salt=i))
        except AssertionError as error:
            raise AssertionError(f"statement {i}: {error}\n{random.dp}") from error
    assert "answered" in said, said


def called(value: Any) -> Iterator[str]:
    """The functions called in a plan."""
    if isinstance(value, tuple):
        for item in value:
            yield from called(item)
    elif nodes.is_dataclass(value):
        if isinstance(value, Call):
            yield value.function
        for field in fields(value):
            yield from called(getattr(value, field.name))


def test_names_are_no_texts() -> None:
    """What reads like an alias, or like the source, inside a text stays as it is."""
    assert renamed("k0 = 'k0' AND K0 < 'it''s k0' OR k01 = k0", "k0", "(x)") == "(x) = 'k0' AND K0 < 'it''s k0' OR k01 = (x)"
    assert renamed("SELECT 'data.main' FROM data.main.t", "data", "v0") == "SELECT 'data.main' FROM v0.main.t"


def test_statements_are_read() -> None:
    assert len(made()) == WORLDS * EACH
    assert len(questions()) >= 0.98 * len(made())


# ---- below the noise -----------------------------------------------------------------------------------------------------------------


def test_every_function_has_its_production() -> None:
    """And every production its function; each is made, under each of its names."""
    assert set(calls.FORMS) == set(FUNCTIONS)
    assert set(calls.REWRITES) == set(REWRITTEN)
    found = Counter(name for question in questions() for name in called(question.blocks[0].draft))
    assert sorted(set(FUNCTIONS) - set(found)) == []


def test_every_name_of_a_function_can_be_written() -> None:
    names = {name for function, ways in calls.FORMS.items() for call in ways for name in calls.spelled(function, call)}
    assert sorted(NAMES - names - set(calls.REWRITES)) == []
    words = set(re.findall(r"\w+", texts().lower()))
    assert len(NAMES & words) >= 0.8 * len(NAMES)


@cache
def data_set(seed: int) -> World:
    return world(seed)


@pytest.mark.parametrize("function", [*calls.FORMS, *calls.REWRITES])
def test_each_call_is_what_plain_sql_says(function: str) -> None:
    """Every way and name of a function alone, as the key of a count: neighbours, plain SQL, independence of the data."""
    for place, call in enumerate({**calls.FORMS, **calls.REWRITES}[function]):
        for name in calls.spelled(function, call):
            assert "answered" in _tried(function, place, call, name), f"{name or function}, way {place}: no data set answers it"


def _tried(function: str, place: int, call: calls.Call, name: str) -> Iterator[str]:
    for seed in range(8):
        random = about(data_set(seed), f"{seed}/{function}/{place}/{name}", function, call, name)
        if random is not None:
            try:
                yield check(data_set(seed), random, salt=seed, wholly=True)
            except AssertionError as error:
                raise AssertionError(f"data set {seed}: {error}\n{random.dp}") from error


NEVER = {
    "Post.places=empty": "an answer has outputs, and each its expression",
    **dict.fromkeys((f"Stack.{field}=empty" for field in ("columns", "ours", "theirs")), "a branch has columns"),
    **dict.fromkeys(("Scan.columns=empty", "Public.columns=empty", "Post.outputs=empty", "Post.places=empty"), "a table and an answer have columns"),
    **dict.fromkeys(("Compute.items=empty", "Call.args=empty", "Case.branches=empty", "Combined.parts=empty"), "none is made empty"),
    **dict.fromkeys(("Column.values=empty", "KeySource.positions=empty"), "a list that is declared or found has values"),
    **dict.fromkeys(("Type.kind=LIST", *(f"Type.of={kind.name}" for kind in Kind)), "what is measured, grouped by or fed is no list"),
    **dict.fromkeys(("Type.kind=INTERVAL", "Type.kind=NULL"), "an interval is taken apart when it is read, NULL takes another type"),
    "Contributions.listed=given": "how many groups there are is known when the keys are",
    **dict.fromkeys(("AggregateAsk.position=None",), "every aggregate has a place"),
    "AggregateAsk.doubt=other": "error bars are asked for when the statement's own confidence is known",
    **dict.fromkeys(("Lookup.fanout=given",), "fan-outs are looked up after the statement was read"),
    **dict.fromkeys(("Question.blocks=empty", "Either.branches=empty"), "a statement releases something, and a union has two branches"),
    **dict.fromkeys(("Opened.tables=empty", "Opened.position=None"), "what is read above the noise is made of a table, and has its place"),
    **dict.fromkeys(("Product.tables=empty", "Product.position=None"), "what has many pairs of rows is made of tables, and has its place"),
    **dict.fromkeys(("Feed.types=empty", "Feed.tables=empty"), "what is fed has columns, and comes from a release"),
    **dict.fromkeys(("Column.nullable=False",), "no column is known to hold no NULL"),
    **dict.fromkeys(
        ("Options.levels=other", "Block.level=Level", "Level", "Level.places=some", "Level.places=empty"),
        "levels of groups have random statements of their own, in test_levels.py",
    ),
}
"""Options that no statement can have, each with the reason. Caps stand in bounded plans only, which the neighbour machine walks."""


def test_every_node_and_option_of_a_question_is_made() -> None:
    """Relations and joins of every kind, sources of keys, aggregates with all that can be said of them, prices, error bars.

    What chance left out is looked for among statements that are made for it.
    """
    required = {one for one in nodes.required([Question], LEAVES) if "CapRows" not in one}
    assert [one for one in sorted(required - shown() - NEVER.keys()) if not is_made(one)] == [], "no statement has these"
    assert sorted(NEVER.keys() & shown()) == [], "these are said to be impossible"
    assert sorted(NEVER.keys() - required) == [], "these do not exist any more"


def test_every_card_is_asked_for() -> None:
    assert {ask.card for question in questions() for ask in question.blocks[0].draft.asks} == set(CARDS)


FOREIGN = {
    *(exp.SafeDivide, exp.WeekOfYear, exp.DayOfMonth, exp.DayOfWeekIso, exp.DateSub, exp.TimestampAdd, exp.TimestampSub, exp.DatetimeAdd),
    *(exp.DatetimeSub, exp.TsOrDsAdd, exp.Date, exp.TsOrDsToDate, exp.Localtimestamp, exp.CurrentDatetime, exp.RegexpILike, exp.RegexpSubstr),
}
"""What only other dialects' parsers make of a text: docs/dialects.md is about them."""


@pytest.mark.slow
def test_every_node_below_the_noise_is_written() -> None:
    """Operators, calls, aggregates of a person, windows and set operations, as the readers know them by their classes."""
    known = {*scalar.READERS, *scalar.OPERATORS, *reductions.BY_CLASS, *perwindow.RANKS, *perwindow.SHIFTS, *standins.READ, *stacks.WORDS}
    known |= {*quantiles.QUANTILES, *MOMENTS}
    assert known >= FOREIGN
    missing = known - FOREIGN
    more = (attempted(Grammar(Random(f"gram {seed}/{i}"), world(seed))) for i in range(EACH, 20 * EACH) for seed in range(WORLDS))
    for one in chain((one for one, _ in made()), more):  # what chance left out is looked for
        if not missing:
            break
        missing -= {type(node) for node in parse(one.dp).tree.walk()}
    assert sorted(node.__name__ for node in missing) == []


# ---- clauses and options -------------------------------------------------------------------------------------------------------------

CLAUSES = {
    "items": r"\bSELECT ",
    "distinct": r"\bSELECT (WITH DIFFERENTIAL_PRIVACY OPTIONS\([^)]*\) )?DISTINCT ",
    "where": r" WHERE ",
    "group": r" GROUP BY ",
    "having": r" HAVING ",
    "qualify": r" QUALIFY ",
    "order": r" ORDER BY \d",
    "limit": r" LIMIT ",
    "offset": r" OFFSET ",
}
JOINS = (
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT OUTER JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "NATURAL JOIN",
    "NATURAL LEFT JOIN",
    "CROSS JOIN",
    "USING (",
    ", ",
)


def test_every_clause_is_written() -> None:
    assert {*CLAUSES, "level"} == {field.name for field in fields(Clauses)}, "levels are written in test_levels.py"
    assert [name for name, pattern in CLAUSES.items() if not re.search(pattern, texts())] == []


def test_every_join_is_written() -> None:
    assert [word for word in JOINS if word not in texts()] == []
    words = {word for before in re.findall(r"((?:[A-Z]+ )+)JOIN\b", texts()) for word in before.split()}
    assert sorted(set(joinkinds.WORDS) - words) == []


def test_every_set_operation_is_written() -> None:
    """Below the noise; which of them stand above it is listed in `ABOVE`."""
    assert [kind.__name__ for kind in stacks.WORDS if not re.search(rf"\b{kind.__name__.upper()}\b", texts())] == []
    assert [word for word in united.SETS.values() if not any(f" {word} " in one for one in ABOVE)] == []


def test_every_option_and_named_argument_is_written() -> None:
    every = "\n".join((texts(), *automatic(data_set(0))))
    written = {name.lower() for name in re.findall(r"(\w+) = ", " ".join(re.findall(r"OPTIONS\(([^)]*)\)", every)))}
    assert sorted(set(options.NAMES) - written) == []
    assert [word for word in (*options.STRATEGIES, *options.NOISES) if word.lower() not in texts().lower()] == []
    assert [name for name in ARGUMENTS if f"{name} =>" not in every] == []


# ---- above the noise -----------------------------------------------------------------------------------------------------------------


def parsed(text: str) -> set[type]:
    return {type(node) for node in sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").walk()}


def test_every_node_above_the_noise_has_its_production() -> None:
    """And each production shows its node."""
    assert set(upper.UPPER) == set(allowed.NODES)
    assert set(upper.UNKNOWN) == set(allowed.FUNCTIONS)
    assert {name.partition("(")[0] for name in upper.TYPED} == set(allowed.TYPES)
    silent = [node.__name__ for node, ways in upper.UPPER.items() if not all(node in parsed(upper.filled(way, "1", "2", "")) for way in ways)]
    assert silent == []


def test_every_window_has_its_production() -> None:
    known = {*windows.BARE, *windows.SINGLE, *windows.ORDERED, exp.Count}
    assert known == set(upper.WINDOWS)
    assert [node.__name__ for node, way in upper.WINDOWS.items() if node not in parsed(upper.filled(way, "x", "y", ""))] == []


NAMED = re.compile(r", \w+ => (\([^)]*\)|\w+)")


def above(one: Statement) -> set[type]:
    return {node for more in one.more for node in parsed(NAMED.sub("", more.dp))}


def test_everything_above_the_noise_is_made() -> None:
    """What chance left out of the statements that are read is looked for among further ones."""
    missing = {*upper.UPPER, *upper.WINDOWS}.difference(*(above(one) for one, _ in made()))
    one = with_views(0)
    for i in range(WORLDS * EACH):
        missing -= above(attempted(Grammar(Random(f"further {i}"), one))) if missing else set()
    assert sorted(node.__name__ for node in missing) == []


# ---- the check can fail --------------------------------------------------------------------------------------------------------------


def test_a_function_without_a_production_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(calls.FORMS, "median_of", calls.FORMS["abs"])  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        test_every_function_has_its_production()


@pytest.mark.parametrize("name", ["Match.join=LEFT", "KeySource.public=Public", "Ratio", "Combined.operation=ROUND", "Options.rho=given"])
def test_what_no_statement_has_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in shown()
    less = shown() - {name}
    monkeypatch.setitem(globals(), "shown", lambda: less)
    monkeypatch.setitem(globals(), "is_made", lambda one: False)
    with pytest.raises(AssertionError, match=re.escape(name)):
        test_every_node_and_option_of_a_question_is_made()


@pytest.mark.parametrize(
    "name",
    ["Match.right=Windowed", "Windowed.input=Windowed", "Group.input=Stack", "Semi.right=Group", "Stack.left=Match", "Reduction.function=VAR_POP"],
)
def test_what_is_rare_is_found(name: str) -> None:
    assert is_made(name)


def test_what_is_nowhere_is_not_found() -> None:
    assert not is_made("Match.right=CapRows")
