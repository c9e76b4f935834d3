"""What reads alike in another dialect but means something else in DuckDB: refused by name, or marked for who reads it.

The parser turns the spelling of a dialect into nodes; what a node means there, it does not say. Days of the week start at 0 or 1, weeks on Sunday or
Monday, a cast to integers cuts or rounds: an answer in the one meaning to a question in the other would be wrong without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql.fields import argument, take
from dpquery.sql.refuse import refuse
from dpquery.sql.unanswered import called

ROUNDING = "rounding"  # the mark of a cast to integers: how the dialect gets rid of fractions
WIDE = "wide"  # the mark of a cast in a dialect all of whose integers have 64 bits or more, whatever they are called
BIGINT_SUMS = "bigint sums"  # the mark of a division in a dialect whose sums of integers are integers of 64 bits
ISO_WEEK = "iso week"  # the mark of a week that starts on Monday, in a dialect whose own start on Sunday
DIALECT = "dialect"  # the mark of what has a dialect's own meaning: patterns, and texts that they look through
MARKED = (exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.RegexpExtract, exp.RegexpSubstr, exp.RegexpReplace, exp.Substring)
CASTS: Mapping[str, type[exp.Expr]] = {"bigquery": exp.Round, "snowflake": exp.Round, "spark": exp.Trunc, "trino": exp.Round}
INTEGERS = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "INT128")


class Difference(NamedTuple):
    """One thing that means something else: whether a node is it, why it is refused, what to write instead."""

    meant: Callable[[exp.Expr], bool]
    why: str
    instead: str


def check(tree: exp.Expr, dialect: str, source: str) -> None:
    """Nothing, or Refused where the statement would be read in DuckDB's meaning; casts to integers are marked with the dialect's rounding."""
    differences, rounding = DIFFERENCES.get(dialect, ()), CASTS.get(dialect)
    for node in tree.walk() if differences or rounding else ():
        if dialect == "spark" and isinstance(node, exp.Dayname | exp.Monthname):
            node.set("abbreviated", True)  # three letters, as in Snowflake
        if isinstance(node, MARKED):
            node.meta[DIALECT] = dialect
        if isinstance(node, exp.Div) and dialect == "trino":
            node.meta[BIGINT_SUMS] = True
        for one in differences:
            if one.meant(node):
                raise _refused(node, one, dialect, source)
        if type(node) in EDGES and _is_plain(node):
            node.set(EDGES[type(node)], None)
        if rounding is not None and isinstance(node, exp.Cast) and str(getattr(node.to.this, "name", "")) in INTEGERS:
            node.meta[ROUNDING], node.meta[WIDE] = rounding, dialect in ("bigquery", "snowflake")


def rounding(node: exp.Expr) -> type[exp.Expr] | None:
    """How the dialect of the statement rounds what this cast makes an integer: exp.Round, exp.Trunc; None: as DuckDB does."""
    found: type[exp.Expr] | None = node.meta.get(ROUNDING)
    return found


def dialect_of(node: exp.Expr) -> str:
    """The dialect of a node whose meaning is the dialect's."""
    return str(node.meta.get(DIALECT, "duckdb"))


def wide(node: exp.Expr) -> bool:
    """Whether all integers of the statement's dialect have 64 bits or more, whatever they are called."""
    return bool(node.meta.get(WIDE))


def bigint_sums(node: exp.Expr) -> bool:
    """Whether the sums of integers in this division are integers of 64 bits, whatever they are sums of."""
    return bool(node.meta.get(BIGINT_SUMS))


def _refused(node: exp.Expr, one: Difference, dialect: str, source: str) -> Refused:
    return refuse("DIALECT_DIFFERS", f"{one.why} (dialect {dialect})", node=node, instead=one.instead, source=source)


# ---- parts of dates ------------------------------------------------------------------------------------------------------------------


def _part(node: exp.Expr) -> str:
    """The part of a date that a node asks for, in lower case; empty for other nodes."""
    match node:
        case exp.DayOfWeek():
            return "dayofweek"
        case exp.Week():
            return "week"
        case exp.Extract():
            return str(node.this.name).lower()
        case exp.Anonymous() if called(node) in ("date_part", "datepart"):
            parts = take(node, "this", "expressions")[1]
            return str(parts[0].name).lower() if parts else ""
        case _:
            return called(node)


def _named(*names: str) -> Callable[[exp.Expr], bool]:
    return lambda node: _part(node) in names


def _extracted(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Extract) and _part(node) in names


# ---- texts ---------------------------------------------------------------------------------------------------------------------------


def _from_zero(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Substring):
        return False
    start = argument(node, "start")
    return isinstance(start, exp.Literal) and start.name.strip("0") == ""


