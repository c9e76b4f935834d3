"""Wrong bounds, lost filters and forms that can fail: each is caught by one of the checks on a few random statements.

A mutant changes what the statement does and leaves what it claims as it was, or the reverse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import people
import pytest
from checked import check, prepared
from grammar import Statement
from inside import Inside
from perunit import most_frequent
from sought import sought, with_views
from statements import counted_by, statement
from worlds import MAIN, World, world

from dpquery.backends import cells, contributed, forms, numeric, public, spreads, tree
from dpquery.backends import inside as reductions
from dpquery.backends.lower import lower
from dpquery.backends.port import BoundedSQL
from dpquery.backends.shapes import plain
from dpquery.errors import Fault, Refused
from dpquery.plan import intervals
from dpquery.plan.release import Clamp, Release, Units
from dpquery.privacy import contribution
from dpquery.values.types import Adjacency

MOST = 60  # data sets that a mutant may survive
Patch = pytest.MonkeyPatch


class Unchanged(Exception):
    """The mutant does nothing to a statement: nothing of it has to run."""


# What a statement must say for the mutant to change it, where few do: of many more statements these are run.
SAYS = {
    "a frame ends at its row": r"PRECEDING AND 1 FOLLOWING",
    "the value of a list beside the one that is asked for": r"\)\[\d\]|list_extract|element_at|SAFE_OFFSET|OFFSET\(",
}


def caught(name: str, down: Callable[[Release, int], BoundedSQL] = lower, each: int = 8) -> str | None:
    """What is said of the first statement that gives the mutant away, among so many of each data set."""
    said = re.compile(SAYS.get(name, ""), re.IGNORECASE)
    for seed in range(MOST):
        made = world(seed)
        for i in range(400 if name in SAYS else each):
            one = statement(made, f"{seed}/{i}")
            if not said.search(one.dp):
                continue
            with suppress(Unchanged):
                try:
                    check(made, one, salt=1000 * seed + i, down=down)
                except AssertionError as error:
                    return str(error)
        made.con.close()
    return None


TEXTS: dict[str, tuple[str, str]] = {
    "rows without a unit are kept": (r' WHERE \w+\."\w+" IS NOT NULL', " "),
    "orphans are kept": (r" JOIN (data\S+ AS h1)(.*) WHERE .*$", r" LEFT JOIN \1\2),"),
    "private rows of other units match": (r"l\.u = p\.u", "TRUE"),
    "cells take the keys of other units": (r"ON c\.u = r\.u", "ON TRUE"),
    "partners of other units count": (r"(SEMI|ANTI) JOIN (r\d+) AS p ON l\.u = p\.u", r"\1 JOIN \2 AS p ON TRUE"),
    "whether there is a partner is not asked": (r"(SEMI|ANTI) JOIN (r\d+) AS p ON l\.u = p\.u AND .*\)", r"\1 JOIN \2 AS p ON l.u = p.u)"),
    "rows without a partner are those with one": (r"ANTI JOIN", "SEMI JOIN"),
    "a UNION keeps what both branches have": (r" UNION SELECT u", " UNION ALL SELECT u"),
    "a UNION ALL merges equal rows": (r" UNION ALL SELECT u", " UNION SELECT u"),
    "an EXCEPT leaves nothing out": (r" EXCEPT SELECT u.* FROM r\d+\)", ")"),
    "a LEFT JOIN drops rows": (r"LEFT JOIN (r\d+) AS p", r"JOIN \1 AS p"),
    "a lookup drops rows": (r"LEFT JOIN (memory\S+) AS p", r"JOIN \1 AS p"),
    "one group too many": (r"capped WHERE place <= (\d+)", r"capped WHERE place <= 1 + \1"),
    "no cap on groups": (r"capped WHERE place <= \d+", "capped"),
    "groups are capped over all units": (r"OVER \(PARTITION BY u ORDER BY", "OVER (ORDER BY"),
    "NULL is no key": (r"IS NOT DISTINCT FROM l\.", "= l."),
    "weights beyond the limit": (r"\(least\(count\(\*\), (\d+)\) \*", r"((\1) *"),
    "weights rounded up": (r"// count\(\*\) AS w", "// count(*) + 1 AS w"),
    "a unit counts once a row": (r"least\((n\d*), 1\)", r"\1"),
    "NaN counts": (r"CASE WHEN TRY_CAST\(\S+ AS DOUBLE\) <= 'inf'::DOUBLE THEN (TRY_CAST\(\S+ AS DOUBLE\)) \+ 0\.0 END", r"\1"),
    "sums are not clamped": (r"least\(greatest\((s\d+), -?\d+\), -?\d+\)", r"\1"),
    "values of groups that are left out count": (r"JOIN kept AS c ON .* (WHERE r\.place)", r"\1"),
    "values are counted by unit": (r"count\(DISTINCT (d\d+)\)", r"count(\1)"),
    "squares are not centred": (r" - \(\d+\)::HUGEINT \* (m\d+_\d+)", r" - 0 * \1"),
    "rows in which one value is NULL are counted": (r"count\(\(2 \* x\d+ - \(-?\d+\)\) \* \(2 \* x\d+ - \(-?\d+\)\)\)", "count(*)"),
    "a window goes over the rows of all units": (r"OVER \(PARTITION BY u(?:, c\d+)* (?=ORDER BY c|\))", "OVER ("),
    "equal rows are told apart by how they are read": (
        r"(row_number|lag|lead|first_value)(\(.*? OVER \(PARTITION BY u(?:, c\d+)+) ORDER BY c[^)]*\)",
        r"\1\2)",
    ),
    "a frame is its row alone": (r"ROWS BETWEEN \d PRECEDING AND (CURRENT ROW|1 \w+)", "ROWS BETWEEN CURRENT ROW AND CURRENT ROW"),
    "a frame ends at its row": (r"(ROWS BETWEEN \d PRECEDING AND) 1 FOLLOWING", r"\1 CURRENT ROW"),
    "groups are kept as they are read": (r"ORDER BY \(hash\(.*\) AS place", ") AS place"),
    "overflow is an error": (r"TRY_CAST", "CAST"),
}


@pytest.mark.audit
@pytest.mark.parametrize("name", TEXTS)
def test_a_wrong_text_is_caught(name: str) -> None:
    old, new = TEXTS[name]

    def down(release: Release, salt: int) -> BoundedSQL:
        lowered = lower(release, salt)
        text = re.sub(old, new, lowered.text, flags=re.MULTILINE)
        if text == lowered.text:
            raise Unchanged
        return replace(lowered, text=text)

    assert caught(name, down, each=40), name


def _wide_cells(patch: Patch) -> None:
    real = cells.cell

    def wide(part: Any, rows: Any, places: Any, **more: Any) -> Any:
        made = replace(part, cell=Clamp(part.cell.low * 2, part.cell.high * 2)) if isinstance(part.cell, Clamp) else part
        return replace(real(made, rows, places, **more), bound=real(part, rows, places, **more).bound)

    patch.setattr(cells, "cell", wide)


def _claims(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Claims as they would be if a cell's bound were read wrongly."""

    def mutant(patch: Patch) -> None:
        real = contribution.sensitivities
        patch.setattr("checked.sensitivities", lambda enforced, adjacency: real(change(enforced), adjacency))

    return mutant


