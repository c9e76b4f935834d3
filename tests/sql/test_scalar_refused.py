"""What is not read is refused: by its own code, with its place, with the reason."""

from __future__ import annotations

import pytest
import sqlglot
from scalars import Scope, parsed, scalar
from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.scalar import Scalar
from dpquery.sql.scalar import MOST_NODES, read
from dpquery.values.types import Kind

REFUSED = {
    "UNKNOWN_FUNCTION": """
        foo(i) ; lowr(s) ; strlen(s) ; isnan(x) ; strftime(d, s) ; make_date(1, 2, 3) ; epoch_ms(i) ; cbrt(x) ; bit_length(s)
        date_sub('day', d, e)
    """,
    "FUNCTION_NOT_ALLOWED": """
        random() ; uuid() ; nextval('a') ; getvariable('a') ; current_setting('a') ; repeat(s, 3) ; lpad(s, 3, 'x') ; rpad(s, 3, 'x') ; range(3)
        [1, 2] ; list_value(1) ; md5(s) ; hash(s) ; concat_ws(',', s, t) ; error('x') ; try(i)
        read_text('/etc/passwd') ; version()
    """,
    "AGGREGATE_HERE": """
        sum(i) ; count(*) ; max(i) + 1 ; count(DISTINCT i) ; string_agg(s, ',') ; sum(i) FILTER (WHERE f) ; any_value(i) ; i + avg(j)
    """,
    "WINDOW_HERE": """
        sum(i) OVER () ; row_number() OVER (ORDER BY i) ; 1 + lag(i) OVER (ORDER BY j)
    """,
    "SUBQUERY_HERE": """
        (SELECT 1) ; EXISTS (SELECT 1) ; i IN (SELECT 1) ; i = ANY (SELECT 1) ; i IN j ; i > ALL (SELECT 1)
    """,
    "STAR_HERE": """
        * ; COLUMNS('a')
    """,
    "PARAMETER": """
        ? ; $1 ; i = $name
    """,
    "COLLATION": """
        s COLLATE nocase = 'a'
    """,
    "TIME_ZONE": """
        ts AT TIME ZONE 'UTC'
    """,
    "TYPE_NOT_ALLOWED": """
        CAST(ts AS TIMESTAMPTZ) ; CAST(i AS INT[]) ; CAST(s AS INTERVAL) ; i::HUGEINT ; i::UINTEGER ; s::BLOB ; i::DECIMAL(39, 2) ; s::JSON
        CAST(s AS STRUCT(a INT))
    """,
    "TYPE_MISMATCH": """
        s + 1 ; s > 1 ; d > 1 ; d = s ; i = s ; i = f ; f + 1 ; -s ; NOT i ; i AND f ; lower(i) ; year(s) ; year(i) ; abs(s) ; ts - tu ; ts - d
        d + ts ; d + 1.5 ; d * 2 ; INTERVAL 1 DAY ; CASE WHEN i THEN 1 END ; CASE WHEN f THEN 1 ELSE s END ; coalesce(i, s) ; greatest(i, d)
        i BETWEEN 1 AND s ; u = i ; u < d ; i || j ; concat(i, j) ; x // 2 ; p // 2 ; CAST(i AS DATE) ; CAST(f AS DATE) ; CAST(d AS BIGINT)
        CAST(u AS BIGINT) ; i + INTERVAL 1 DAY ; i IS TRUE ; CAST(x AS DECIMAL(38, 20)) * CAST(y AS DECIMAL(38, 20)) ; if(i, 1, 2) ; d IN (1, 2)
        d + '3' ; x ** s ; length(d)
    """,
    "LITERAL_NEEDED": """
        s ~ t ; regexp_replace(s, 'a', t) ; regexp_matches(s, NULL) ; regexp_extract(s, 'a', i) ; s LIKE t ESCAPE '!'
        i IN (1, j) ; round(x, i) ; substring(s, i) ; left(s, i) ; replace(s, t, 'x') ; contains(s, t)
        starts_with(s, t) ; strpos(s, t) ; position(t IN s) ; d + INTERVAL (i) DAY ; date_part(s, d) ; s LIKE NULL ; left(s, NULL)
    """,
    "BAD_LITERAL": """
        d > 'yesterday' ; i = 'one' ; DATE '2024-02-30' ; TIMESTAMP '2024-01-01 10:00:00+01' ; CAST('x' AS BIGINT) ; u = '1' ; 1e999 ; x < 1e400
        s ~ '(a' ; s ~ 'a)' ; s ~ '[a' ; s ~ '[]' ; s ~ '*a' ; s ~ 'a**' ; s ~ 'a{,2}' ; s ~ 'a{2,1}' ; s ~ '(a*)*' ; s ~ '^*' ; s ~ '(a)\\1'
        s ~ '(?=a)b' ; s ~ '(?<!a)b' ; s ~ '(?P<n>a)' ; s ~ '\\pL' ; s ~ '\\' ; s ~ '[z-a]' ; s ~ '[a-\\d]' ; s ~ '[[a]]' ; s ~ '[[:foo:]]'
        s ~ '[a&&b]' ; s ~ '[\\D]' ; regexp_matches(s, 'a', 'm') ; regexp_extract(s, 'a', 1) ; regexp_replace(s, 'a', '\\1')
        regexp_replace(s, 'a', 'b', 'x')
        regexp_extract(s, 'a', -1) ; s LIKE 'a\\%' ; s LIKE 'a$' ESCAPE '$' ; s LIKE 'a' ESCAPE 'ab' ; s LIKE 'a' ESCAPE 'é' ; s LIKE 'a' ESCAPE ''
        date_trunc('fortnight', d) ; date_part('century', d) ; date_diff('eon', d, e) ; d + INTERVAL '1.5' DAY ; d + INTERVAL '1 blue moon'
        d + INTERVAL 'soon' ; d + INTERVAL 99999 YEAR ; round(x, 39) ; left(s, 4097) ; d + INTERVAL 1 DECADE ; f = 'maybe'
    """,
    "UNSUPPORTED_CLAUSE": """
        i BETWEEN SYMMETRIC 1 AND 2 ; ceil(x, 2) ; floor(d TO day)
    """,
    "UNSUPPORTED_EXPRESSION": """
        s LIKE ANY ('a', 'b') ; i & j ; i | j ; i << 2 ; ~i ; (i, j) ; s[1] ; main.lower(s) ; i IS JSON ; e'a' ; s GLOB 'a'
    """,
    "WRONG_ARGUMENTS": """
        prefix(s)
    """,
    "UNKNOWN_COLUMN": """
        nosuch ; i + nosuch
    """,
}
CASES = [(code, one.strip()) for code, texts in REFUSED.items() for line in texts.strip().splitlines() for one in line.split(" ; ")]


