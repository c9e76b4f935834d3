"""The allow-list: every function and operator that may stand below the noise line, with its types and its total form in words.

Nothing else reaches the engine from an analyst. A total form has a result for every value of its arguments, NULL where plain SQL would fail; it
stands alone, relying on no condition elsewhere in the statement. `backends/forms.py` has the forms, `plan/intervals.py` the bounds of their results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dpquery.plan import rules
from dpquery.plan.coerce import LONGEST, Mismatch, common, convert
from dpquery.plan.scalar import Call, Case, Scalar
from dpquery.values.types import BOOLEAN, INTEGER, NULL

MANY = 10_000  # arguments of a variadic function
PART_NAMES = (
    *("date_part", "datepart", "extract", "year", "isoyear", "quarter", "month", "week", "weekofyear", "day", "dayofmonth"),
    *("doy", "dayofyear", "dow", "dayofweek", "weekday", "isodow", "hour", "minute", "second", "epoch"),
)


@dataclass(frozen=True, slots=True)
class Function:
    """One entry: its canonical name, how it is written, how many arguments it takes, its typing rule.

    `result` and `differs` (from plain DuckDB) are for people; `names` are the names under which SQL calls it, none for operators.
    """

    name: str
    spelling: str
    family: str
    rule: rules.Rule
    least: int
    most: int
    result: str
    differs: str = ""
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The first way to write it, for messages."""
        return self.spelling.split("), ")[0] + ")" if "), " in self.spelling else self.spelling


def _numbers() -> Iterator[Function]:
    family, overflow = "Numbers", "NULL on overflow"
    yield Function("add", "x + y", family, rules.alike, 2, 2, "the wider type", overflow)
    yield Function("sub", "x - y", family, rules.alike, 2, 2, "the wider type", overflow)
    yield Function("mul", "x * y", family, rules.product, 2, 2, "the wider type; the scales of decimals add up, to at most 22", overflow)
    yield Function("div", "x / y", family, rules.real, 2, 2, "FLOAT", "NULL where y is 0")
    yield Function("intdiv", "x // y", family, rules.whole, 2, 2, "INTEGER, towards zero", "NULL where y is 0; integers only")
    yield Function("mod", "x % y", family, rules.alike, 2, 2, "the wider type, the sign of x", "NULL where y is 0", ("mod",))
    yield Function("neg", "-x", family, rules.alike, 1, 1, "that of x", overflow)
    yield Function("abs", "abs(x)", family, rules.alike, 1, 1, "that of x", overflow, ("abs",))
    yield Function("sign", "sign(x)", family, rules.signed, 1, 1, "INTEGER", "", ("sign",))
    yield Function("floor", "floor(x)", family, rules.towards, 1, 1, "that of x", "an INTEGER stays one", ("floor",))
    yield Function("ceil", "ceil(x)", family, rules.towards, 1, 1, "that of x", "an INTEGER stays one", ("ceil", "ceiling"))
    digits = "literal digits, -38 to 38; NULL on overflow"
    yield Function("round", "round(x [, digits])", family, rules.rounded, 1, 2, "that of x, ties away from zero", digits, ("round",))
    yield Function("trunc", "trunc(x [, digits])", family, rules.rounded, 1, 2, "that of x, towards zero", digits, ("trunc",))
    yield Function("sqrt", "sqrt(x)", family, rules.real, 1, 1, "FLOAT", "NULL where x < 0", ("sqrt",))
    yield Function("exp", "exp(x)", family, rules.real, 1, 1, "FLOAT", "", ("exp",))
    yield Function("ln", "ln(x)", family, rules.real, 1, 1, "FLOAT", "NULL where x <= 0", ("ln",))
    yield Function("log10", "log10(x), log(x)", family, rules.real, 1, 1, "FLOAT", "NULL where x <= 0", ("log10", "log"))
    yield Function("log2", "log2(x)", family, rules.real, 1, 1, "FLOAT", "NULL where x <= 0", ("log2",))
    yield Function("log", "log(base, x)", family, rules.real, 2, 2, "FLOAT", "NULL where base or x <= 0 or base = 1", ("log",))
    undefined = "NULL where undefined, and for 0 to a negative power"
    yield Function("power", "power(x, y), x ** y", family, rules.real, 2, 2, "FLOAT", undefined, ("power", "pow"))


