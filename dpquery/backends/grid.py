"""Values in whole grid units: clamped before they are cast, rounded to the nearest unit, exact for all but floats."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from dpquery.backends.values import INFINITY
from dpquery.errors import Refused
from dpquery.plan.coerce import DIGITS
from dpquery.values.types import Kind, Type

MOST_UNITS = 2**62
MOST_WHOLE = 2**53  # up to here each whole number is a double
NARROW = 18  # digits of a decimal in 64 bits: arithmetic on it is ten times as fast as on one in 128
_BARE = re.compile(r"[\w.\"]+")
WORD, DOUBLE_WORD = 2**62, 2**126  # what integer arithmetic stays below, with room to spare


def grid(text: str, kind: Type, step: Fraction, low: int, high: int, double: bool = False) -> str:
    """The SQL of clamp(floor(value / step + 1/2), low, high): a BIGINT, or if `double` a whole number as DOUBLE.

    `text` is canonical SQL of that type; it is repeated.
    """
    if not (step > 0 and -MOST_UNITS <= low <= high <= MOST_UNITS):
        raise ValueError("a grid needs a positive step and bounds of at most 2^62 units")
    if double and not -MOST_WHOLE <= low <= high <= MOST_WHOLE:
        raise ValueError("a double holds whole numbers up to 2^53")
    if double and kind.kind is not Kind.FLOAT:
        return f"CAST({grid(text, kind, step, low, high)} AS DOUBLE)"
    match kind.kind:
        case Kind.FLOAT:
            return _float(text, step, low, high, double)
        case Kind.INTEGER:
            return _whole(text, step, low, high)
        case Kind.BOOLEAN:
            return _whole(f"CAST({text} AS BIGINT)", step, low, high)
        case Kind.DECIMAL:
            return _decimal(text, kind.scale, step, low, high)
        case _:
            raise Refused("TYPE_MISMATCH", f"a value of type {kind} cannot be added up", instead="a numeric expression")


def _clamped(text: str, low: str, high: str) -> str:
    """A clamp that keeps NULL, which LEAST and GREATEST would turn into a bound. A bare column is cheap to repeat, a longer text is not."""
    if _BARE.fullmatch(text):
        return compared(text, low, high)
    return f"CASE WHEN {text} IS NOT NULL THEN LEAST(GREATEST({text}, {low}), {high}) END"


def compared(text: str, low: str, high: str) -> str:
    """A clamp by comparison: several times as fast as LEAST and GREATEST, but the text stands there three times."""
    return f"CASE WHEN {text} < {low} THEN {low} WHEN {text} > {high} THEN {high} ELSE {text} END"


def _whole(text: str, step: Fraction, low: int, high: int) -> str:
    """With step 1 the clamp is all there is to do."""
    if step == 1:
        return f"CAST({_clamped(text, f'{low}::BIGINT', f'{high}::BIGINT')} AS BIGINT)"
    least, most = max(math.floor(step * (low - 1)), 1 - 2**63), min(math.ceil(step * (high + 1)), 2**63 - 1)
    least, most = min(least, 2**63 - 1), max(most, 1 - 2**63)
    return _nearest(text, _clamped(text, f"{least}::BIGINT", f"{most}::BIGINT"), 1 / step, (least, most), low, high)


def _decimal(text: str, scale: int, step: Fraction, low: int, high: int) -> str:
    """The clamped decimal's digits as one integer; where the step is the last digit, those are the units already.

    DuckDB checks the product of a decimal for overflow in the digits of its type, which is why the clamp has to leave room for `digits` once more.
    """
    digits, greatest = 10**scale, 10**DIGITS - 1
    factor = 1 / (step * digits)
    least, most = (low, high) if factor == 1 else (math.floor(step * (low - 1) * digits), math.ceil(step * (high + 1) * digits))
    least, most = max(min(least, greatest), -greatest), max(min(most, greatest), -greatest)
    widest = max(abs(least), abs(most))
    clamped = _clamped(text, _shown(least, scale), _shown(most, scale))
    if scale <= NARROW and widest * digits < 10**NARROW:
        narrow = f"CAST({clamped} AS DECIMAL({NARROW},{scale}))"
        whole = f"CAST({narrow} * {digits} AS BIGINT)" if scale else f"CAST({narrow} AS BIGINT)"
    elif widest * digits <= greatest and widest < DOUBLE_WORD:
        whole = f"CAST(({clamped}) * {digits}::DECIMAL({DIGITS},0) AS HUGEINT)"
    elif digits**2 <= greatest and widest < DOUBLE_WORD:
        rest = f"CAST(({clamped} - trunc({clamped})) * {digits}::DECIMAL({DIGITS},0) AS HUGEINT)"
        whole = f"(CAST(trunc({clamped}) AS HUGEINT) * {digits}::HUGEINT + {rest})"
    else:
        raise _too_wide()
    return f"CAST({whole} AS BIGINT)" if factor == 1 else _nearest(text, whole, factor, (least, most), low, high)


def _shown(digits: int, scale: int) -> str:
    """The decimal with these digits, `scale` of them after the point."""
    sign, text = "-" if digits < 0 else "", str(abs(digits)).rjust(scale + 1, "0")
    number = f"{text[:-scale]}.{text[-scale:]}" if scale else text
    return f"'{sign}{number}'::DECIMAL({DIGITS},{scale})"


def _nearest(text: str, whole: str, factor: Fraction, span: tuple[int, int], low: int, high: int) -> str:
    """clamp(floor(n * factor + 1/2), low, high) in integers, for the integer n in the span that `whole` makes of `text`.

    With factor = a/b the quotient is floor((2an + b) / 2b). DuckDB's // rounds towards zero, so the dividend is first made positive.
    """
    a, b = factor.numerator, factor.denominator
    shift = max(0, -math.floor((2 * a * span[0] + b) / Fraction(2 * b)))
    offset = b + 2 * b * shift
    greatest = max(abs(2 * a * end) for end in span) + offset
    if greatest >= DOUBLE_WORD or max(2 * a, 2 * b) >= DOUBLE_WORD:
        raise _too_wide()
    kind = "BIGINT" if max(greatest, 2 * a, 2 * b) < WORD else "HUGEINT"
    quotient = f"(({whole})::{kind} * {2 * a}::{kind} + {offset}::{kind}) // {2 * b}::{kind} - {shift}::{kind}"
    return f"CASE WHEN {text} IS NOT NULL THEN CAST({_bounded(quotient, low, high)} AS BIGINT) END"


def _bounded(text: str, low: int, high: int) -> str:
    """The last clamp, in integers; not for NULL."""
    return f"LEAST(GREATEST({text}, {low}::BIGINT), {high}::BIGINT)"


def _float(text: str, step: Fraction, low: int, high: int, double: bool) -> str:
    """Clamped as a double, then cast, then clamped again in integers where a bound is no double.

    NaN lies above infinity in DuckDB's order and NULL compares to nothing, so the one comparison keeps both out. A bound of 2^62 is far from 2^63,
    the first double that a BIGINT cannot hold.
    """
    scaled = _scaled(text, step)
    units, least, most = f"floor({scaled} + 0.5)", f"{float(low)!r}::DOUBLE", f"{float(high)!r}::DOUBLE"
    exact = Fraction(float(low)) == low and Fraction(float(high)) == high

    def whole(number: str) -> str:
        if double:
            return number
        cast = f"CAST({number} AS BIGINT)"
        return cast if exact else _bounded(cast, low, high)

    if not _BARE.fullmatch(text):
        return f"CASE WHEN {text} <= {INFINITY} THEN {whole(f'LEAST(GREATEST({units}, {least}), {most})')} END"
    ends = (least, most) if double else (f"{low}::BIGINT", f"{high}::BIGINT")
    # most rows lie within, and no other branch is then evaluated
    within = f"WHEN {units} BETWEEN {least} AND {most} THEN {whole(units)}"
    return f"CASE {within} WHEN {units} < {least} THEN {ends[0]} WHEN {units} <= {INFINITY} THEN {ends[1]} END"


def _scaled(text: str, step: Fraction) -> str:
    """value / step with as few roundings as can be: none for powers of two, one for 1/100."""
    p, q = step.numerator, step.denominator
    if float(step) == 0:
        raise _too_wide()
    if not (_is_double(p) and _is_double(q)):
        return f"{text} / {float(step)!r}::DOUBLE"
    times = f"{text} * {float(q)!r}::DOUBLE" if q > 1 else text
    return f"{times} / {float(p)!r}::DOUBLE" if p > 1 else times


def _is_double(number: int) -> bool:
    try:
        return Fraction(float(number)) == number
    except OverflowError:
        return False


def _too_wide() -> Refused:
    return Refused("TOO_WIDE", "a sum's values and its step are too far apart for exact arithmetic", instead="a coarser `step`, or narrower bounds")