@pytest.mark.parametrize(("code", "text"), CASES, ids=[text for _, text in CASES])
def test_refused(code: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        scalar(text)
    assert refused.value.code == code, refused.value


def test_a_refusal_says_where_and_what_instead() -> None:
    with pytest.raises(Refused) as refused:
        scalar("i + 1 > lowr(s)")
    assert str(refused.value).splitlines() == [
        "UNKNOWN_FUNCTION: no function 'lowr' is allowed below the noise line (did you mean 'lower' or 'power' or 'floor'?)",
        "  at line 1, column 16",
        "    SELECT i + 1 > lowr(s)",
        "                   ^^^^",
        "Instead: a function that docs/functions.md lists",
    ]
    with pytest.raises(Refused) as refused:
        scalar("i > 0 AND ts - tu > INTERVAL 1 DAY")
    assert (refused.value.code, refused.value.instead) == ("TYPE_MISMATCH", "date_diff('second', a, b)")
    assert refused.value.position is not None


@pytest.mark.parametrize(
    ("text", "code", "says", "instead"),
    [
        ("strftime(d, s)", "UNKNOWN_FUNCTION", "'strftime'", "date_trunc('month', d), or year(d) and month(d)"),
        ("time_bucket(INTERVAL 1 DAY, ts)", "UNKNOWN_FUNCTION", "'time_bucket'", "date_trunc('hour', t)"),
        ("s ~ 'b(?=a)'", "BAD_LITERAL", "look-ahead, which takes more than one pass over a text (character 3 of the pattern)", "AND NOT"),
        ("s ~ '(a)\\1'", "BAD_LITERAL", "the back-reference \\1", "None"),
        ("regexp_count(s, 'a')", "UNKNOWN_FUNCTION", "regexp_count", "regexp_extract"),
        ("split_part(s, 'a', 1)", "UNKNOWN_FUNCTION", "'split_part'", "left(s, 3)"),
        ("concat_ws('-', s, s)", "FUNCTION_NOT_ALLOWED", "concat_ws()", "s || '-' || t"),
        ("d > 2020", "TYPE_MISMATCH", "do not go together", "year(d)"),
        ("CAST(d AS BIGINT)", "TYPE_MISMATCH", "cannot be turned into", "year(d)"),
        ("s > 3", "TYPE_MISMATCH", "do not go together", "CAST(s AS BIGINT)"),
    ],
)
def test_refused_functions_are_named_as_written_with_what_to_write_instead(text: str, code: str, says: str, instead: str) -> None:
    with pytest.raises(Refused) as refused:
        scalar(text)
    assert refused.value.code == code
    assert says in refused.value.message
    assert instead in str(refused.value.instead)


INSTEADS = (
    "regexp_matches(s, 'a') ; regexp_extract(s, 'a(b)', 1) ; regexp_replace(s, 'a', 'b') ;"
    "date_trunc('month', d) ; year(d) * 100 + month(d) ; date_trunc('hour', ts) ; floor(date_part('epoch', ts) / 900) ; floor(x / 10) * 10 ;"
    "s LIKE 'a%' ; starts_with(s, 'a') ; contains(s, 'a') ; left(s, 3) ; substring(s, 1, 3) ; replace(s, 'a', 'b') ; s || '-' || s ;"
    "date_diff('day', d, d) ; d > '2024-01-31' ; CASE WHEN i > 0 THEN 1 ELSE 0 END ; CAST(s AS BIGINT) > 3 ; CAST(s AS DECIMAL(18, 2)) > 3"
)


@pytest.mark.parametrize("text", INSTEADS.split(";"))
def test_what_is_written_instead_is_answered(text: str) -> None:
    scalar(text.strip())


def test_dialects_that_count_otherwise_are_refused() -> None:
    for dialect, text in (("snowflake", "DATEDIFF(week, d, e)"), ("spark", "datediff(MONTH, d, e)"), ("bigquery", "CAST(i AS NUMERIC)")):
        with pytest.raises(Refused):
            scalar(text, dialect)


def test_size_and_depth_are_limited() -> None:
    """Neither a deep expression nor a huge one reaches the stack's end or the engine."""
    too_much = [
        "NOT " * 300 + "f",
        "lower(" * 300 + "s" + ")" * 300,
        " + ".join(["i"] * 500),
        "CASE WHEN f THEN " * 250 + "1" + " END" * 250,
        " OR ".join(["i = j"] * (MOST_NODES // 2)),
        f"i IN ({', '.join(['1'] * 10_001)})",
        "s = '" + "x" * 5_000 + "'",
        "s LIKE '" + "%a" * 100 + "'",
        "replace(s, 'a', '" + "b" * 17 + "')",
        " || ".join(["s"] * 100),
        "replace(" * 5 + "s" + ", 'a', 'b')" * 5,
    ]
    for text in too_much:
        try:
            node = parsed(text)
        except (sqlglot.errors.ParseError, RecursionError):
            continue
        with pytest.raises(Refused) as refused:
            read(node, Scope())
        assert refused.value.code == "TOO_COMPLEX"


def test_texts_are_joined_and_searched_as_far_as_memory_goes() -> None:
    assert scalar(" OR ".join(f"lower(s) LIKE '%{n}%'" for n in range(60))).type.kind is Kind.BOOLEAN
    assert scalar(" || ".join(["left(s, 20)"] * 100)).type.kind is Kind.STRING


def test_columns_that_stand_for_expressions_count_in_full() -> None:
    class Doubling(Scope):
        def column(self, node: exp.Column) -> Scalar:
            found = scalar("i")
            for _ in range(30):
                found = scalar_sum(found)
            return found

    with pytest.raises(Refused) as refused:
        read(parsed("y"), Doubling())
    assert refused.value.code == "TOO_COMPLEX"


def scalar_sum(one: Scalar) -> Scalar:
    from dpquery.plan.functions import call

    return call("add", one, one)


def test_no_text_holds_what_sql_cannot() -> None:
    for text in ("a\0b", "a\ud800b"):
        with pytest.raises(Refused) as refused:
            read(exp.Literal.string(text), Scope())
        assert refused.value.code == "BAD_LITERAL"


SAMPLES: dict[type[exp.Expression], str] = {
    exp.Cast: "CAST(s AS BIGINT)",
    exp.TryCast: "TRY_CAST(s AS BIGINT)",
    exp.Like: "s LIKE 'a'",
    exp.Escape: "s LIKE 'a' ESCAPE '$'",
    exp.Round: "round(x, 1)",
    exp.Trim: "trim(s, 'x')",
    exp.DateDiff: "date_diff('day', d, e)",
    exp.TimestampTrunc: "date_trunc('day', ts)",
    exp.Substring: "substring(s, 1, 2)",
    exp.StrPosition: "strpos(s, 'a')",
    exp.In: "i IN (1)",
    exp.Between: "i BETWEEN 1 AND 2",
    exp.CurrentTimestamp: "CURRENT_TIMESTAMP",
    exp.Coalesce: "coalesce(i, 1)",
    exp.Week: "week(d)",
    exp.Length: "length(s)",
    exp.Contains: "contains(s, 'a')",
}
HARMLESS = {"safe", "ignore_nulls", "is_nvl", "is_null", "binary", "clamp_position", "big_int", "requires_string", "null_on_text_overflow"}
HARMLESS |= {"probe_date_format", "input_type_preserved", "fractions_supported", "typed", "negate", "date_part_boundary"}


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_no_argument_of_a_node_is_dropped(kind: type[exp.Expression]) -> None:
    """An argument that the parser may set, or a later version of it, is read or refused."""
    for name in [*kind.arg_types, "brand_new"]:
        node = parsed(SAMPLES[kind])
        found = node if type(node) is kind else node.find(kind)
        assert found is not None
        if name in HARMLESS or found.args.get(name) not in (None, [], False):
            continue
        found.set(name, exp.Literal.string("surprise"))
        with pytest.raises(Refused):
            read(node, Scope())
