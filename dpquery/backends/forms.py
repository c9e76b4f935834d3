"""Total forms of conditions, choice, texts and dates, and the table of all forms.

A form stands alone: it relies on no WHERE, ON or CASE elsewhere in the statement, but turns what would fail into NULL on its way into the function
(data flow, not control flow). It names each argument as seldom as it can, since what is named twice is written out twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpquery.backends.numeric import NUMERIC
from dpquery.backends.shapes import Form, Piece, Pieces, bare, compared, in_list, joined, listed, plain
from dpquery.backends.values import quoted
from dpquery.plan.coerce import LONGEST
from dpquery.plan.lengths import longest
from dpquery.plan.rules import PATTERN
from dpquery.plan.scalar import Call, Literal, Scalar
from dpquery.values.types import DATE, Kind

FIRST_DAY, LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
FIRST_MOMENT, LAST_MOMENT = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
GROUPED = 4  # texts joined at once before they are cut: what bounds the memory of one row


def _cut(text: str, most: int) -> str:
    return f"left({text}, {LONGEST})" if most > LONGEST else text


def _spliced(join: Callable[[list[str]], str]) -> Form:
    """Texts joined a few at a time and cut each time, so that no row needs more than a few times the limit."""

    def form(call: Call, pieces: Pieces) -> Piece:
        texts, sizes = [piece.clean for piece in pieces], [longest(arg) for arg in call.args]
        while True:
            head, most = join(texts[:GROUPED]), sum(sizes[:GROUPED])
            texts, sizes = [_cut(head, most), *texts[GROUPED:]], [min(most, LONGEST), *sizes[GROUPED:]]
            if len(texts) == 1:
                return Piece(texts[0])

    return form


def _replaced(call: Call, pieces: Pieces) -> Piece:
    s, old, new = (piece.text for piece in pieces)
    return Piece(f"left(replace({s}, {old}, {new}), {LONGEST})")


def _substituted(call: Call, pieces: Pieces) -> Piece:
    return Piece(f"left(regexp_replace({', '.join(piece.text for piece in pieces)}), {LONGEST})")


def _number_args(function: str) -> Form:
    return lambda call, pieces: Piece(f"{function}({', '.join([pieces[0].text, *(bare(arg) for arg in call.args[1:])])})")


def _like(word: str) -> Form:
    def form(call: Call, pieces: Pieces) -> Piece:
        if not isinstance(call.args[1], Literal):  # what it takes to match is bounded, as for a literal
            pattern = pieces[1].text
            return Piece(f"CASE WHEN length({pattern}) <= {PATTERN} THEN ({pieces[0].text} {word} {pattern}) END")
        escape = f" ESCAPE {pieces[2].text}" if len(pieces) > 2 else ""
        return Piece(f"({pieces[0].text} {word} {pieces[1].text}{escape})")

    return form


# ---- dates ---------------------------------------------------------------------------------------------------------------------------


def _dated(arg: Scalar, piece: Piece) -> str:
    """The date or timestamp, NULL outside the years 1 to 9999: infinite ones, and those whose arithmetic could leave the range of the type."""
    if isinstance(arg, Literal):
        return piece.text
    first, last = (FIRST_DAY, LAST_DAY) if arg.type == DATE else (FIRST_MOMENT, LAST_MOMENT)
    return f"CASE WHEN {piece.text} BETWEEN {first} AND {last} THEN {piece.text} END"


def _dates(template: str) -> Form:
    """A function of dates and timestamps; literal arguments (units) keep their places."""

    def form(call: Call, pieces: Pieces) -> Piece:
        shown = (
            _dated(arg, piece) if arg.type.kind in (Kind.DATE, Kind.TIMESTAMP) else piece.text for arg, piece in zip(call.args, pieces, strict=True)
        )
        return Piece(template.format(*shown), finite=True)

    return form


def _date_add(call: Call, pieces: Pieces) -> Piece:
    names = ("months", "days", "microseconds")
    steps = [f"{int(str(arg.value))} {name}" for arg, name in zip(call.args[1:], names, strict=True) if isinstance(arg, Literal) and arg.value]
    moved = f"({_dated(call.args[0], pieces[0])} + CAST({quoted(' '.join(steps) or '0 days')} AS INTERVAL))"
    return Piece(f"CAST({moved} AS TIMESTAMP)")


def _add_days(call: Call, pieces: Pieces) -> Piece:
    day, count = _dated(call.args[0], pieces[0]), call.args[1]
    if isinstance(count, Literal) and isinstance(count.value, int) and abs(count.value) <= 4_000_000:
        return Piece(f"({day} + {count.value})") if count.value >= 0 else Piece(f"({day} - {-count.value})")
    number = pieces[1].text
    return Piece(f"({day} + CAST(CASE WHEN {number} BETWEEN -4000000 AND 4000000 THEN {number} END AS INTEGER))")


FORMS: Mapping[str, Form] = {
    **NUMERIC,
    "eq": compared("({0} = {1})"),
    "ne": compared("({0} <> {1})"),
    "lt": compared("({0} < {1})"),
    "le": compared("({0} <= {1})"),
    "gt": compared("({0} > {1})"),
    "ge": compared("({0} >= {1})"),
    "distinct": compared("({0} IS DISTINCT FROM {1})"),
    "not_distinct": compared("({0} IS NOT DISTINCT FROM {1})"),
    "between": compared("({0} BETWEEN {1} AND {2})"),
    "in": in_list,
    "and": joined("AND"),
    "or": joined("OR"),
    "not": plain("(NOT {0})"),
    "is_null": plain("({0} IS NULL)"),
    "is_true": plain("({0} IS TRUE)"),
    "is_false": plain("({0} IS FALSE)"),
    "coalesce": listed("COALESCE"),
    "greatest": listed("GREATEST"),
    "least": listed("LEAST"),
    "lower": plain("lower({0})"),
    "upper": plain("upper({0})"),
    "trim": listed("trim"),
    "ltrim": listed("ltrim"),
    "rtrim": listed("rtrim"),
    "length": plain("length({0})"),
    "substring": _number_args("substring"),
    "left": _number_args("left"),
    "right": _number_args("right"),
    "cat": _spliced(lambda texts: f"({' || '.join(texts)})"),
    "concat": _spliced(lambda texts: f"concat({', '.join(texts)})"),
    "replace": _replaced,
    "starts_with": plain("starts_with({0}, {1})"),
    "ends_with": plain("ends_with({0}, {1})"),
    "contains": plain("contains({0}, {1})"),
    "strpos": plain("strpos({0}, {1})"),
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "regexp": plain("regexp_matches({0}, {1})"),
    "regexp_extract": lambda call, pieces: Piece(f"regexp_extract({pieces[0].text}, {pieces[1].text}, {bare(call.args[2])})"),
    "regexp_replace": _substituted,
    "date_part": _dates("date_part({0}, {1})"),
    "date_trunc": _dates("CAST(date_trunc({0}, {1}) AS TIMESTAMP)"),
    "date_diff": _dates("date_diff({0}, {1}, {2})"),
    "date_add": _date_add,
    "add_days": _add_days,
    "days_between": _dates("CAST({0} - {1} AS BIGINT)"),
    "last_day": _dates("last_day({0})"),
    "dayname": _dates("dayname({0})"),
    "monthname": _dates("monthname({0})"),
}
"""The form of each function. A test holds it against FUNCTIONS, and each form against extreme values."""
