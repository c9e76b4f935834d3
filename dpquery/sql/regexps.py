r"""Regular expressions as each dialect writes and means them, brought to the patterns of the plan.

Read as in DuckDB in every dialect: \d, \w, \s, \b and named classes know ASCII alone, $ is the end of the text. What else differs is translated: what
a dot is, whether the whole text has to match, whether no match is NULL. Or refused: which of several matches is taken, empty matches replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from dpquery.plan.coerce import Mismatch
from dpquery.plan.functions import call, choose
from dpquery.plan.patterns import PLAIN, Flavour, Pattern, parse, plain, shortest, sure, written
from dpquery.plan.scalar import Literal, Scalar
from dpquery.sql.abroad import dialect_of
from dpquery.sql.fields import argument, take
from dpquery.sql.visit import At, visit
from dpquery.values.types import INTEGER, STRING

FLAVOURS: Mapping[str, Flavour] = {
    "duckdb": PLAIN,
    "bigquery": PLAIN,
    "snowflake": Flavour(longest=True),
    "postgres": Flavour(newline=True, longest=True, boundary="y", end="Z"),
    "spark": Flavour(named=False),
    "trino": Flavour(named=False),
}
SIMILAR: Mapping[str, Flavour] = {"duckdb": PLAIN, "postgres": Flavour(newline=True, similar=True)}
DOLLARS = ("spark", "trino")  # $1 for a group
ESCAPE, ESCAPES = re.compile(r"\\(.?)", re.DOTALL), (*"123456789", "&", "\\")  # PostgreSQL's
REFERENCE = re.compile(r"\\([\\$])|\$(\d)(?!\d)|([\\$])")


class Options(NamedTuple):
    """What the letters of a call ask for."""

    any_case: bool = False
    newline: bool = False
    every: bool = False
    group: bool = False


def _options(node: exp.Expr | None, at: At, letters: str) -> Options:
    """The letters of a literal. Refused: those that are none of `letters`."""
    if node is None:
        return Options()
    given = visit(node, at)
    text = str(given.value) if isinstance(given, Literal) and given.type == STRING and given.value is not None else "?"
    odd = next((one for one in text if one not in letters), None)
    if odd is not None:
        raise at.refuse("BAD_LITERAL", f"options are a literal of the letters {', '.join(letters)}", node, "'i' for letters of any case")
    return Options("i" in text, "s" in text, "g" in text, "e" in text)


def _pattern(node: exp.Expr, at: At, flavour: Flavour, *, any_case: bool = False, newline: bool = False) -> Pattern:
    """The pattern that a literal spells; refused at the literal."""
    given = visit(node, at)
    if not isinstance(given, Literal) or given.type != STRING or given.value is None:
        raise at.refuse("LITERAL_NEEDED", "a regular expression is a literal", node, "s LIKE t, or contains(s, 'a')")
    flavour = replace(flavour, newline=True) if newline else flavour
    try:
        return parse(str(given.value), flavour, any_case=any_case)
    except Mismatch as error:
        raise at.refuse(error.code, f"a regular expression {error.message}", node, error.instead) from None


def _text(pattern: Pattern, *, whole: bool = False) -> Literal:
    return Literal(written(pattern, whole=whole), STRING)


def _matches(node: exp.Expr, at: At) -> Scalar:
    """regexp_matches, ~, RLIKE; the whole text has to match where the dialect or the function says so."""
    this, given, flag, full, options = take(node, "this", "expression", "flag", "full_match", "options")
    said = _options(flag or options, at, "cis")
    any_case = said.any_case or isinstance(node, exp.RegexpILike)
    pattern = _pattern(given, at, FLAVOURS[dialect_of(node)], any_case=any_case, newline=said.newline)
    return call("regexp", visit(this, at), _text(pattern, whole=bool(full) or isinstance(node, exp.RegexpFullMatch)))


def _similar(node: exp.SimilarTo, at: At) -> Scalar:
    """s SIMILAR TO p: of the whole text; a regular expression like others in DuckDB, one with % and _ in PostgreSQL."""
    this, given = take(node, "this", "expression")
    dialect = dialect_of(node)
    if dialect not in SIMILAR:
        raise at.refuse("DIALECT_DIFFERS", f"SIMILAR TO is not read (dialect {dialect})", node, "REGEXP_LIKE(s, 'a.*'), or LIKE")
    return call("regexp", visit(this, at), _text(_pattern(given, at, SIMILAR[dialect]), whole=True))


def _first(node: exp.Expr | None, number: int = 1) -> bool:
    """Whether a place or a number of matches is what it is where none is given."""
    return node is None or (isinstance(node, exp.Literal) and node.name == str(number))


def _extract(node: exp.RegexpExtract | exp.RegexpSubstr, at: At) -> Scalar:
    known = ("null_if_pos_overflow", "null_if_no_match", "empty_if_group_missing")
    names = ("this", "expression", "position", "occurrence", "parameters", "group")
    this, given, position, occurrence, parameters, group, *_ = take(node, *names, *known)
    if not (_first(position) and _first(occurrence)):
        raise at.refuse("LITERAL_NEEDED", "the first match is found, from the first character on", node, "substring(s, 3) for a later start")
    said, dialect = _options(parameters, at, "cise" if dialect_of(node) == "snowflake" else "cis"), dialect_of(node)
    pattern = _pattern(given, at, FLAVOURS[dialect], any_case=said.any_case, newline=said.newline)
    number = Literal(0, INTEGER) if group is None else visit(group, at)
    if dialect == "bigquery":
        number = Literal(pattern.groups, INTEGER)
    elif said.group and isinstance(number, Literal) and number.value == 0:
        number = Literal(1, INTEGER)
    kept = dialect == "duckdb" or (dialect == "spark" and isinstance(node, exp.RegexpExtract))
    return _found(visit(this, at), pattern, number, (dialect, kept), (given, at))


def substring(node: exp.Substring, at: At) -> Scalar | None:
    """PostgreSQL's substring(s FROM pattern): the first group, or all that matches; None for a substring by its place."""
    start = argument(node, "start")
    if dialect_of(node) != "postgres" or not (isinstance(start, exp.Literal) and start.is_string):
        return None
    this, start = take(node, "this", "start")
    pattern = _pattern(start, at, FLAVOURS["postgres"])
    return _found(visit(this, at), pattern, Literal(min(1, pattern.groups), INTEGER), ("postgres", False), (start, at))


