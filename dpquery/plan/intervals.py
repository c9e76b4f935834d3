"""Interval arithmetic: where the values of an expression lie if its columns keep what the schema declares.

Nothing here is believed. The interval is the default of a clamp on the expression itself, and the clamp is what the privacy argument reads: an
interval that is too tight cuts values, one that is too wide adds noise, neither harms the guarantee. So the bounds of FLOAT results are those of
exact arithmetic, without slack for rounding. NULL is in every interval. Infinite results lie in none; they clamp to its ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, assert_never

from dpquery.numbers import exp_down, exp_up, log_down, log_up, sqrt_down, sqrt_up
from dpquery.plan.coerce import DIGITS, GREATEST_INTEGER
from dpquery.plan.lengths import longest, results
from dpquery.plan.rules import PARTS
from dpquery.plan.scalar import Call, Case, Cast, Column, Interval, Literal, Scalar
from dpquery.values.types import Kind, Type

GREATEST_POWER = 64  # literal exponents up to this are worked out exactly
LARGEST = Fraction(2) ** 1023


class Range(NamedTuple):
    """An interval whose ends may be open: None is infinite."""

    low: Fraction | None
    high: Fraction | None


ALL = Range(None, None)
TRUTH = Range(Fraction(0), Fraction(1))


def interval(scalar: Scalar) -> Interval | None:
    """The interval of a numeric or BOOLEAN expression; None where it is unbounded or has another type."""
    low, high = span(scalar)
    return None if low is None or high is None else Interval(low, high)


def span(scalar: Scalar) -> Range:
    """The same with open ends: least(x, 5) has a high end whatever x is."""
    if scalar.type.kind is Kind.BOOLEAN:
        return TRUTH
    return _within(_span(scalar), scalar.type)


def _within(found: Range, kind: Type) -> Range:
    """What a type cannot hold is NULL, so it bounds its values; beyond the largest double lies infinity, which is no end."""
    match kind.kind:
        case Kind.FLOAT:
            return Range(
                found.low if found.low is None or abs(found.low) < LARGEST else None,
                found.high if found.high is None or abs(found.high) < LARGEST else None,
            )
        case Kind.INTEGER:
            return _cut(found, Fraction(GREATEST_INTEGER + 1))
        case Kind.DECIMAL:
            return _cut(found, Fraction(10) ** (DIGITS - kind.scale))
        case _:
            return found


def _cut(found: Range, most: Fraction) -> Range:
    return _ends(found, lambda end: max(-most, min(most, end)))


def _span(scalar: Scalar) -> Range:
    match scalar:
        case Literal(value=value):
            return _point(value)
        case Column():
            return _declared(scalar)
        case Call():
            return SPANS[scalar.function](scalar)
        case Case():
            return _union([span(result) for result in results(scalar)])
        case Cast():
            return _cast(scalar)
        case _:
            assert_never(scalar)


def never_null(scalar: Scalar) -> bool:
    """Whether the expression has a value for every row, by its form alone."""
    match scalar:
        case Literal(value=value):
            return value is not None
        case Call(function="coalesce" | "greatest" | "least", args=args):
            return any(never_null(arg) for arg in args)
        case Call(function="is_null" | "is_true" | "is_false" | "distinct" | "not_distinct"):
            return True
        case Case(branches=branches, otherwise=otherwise):
            return otherwise is not None and never_null(otherwise) and all(never_null(result) for _, result in branches)
        case _:
            return False


# ---- leaves and casts ----------------------------------------------------------------------------------------------------------------


def _point(value: object) -> Range:
    if isinstance(value, int | Decimal) or (isinstance(value, float) and math.isfinite(value)):
        return Range(Fraction(value), Fraction(value))
    return ALL


def _declared(column: Column) -> Range:
    if not column.type.numeric:
        return ALL
    if column.declared is not None:
        return Range(column.declared.low, column.declared.high)
    points = [_point(value) for value in column.values or () if value is not None]
    return _union(points) if points else ALL


def _cast(cast: Cast) -> Range:
    if not (cast.type.numeric and (cast.arg.type.numeric or cast.arg.type.kind is Kind.BOOLEAN)):
        return ALL
    return Range(*(None if end is None else _fit(end, cast.type, up) for end, up in zip(span(cast.arg), (False, True), strict=True)))


def _fit(end: Fraction, to: Type, up: bool) -> Fraction:
    """The end of a cast's results: ties go either way, so the lower end takes the lower of the two and the higher end the higher."""
    if to.kind is Kind.FLOAT:
        return end
    digits = Fraction(10) ** (to.scale if to.kind is Kind.DECIMAL else 0)
    nearest = math.floor(end * digits + Fraction(1, 2)) if up else math.ceil(end * digits - Fraction(1, 2))
    return nearest / digits


