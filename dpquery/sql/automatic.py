"""bounds => 'auto': the cap of a total is chosen from a histogram of what each unit brings, which is released first, from the same price.

The histogram is a release like any other: of the rows that the aggregate reads, one for each unit, with the logarithm of its largest cell as a public
key. The release that reads the cap adds up x / cap within bounds of 1, so that its price is known before the cap is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpquery.aggregates.grid import ceil_log2, grid, row_units
from dpquery.plan.draft import AggregateAsk, Block, Cap, Contributions, Draft, Feed, Options
from dpquery.plan.functions import call, choose
from dpquery.plan.inside import Reduce, Reduction, Whole
from dpquery.plan.intervals import interval
from dpquery.plan.rel import Compute, Filling, Group, Join, Lookup, Private, Public
from dpquery.plan.release import Key, KeySource
from dpquery.plan.scalar import Cast, Column, Interval, Literal, Scalar
from dpquery.sql.clause import Name, Option, Text
from dpquery.sql.names import Statement
from dpquery.sql.public import cast_to
from dpquery.values.types import FLOAT, INTEGER, Kind

CARDS = ("count", "total", "mean")
OCTAVE = 4  # bins, each of which reaches up to the 2^(1/4)-fold
MOST_ROWS = 24  # octaves of rows: a unit with more counts as one with so many
LEAST_VALUE, MOST_VALUE = -20, 40  # octaves of values
MOST = Fraction(2) ** MOST_VALUE


def check(statement: Statement, option: Option) -> bool:
    """True, or Refused where bounds are anything but 'auto'."""
    match option.value:
        case Text(text=text) | Name(parts=(text,)) if text.upper() == "AUTO":
            return True
        case _:
            instead = "bounds => 'auto', or contribution_bounds_per_group => (0, 100)"
            raise statement.refuse_at(
                "OPTION_VALUE", "bounds are 'auto' or written out; of one COUNT or SUM with a ceiling also 'race'", option.position, instead
            )


def asked(asks: tuple[AggregateAsk, ...], everywhere: bool) -> tuple[AggregateAsk, ...]:
    """The aggregates, of which those without bounds of their own have theirs chosen where all are to."""
    return tuple(
        replace(one, auto=True) if everywhere and one.card in CARDS and one.per_group is None and one.per_row is None else one for one in asks
    )


def capped(statement: Statement, draft: Draft, name: str, price: Options, called: Callable[[int], str]) -> Draft:
    """The draft with a cap for each aggregate whose bounds are chosen; the release of its histogram is noted, and what it feeds."""
    asks, rel, before = [], draft.input, tuple(statement.feeds)
    for ask in draft.asks:
        if not ask.auto:
            asks.append(ask)
            continue
        histogram = called(next(statement.noisy))
        cap = _cap(histogram, ask)
        found = _histogram(statement, draft, ask, cap)
        statement.blocks.append(Block(histogram, found, Options(noise=price.noise), before, serves=name))
        public = f"public_{next(statement.publics)}"
        column = Column(next(statement.ids), "cap", FLOAT, public=public)
        sql = f"SELECT CAST(k0 AS DOUBLE) AS c0 FROM {histogram}"
        statement.feeds.append(Feed(public, sql, (FLOAT,), Filling.ROW, (histogram,), cap=cap))
        rel = Lookup(rel, Public(public, f"SELECT {cast_to('NULL', FLOAT)} AS c0", (column,), Filling.ROW), Join.INNER, None)
        asks.append(replace(ask, cap=column))
    return replace(draft, input=rel, asks=tuple(asks))


def _cap(histogram: str, ask: AggregateAsk) -> Cap:
    if ask.card == "count":
        return Cap(histogram, ask.name, 0, MOST_ROWS * OCTAVE + 1, whole=True)
    known = None if ask.card == "total" or ask.argument is None else interval(ask.argument)
    top = MOST_VALUE if known is None or not known.magnitude else max(LEAST_VALUE + 1, min(MOST_VALUE, ceil_log2(known.magnitude)))
    return Cap(histogram, ask.name, LEAST_VALUE, (top - LEAST_VALUE) * OCTAVE + 1)


def _histogram(statement: Statement, draft: Draft, ask: AggregateAsk, cap: Cap) -> Draft:
    """How many units there are by the logarithm of the largest that one brings: to a group, or with a row where a mean is taken."""
    keys = tuple(Column(next(statement.ids), key.name, key.type) for key in draft.keys)
    rel: Private = draft.input
    if keys:
        rel = Compute(rel, tuple(zip(keys, (key.value for key in draft.keys), strict=True)))
    reduction = _cell(ask)
    brought = Column(next(statement.ids), "brought", reduction.type)
    rel = Group(rel, keys, ((brought, reduction),))
    size, most = Column(next(statement.ids), "size", FLOAT), Column(next(statement.ids), "most", FLOAT)
    rel = Compute(rel, ((size, call("abs", _float(brought))),))
    rel = Group(rel, (), ((most, Reduction(Reduce.MAX, size, FLOAT)),))
    key = Key("bin", _bin(most, cap), INTEGER)
    listed = KeySource((0,), "bins of its own", literals=tuple((i,) for i in range(cap.bins)), whole=True)
    counted = AggregateAsk("a0", f"units by the size of {ask.label}", "units", None, None, position=ask.position)
    return Draft(rel, (key,), (listed,), (counted,), Contributions(1, 1, draft.contributions.join_rows, groups_given=True, rows_given=True))


def _cell(ask: AggregateAsk) -> Reduction:
    """What one unit brings to one group."""
    value = ask.argument
    if ask.card == "count" or value is None:
        return Reduction(Reduce.COUNT, value, INTEGER, where=ask.where)
    if ask.card == "mean":
        return Reduction(Reduce.MAX, call("abs", _float(value)), FLOAT, where=ask.where)
    value = _float(value)
    bounds = interval(value) or Interval(-MOST, MOST)
    step = grid(value, bounds.magnitude or Fraction(1)).step
    return Reduction(Reduce.SUM, value, FLOAT, where=ask.where, whole=Whole(step, *row_units(bounds, step)))


def _bin(size: Scalar, cap: Cap) -> Scalar:
    """The number of the bin in which the size lies; NULL, which is none, of nothing."""
    place = call("ceil", call("mul", call("sub", call("log2", size), Literal(float(cap.lowest), FLOAT)), Literal(float(OCTAVE), FLOAT)))
    inside = call("greatest", call("least", Cast(place, INTEGER), Literal(cap.bins - 1, INTEGER)), Literal(0, INTEGER))
    return choose([(call("gt", size, Literal(0.0, FLOAT)), inside)], None)


def _float(value: Scalar) -> Scalar:
    return value if value.type.kind is Kind.FLOAT else Cast(value, FLOAT)