def _found(of: Scalar, pattern: Pattern, number: Scalar, way: tuple[str, bool], place: tuple[exp.Expr, At]) -> Scalar:
    """What a group matches; without a match an empty text where that is `kept`, else NULL."""
    (dialect, kept), (node, at) = way, place
    if dialect == "bigquery" and pattern.groups > 1:
        raise at.refuse("BAD_LITERAL", "REGEXP_EXTRACT takes a pattern of at most one group", node, "(?:..) for the others")
    _check_ways(pattern, dialect, node, at)
    found = call("regexp_extract", of, _text(pattern), number)
    if kept:
        return found
    if not isinstance(number, Literal) or number.value not in sure(pattern):
        message = "the group may have no part in a match, where this dialect has NULL or an empty text"
        raise at.refuse("DIALECT_DIFFERS", f"{message} (dialect {dialect})", node, "a group that always matches, (a?) in place of (a)?")
    return choose([(call("regexp", of, _text(pattern)), found)], None)


def _check_ways(pattern: Pattern, dialect: str, node: exp.Expr, at: At) -> None:
    if FLAVOURS[dialect].longest and not plain(pattern):
        message = "there are several ways to match: this dialect takes the longest, DuckDB the first"
        instead = "a pattern without | and repeated groups, in which nothing that is repeated may match what comes next; or dialect duckdb"
        raise at.refuse("DIALECT_DIFFERS", f"{message} (dialect {dialect})", node, instead)


def _replace(node: exp.RegexpReplace, at: At) -> Scalar:
    names = ("this", "expression", "replacement", "position", "occurrence", "modifiers", "single_replace")
    this, given, new, position, occurrence, modifiers, single = take(node, *names)
    dialect = dialect_of(node)
    if not (_first(position) and _first(occurrence, 0)):
        raise at.refuse("LITERAL_NEEDED", "all matches are replaced, from the first character on", node, "REGEXP_REPLACE(s, 'a', 'b')")
    said = _options(modifiers, at, "cisg" if single else "cis")
    pattern = _pattern(given, at, FLAVOURS[dialect], any_case=said.any_case, newline=said.newline)
    every = said.every or not single or occurrence is not None
    _check_ways(pattern, dialect, given, at)
    if every and dialect != "duckdb" and shortest(pattern.body) == 0:
        message = "the pattern matches where there is nothing, and engines differ in how often that is replaced"
        raise at.refuse("DIALECT_DIFFERS", f"{message} (dialect {dialect})", given, "+ in place of *, or dialect duckdb")
    text = Literal("", STRING) if new is None else _reference(visit(new, at), dialect)
    return call("regexp_replace", visit(this, at), _text(pattern), text, *([Literal("g", STRING)] if every else []))


def _reference(new: Scalar, dialect: str) -> Scalar:
    """What is inserted, with groups as DuckDB writes them."""
    if not isinstance(new, Literal) or not isinstance(new.value, str):
        return new
    if dialect == "postgres":
        return Literal(ESCAPE.sub(_escaped, new.value), STRING)
    return Literal(REFERENCE.sub(_dollar, new.value), STRING) if dialect in DOLLARS else new


def _escaped(found: re.Match[str]) -> str:
    if found[1] not in ESCAPES:
        raise Mismatch("a text that is inserted has a backslash that is no group", code="BAD_LITERAL", instead="\\1, \\& for all that matches, \\\\")
    return "\\0" if found[1] == "&" else found[0]


def _dollar(found: re.Match[str]) -> str:
    sign, group, odd = found.groups()
    if odd:
        raise Mismatch(f"a text that is inserted has {odd!r} alone", code="BAD_LITERAL", instead="$1 for the first group, \\$ for the sign")
    return f"\\{group}" if group else {"\\": "\\\\", "$": "$"}[sign]


REGEXPS: Mapping[type[exp.Expr], Callable[..., Scalar]] = {
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch), _matches),
    exp.SimilarTo: _similar,
    **dict.fromkeys((exp.RegexpExtract, exp.RegexpSubstr), _extract),
    exp.RegexpReplace: _replace,
}
"""The reader of each kind of call."""