def _replace_one_as_remove(patch: Patch) -> None:
    real = contribution.sensitivities
    patch.setattr("checked.sensitivities", lambda enforced, _: real(enforced, Adjacency.ADD_REMOVE))


def _no_fan_out(patch: Patch) -> None:
    patch.setattr(public, "fanout", lambda *_: 1)


def _filter_is_lost(patch: Patch) -> None:
    real = cells.addend
    patch.setattr(cells, "addend", lambda part, *given: real(replace(part, where=None), *given))


def _filter_inside_a_unit_is_lost(patch: Patch) -> None:
    for module in (contributed, reductions):
        patch.setattr(module, "where", lambda text, *_: text)


def _distinct_inside_a_unit_is_lost(patch: Patch) -> None:
    for module in (reductions, spreads):
        patch.setattr(module, "distinct", lambda _: "")


def _modes_are_least_values(patch: Patch) -> None:
    from dpquery.sql import permode

    patch.setattr(permode, "columns", lambda value: frozenset())


def _nulls_are_counted(patch: Patch) -> None:
    patch.setattr(cells, "_counted", lambda value, given: "1")


def _tight_products(patch: Patch) -> None:
    patch.setitem(
        intervals.SPANS,
        "mul",
        intervals._two(lambda a, b: intervals.Range(*sorted((a.low * b.low, a.high * b.high))) if None not in (*a, *b) else intervals.ALL),
    )