# ---- calls ---------------------------------------------------------------------------------------------------------------------------


def _union(spans: Sequence[Range]) -> Range:
    if not spans:
        return Range(Fraction(0), Fraction(0))
    lows, highs = [one.low for one in spans], [one.high for one in spans]
    return Range(_least(lows), _greatest(highs))


def _least(ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return min(known) if len(known) == len(ends) else None


def _greatest(ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def _coalesce(call: Call) -> Range:
    return _union([span(arg) for arg in call.args if not (isinstance(arg, Literal) and arg.value is None)])


def _greatest_of(call: Call) -> Range:
    """NULLs are left out, so only an argument that is never NULL lifts the low end."""
    spans = [span(arg) for arg in call.args if not (isinstance(arg, Literal) and arg.value is None)]
    sure = [span(arg).low for arg in call.args if never_null(arg)]
    lifts = [end for end in (*sure, _union(spans).low) if end is not None]
    return Range(max(lifts) if lifts else None, _union(spans).high)


def _least_of(call: Call) -> Range:
    spans = [span(arg) for arg in call.args if not (isinstance(arg, Literal) and arg.value is None)]
    sure = [span(arg).high for arg in call.args if never_null(arg)]
    caps = [end for end in (*sure, _union(spans).high) if end is not None]
    return Range(_union(spans).low, min(caps) if caps else None)


def _plus(a: Range, b: Range) -> Range:
    return Range(
        None if a.low is None or b.low is None else a.low + b.low,
        None if a.high is None or b.high is None else a.high + b.high,
    )


def _minus(a: Range) -> Range:
    return Range(None if a.high is None else -a.high, None if a.low is None else -a.low)


def _times(a: Range, b: Range) -> Range:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        both_positive = a.low is not None and a.low >= 0 and b.low is not None and b.low >= 0
        return Range(a.low * b.low, None) if both_positive and a.low is not None and b.low is not None else ALL
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners))


def _over(a: Range, b: Range) -> Range:
    """Bounded only where the divisor keeps clear of zero."""
    if b.low is not None and b.low > 0:
        return _times(a, Range(Fraction(0) if b.high is None else 1 / b.high, 1 / b.low))
    if b.high is not None and b.high < 0:
        return _times(a, Range(1 / b.high, Fraction(0) if b.low is None else 1 / b.low))
    return ALL


def _int_over(a: Range, b: Range) -> Range:
    """A divisor that is an integer and not 0 is at least 1 in size, so the quotient is no larger than the dividend."""
    if (b.low is not None and b.low > 0) or (b.high is not None and b.high < 0):
        return _ends(_over(a, b), lambda x: Fraction(math.trunc(x)))
    if a.low is None or a.high is None:
        return ALL
    most = max(abs(a.low), abs(a.high))
    return Range(min(Fraction(0), a.low) if b.low == 0 else -most, max(Fraction(0), a.high) if b.low == 0 else most)


def _rest(call: Call) -> Range:
    """x % y has the sign of x, and is smaller in size than y and no larger than x."""
    a, b = span(call.args[0]), span(call.args[1])
    sizes = [end for end in (_size(a), _size(b)) if end is not None]
    if not sizes:
        return Range(Fraction(0) if a.low is not None and a.low >= 0 else None, Fraction(0) if a.high is not None and a.high <= 0 else None)
    most = min(sizes)
    return Range(Fraction(0) if a.low is not None and a.low >= 0 else -most, Fraction(0) if a.high is not None and a.high <= 0 else most)


def _size(a: Range) -> Fraction | None:
    return None if a.low is None or a.high is None else max(abs(a.low), abs(a.high))


def _abs(a: Range) -> Range:
    most = _size(a)
    if a.low is not None and a.low >= 0:
        return a
    if a.high is not None and a.high <= 0:
        return _minus(a)
    return Range(Fraction(0), most)


def _ends(a: Range, by: Callable[[Fraction], Fraction | None]) -> Range:
    """The span under a non-decreasing function."""
    return Range(None if a.low is None else by(a.low), None if a.high is None else by(a.high))


def _sign(a: Range) -> Range:
    return Range(Fraction(-1 if a.low is None or a.low < 0 else int(a.low > 0)), Fraction(1 if a.high is None or a.high > 0 else -int(a.high < 0)))


def _digits(call: Call) -> int:
    last = call.args[1] if len(call.args) > 1 else None
    return int(last.value) if isinstance(last, Literal) and isinstance(last.value, int) else 0


