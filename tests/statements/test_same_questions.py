"""The hash of a question: equal for all spellings of one, and for no two: every field of a bounded plan enters it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import permutations
from random import Random
from typing import Any

import pytest
import statements
from checked import NOW
from inside import Inside
from relations import views
from statements import statement
from worlds import World, world

from dpquery.backends.public import facts
from dpquery.errors import Refused
from dpquery.plan.rel import Scan, ScanColumn, Windowed
from dpquery.plan.release import Release
from dpquery.plan.sameness import LEFT_OUT, NESTED, Measured, Same, form, same
from dpquery.plan.scalar import Call, Column
from dpquery.privacy import bound
from dpquery.sql import read

EACH = 8
Spelling = tuple[str, str]


def measured(made: World, text: str) -> tuple[list[Measured], Same]:
    """The releases of a statement, bounded, and their hash."""
    question = read(text, made.schema, now=NOW)
    drafts = [block.draft for block in question.blocks]
    found = [bound(draft, fact) for draft, fact in zip(drafts, facts(drafts, Inside(made)), strict=True)]
    blocks = [Measured(block.name, release, block.draft, block.feeds) for block, release in zip(question.blocks, found, strict=True)]
    return blocks, same(blocks, question.opened)


def outside_quotes(text: str, change: Any) -> str:
    """The text with what is no quoted text changed."""
    return "".join(part if part[:1] in ("'", '"') else change(part) for part in re.split(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")""", text))


def respelled(text: str) -> Iterator[str]:
    """Other names for tables and columns, blank space, comments, keywords in capitals or not."""
    yield outside_quotes(text, lambda part: re.sub(r"\b([ast]\d+)\b", r"called_\1", part, flags=re.IGNORECASE))
    yield outside_quotes(text, lambda part: re.sub(r" (?! )", "\n\t /* , */ ", part)) + " -- nothing\n"
    yield outside_quotes(text, lambda part: re.sub(r"\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|AND|JOIN|ON|AS|FILTER)\b", lambda m: m[0].lower(), part))
    yield outside_quotes(text, lambda part: re.sub(r"\bAS (t\d+)\b", r"\1", part))


def reordered(made: World, seed: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The statement of a seed with its conjuncts, keys and aggregates in other orders, named otherwise or not at all, and with other upper parts."""
    kept: list[tuple[Any, ...]] = []
    real = statements._written

    def written(*given: Any) -> Any:
        kept.append(given)
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(statements, "_written", written)
        yield statement(made, seed).dp
    g, rel, where, keys, aggs, *rest = kept[-1]
    for again in range(3):
        g.random = Random(f"{seed} {again}")
        others = [g.random.sample(some, len(some)) for some in (where, keys, aggs)]
        if any(key.aliased for key in keys):  # a condition names one by its place
            others[1] = keys
        yield real(g, rel, *others, *rest).dp


def spellings(seeds: range, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, list[Spelling]]]:
    """For each statement the texts that ask the same, each with its hash; those that are refused, for what stands above the noise, are left out."""
    for seed in seeds:
        made = world(seed)
        views(made)
        for i in range(EACH):
            texts = list(reordered(made, f"{seed}/{i}", monkeypatch))
            found = list[Spelling]()
            for text in (*texts, *respelled(texts[0])):
                with suppress(Refused):
                    found.append((text, measured(made, text)[1].digest))
            yield made, found
        made.con.close()


def agree(seeds: range, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many spellings were compared; no two questions of a data set have one hash."""
    compared, by_hash = 0, dict[tuple[int, str], str]()
    for made, found in spellings(seeds, monkeypatch):
        compared += len(found)
        if found:
            assert len({digest for _, digest in found}) == 1, "\n".join(f"{digest[:8]} {text}" for text, digest in found)
            text, digest = found[0]
            other = by_hash.setdefault((id(made), digest), text)
            assert other == text or released(other) == released(text), f"{other}\n{text}"
    return compared


def released(text: str) -> str:
    """A statement without what stands above the noise, roughly: two random ones that agree in a hash agree in their FROM."""
    return re.sub(r".* FROM ", "", outside_quotes(text, str.lower).split(" group by ")[0])


def test_spellings_of_a_question_have_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agree(range(2), monkeypatch) >= 2 * EACH * 5


HEAD = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_per_group = 1, max_groups_contributed = 5, epsilon = 1, delta = 1e-6) "


