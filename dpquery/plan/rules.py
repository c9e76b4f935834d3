"""Typing rules: what a function takes, which implicit conversions its arguments get, and the type of its result.

A rule maps the arguments as read to (the arguments converted, the type of the result), or raises Mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dpquery.plan import patterns
from dpquery.plan.coerce import DIGITS, LONGEST, Mismatch, common, convert, named
from dpquery.plan.scalar import Literal, Scalar
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, NULL, STRING, TIMESTAMP, Kind, Type

Args = tuple[Scalar, ...]
Rule = Callable[[Args], tuple[Args, Type]]

PATTERN = 128  # characters of a LIKE pattern: matching takes at most 4096 times as many steps
NEEDLE = 256  # characters of a text that is searched for
GROWTH = 16  # how many times longer replace() may make a text
MOST_GROUPS = 9
_REFERENCE = re.compile(r"\\([0-9\\])")
PRODUCT_SCALE = 22  # digits after the point of a product of decimals: leaves 16 before it
PARTS: dict[str, tuple[int, int]] = {
    "year": (1, 9999),
    "isoyear": (0, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "epoch": (-62_135_596_800, 253_402_300_800),
}
"""The parts of a date or timestamp, with the least and greatest value of each."""
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
"""The units of differences, intervals and truncation."""
MOST_MONTHS, MOST_DAYS, MOST_MICROSECONDS = 12 * 10_000, 3_652_500, 3_652_500 * 86_400_000_000


def want(arg: Scalar, *types: Type) -> Scalar:
    """The argument, which has one of these types; NULL takes the first."""
    if arg.type.kind is Kind.NULL:
        return convert(arg, types[0])
    if any(arg.type.kind is wanted.kind for wanted in types):
        return arg
    raise Mismatch(f"takes {' or '.join(named(wanted) for wanted in types)}, not {named(arg.type)}")


def number(arg: Scalar) -> Scalar:
    """The argument, which is numeric; a text literal is not."""
    if arg.type.numeric:
        return arg
    if arg.type.kind is Kind.NULL:
        return convert(arg, INTEGER)
    raise Mismatch(f"takes numbers, not {named(arg.type)}", instead="an explicit CAST" if arg.type.kind in (Kind.STRING, Kind.BOOLEAN) else None)


def literal(arg: Scalar, of: Type, what: str) -> Literal:
    """The argument, which is a literal of the given type and not NULL."""
    if isinstance(arg, Literal) and arg.type == of and arg.value is not None:
        return arg
    raise Mismatch(f"takes {what} as a literal", code="LITERAL_NEEDED")


# ---- numbers -------------------------------------------------------------------------------------------------------------------------


def alike(args: Args) -> tuple[Args, Type]:
    """Numbers in their common type, which is the result's."""
    numbers = tuple(number(arg) for arg in args)
    found = common(numbers)
    return tuple(convert(arg, found) for arg in numbers), found


def product(args: Args) -> tuple[Args, Type]:
    """Numbers; decimals keep their scales, which add up."""
    numbers = tuple(number(arg) for arg in args)
    found = common(numbers)
    if found.kind is not Kind.DECIMAL:
        return tuple(convert(arg, found) for arg in numbers), found
    kept = tuple(convert(arg, Type(Kind.DECIMAL, arg.type.scale)) for arg in numbers)
    scale = sum(arg.type.scale for arg in kept)
    if scale > PRODUCT_SCALE:
        raise Mismatch(f"would have {scale} digits after the point, of at most {PRODUCT_SCALE}", instead="one factor as DOUBLE: CAST(x AS DOUBLE)")
    return kept, Type(Kind.DECIMAL, scale)


def real(args: Args) -> tuple[Args, Type]:
    """Numbers as FLOAT, the result too."""
    return tuple(convert(number(arg), FLOAT) for arg in args), FLOAT


def whole(args: Args) -> tuple[Args, Type]:
    """Integers, the result too."""
    for arg in args:
        if arg.type.kind in (Kind.DECIMAL, Kind.FLOAT):
            raise Mismatch(f"divides integers only, not {named(arg.type)}", instead="trunc(x / y)")
    return tuple(convert(number(arg), INTEGER) for arg in args), INTEGER


def signed(args: Args) -> tuple[Args, Type]:
    """A number in, an integer out."""
    return (number(args[0]),), INTEGER


def towards(args: Args) -> tuple[Args, Type]:
    """A number, the result without digits after the point."""
    arg = number(args[0])
    return (arg,), Type(Kind.DECIMAL) if arg.type.kind is Kind.DECIMAL else arg.type


def rounded(args: Args) -> tuple[Args, Type]:
    """A number and, optionally, how many digits are kept (literal)."""
    arg, result = number(args[0]), number(args[0]).type
    digits = 0
    if len(args) > 1:
        digits = int(str(literal(args[1], INTEGER, "the number of digits").value))
        if abs(digits) > DIGITS:
            raise Mismatch(f"keeps at most {DIGITS} digits", code="BAD_LITERAL")
    if result.kind is Kind.DECIMAL:
        result = Type(Kind.DECIMAL, min(result.scale, max(digits, 0)))
    return (arg, *args[1:]), result


