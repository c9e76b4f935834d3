"""The grid on which values are added up: its step, bounds in whole steps, and the proof that no sum overflows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from dpquery.aggregates.values import plain as plain
from dpquery.aggregates.values import spelled
from dpquery.errors import Refused
from dpquery.plan.draft import AggregateAsk
from dpquery.plan.release import (
    SATURATION,
    WEIGHT_BITS,
    Additive,
    Bins,
    Clamp,
    Element,
    Elements,
    HeavyMean,
    One,
    Part,
    Present,
    Product,
    UnitMean,
    Units,
)
from dpquery.plan.scalar import Column, Interval, Scalar
from dpquery.values.types import FLOAT, Kind, Type

FINENESS = 44  # bits between the largest bound and the step where nothing else sets the step
SQUARED = 31  # bits of the width of values that are multiplied, so that a product of half units has 62
WIDEST = 2**52  # steps in the largest bound: what a double can count without gaps
FINEST = Fraction(1, 2**1000)  # still an ordinary double
ROWS = 2**40  # rows that a sum is proven to bear
ROOM = 2**126  # what a 128-bit integer holds, with a bit to spare


@dataclass(frozen=True, slots=True)
class Grid:
    """A step, and a note for people where it is coarser than the value's own."""

    step: Fraction
    notes: tuple[str, ...] = ()


def grid(argument: Scalar, magnitude: Fraction, fineness: Fraction | None = None, bits: int = FINENESS, apart: Fraction | None = None) -> Grid:
    """The step for values of `argument` whose bounds reach `magnitude` > 0: its own step, else 2^-bits of `fineness` (the magnitude if not given).

    Coarsened by powers of two until the magnitude is at most 2^52 steps, and `apart` at most 2^bits, where it is given.
    """
    own = _own_step(argument)
    step = own or max(FINEST, Fraction(2) ** (ceil_log2(fineness or magnitude) - bits))
    doublings = max(0, ceil_log2(magnitude / step / WIDEST), 0 if apart is None else ceil_log2(apart / step / 2**bits))
    if not doublings:
        return Grid(step)
    step *= 2**doublings
    return Grid(step, (f"values are rounded to multiples of {plain(step)}: the bounds are too wide for a finer grid",))


def _own_step(argument: Scalar) -> Fraction | None:
    """The step that the schema or the type gives: the declared step of a bare column, else 1 for integers and the last digit of decimals."""
    if isinstance(argument, Column) and argument.step is not None:
        return argument.step
    match argument.type.kind:
        case Kind.INTEGER:
            return Fraction(1)
        case Kind.DECIMAL:
            return Fraction(1, 10**argument.type.scale)
        case _:
            return None


def ceil_log2(value: Fraction) -> int:
    """The least k with 2^k >= value > 0."""
    k = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while Fraction(2) ** k < value:
        k += 1
    return k


def clamped(values: Units, type: Type = FLOAT, unit: int = 1) -> str:
    """What the bounds do to a row beyond them: the answer is of clamped rows, off by as much as that makes, and no error bar knows."""
    low, high = (spelled(end * values.step * unit, type) for end in (values.low, values.high))
    return f"rows are clamped to [{low}, {high}]"


def row_units(bounds: Interval | None, step: Fraction) -> tuple[int, int]:
    """Row bounds in whole steps, inside the bounds where a step lies there, else the nearest one; saturated at 2^62. None: saturation alone."""
    if bounds is None:
        return -SATURATION, SATURATION
    low, high = ceil(bounds.low / step), floor(bounds.high / step)
    if low > high:
        low = high = floor((bounds.low + bounds.high) / 2 / step + Fraction(1, 2))
    return max(-SATURATION, min(SATURATION, low)), max(-SATURATION, min(SATURATION, high))


def cell_units(ask: AggregateAsk, bounds: Interval, step: Fraction) -> tuple[int, int]:
    """Per-group bounds as written, in whole steps, both inside the bounds; refused where no step lies there."""
    low, high = ceil(bounds.low / step), floor(bounds.high / step)
    if low > high:
        raise Refused(
            "BAD_BOUNDS",
            f"no multiple of the grid step {plain(step)} lies between the bounds of {ask.label}",
            position=ask.position,
            instead="give bounds that are at least one step apart",
        )
    return low, high


def not_zero(ask: AggregateAsk, low: int | Fraction, high: int | Fraction) -> None:
    """Nothing, or Refused where both bounds are 0 (or round to it): the answer would be 0 whatever the data."""
    if low == 0 == high:
        raise Refused(
            "BAD_BOUNDS",
            f"both bounds of {ask.label} are 0 on its grid, so that nothing would be counted",
            position=ask.position,
            instead="give bounds of which one is not 0, such as (0, 100)",
        )


def fits(ask: AggregateAsk, parts: tuple[Part, ...], weights: int | None) -> tuple[Part, ...]:
    """The parts, whose sums over 2^40 rows, and all that leads to them, stay below 2^126; Refused otherwise."""
    if any(ROWS * _largest(part, weights) >= ROOM for part in parts):
        raise Refused(
            "TOO_WIDE",
            f"{ask.label} could overflow: its bounds times the rows a unit may add are too large",
            position=ask.position,
            instead="narrow the bounds, or lower max_rows_per_group",
        )
    return parts


def _largest(part: Part, weights: int | None) -> int:
    """The largest magnitude that one row, or one cell before or after its clamp, can bring into a sum."""
    match part.row:
        case One() | Element():
            row = 1
        case Units(low=low, high=high, centred=centred):
            row = max(high - low, abs(low), abs(high)) * (2 if centred else 1)
        case Product(left=left, right=right, less=less):
            row = (left.high - left.low) * (right.high - right.low) + less
    match part.cell:
        case Clamp(low=low, high=high):
            return max(row, abs(low), abs(high))
        case HeavyMean(rows=rows):
            return row * rows
        case UnitMean(low=low, high=high):
            return max(2 * row, 2 * abs(low), 2 * abs(high), high - low)
        case Present():
            return row
        case Elements(most=most):
            return most
        case Bins(rows=rows):
            return max(row, rows << WEIGHT_BITS)
        case Additive():
            return max(row << WEIGHT_BITS, (weights or 0) << WEIGHT_BITS)