def _truth() -> Iterator[Function]:
    family = "Conditions"
    for name, sign in (("eq", "="), ("ne", "<>"), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
        yield Function(name, f"x {sign} y", family, rules.compared, 2, 2, "BOOLEAN")
    yield Function("distinct", "x IS DISTINCT FROM y", family, rules.compared, 2, 2, "BOOLEAN, never NULL")
    yield Function("not_distinct", "x IS NOT DISTINCT FROM y", family, rules.compared, 2, 2, "BOOLEAN, never NULL")
    yield Function("between", "x BETWEEN low AND high", family, rules.compared, 3, 3, "BOOLEAN")
    yield Function("in", "x IN (...)", family, rules.listed, 2, MANY + 1, "BOOLEAN", f"literals only, at most {MANY:,}")
    yield Function("and", "a AND b", family, rules.truths, 2, MANY, "BOOLEAN, three-valued")
    yield Function("or", "a OR b", family, rules.truths, 2, MANY, "BOOLEAN, three-valued")
    yield Function("not", "NOT a", family, rules.truths, 1, 1, "BOOLEAN, three-valued")
    yield Function("is_null", "x IS NULL", family, rules.anything, 1, 1, "BOOLEAN, never NULL", "NaN is NULL")
    yield Function("is_true", "a IS TRUE", family, rules.truths, 1, 1, "BOOLEAN, never NULL")
    yield Function("is_false", "a IS FALSE", family, rules.truths, 1, 1, "BOOLEAN, never NULL")


def _choice() -> Iterator[Function]:
    family = "Choice"
    yield Function("coalesce", "coalesce(x, ...)", family, rules.united, 1, MANY, "the common type", "", ("coalesce", "ifnull", "nvl"))
    yield Function("greatest", "greatest(x, ...)", family, rules.united, 1, MANY, "the common type; NULLs are left out", "", ("greatest",))
    yield Function("least", "least(x, ...)", family, rules.united, 1, MANY, "the common type; NULLs are left out", "", ("least",))


def _text() -> Iterator[Function]:
    family, cut, ends = "Text", f"cut at {LONGEST} characters", "spaces, or any of the literal characters"
    yield Function("lower", "lower(s)", family, rules.text, 1, 1, "STRING", "", ("lower", "lcase"))
    yield Function("upper", "upper(s)", family, rules.text, 1, 1, "STRING", "", ("upper", "ucase"))
    yield Function("trim", "trim(s [, characters])", family, rules.trimmed, 1, 2, "STRING", ends, ("trim",))
    yield Function("ltrim", "ltrim(s [, characters])", family, rules.trimmed, 1, 2, "STRING", ends, ("ltrim",))
    yield Function("rtrim", "rtrim(s [, characters])", family, rules.trimmed, 1, 2, "STRING", ends, ("rtrim",))
    lengths, places_of = ("length", "len", "char_length", "character_length"), ("strpos", "position", "instr")
    yield Function("length", "length(s)", family, rules.measured, 1, 1, "INTEGER, characters", f"at most {LONGEST}", lengths)
    places = "literal places"
    yield Function("substring", "substring(s, start [, length])", family, rules.sliced, 2, 3, "STRING", places, ("substring", "substr"))
    yield Function("left", "left(s, n)", family, rules.sliced, 2, 2, "STRING", "literal n", ("left",))
    yield Function("right", "right(s, n)", family, rules.sliced, 2, 2, "STRING", "literal n", ("right",))
    yield Function("cat", "s || t", family, rules.spelled, 2, MANY, "STRING, NULL if any is", cut)
    yield Function("concat", "concat(s, ...)", family, rules.spelled, 1, MANY, "STRING; NULLs are left out", cut, ("concat",))
    grown = f"literal old and new, new at most {rules.GROWTH} times as long as old; {cut}"
    yield Function("replace", "replace(s, old, new)", family, rules.replaced, 3, 3, "STRING", grown, ("replace",))
    yield Function("starts_with", "starts_with(s, t)", family, rules.sought, 2, 2, "BOOLEAN", "literal t", ("starts_with", "prefix"))
    yield Function("ends_with", "ends_with(s, t)", family, rules.sought, 2, 2, "BOOLEAN", "literal t", ("ends_with", "suffix"))
    yield Function("contains", "contains(s, t)", family, rules.sought, 2, 2, "BOOLEAN", "literal t", ("contains",))
    yield Function("strpos", "strpos(s, t), position(t IN s)", family, rules.located, 2, 2, "INTEGER, 0 where absent", "literal t", places_of)
    pattern = f"pattern of at most {rules.PATTERN} characters, NULL for a longer one that is no literal; with ESCAPE a literal"
    yield Function("like", "s LIKE pattern [ESCAPE e]", family, rules.like, 2, 3, "BOOLEAN", pattern)
    yield Function("ilike", "s ILIKE pattern [ESCAPE e]", family, rules.like, 2, 3, "BOOLEAN", pattern)


def _patterns() -> Iterator[Function]:
    family, literal = "Regular expressions", "literal pattern"
    matches = "regexp_matches(s, pattern [, options]), s ~ pattern"
    yield Function("regexp", matches, family, rules.matched, 2, 2, "BOOLEAN", literal, ("regexp_matches", "regexp_like"))
    found = "STRING, empty where nothing matches"
    extract = "regexp_extract(s, pattern [, group [, options]])"
    yield Function("regexp_extract", extract, family, rules.extracted, 3, 3, found, f"{literal} and group", ("regexp_extract",))
    grown = f"{literal} and new text, that at most {rules.GROWTH} times as long as the shortest match; cut at {LONGEST} characters"
    replace = "regexp_replace(s, pattern, new [, options])"
    yield Function("regexp_replace", replace, family, rules.substituted, 3, 4, "STRING", grown, ("regexp_replace",))


def _dates() -> Iterator[Function]:
    family, years = "Dates and timestamps", "NULL outside the years 1 to 9999"
    parts = f"literal part: {', '.join(rules.PARTS)}; {years}"
    yield Function("date_part", "date_part('month', d), extract(month FROM d), month(d)", family, rules.part_of, 2, 2, "INTEGER", parts, PART_NAMES)
    units = f"literal unit; {years}"
    trunc, diff, add = ("date_trunc", "datetrunc"), ("date_diff", "datediff"), ("date_add",)
    yield Function("date_trunc", "date_trunc('month', d)", family, rules.truncated, 2, 2, "TIMESTAMP", units, trunc)
    yield Function("date_diff", "date_diff('day', from, to)", family, rules.apart, 3, 3, "INTEGER", units, diff)
    interval = f"literal interval; {years}"
    yield Function("date_add", "d + INTERVAL 1 MONTH, d - INTERVAL 1 DAY", family, rules.moved, 4, 4, "TIMESTAMP", interval, add)
    yield Function("add_days", "d + n, d - n", family, rules.day_moved, 2, 2, "DATE", years)
    yield Function("days_between", "d - e", family, rules.days_apart, 2, 2, "INTEGER", years)
    yield Function("last_day", "last_day(d)", family, rules.day_of, 1, 1, "DATE", years, ("last_day",))
    yield Function("dayname", "dayname(d)", family, rules.name_of, 1, 1, "STRING", years, ("dayname",))
    yield Function("monthname", "monthname(d)", family, rules.name_of, 1, 1, "STRING", years, ("monthname",))


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {entry.name: entry for family in (_numbers, _truth, _choice, _text, _patterns, _dates) for entry in family()}
)
"""Every function that may stand below the noise line, by canonical name."""

REWRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "if": "CASE WHEN a THEN x ELSE y END",
        "iif": "CASE WHEN a THEN x ELSE y END",
        "nullif": "CASE WHEN x = y THEN NULL ELSE x END",
        "cast": "CAST(x AS type), TRY_CAST, x::type: NULL where the value does not fit",
        "try_cast": "CAST(x AS type)",
        "width_bucket": "floor((x - low) * n / (high - low)) + 1, at least 0 and at most n + 1; for two literal bounds",
        "strftime": "the parts and names of a date or timestamp, joined; of %Y, %m, %d, %H, %M, %S, %j, %G, %V, %u, %B, %b, %A, %a",
        "regexp_full_match": "regexp_matches of the whole text; so is s SIMILAR TO pattern",
        "now": "the time of asking in UTC, fixed when the statement is read",
        "today": "the date of asking in UTC, fixed when the statement is read",
        "current_date": "the date of asking in UTC, fixed when the statement is read",
        "current_timestamp": "the time of asking in UTC, fixed when the statement is read",
    }
)
"""Names that are read but are no functions of their own."""

NAMES: frozenset[str] = frozenset(name for entry in FUNCTIONS.values() for name in entry.names) | frozenset(REWRITTEN)
"""Every function name that SQL may use below the noise line."""