def _keys_are_not_pruned(patch: Patch) -> None:
    real = public._source
    patch.setattr(public, "_source", lambda source, keys, backend: real(replace(source, prune=()), keys, backend))


def _sums_that_can_fail(patch: Patch) -> None:
    patch.setitem(forms.FORMS, "add", plain("({0} + {1})"))


def _divisions_that_can_fail(patch: Patch) -> None:
    patch.setattr(numeric, "_divisor", lambda arg, piece: piece.text)


def _dates_that_can_fail(patch: Patch) -> None:
    patch.setattr(forms, "_dated", lambda arg, piece: piece.text)


def _rows_are_shifted(patch: Patch) -> None:
    real = cells.addend

    def wrong(part: Any, *given: Any) -> Any:
        made = replace(part, row=replace(part.row, low=part.row.low + 1)) if isinstance(part.row, Units) and part.row.low < part.row.high else part
        return real(made, *given)

    patch.setattr(cells, "addend", wrong)


def _computed_after_the_join(patch: Patch) -> None:
    from dpquery.sql import joins

    patch.setattr(joins, "computed", lambda statement, side: side)


def _values_in_the_next_bin(patch: Patch) -> None:
    real = tree.levels
    patch.setattr(tree, "levels", lambda parts, places: [replace(level, low=level.low - 1) for level in real(parts, places)])


def _modes_in_another_order(patch: Patch) -> None:
    from dpquery.aggregates import mode

    real = mode._place
    patch.setattr(mode, "_place", lambda argument, values: real(argument, values[::-1]))


def _lists_in_reverse(patch: Patch) -> None:
    from dpquery.aggregates import quantile

    real = quantile.Counted.quantiles
    patch.setattr(quantile.Counted, "quantiles", lambda self, which: [one[::-1] for one in real(self, which)])


def _days_counted_from_the_next(patch: Patch) -> None:
    from dpquery.aggregates import values

    patch.setattr(values, "EPOCH", values.EPOCH + timedelta(days=1))


def _places_counted_from_one(patch: Patch) -> None:
    from dpquery.sql import indexed

    real = indexed.extract
    patch.setattr(indexed, "extract", lambda of, at: real(of, at + 1))


def _what_in_leaves_open_is_false(patch: Patch) -> None:
    from dpquery.sql import markers

    patch.setattr(markers, "UNKNOWN", markers.FALSE)


def _partners_are_not_told_apart(patch: Patch) -> None:
    from dpquery.sql import markers

    real = markers._truth
    patch.setattr(markers, "_truth", lambda hit, some, unknown, negated: real(hit, some, unknown, not negated))


def _the_lowest_cap_wins(patch: Patch) -> None:
    from dpquery.aggregates import race

    patch.setattr(race, "_largest", lambda sums, widths: list(sums[0]))


