"""One entry for each function of the allow-list: how a statement calls it. test_grammar.py fails where one has none.

`{0}`, `{1}` are arguments, `{f}` is one of the function's names. `plain` is what DuckDB is asked where it differs or lacks the name; it stands in TRY
in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from expressions import NUMERIC, condition, number, text
from grammar import CONDITION, DAY, NUMBER, TEXT, Col, Expr, Grammar, both, joined, production

from dpquery.plan.functions import FUNCTIONS
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, Kind, Type

Scope = Sequence[Col]
Typed = Callable[[Sequence[Expr]], Type]


@dataclass(frozen=True)
class Call:
    """A way to write a call: what its arguments are, a letter each, what it gives, and what DuckDB is asked instead."""

    written: str
    args: str
    type: Type | Typed
    plain: str | None = None
    names: tuple[str, ...] | None = None


ARGUMENTS: Mapping[str, Callable[[Grammar, Scope], Expr | None]] = {
    "n": lambda g, scope: number(g, scope, 1).whole,
    "m": lambda g, scope: g.col(scope, *NUMERIC),
    "i": lambda g, scope: g.col(scope, Kind.INTEGER),
    "s": lambda g, scope: text(g, scope, 1),
    "d": lambda g, scope: g.col(scope, Kind.DATE, Kind.TIMESTAMP),
    "D": lambda g, scope: g.col(scope, Kind.DATE),
    "T": lambda g, scope: g.col(scope, Kind.TIMESTAMP),
    "c": lambda g, scope: condition(g, scope, 1).whole,
    "a": lambda g, scope: g.col(scope),
}


def _first(args: Sequence[Expr]) -> Type:
    return args[0].type


def _common(args: Sequence[Expr]) -> Type:
    return joined(*args)


def _whole(args: Sequence[Expr]) -> Type:
    return Type(Kind.DECIMAL) if args[0].type.kind is Kind.DECIMAL else args[0].type


def _to(digits: int) -> Typed:
    return lambda args: Type(Kind.DECIMAL, max(0, min(args[0].type.scale, digits))) if args[0].type.kind is Kind.DECIMAL else args[0].type


def _compared(sign: str) -> tuple[Call, ...]:
    return (Call(f"{{0}} {sign} {{1}}", "nn", BOOLEAN), Call(f"{{0}} {sign} 'b'", "s", BOOLEAN))


def _parts(*names: str) -> Call:
    return Call("{f}({0})", "d", INTEGER, names=names)


FORMS: Mapping[str, tuple[Call, ...]] = {
    "add": (Call("{0} + {1}", "mm", _common),),
    "sub": (Call("{0} - {1}", "mm", _common),),
    "mul": (Call("{0} * 2", "m", _first),),
    "div": (Call("{0} / {1}", "nn", FLOAT, "{0} / nullif({1}, 0)"),),
    "intdiv": (Call("{0} // 3", "i", INTEGER),),
    "mod": (Call("{0} % 4", "i", INTEGER), Call("{f}({0}, {1})", "ii", INTEGER, "{0} % nullif({1}, 0)")),
    "neg": (Call("-{0}", "n", _first),),
    "abs": (Call("{f}({0})", "n", _first),),
    "sign": (Call("{f}({0})", "n", INTEGER),),
    "floor": (Call("{f}({0})", "n", _whole),),
    "ceil": (Call("{f}({0})", "n", _whole),),
    "round": (Call("{f}({0})", "m", _whole), *(Call(f"{{f}}({{0}}, {digits})", "m", _to(digits)) for digits in (-1, 0, 1, 3))),
    "trunc": (Call("{f}({0})", "m", _whole), Call("{f}({0}, 1)", "m", _to(1))),
    "sqrt": (Call("{f}({0})", "n", FLOAT),),
    "exp": (Call("{f}({0})", "m", FLOAT),),
    "ln": (Call("{f}({0})", "n", FLOAT, "CASE WHEN {0} > 0 THEN ln({0}) END"),),
    "log10": (Call("{f}({0})", "n", FLOAT, "CASE WHEN {0} > 0 THEN log10({0}) END"),),
    "log2": (Call("{f}({0})", "n", FLOAT, "CASE WHEN {0} > 0 THEN log2({0}) END"),),
    "log": (
        Call("{f}(3, {0})", "m", FLOAT, "CASE WHEN {0} > 0 THEN log(3, {0}) END"),
        Call("{f}({0}, 7)", "m", FLOAT, "CASE WHEN {0} > 0 AND {0} <> 1 THEN log({0}, 7) END"),
    ),
    "power": (
        Call("{f}({0}, 2)", "m", FLOAT),
        Call("{f}({0}, {1})", "mm", FLOAT, "CASE WHEN NOT ({0} = 0 AND {1} < 0) THEN power({0}, {1}) END"),
        Call("({0} ** 2)", "m", FLOAT),
    ),
    "eq": _compared("="),
    "ne": _compared("<>"),
    "lt": _compared("<"),
    "le": _compared("<="),
    "gt": _compared(">"),
    "ge": _compared(">="),
    "distinct": _compared("IS DISTINCT FROM"),
    "not_distinct": _compared("IS NOT DISTINCT FROM"),
    "between": (Call("{0} BETWEEN 0 AND {1}", "nm", BOOLEAN), Call("{0} BETWEEN 'a' AND 'c'", "s", BOOLEAN)),
    "in": (Call("{0} IN (1, 2, NULL)", "i", BOOLEAN), Call("{0} IN ('a', '', 'zz')", "s", BOOLEAN)),
    "and": (Call("{0} AND {1}", "cc", BOOLEAN),),
    "or": (Call("{0} OR {1}", "cc", BOOLEAN),),
    "not": (Call("NOT {0}", "c", BOOLEAN),),
    "is_null": (Call("{0} IS NULL", "a", BOOLEAN),),
    "is_true": (Call("{0} IS TRUE", "c", BOOLEAN),),
    "is_false": (Call("{0} IS NOT FALSE", "c", BOOLEAN),),
    "coalesce": (Call("{f}({0}, {1})", "mm", _common, "coalesce({0}, {1})"), Call("{f}({0}, 'none')", "s", STRING, "coalesce({0}, 'none')")),
    "greatest": (Call("{f}({0}, {1})", "nm", _common),),
    "least": (Call("{f}({0}, {1})", "nm", _common),),
    "lower": (Call("{f}({0})", "s", STRING),),
    "upper": (Call("{f}({0})", "s", STRING),),
    "trim": (Call("{f}({0})", "s", STRING), Call("{f}({0}, 'ab')", "s", STRING), Call("TRIM(BOTH FROM {0})", "s", STRING, "trim({0})")),
    "ltrim": (Call("{f}({0})", "s", STRING), Call("TRIM(LEADING 'a' FROM {0})", "s", STRING, "ltrim({0}, 'a')")),
    "rtrim": (Call("{f}({0} || '  ')", "s", STRING),),
    "length": (Call("{f}({0})", "s", INTEGER, "length({0})"),),
    "substring": (Call("{f}({0}, 2)", "s", STRING), Call("{f}({0}, 1, 2)", "s", STRING), Call("{f}({0}, -1, 1)", "s", STRING)),
    "left": (Call("{f}({0}, 1)", "s", STRING), Call("{f}({0}, -1)", "s", STRING)),
    "right": (Call("{f}({0}, 1)", "s", STRING), Call("{f}({0}, -1)", "s", STRING)),
    "cat": (Call("({0} || {1})", "ss", STRING), Call("({0} || {1})", "si", STRING)),
    "concat": (Call("{f}({0}, '-', {1})", "ss", STRING), Call("{f}({0})", "s", STRING)),
    "replace": (Call("{f}({0}, 'b', 'cc')", "s", STRING), Call("{f}({0}, 'a', '')", "s", STRING)),
    "starts_with": (Call("{f}({0}, 'a')", "s", BOOLEAN),),
    "ends_with": (Call("{f}({0}, 'b')", "s", BOOLEAN),),
    "contains": (Call("{f}({0}, 'b')", "s", BOOLEAN),),
    "strpos": (
        Call("{f}({0}, 'b')", "s", INTEGER, "strpos({0}, 'b')", ("strpos", "instr")),
        Call("position('b' IN {0})", "s", INTEGER, "strpos({0}, 'b')", ("position",)),
    ),
    "like": (Call("{0} LIKE {1} || '%'", "ss", BOOLEAN), Call("{0} LIKE '%b%'", "s", BOOLEAN), Call("{0} LIKE 'a!%' ESCAPE '!'", "s", BOOLEAN)),
    "ilike": (Call("{0} ILIKE {1}", "ss", BOOLEAN), Call("{0} ILIKE 'a%'", "s", BOOLEAN), Call("{0} NOT ILIKE '!_' ESCAPE '!'", "s", BOOLEAN)),
    "regexp": (
        Call("{f}({0}, '^a|[^b-z ]+$')", "s", BOOLEAN, "regexp_matches({0}, '^a|[^b-z ]+$')"),
        Call("{f}({0}, 'A.*', 'i')", "s", BOOLEAN, "regexp_matches({0}, 'A.*', 'i')"),
    ),
    "regexp_extract": (Call("{f}({0}, 'a(.?)', 1)", "s", STRING), Call("{f}({0}, '[[:alpha:]]+')", "s", STRING)),
    "regexp_replace": (Call("{f}({0}, '(a)|b', '-\\1', 'g')", "s", STRING), Call("{f}({0}, '\\w', '\\0\\0')", "s", STRING)),
    "date_part": (
        Call("{f}('month', {0})", "d", INTEGER, names=("date_part", "datepart")),
        Call("extract(year FROM {0})", "d", INTEGER, names=("extract",)),
        _parts("year", "isoyear", "quarter", "month", "week", "weekofyear", "day", "dayofmonth"),
        _parts("dayofyear", "dayofweek", "weekday", "isodow"),
        *(Call(f"{name}({{0}})", "d", INTEGER, f"date_part('{name}', {{0}})", (name,)) for name in ("doy", "dow")),
        Call("{f}({0})", "T", INTEGER, names=("hour", "minute", "second")),
        Call("{f}({0})", "T", FLOAT, names=("epoch",)),
    ),
    "date_trunc": (Call("{f}('quarter', {0})", "d", TIMESTAMP),),
    "date_diff": (Call("{f}('day', {0}, DATE '2024-03-01')", "d", INTEGER), Call("{f}('month', {0}, {1})", "DD", INTEGER)),
    "date_add": (
        Call("{0} + INTERVAL 1 MONTH", "d", TIMESTAMP),
        Call("{0} - INTERVAL '2 days'", "d", TIMESTAMP),
        Call("{f}({0}, INTERVAL 3 DAY)", "d", TIMESTAMP, "{0} + INTERVAL 3 DAY"),
    ),
    "add_days": (Call("{0} + 40", "D", DATE), Call("{0} - {1}", "Di", DATE, "{0} - CAST({1} AS INTEGER)")),
    "days_between": (Call("{0} - {1}", "DD", INTEGER), Call("{0} - DATE '2024-01-15'", "D", INTEGER)),
    "last_day": (Call("{f}({0})", "d", DATE),),
    "dayname": (Call("{f}({0})", "d", STRING),),
    "monthname": (Call("{f}({0})", "d", STRING),),
}
"""The ways to call each function, by its canonical name."""

NOW = "2024-03-15 10:30:00"  # the time at which statements are asked
REWRITES: Mapping[str, tuple[Call, ...]] = {
    "if": (Call("if({0}, {1}, {2})", "cmm", lambda args: joined(*args[1:])),),
    "iif": (Call("iif({0}, {1}, {2})", "cmm", lambda args: joined(*args[1:]), "CASE WHEN {0} THEN {1} ELSE {2} END"),),
    "nullif": (Call("nullif({0}, {1})", "mm", _first),),
    "cast": (Call("CAST({0} AS VARCHAR)", "i", STRING), Call("CAST({0} AS TIMESTAMP)", "D", TIMESTAMP), Call("CAST({0} AS SMALLINT)", "m", INTEGER)),
    "try_cast": (
        Call("TRY_CAST({0} AS DOUBLE)", "s", FLOAT),
        Call("TRY_CAST({0} AS DATE)", "s", DATE),
        Call("TRY_CAST({0} AS BOOLEAN)", "s", BOOLEAN),
    ),
    "width_bucket": (
        Call(
            "width_bucket({0}, -2, 8, 5)",
            "m",
            INTEGER,
            "CASE WHEN {0} < -2 THEN 0 WHEN {0} >= 8 THEN 6 ELSE CAST(floor(({0} - -2) * 5 / 10) AS BIGINT) + 1 END",
        ),
    ),
    "regexp_full_match": (
        Call("regexp_full_match({0}, 'a|b+')", "s", BOOLEAN),
        Call("{0} SIMILAR TO 'a|b+'", "s", BOOLEAN, "regexp_full_match({0}, 'a|b+')"),
    ),
    "strftime": (Call("strftime({0}, '%Y-%m-%d %H:%M:%S')", "d", STRING), Call("strftime({0}, '%-d %b, %A: %G-%V-%u %j')", "d", STRING)),
    "now": (Call("now()", "", TIMESTAMP, f"TIMESTAMP '{NOW}'"),),
    "today": (Call("today()", "", DATE, f"DATE '{NOW[:10]}'"),),
    "current_date": (Call("current_date", "", DATE, f"DATE '{NOW[:10]}'"), Call("CURRENT_DATE - {0}", "D", INTEGER, f"DATE '{NOW[:10]}' - {{0}}")),
    "current_timestamp": (Call("CURRENT_TIMESTAMP", "", TIMESTAMP, f"TIMESTAMP '{NOW}'"),),
}
"""Likewise the names that are read as something else."""


def spelled(function: str, call: Call) -> tuple[str, ...]:
    """The names under which the call may be written, DuckDB's own first; an empty one for operators."""
    return call.names or (FUNCTIONS[function].names if "{f}" in call.written else ("",))