FORBIDDEN: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("random", "rand", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "setseed"), "is different each time"),
        **dict.fromkeys(("nextval", "currval", "getvariable", "current_setting", "txid_current"), "reads the engine's own state"),
        **dict.fromkeys(
            ("version", "current_version", "current_user", "current_database", "current_schema", "pg_typeof"), "reads the engine's own state"
        ),
        **dict.fromkeys(("getenv", "read_text", "read_blob", "read_csv", "read_parquet", "read_json", "glob"), "reads outside the data set"),
        **dict.fromkeys(("query", "query_table", "stats", "duckdb_tables", "duckdb_settings"), "reads outside the data set"),
        **dict.fromkeys(("repeat", "lpad", "rpad", "pad", "range", "generate_series", "list_value", "unnest"), "may grow without limit"),
        **dict.fromkeys(("array", "string_split", "split", "format", "printf", "bar", "concat_ws"), "may grow without limit"),
        **dict.fromkeys(("error", "try"), "turns a row into an error"),
        **dict.fromkeys(("md5", "sha1", "sha256", "hash"), "is not in the allow-list: hashes of private values serve no aggregate"),
    }
)
"""Functions that are refused on purpose, with the reason."""


def call(name: str, *args: Scalar) -> Call:
    """The typed call of an allow-listed function, its arguments converted; raises Mismatch where they do not fit."""
    function = FUNCTIONS[name]
    if not function.least <= len(args) <= function.most:
        wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most:,}"
        raise Mismatch(f"{function.title} takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(args)}", code="WRONG_ARGUMENTS")
    try:
        converted, result = function.rule(args)
    except Mismatch as error:
        raise Mismatch(f"{function.title}: {error.message}", code=error.code, instead=error.instead) from None
    return Call(name, converted, result)


def choose(branches: Sequence[tuple[Scalar, Scalar]], otherwise: Scalar | None) -> Case:
    """The typed CASE: conditions are BOOLEAN, results are brought to their common type."""
    results = [result for _, result in branches]
    found = common(results if otherwise is None else [*results, otherwise])
    found = INTEGER if found == NULL else found
    typed = tuple((_condition(condition), convert(result, found)) for condition, result in branches)
    return Case(typed, None if otherwise is None else convert(otherwise, found), found)


def _condition(scalar: Scalar) -> Scalar:
    if scalar.type not in (BOOLEAN, NULL):
        raise Mismatch(f"CASE takes conditions, not {scalar.type}", instead="x <> 0" if scalar.type.numeric else None)
    return convert(scalar, BOOLEAN)


def reference() -> str:
    """The allow-list as a page of documentation (docs/functions.md)."""
    lines = [_HEAD]
    for family in dict.fromkeys(entry.family for entry in FUNCTIONS.values()):
        lines += [f"\n## {family}\n", "| written | result | differs from DuckDB |", "|---|---|---|"]
        for entry in FUNCTIONS.values():
            if entry.family == family:
                lines.append(f"| {_code(entry)} | {_cell(entry.result)} | {_cell(entry.differs)} |")
    lines += ["\n## Read as something else\n", "| written | read as |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in REWRITTEN.items()]
    lines += ["\n## Refused on purpose\n", "| function | reason |", "|---|---|"]
    lines += [f"| `{name}` | {reason} |" for name, reason in FORBIDDEN.items()]
    return "\n".join(lines) + "\n"


def _code(entry: Function) -> str:
    shown = f"`{_cell(entry.spelling)}`"
    rest = [name for name in entry.names if name not in entry.spelling and name not in rules.PARTS]
    return f"{shown} ({', '.join(f'`{name}`' for name in rest)})" if rest else shown


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_HEAD = """# Functions below the noise line

Expressions on private rows may use these functions and operators, CASE, and casts; nothing else. This page is generated from
`dpquery/plan/functions.py`. Above the noise line (HAVING, ORDER BY, arithmetic over aggregates) most of DuckDB's functions are allowed.

Every expression has a result for every row: what would fail in DuckDB is NULL here, so that an error never tells of a row. INTEGER has 64 bits,
DECIMAL 38 digits, FLOAT is a double without NaN and without a negative zero, STRING has at most 4096 characters, TIMESTAMP has no zone. Literal
arguments (patterns, places, parts, units, intervals) must be literals. `dow` counts from 0 (Sunday) and
`week` is the ISO week; a statement of a dialect in which they are something else is refused."""
