"""Dates as text, strftime(d, '%Y-%m') and its kin of other dialects: their parts, joined, so that they are total and list keys as these do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from dpquery.plan.coerce import Mismatch
from dpquery.plan.functions import call
from dpquery.plan.scalar import Literal, Scalar
from dpquery.sql.fields import argument, take
from dpquery.sql.unanswered import called
from dpquery.sql.visit import MONTHS, At, unknown, visit
from dpquery.values.types import INTEGER, STRING

PADDED: Mapping[str, tuple[str, int]] = {
    "Y": ("year", 4),
    "G": ("isoyear", 4),
    "m": ("month", 2),
    "V": ("week", 2),
    "d": ("day", 2),
    "j": ("doy", 3),
    "u": ("isodow", 1),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "S": ("second", 2),
}
NAMED: Mapping[str, tuple[str, int | None]] = {"B": ("monthname", None), "b": ("monthname", 3), "A": ("dayname", None), "a": ("dayname", 3)}
MOST = 16  # pieces of a format
PIECE = re.compile(r"%-?.|[^%]+|%", re.DOTALL)
MEANT: Mapping[str, str] = {
    "bigquery": "%Y %m %d %H %M %S %j %G %V %u %B %b %A %a %%",
    "trino": "%Y %m %d %H %S",
    "spark": "%Y %m %d %H %M %S %-m %-d",
    "postgres": "%Y %m %d %H %M %S",
    "snowflake": "%Y %m %d %H %M %S",
}
"""By dialect, the pieces that mean there, as the parser puts them, what they mean in DuckDB."""
JODA: Mapping[str, str] = dict(
    zip(
        ["yyyy", "MM", "M", "MMM", "MMMM", "dd", "d", "DDD", "EEE", "EEEE", "HH", "H", "mm", "m", "ss", "s", "xxxx", "ww", "e"],
        ["%Y", "%m", "%-m", "%b", "%B", "%d", "%-d", "%j", "%a", "%A", "%H", "%-H", "%M", "%-M", "%S", "%-S", "%G", "%V", "%u"],
        strict=True,
    )
)
"""The letters of Trino's format_datetime, as DuckDB's pieces."""
LETTERS = re.compile(r"([A-Za-z])\1*|'[^']*'|[^A-Za-z']+|'")
SNOWFLAKE = (("YYYY", "%Y"), ("MM", "%m"), ("DD", "%d"), ("HH24", "%H"), ("MI", "%M"), ("SS", "%S"))


def formatted(node: exp.TimeToStr, at: At) -> Scalar:
    """The moment's parts with leading zeros, its names, and what stands between, joined."""
    this, given = take(node, "this", "format")
    if isinstance(this, exp.Literal) and this.is_string:
        this, given = given, this
    if not isinstance(given, exp.Literal) or not given.is_string:
        raise unknown("strftime", node, at)
    found = PIECE.findall(given.name)
    if len(found) > MOST or not any(one.startswith("%") for one in found):  # of an empty one the parser makes the text None
        raise Mismatch(f"a format has at most {MOST} pieces, and a part of the date among them", code="BAD_LITERAL", instead="strftime(d, '%Y-%m')")
    of = visit(this, at)
    made = [_piece(one, of) for one in found]
    return made[0] if len(made) == 1 else call("cat", *made)


def _piece(piece: str, of: Scalar) -> Scalar:
    letter = piece[-1]
    if not piece.startswith("%") or piece == "%%":
        return Literal(piece.replace("%%", "%"), STRING)
    if piece[1:] in NAMED:
        function, length = NAMED[letter]
        name = call(function, of)
        return name if length is None else call("left", name, Literal(length, INTEGER))
    if letter not in PADDED or piece == "%":
        codes = ", ".join(f"%{one}" for one in (*PADDED, *NAMED))
        raise Mismatch(f"the format has {piece[:3]!r}, which is not one of {codes}", code="BAD_LITERAL", instead=MONTHS)
    part, width = PADDED[letter]
    number = call("cat", Literal("0" * (width - 1) if "-" not in piece else "", STRING), call("date_part", Literal(part, STRING), of))
    return number if "-" in piece else call("right", number, Literal(width, INTEGER))


# ---- dialects ------------------------------------------------------------------------------------------------------------------------


def meant(dialect: str) -> Iterator[tuple[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]]]:
    """What puts the dialect's calls in DuckDB's words; a format that means something else there is left to be refused by name."""
    pieces = MEANT[dialect].split()

    def rephrase(node: exp.Expr) -> exp.Expr | None:
        this, given = argument(node, "this"), argument(node, "format")
        more = any(argument(node, name) for name in node.arg_types if name not in ("this", "format", "zone"))  # a zone is UTC, others were refused
        if more or not isinstance(given, exp.Literal) or not isinstance(this, exp.Expr):
            return None
        text = _snowflake(given.name) if isinstance(node, exp.ToChar) else given.name.replace("strict", "")
        found = PIECE.findall(text)
        if not any(one.startswith("%") for one in found) and isinstance(node, exp.ToChar):
            return None  # of a number
        if any(one not in pieces if one.startswith("%") else re.search(r"[\w\"'\\]", one) for one in found):
            return exp.Anonymous(this="date_format", expressions=[this, given])
        inner = this.this if isinstance(this, exp.TimeStrToTime | exp.TsOrDsToTimestamp) else this
        return exp.TimeToStr(this=inner, format=exp.Literal.string(text))

    yield exp.TimeToStr, rephrase
    if dialect == "snowflake":
        yield exp.ToChar, rephrase


def joda(node: exp.Expr) -> exp.Expr | None:
    """Trino's format_datetime(t, 'yyyy-MM') in DuckDB's words; None where a letter has none, and for what is no such call."""
    args = argument(node, "expressions") if called(node) == "format_datetime" else []
    if len(args or ()) != 2 or not (isinstance(args[1], exp.Literal) and args[1].is_string):
        return None
    made = [_letters(one.group()) for one in LETTERS.finditer(args[1].name)]
    text = "".join(one for one in made if one is not None)
    if None in made or not text:
        return None
    return exp.TimeToStr(this=args[0], format=exp.Literal.string(text))


def _letters(run: str) -> str | None:
    """DuckDB's piece for a run of one letter; text between quotes, two of which are one, and signs as they are."""
    if run == "'":
        return None
    if run.startswith("'"):
        return (run[1:-1] or "'").replace("%", "%%")
    return JODA.get(run) if run[0].isascii() and run[0].isalpha() else run.replace("%", "%%")


def _snowflake(text: str) -> str:
    for theirs, ours in SNOWFLAKE:
        text = text.replace(theirs, ours)
    return text