def _backwards(node: exp.Expr) -> bool:
    return isinstance(node, exp.Left | exp.Right) and isinstance(node.expression.unnest(), exp.Neg)


EDGES: Mapping[type[exp.Expr], str] = {
    exp.Substring: "zero_start",
    exp.Left: "negative_length_returns_empty",
    exp.Right: "negative_length_returns_empty",
    exp.Round: "casts_non_integer_decimals",
}
"""What the parser notes of how a dialect takes places, lengths and digits other than 1, 2, 3: of no account where they are such literals."""


def _is_plain(node: exp.Expr) -> bool:
    given = argument(node, "start" if isinstance(node, exp.Substring) else "decimals" if isinstance(node, exp.Round) else "expression")
    return given is None or (isinstance(given, exp.Literal) and given.name.isdigit())


def _trimmed(node: exp.Expr) -> bool:
    return isinstance(node, exp.Trim) and argument(node, "expression") is None


def _sunday_week(node: exp.Expr) -> bool:
    return _part(node) == "week" and ISO_WEEK not in node.meta


def _own_week(node: exp.Expr) -> bool:
    return isinstance(node, exp.Extract) and isinstance(node.this, exp.WeekStart)


def _by_calendar(node: exp.Expr) -> bool:
    """A difference in months and the like, as the dialect counts them; of other units `rephrased` has made another expression."""
    return isinstance(node, exp.DateDiff | exp.TimestampDiff) and not argument(node, "date_part_boundary")


_ZERO = Difference(_from_zero, "a text starts at 1 here, and place 0 is taken for 1", "SUBSTR(s, 1, ..)")
_NEGATIVE = Difference(_backwards, "a negative length means something else than in DuckDB", "SUBSTR, with places from the front")
_SUNDAY = Difference(
    _named("dayofweek", "dow"), "Sunday is day 1 here, day 0 in DuckDB", "EXTRACT(ISODOW FROM d), Monday is day 1 and Sunday 7; or dialect duckdb"
)
_SECOND = Difference(_named("second", "seconds"), "seconds have a fraction here, none in DuckDB", "EXTRACT(EPOCH FROM t), or dialect duckdb")

_PLAIN = "dialect duckdb, which has the one of a sample; or VAR_POP"
_SKEW = Difference(lambda node: isinstance(node, exp.Skewness), "skewness is that of all values here, that of a sample in DuckDB", _PLAIN)

DIFFERENCES: Mapping[str, tuple[Difference, ...]] = {
    "bigquery": (
        _SUNDAY,
        Difference(
            _own_week, "a year's weeks start on a day of choice here, on Monday in DuckDB, and are counted in another way", "EXTRACT(ISOWEEK FROM d)"
        ),
        Difference(_sunday_week, "weeks start on Sunday here, on Monday in DuckDB", "EXTRACT(ISOWEEK FROM d)"),
        _ZERO,
        _NEGATIVE,
        Difference(_trimmed, "TRIM takes off all white space here, spaces in DuckDB", "TRIM(s, ' '), with the characters to take off"),
    ),
    "spark": (
        _SUNDAY,
        Difference(_named("weekday"), "Monday is day 0 here, Sunday in DuckDB", "dialect duckdb, with isodow"),
        Difference(lambda node: isinstance(node, exp.Extract) and _SECOND.meant(node), _SECOND.why, "SECOND(t)"),
        _ZERO,
        _NEGATIVE,
        _SKEW,
        Difference(lambda node: isinstance(node, exp.Kurtosis), "kurtosis is that of all values here, that of a sample in DuckDB", _PLAIN),
    ),
    "snowflake": (_ZERO, _NEGATIVE),
    "postgres": (_SECOND,),
    "trino": (
        Difference(lambda node: _extracted(node, "dow", "day_of_week"), "Monday is day 1 here, Sunday day 0 in DuckDB", "DAY_OF_WEEK(d)"),
        Difference(_from_zero, "place 0 gives an empty text here, and is taken for 1 in DuckDB", "SUBSTR(s, 1, ..)"),
        Difference(_trimmed, "TRIM takes off all white space here, spaces in DuckDB", "TRIM(BOTH ' ' FROM s), with the characters to take off"),
        Difference(_by_calendar, "whole months are counted here, their first days in DuckDB", "DATE_DIFF('day', d, e), or dialect duckdb"),
        _SKEW,
        Difference(_named("entropy"), "ENTROPY takes its values for counts here, counts them in DuckDB", "dialect duckdb"),
    ),
}
"""By dialect, what the reader of SQL would answer in another meaning."""