def test_joins_of_one_relation_are_the_same_in_any_order() -> None:
    """Subqueries of several items are joined in the order in which they are met."""
    made = world(0)
    key = "CASE WHEN t.uid IN (SELECT s.uid FROM orders s) THEN 1 ELSE 2 END"
    items = (
        key,
        "sum(CASE WHEN t.uid IN (SELECT s.uid FROM visits s) THEN 1 ELSE 0 END)",
        "count(CASE WHEN t.k IN (SELECT k FROM places) THEN 1 END)",
    )
    texts = [f"{HEAD}{', '.join(some)} FROM visits AS t GROUP BY {key}" for some in permutations(items)]
    assert len({measured(made, text)[1].digest for text in texts}) == 1
    joined = f"{HEAD}count(*) FROM people p LEFT JOIN orders a ON a.uid = p.uid LEFT JOIN {{}} b ON b.uid = p.uid WHERE "
    others = [(one, f"{a}.x IS NULL AND {b}.uid > 2") for one in ("orders", "visits") for a in "ab" for b in "ab"]
    found = {measured(made, joined.format(one) + condition)[1].digest for one, condition in others}
    assert len(found) == len(others), "which of two relations a column is of"


@pytest.mark.slow
def test_more_spellings_of_a_question_have_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agree(range(4, 60), monkeypatch) >= 56 * EACH * 5


# ---- every field enters the hash -----------------------------------------------------------------------------------------------------


def changed(value: Any) -> Iterator[Any]:
    """The value with one thing in it changed, at every place."""
    match value:
        case None:
            return
        case bool():
            yield not value
        case Enum():
            yield from (other for other in type(value) if other is not value)
        case int() | float() | Fraction() | Decimal():
            yield value + 1
        case str():
            yield value + "x"
        case date():
            yield value + timedelta(days=1)
        case frozenset():
            yield value ^ {10**6}
        case tuple():
            for i, one in enumerate(value):
                yield from ((*value[:i], other, *value[i + 1 :]) for other in changed(one))
        case Scan():
            yield from _fields(value, without={"columns"})
            for i, one in enumerate(value.columns):
                yield from (replace(value, columns=(*value.columns[:i], other, *value.columns[i + 1 :])) for other in _fields(one))
        case Call(function=function):
            others = _fields(value, without={"type"} if function in NESTED else None)  # which is always that of conditions
            yield from (other for other in others if function != "in" or {*other.args[1:]} != {*value.args[1:]})  # a list may say a value twice
            for i, one in enumerate(value.args):
                if isinstance(one, Column):
                    yield replace(value, args=(*value.args[:i], _another(one), *value.args[i + 1 :]))
        case _ if is_dataclass(value):
            yield from _fields(value)
        case _:
            raise AssertionError(type(value).__name__)


def _another(column: Column) -> Column:
    """A column of another place; where a relation names its own columns, ids are but names."""
    return replace(column, id=column.id + 10**6)


def _fields(node: Any, without: set[str] | None = None) -> Iterator[Any]:
    for field in fields(node):
        if field.name not in LEFT_OUT.get(type(node), frozenset()) | (without or set()):
            value = getattr(node, field.name)
            read = [_another(value)] if isinstance(value, Column) and not isinstance(node, ScanColumn | Windowed) else []
            for other in (*read, *changed(value)):
                with suppress(ValueError):  # the ends of an interval in a wrong order
                    yield replace(node, **{field.name: other})


def released_otherwise(release: Release) -> Iterator[Release]:
    """The release with one thing changed, in what is measured; how it is finished above the noise is no part of the question."""
    yield from (replace(release, table=other) for other in changed(release.table))
    yield from (replace(release, keys=other) for other in changed(release.keys))


def _every_change_is_seen(made: World, text: str) -> int:
    blocks, _ = measured(made, text)
    (release,) = [block.release for block in blocks]
    first, seen = form(release).digest, 0
    for other in released_otherwise(release):
        with suppress(IndexError):  # a count that is no part
            assert form(other).digest != first, f"{text}\n{release}\n{other}"
            seen += 1
    return seen


def _fields_enter(seeds: range, longest: int) -> tuple[int, int]:
    """How many statements were tried, and how many changes of their plans were seen."""
    tried, seen = 0, 0
    for seed in seeds:
        made = world(seed)
        views(made)
        for i in range(EACH):
            one = statement(made, f"{seed}/{i}")
            if len(one.dp) < longest:
                with suppress(Refused):
                    seen += _every_change_is_seen(made, one.dp)
                    tried += 1
        made.con.close()
    return tried, seen


def test_every_field_of_a_plan_enters_the_hash() -> None:
    tried, seen = _fields_enter(range(4), 300)
    assert tried >= 2
    assert seen >= 50 * tried


@pytest.mark.slow
def test_every_field_of_more_plans_enters_the_hash() -> None:
    tried, seen = _fields_enter(range(1, 40), 1000)
    assert tried >= 100
    assert seen >= 50 * tried


def test_a_hash_is_the_same_each_time() -> None:
    made = world(0)
    views(made)
    text = statement(made, "0/0").dp
    blocks, found = measured(made, text)
    assert {measured(made, text)[1] for _ in range(3)} == {found}
    assert same(blocks).digest != same([*blocks, *blocks]).digest
    made.con.close()