# ---- truth ---------------------------------------------------------------------------------------------------------------------------


def compared(args: Args) -> tuple[Args, Type]:
    """Values of one common type in, truth out."""
    found = common(args)
    if found.kind is Kind.INTERVAL:
        raise Mismatch("does not compare intervals", instead="date_diff('day', a, b)")
    if found == NULL:
        found = INTEGER
    return tuple(convert(arg, found) for arg in args), BOOLEAN


def listed(args: Args) -> tuple[Args, Type]:
    """A value and literals of one common type in, truth out."""
    if not all(isinstance(arg, Literal) for arg in args[1:]):
        raise Mismatch("takes a list of literals", code="LITERAL_NEEDED", instead="x = a OR x = b")
    converted, result = compared(args)
    if not all(isinstance(arg, Literal) for arg in converted[1:]):
        raise Mismatch("takes literals of the value's own type", instead="an explicit CAST of the value")
    return converted, result


def truths(args: Args) -> tuple[Args, Type]:
    """Conditions in, truth out."""
    for arg in args:
        if arg.type.numeric:
            raise Mismatch(f"takes conditions, not {named(arg.type)}", instead="x <> 0")
    return tuple(want(arg, BOOLEAN) for arg in args), BOOLEAN


def anything(args: Args) -> tuple[Args, Type]:
    """Any value in, truth out."""
    return tuple(convert(arg, INTEGER) if arg.type == NULL else arg for arg in args), BOOLEAN


def united(args: Args) -> tuple[Args, Type]:
    """Values of one common type, which is the result's."""
    found = common(args)
    return tuple(convert(arg, found) for arg in args), found


# ---- text ----------------------------------------------------------------------------------------------------------------------------


def text(args: Args) -> tuple[Args, Type]:
    """Texts, the result too."""
    return tuple(want(arg, STRING) for arg in args), STRING


def trimmed(args: Args) -> tuple[Args, Type]:
    """A text, and the characters to take off as a literal; a text out."""
    return (want(args[0], STRING), *(short(arg, NEEDLE, "characters") for arg in args[1:])), STRING


def spelled(args: Args) -> tuple[Args, Type]:
    """Texts or what can be spelled as text, at least one of them a text; the result is a text."""
    if not any(arg.type.kind in (Kind.STRING, Kind.NULL) for arg in args):
        raise Mismatch("joins texts", instead="CAST(x AS VARCHAR)")
    return tuple(convert(arg, STRING) for arg in args), STRING


def measured(args: Args) -> tuple[Args, Type]:
    """A text in, an integer out."""
    return (want(args[0], STRING),), INTEGER


def sought(args: Args) -> tuple[Args, Type]:
    """A text and a literal to find in it, truth out."""
    return (want(args[0], STRING), short(args[1], NEEDLE, "the text to find")), BOOLEAN


def located(args: Args) -> tuple[Args, Type]:
    """A text and a literal to find in it, its place out."""
    return sought(args)[0], INTEGER


def short(arg: Scalar, most: int, what: str) -> Literal:
    """A text literal of at most `most` characters."""
    found = literal(arg, STRING, what)
    if len(str(found.value)) > most:
        raise Mismatch(f"takes {what} of at most {most} characters", code="TOO_COMPLEX")
    return found


def like(args: Args) -> tuple[Args, Type]:
    """A text, a pattern and, optionally where that is a literal, a literal escape character; truth out."""
    if len(args) == 2 and not isinstance(args[1], Literal):
        return tuple(want(arg, STRING) for arg in args), BOOLEAN
    pattern = str(short(args[1], PATTERN, "the pattern").value)
    if len(args) == 2:
        if "\\" in pattern:
            raise Mismatch(
                "has a backslash in its pattern, which needs an ESCAPE clause", code="BAD_LITERAL", instead="LIKE '10!%' ESCAPE '!' for 10%"
            )
        return (want(args[0], STRING), args[1]), BOOLEAN
    escape = str(literal(args[2], STRING, "the escape character").value)
    if len(escape) != 1 or not escape.isascii():
        raise Mismatch("takes one ASCII character as its escape", code="BAD_LITERAL")
    if pattern.replace(escape * 2, "").endswith(escape):
        raise Mismatch("has a pattern that ends in its escape character", code="BAD_LITERAL")
    return (want(args[0], STRING), *args[1:]), BOOLEAN


def sliced(args: Args) -> tuple[Args, Type]:
    """A text and literal places in it, the result a text."""
    for arg in args[1:]:
        if abs(int(str(literal(arg, INTEGER, "places in the text").value))) > LONGEST:
            raise Mismatch(f"takes places up to {LONGEST}", code="BAD_LITERAL")
    return (want(args[0], STRING), *args[1:]), STRING