def gives(call: Call, args: Sequence[Expr]) -> Type:
    return call.type if isinstance(call.type, Type) else call.type(args)


def _kind_of(call: Call) -> frozenset[Kind]:
    """What kinds of values the call may give."""
    return frozenset(NUMERIC) if not isinstance(call.type, Type) else frozenset({call.type.kind})


def _called(kinds: frozenset[Kind]) -> Mapping[str, tuple[Call, ...]]:
    """The functions that can give such a value, each with the ways that do."""
    known = {**FORMS, **REWRITES}
    found = {name: tuple(call for call in ways if _kind_of(call) & kinds) for name, ways in known.items()}
    return {name: ways for name, ways in found.items() if ways}


def any_call(g: Grammar, scope: Scope, kinds: frozenset[Kind]) -> Expr | None:
    """A call of any function that gives a value of these kinds, each as likely as any other."""
    called = CALLED[kinds]
    name = g.random.choice(list(called))
    call = g.random.choice(called[name])
    return one_call(g, scope, name, call, g.random.choice(spelled(name, call)))


def one_call(g: Grammar, scope: Scope, name: str, call: Call, chosen: str) -> Expr | None:
    """This call, under this name of its function; None where its arguments cannot be had."""
    args = [ARGUMENTS[letter](g, scope) for letter in call.args]
    found = [arg for arg in args if arg is not None]
    if len(found) < len(args):
        return None
    kind = gives(call, found)
    names = spelled(name, call)
    written = call.written.replace("{f}", chosen)
    asked = (call.plain or call.written).replace("{f}", names[0] if name in FUNCTIONS and names == FUNCTIONS[name].names else chosen)
    asked = f"TRY({asked})" if found else asked
    return both(f"({written})", kind, *found, plain=f"nullif({asked}, 'nan'::DOUBLE)" if kind == FLOAT else asked)


NUMBERS, DAYS_AND_TIMES = frozenset(NUMERIC), frozenset({Kind.DATE, Kind.TIMESTAMP})
TEXTS, TRUTHS = frozenset({Kind.STRING}), frozenset({Kind.BOOLEAN})
CALLED = {kinds: _called(kinds) for kinds in (NUMBERS, DAYS_AND_TIMES, TEXTS, TRUTHS)}


@production(NUMBER, 4)
def called_number(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    return any_call(g, scope, NUMBERS)


@production(NUMBER, 1)
def days_apart(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    """A date less another, which few data sets have the columns for."""
    return one_call(g, scope, "days_between", FORMS["days_between"][1], "")


@production(TEXT, 3)
def called_text(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    return any_call(g, scope, TEXTS)


@production(DAY, 4)
def called_day(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    return any_call(g, scope, DAYS_AND_TIMES)


@production(CONDITION, 3)
def called_condition(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    return any_call(g, scope, TRUTHS)