MUTANTS: dict[str, Callable[[Patch], None]] = {
    "cells twice as wide as claimed": _wide_cells,
    "half the claim": _claims(lambda e: replace(e, cells=tuple(replace(c, low=c.low // 2, high=(c.high + 1) // 2 - 1) for c in e.cells))),
    "replace-one at the price of removal": _replace_one_as_remove,
    "public rows are never met twice": _no_fan_out,
    "FILTER is lost": _filter_is_lost,
    "FILTER inside a unit is lost": _filter_inside_a_unit_is_lost,
    "DISTINCT inside a unit is lost": _distinct_inside_a_unit_is_lost,
    "MODE inside a unit is the least value": _modes_are_least_values,
    "NULLs are counted": _nulls_are_counted,
    "keys that WHERE excludes are listed": _keys_are_not_pruned,
    "sums that can fail": _sums_that_can_fail,
    "divisions that can fail": _divisions_that_can_fail,
    "dates that can fail": _dates_that_can_fail,
    "rows clamped one step too high": _rows_are_shifted,
    "expressions of the null side computed after the join": _computed_after_the_join,
    "values counted in the next bin": _values_in_the_next_bin,
    "values of modes in another order": _modes_in_another_order,
    "lists of quantiles in reverse": _lists_in_reverse,
    "days counted from the next": _days_counted_from_the_next,
    "the value of a list beside the one that is asked for": _places_counted_from_one,
    "what IN leaves open is false": _what_in_leaves_open_is_false,
    "rows with a partner are those without one": _partners_are_not_told_apart,
    "the lowest cap wins": _the_lowest_cap_wins,
}


# Those that change the text of few statements. (Others change none, but what is claimed.)
RARE = (
    "FILTER inside a unit is lost",
    "DISTINCT inside a unit is lost",
    "MODE inside a unit is the least value",
    "sums that can fail",
    "divisions that can fail",
    "dates that can fail",
    "expressions of the null side computed after the join",
    "values of modes in another order",
    "what IN leaves open is false",
    "rows with a partner are those without one",
)


@pytest.mark.audit
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_plan_is_caught(name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name](patch)
        if name not in RARE:
            assert caught(name), name
    if name in RARE:
        assert caught_where_it_counts(name), name


def caught_where_it_counts(name: str) -> str | None:
    """What is said of the first statement that gives the mutant away, among those whose text it changes."""
    for salt, (made, one) in enumerate(likely(name)):
        texts = [text(made, one, salt)]
        with pytest.MonkeyPatch.context() as patch:
            MUTANTS[name](patch)
            texts.append(text(made, one, salt))
            if texts[0] != texts[1]:
                try:
                    check(made, one, salt)
                except (AssertionError, Fault) as error:  # a fault: the lemmas' own checks of the plan saw it
                    return str(error)
    return None


def likely(name: str) -> Iterator[tuple[World, Statement]]:
    """Random statements; before them, of what is inside a unit, such as are grouped by it, and for MODE the units by that alone."""
    if "MODE" in name:
        for seed in range(20 * MOST):  # few units have so many rows that their most frequent value is not the least
            one = counted_by(with_views(seed % MOST), f"{seed}", most_frequent)
            yield from [] if one is None else [(with_views(seed % MOST), one)]
    if "inside a unit" in name:
        for many in range(8):
            yield from sought(f"Reduction.{many}")
    for seed in range(MOST):
        made = world(seed)
        yield from ((made, statement(made, f"{seed}/{i}")) for i in range(40))
        made.con.close()


def text(made: World, one: Statement, salt: int) -> str:
    try:
        return prepared(made, Inside(made, MAIN), one.dp, salt).lowered.text
    except (Refused, Fault) as stopped:
        return stopped.code


def test_bounds_of_products_from_two_corners_are_caught(tmp_path: Path) -> None:
    """Few random products have factors on both sides of 0 and no bounds of their own; this one has."""
    sql = "SELECT sum(x * (x - 3)) FROM visits"
    with people.opened(people.made(tmp_path)) as (session,):
        right = people.one(session, sql)
        with pytest.MonkeyPatch.context() as patch:
            _tight_products(patch)
            wrong = people.one(session, sql)
    with duckdb.connect(str(tmp_path / "people.duckdb"), read_only=True) as con:
        ((plain_sum,),) = con.execute(f"{sql} WHERE pid IS NOT NULL").fetchall()
    assert right == pytest.approx(plain_sum)
    assert wrong > right + 1000