def replaced(args: Args) -> tuple[Args, Type]:
    """A text, the literal to replace and the literal to put there; the result a text."""
    old, new = (str(short(arg, NEEDLE, "the texts to replace and to insert").value) for arg in args[1:])
    if len(new) > GROWTH * max(1, len(old)):
        raise Mismatch(f"inserts a text more than {GROWTH} times as long as the one it replaces", code="TOO_COMPLEX")
    return (want(args[0], STRING), *args[1:]), STRING


def pattern(arg: Scalar) -> patterns.Pattern:
    """The regular expression that a literal spells."""
    return patterns.parse(str(literal(arg, STRING, "the pattern").value), patterns.WRITTEN)


def matched(args: Args) -> tuple[Args, Type]:
    """A text and a literal regular expression, truth out."""
    pattern(args[1])
    return (want(args[0], STRING), args[1]), BOOLEAN


def extracted(args: Args) -> tuple[Args, Type]:
    """A text, a literal regular expression and the literal number of one of its groups; the result a text."""
    group, found = literal(args[2], INTEGER, "the number of a group").value, pattern(args[1])
    if not isinstance(group, int) or not 0 <= group <= min(found.groups, MOST_GROUPS):
        raise Mismatch(f"takes a group of the pattern, of which there are {found.groups}", code="BAD_LITERAL", instead="0 for all that it matches")
    return (want(args[0], STRING), *args[1:]), STRING


def substituted(args: Args) -> tuple[Args, Type]:
    """A text, a literal regular expression, what to put in place of what it matches, and 'g' for all of it; the result a text."""
    found, new = pattern(args[1]), str(short(args[2], NEEDLE, "the text to insert").value)
    literals = _REFERENCE.sub("", new)
    groups = [int(one) for one in _REFERENCE.findall(new) if one.isdigit()]
    if "\\" in literals or max((0, *groups)) > found.groups:
        message = "inserts a text with a backslash that is no \\\\ and no group of the pattern"
        raise Mismatch(message, code="BAD_LITERAL", instead="\\1 for the first group, \\0 for all that it matches")
    if len(new) > GROWTH * max(1, patterns.shortest(found.body)) or len(groups) > MOST_GROUPS:
        raise Mismatch(f"inserts a text more than {GROWTH} times as long as the shortest one it replaces", code="TOO_COMPLEX")
    if len(args) > 3 and literal(args[3], STRING, "the options").value != "g":
        raise Mismatch("takes 'g', for all matches, as its last argument", code="BAD_LITERAL")
    return (want(args[0], STRING), *args[1:]), STRING


# ---- dates ---------------------------------------------------------------------------------------------------------------------------


def day_moved(args: Args) -> tuple[Args, Type]:
    """A date and a number of days, the result a date."""
    return (want(args[0], DATE), convert(want(args[1], INTEGER), INTEGER)), DATE


def days_apart(args: Args) -> tuple[Args, Type]:
    """Two dates in, days out."""
    return tuple(want(arg, DATE) for arg in args), INTEGER


def moved(args: Args) -> tuple[Args, Type]:
    """A date or timestamp and literal months, days and microseconds; the result a timestamp."""
    for arg, most in zip(args[1:], (MOST_MONTHS, MOST_DAYS, MOST_MICROSECONDS), strict=True):
        if abs(int(str(literal(arg, INTEGER, "the interval").value))) > most:
            raise Mismatch("takes intervals of at most 10,000 years", code="BAD_LITERAL")
    return (want(args[0], TIMESTAMP, DATE), *args[1:]), TIMESTAMP


def part_of(args: Args) -> tuple[Args, Type]:
    """A literal part and a date or timestamp; the result an integer, seconds since 1970 a FLOAT."""
    part = str(literal(args[0], STRING, "the part").value)
    if part not in PARTS:
        raise Mismatch(f"knows no part {part!r}", code="BAD_LITERAL", instead=f"one of {', '.join(PARTS)}")
    return (args[0], want(args[1], TIMESTAMP, DATE)), FLOAT if part == "epoch" else INTEGER


def unit_of(arg: Scalar) -> Literal:
    """A literal unit of time."""
    unit = literal(arg, STRING, "the unit")
    if unit.value not in UNITS:
        raise Mismatch(f"knows no unit {unit.value!r}", code="BAD_LITERAL", instead=f"one of {', '.join(UNITS)}")
    return unit


def truncated(args: Args) -> tuple[Args, Type]:
    """A literal unit and a date or timestamp; the result a timestamp."""
    return (unit_of(args[0]), want(args[1], TIMESTAMP, DATE)), TIMESTAMP


def apart(args: Args) -> tuple[Args, Type]:
    """A literal unit and two dates or timestamps; the number of unit boundaries between them."""
    moments = tuple(want(arg, TIMESTAMP, DATE) for arg in args[1:])
    found = common(moments)
    return (unit_of(args[0]), *(convert(arg, found) for arg in moments)), INTEGER


def day_of(args: Args) -> tuple[Args, Type]:
    """A date or timestamp in, a date out."""
    return (want(args[0], TIMESTAMP, DATE),), DATE


def name_of(args: Args) -> tuple[Args, Type]:
    """A date or timestamp in, a text out."""
    return (want(args[0], TIMESTAMP, DATE),), STRING
