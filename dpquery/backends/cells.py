"""Parts as SQL: what each row adds, and what a unit's cell becomes. Each function that writes a clamp hands back the bound it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from dpquery.backends.grid import MOST_WHOLE, compared
from dpquery.backends.scalar import sql, units
from dpquery.plan.release import (
    WEIGHT_BITS,
    Additive,
    Bins,
    CellBound,
    Clamp,
    Element,
    Elements,
    HeavyMean,
    One,
    Part,
    Present,
    Product,
    Row,
    UnitMean,
    Units,
)
from dpquery.plan.scalar import Scalar

BIGINT, INTEGER = 2**63 - 1, 2**31 - 1
SMALL = 2**24  # of which 2^39 rows of one unit still fit into 64 bits
Places = tuple[int, ...]  # of the addends that a part is made of: one, or the two that it multiplies


@dataclass(frozen=True, slots=True)
class Addend:
    """What rows add to one or more parts: `text` is NULL where a row does not count, and None where every row counts 1. Rows lie in [low, high].

    Centred parts read the same addend as plain ones: 2x - (low + high) adds up to 2s - (low + high) n.
    """

    text: str | None
    low: int
    high: int
    counts: bool  # each counted row adds 1, whatever the value of `text`
    double: bool = False  # `text` is a whole number as DOUBLE, of which the sum is too: `sums_as_doubles`


@dataclass(frozen=True, slots=True)
class Bounded:
    """An SQL integer and the closed interval in which its own text keeps it."""

    text: str
    bound: CellBound


def addend(part: Part, given: Mapping[int, str], double: bool = False) -> Addend:
    """What each row adds to the part, its FILTER included; what is measured in units, if `double`, as such a number."""
    match part.row:
        case One(value=None):
            text = None if part.where is None else f"CASE WHEN {sql(part.where, given)} THEN 1 END"
            return Addend(text, 0, 1, counts=True)
        case One(value=value):
            return Addend(_where(part.where, _counted(value, given), given), 0, 1, counts=True)
        case Units(value=value, step=step, low=low, high=high):
            return Addend(_where(part.where, units(value, step, low, high, given, double), given), low, high, False, double)
        case Element(value=value):
            return Addend(_where(part.where, sql(value, given), given), 0, 1, counts=True)
        case Product():
            raise ValueError("a product is made of two addends")
        case _:
            assert_never(part.row)


def factors(part: Part) -> tuple[Part, ...]:
    """The parts whose addends the part is made of: itself, or two that it multiplies."""
    match part.row:
        case Product(left=left, right=right):
            return replace(part, row=left), replace(part, row=right)
        case One() | Units() | Element():
            return (part,)
        case _:
            assert_never(part.row)


def same_rows(part: Part) -> tuple[Row, Scalar | None]:
    """Parts that agree in this read the same addend."""
    return (replace(part.row, centred=False) if isinstance(part.row, Units) else part.row), part.where


def sums_as_doubles(kind: tuple[Row, Scalar | None], parts: Sequence[Part]) -> bool:
    """Whether the rows of this kind (`same_rows`) may be added up as doubles, in less memory and time than integers take.

    The clamped sum is exact then, whatever the order. Rows are whole numbers of one sign, of at most 2^53. A sum is exact as long as it is at most
    2^53. Rounding keeps order, and what is added has the same sign: a sum beyond 2^53 is never rounded to less, and stays beyond. The cell's bounds
    are at most 2^53 too, and so it is clamped to what the exact sum is clamped to.
    """
    return all(_one_way(part) for part in parts if kind in [same_rows(one) for one in factors(part)])


def _one_way(part: Part) -> bool:
    match part.row, part.cell:
        case Units(low=low, high=high, centred=False), Clamp(low=least, high=most):
            return (low >= 0 or high <= 0) and max(map(abs, (low, high, least, most))) <= MOST_WHOLE
        case _:
            return False


def _where(where: Scalar | None, text: str, given: Mapping[int, str]) -> str:
    return text if where is None else f"CASE WHEN {sql(where, given)} THEN {text} END"


def _counted(value: Scalar | None, given: Mapping[int, str]) -> str:
    """1 where the value is not NULL, which NaN is too."""
    return "1" if value is None else f"CASE WHEN ({sql(value, given)}) IS NOT NULL THEN 1 END"


def cell(part: Part, addends: Sequence[Addend], places: Places, single: bool = False) -> Bounded:
    """The part's cell, from the cell's sum `s<place>` and count `n<place>` of counted rows (`n` where every row counts), bounded.

    `single`: of one row. Its sum fits into 64 bits where the row does, and it has no more rows than any limit.
    """
    place = places[0]
    rows = addends[place]
    n = "n" if rows.text is None else f"n{place}"
    s = n if rows.counts else f"s{place}"
    if isinstance(part.row, Product):
        n, s = f"m{_both(places)}", f"(q{_both(places)} - ({part.row.less:d})::HUGEINT * m{_both(places)})"
    elif (centre := _centre(part, rows)) is not None:
        s = f"(2 * {s} - ({centre:d})::{_kind(rows, single)} * {n})"
    match part.cell:
        case Clamp(low=low, high=high):
            return _clamped(s, n, rows, low, high, _sums_and_counts(part))
        case HeavyMean(rows=most, width=width):
            # `//` truncates towards zero. The divisor is never 0, with or without the condition, which only saves divisions.
            scaled = f"CASE WHEN {n} > {most:d} THEN ({s})::HUGEINT * {most:d} // greatest({n}, {most:d}) ELSE coalesce({s}, 0) END"
            most_of_all = most * width
            clamp = f"least(greatest({scaled}, {-most_of_all:d}), {most_of_all:d})"
            if single:  # its text is short, and the engine computes once what stands there several times
                clamp = compared(f"coalesce({s}, 0)", f"({-most_of_all:d})", f"{most_of_all:d}")
            return Bounded(_fitted(clamp, most_of_all), CellBound(-most_of_all, most_of_all))
        case UnitMean(low=low, high=high):
            twice = f"2 * {s}::{_kind(rows, single)}" if single else f"(2 * {s})::HUGEINT // greatest({n}, 1)"
            mean = f"least(greatest({twice}, {2 * low:d}), {2 * high:d})"
            return Bounded(_fitted(f"CASE WHEN {n} > 0 THEN {mean} - ({low + high:d}) ELSE 0 END", high - low), CellBound(low - high, high - low))
        case Present():
            return Bounded("1" if rows.text is None else f"least({n}, 1)", CellBound(0, 1))
        case Additive():
            raise ValueError("row weights bound rows, not cells")
        case Elements() | Bins():
            raise ValueError("a set of values is no sum, nor are counts in bins")
        case _:
            assert_never(part.cell)


def _kind(rows: Addend, single: bool) -> str:
    """The type of arithmetic on sums: that on 128 bits costs many times as much."""
    return "BIGINT" if single and 16 * max(abs(rows.low), abs(rows.high)) <= BIGINT else "HUGEINT"


def _centre(part: Part, rows: Addend) -> int | None:
    return rows.low + rows.high if isinstance(part.row, Units) and part.row.centred else None


def _clamped(s: str, n: str, rows: Addend, low: int, high: int, counted: bool) -> Bounded:
    """The sum clamped; a cell without a counted row adds 0, not `low`."""
    if rows.counts and low == 0 <= high:
        return Bounded(f"least({s}, {high:d})", CellBound(0, high))  # a count is never below 0
    clamp = _fitted(f"least(greatest({s}, {low:d}), {high:d})", max(abs(low), abs(high)))
    some = f"{n} > 0" if rows.counts or counted else f"{s} IS NOT NULL"  # a sum of no row is NULL: its rows need no count
    text = clamp if rows.text is None else f"CASE WHEN {some} THEN {clamp} ELSE 0 END"
    return Bounded(text, CellBound(low, high))


def _fitted(text: str, largest: int) -> str:
    """The clamped integer in 64 bits where it fits: sums over units are then faster, and no less exact."""
    return f"CAST({text} AS BIGINT)" if largest <= BIGINT else text


def narrow(bounded: Bounded) -> Bounded:
    """The same integer in 32 bits where it fits: cells that are sorted are moved as they are."""
    if max(abs(bounded.bound.low), abs(bounded.bound.high)) > INTEGER:
        return bounded
    return Bounded(f"CAST({bounded.text} AS INTEGER)", bounded.bound)


def wide(text: str, bound: CellBound) -> str:
    """A cell as it is added up: the sum of integers of 32 bits is one of 64, that of others one of 128, which no number of cells exceeds."""
    return f"{text}::BIGINT" if max(abs(bound.low), abs(bound.high)) <= INTEGER else text


def weighted(part: Part, addends: Sequence[Addend], places: Places) -> Bounded:
    """What a row adds to an additive part: the row times its weight `w`, which lies in [0, 2^20]."""
    if not isinstance(part.cell, Additive):
        raise ValueError("row weights serve parts that add up over rows only")
    place = places[0]
    rows = addends[place]
    if isinstance(part.row, Product):
        text, low, high = _product(part.row.less, addends, places)
        return Bounded(f"({text})::HUGEINT * w", _row_bound(part.cell, low, high))
    if rows.counts:
        return Bounded("w" if rows.text is None else f"CASE WHEN x{place} IS NOT NULL THEN w END", _row_bound(part.cell, 0, 1))
    centre, low, high = _centre(part, rows), rows.low, rows.high
    wide = 2 * (max(abs(low), abs(high)) + abs(centre or 0)) << WEIGHT_BITS > BIGINT
    x = f"x{place}::HUGEINT" if wide else f"x{place}"
    if centre is None:
        return Bounded(f"{x} * w", _row_bound(part.cell, low, high))
    return Bounded(f"(2 * {x} - ({centre:d})) * w", _row_bound(part.cell, low - high, high - low))


def _row_bound(cell: Additive, low: int, high: int) -> CellBound:
    if max(abs(low), abs(high)) > cell.width:
        raise ValueError("a row is wider than its part")
    return CellBound(low, high, weighted=True)


def _both(places: Places) -> str:
    """How the sum and the count of a product are told from others."""
    return "_".join(map(str, places))


def _product(less: int, addends: Sequence[Addend], places: Places) -> tuple[str, int, int]:
    """The product of the half units of two addends, less a constant, in 64 bits; and the ends between which it lies."""
    left, right = (addends[place] for place in places)
    most = (left.high - left.low) * (right.high - right.low)
    halves = [f"(2 * x{place} - ({addends[place].low + addends[place].high:d}))" for place in places]
    if most + abs(less) > BIGINT or any(4 * max(abs(a.low), abs(a.high)) > BIGINT for a in (left, right)):
        raise ValueError("a product does not fit into 64 bits")
    text = " * ".join(halves)
    return (f"{text} - ({less:d})" if less else text), -less if places[0] == places[1] else -most - less, most - less


def products(parts: Sequence[Part], rows: Sequence[Addend], places: Sequence[Places]) -> list[str]:
    """The sums and counts of a unit's products."""
    pairs = dict.fromkeys(own for part, own in zip(parts, places, strict=True) if isinstance(part.row, Product))
    texts = {own: _product(0, rows, own)[0] for own in pairs}
    return [item for own, text in texts.items() for item in (f"coalesce(sum({text}), 0) AS q{_both(own)}", f"count({text}) AS m{_both(own)}")]