def _round(call: Call) -> Range:
    scale = Fraction(10) ** _digits(call)
    return _ends(span(call.args[0]), lambda x: (-1 if x < 0 else 1) * math.floor(abs(x) * scale + Fraction(1, 2)) / scale)


def _trunc(call: Call) -> Range:
    scale = Fraction(10) ** _digits(call)
    return _ends(span(call.args[0]), lambda x: math.trunc(x * scale) / scale)


def _sqrt(a: Range) -> Range:
    low = Fraction(0) if a.low is None or a.low < 0 else sqrt_down(a.low)
    return Range(low, None if a.high is None else max(low, sqrt_up(max(a.high, Fraction(0)))))


def _exp(a: Range) -> Range:
    low = Fraction(0) if a.low is None or a.low < -745 else exp_down(min(a.low, Fraction(709)))
    return Range(low, None if a.high is None or a.high > 709 else max(low, exp_up(a.high)))


def _log(base: int | None) -> Callable[[Range], Range]:
    def bounds(a: Range) -> Range:
        if a.high is not None and a.high <= 0:
            return Range(Fraction(0), Fraction(0))
        low = None if a.low is None or a.low <= 0 else log_down(a.low)
        high = None if a.high is None else log_up(a.high)
        unit = None if base is None else Range(log_down(Fraction(base)), log_up(Fraction(base)))
        if unit is None:
            return Range(low, high)
        return Range(None if low is None else _over(Range(low, low), unit).low, None if high is None else _over(Range(high, high), unit).high)

    return bounds


def _power(call: Call) -> Range:
    """Worked out for literal exponents that are small whole numbers, and for bases of at least 1 with bounded exponents; unbounded elsewhere."""
    a, b = span(call.args[0]), span(call.args[1])
    if b.low is not None and b.low == b.high and b.low.denominator == 1 and 0 <= b.low <= GREATEST_POWER:
        return _whole_power(a, int(b.low))
    if a.low is None or a.low < 1 or a.high is None or b.low is None or b.high is None:
        return ALL
    exponents = _times(Range(log_down(a.low), log_up(a.high)), b)
    return _exp(exponents)


def _whole_power(a: Range, k: int) -> Range:
    if k == 0:
        return Range(Fraction(1), Fraction(1))
    if k % 2 == 1:
        return _ends(a, lambda x: x**k if abs(x) < LARGEST else None)
    return _ends(_abs(a), lambda x: x**k if abs(x) < LARGEST else None)


def _part(call: Call) -> Range:
    part = call.args[0]
    low, high = PARTS[str(part.value)] if isinstance(part, Literal) else (None, None)
    return ALL if low is None or high is None else Range(Fraction(low), Fraction(high))


def _length(call: Call) -> Range:
    return Range(Fraction(0), Fraction(longest(call.args[0])))


def _one(by: Callable[[Range], Range]) -> Callable[[Call], Range]:
    return lambda call: by(span(call.args[0]))


def _two(by: Callable[[Range, Range], Range]) -> Callable[[Call], Range]:
    return lambda call: by(span(call.args[0]), span(call.args[1]))


def _none(call: Call) -> Range:
    return ALL


TRUTHS = "eq ne lt le gt ge distinct not_distinct between in and or not is_null is_true is_false starts_with ends_with contains like ilike regexp"
TEXTS = "lower upper trim ltrim rtrim substring left right cat concat replace regexp_extract regexp_replace dayname monthname"
DAYS = "date_trunc date_add add_days last_day"

SPANS: Mapping[str, Callable[[Call], Range]] = {
    "add": _two(_plus),
    "sub": _two(lambda a, b: _plus(a, _minus(b))),
    "mul": _two(_times),
    "div": _two(_over),
    "intdiv": _two(_int_over),
    "mod": _rest,
    "neg": _one(_minus),
    "abs": _one(_abs),
    "sign": _one(_sign),
    "floor": _one(lambda a: _ends(a, lambda x: Fraction(math.floor(x)))),
    "ceil": _one(lambda a: _ends(a, lambda x: Fraction(math.ceil(x)))),
    "round": _round,
    "trunc": _trunc,
    "sqrt": _one(_sqrt),
    "exp": _one(_exp),
    "ln": _one(_log(None)),
    "log10": _one(_log(10)),
    "log2": _one(_log(2)),
    "log": _none,
    "power": _power,
    "coalesce": _coalesce,
    "greatest": _greatest_of,
    "least": _least_of,
    "length": _length,
    "strpos": _length,
    "date_part": _part,
    "date_diff": _none,
    "days_between": _none,
    **dict.fromkeys((TRUTHS + " " + TEXTS + " " + DAYS).split(), _none),
}
"""How each function moves spans. A test holds it against FUNCTIONS."""