def gathered(rows: Sequence[Addend], parts: Sequence[Part], places: Sequence[Places]) -> list[str]:
    """The sums and counts of a unit's rows that the cells are made of."""
    items = ["count(*) AS n"] if any(r.text is None for r in rows) else []
    counted = {place for part, own in zip(parts, places, strict=True) if _sums_and_counts(part) for place in own}
    for place, r in enumerate(rows):
        if r.text is not None:
            if r.counts or place in counted:
                items.append(f"count(x{place}) AS n{place}")
            if not r.counts:
                items.append(f"sum({_added(r, place)}) AS s{place}")
    return items


def _added(row: Addend, place: int) -> str:
    """A row as it is added up: of integers of 32 bits the engine keeps a sum in 64, in half the memory. So many small ones it never overflows."""
    return f"x{place}::INTEGER" if not row.double and max(abs(row.low), abs(row.high)) <= SMALL else f"x{place}"


def alone(rows: Sequence[Addend], parts: Sequence[Part], places: Sequence[Places]) -> list[str]:
    """What `gathered` and `products` say of a cell of one row, without grouping."""
    items = ["1 AS n"] if any(r.text is None for r in rows) else []
    for place, r in enumerate(rows):
        if r.text is not None:
            items.append(f"CASE WHEN x{place} IS NOT NULL THEN 1 ELSE 0 END AS n{place}")
            if not r.counts:
                items.append(f"x{place} AS s{place}")
    pairs = dict.fromkeys(own for part, own in zip(parts, places, strict=True) if isinstance(part.row, Product))
    for own in pairs:
        text = _product(0, rows, own)[0]
        items += [f"coalesce({text}, 0) AS q{_both(own)}", f"CASE WHEN ({text}) IS NOT NULL THEN 1 ELSE 0 END AS m{_both(own)}"]
    return items


def _sums_and_counts(part: Part) -> bool:
    """Whether the cell of a sum needs the number of its rows too: all but a plain sum that is clamped."""
    return not (isinstance(part.cell, Clamp) and isinstance(part.row, Units) and not part.row.centred)
