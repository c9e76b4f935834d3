"""Productions of row-wise expressions."""

from __future__ import annotations

from collections.abc import Sequence

from grammar import CONDITION, DAY, NUMBER, TEXT, Col, Expr, Grammar, both, joined, production
from worlds import DAYS, WORDS, quoted

from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, Kind, Type

Scope = Sequence[Col]
NUMERIC = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


def number(g: Grammar, scope: Scope, depth: int = 2) -> Expr:
    found = (g.col(scope, *NUMERIC) or literal(g)) if depth <= 0 or g.chance(0.3) else g.make(NUMBER, scope, depth)
    assert isinstance(found, Expr)
    return found


def text(g: Grammar, scope: Scope, depth: int = 1) -> Expr:
    found = (g.col(scope, Kind.STRING) or word(g)) if depth <= 0 or g.chance(0.5) else g.make(TEXT, scope, depth)
    assert isinstance(found, Expr)
    return found


def day(g: Grammar, scope: Scope, depth: int = 1) -> Expr | None:
    """A date or timestamp; None where there is no such column."""
    if not any(c.type in (DATE, TIMESTAMP) for c in scope):
        return None
    found = g.col(scope, Kind.DATE, Kind.TIMESTAMP) if depth <= 0 or g.chance(0.5) else g.make(DAY, scope, depth)
    assert isinstance(found, Expr)
    return found


def condition(g: Grammar, scope: Scope, depth: int = 2) -> Expr:
    found = g.make(CONDITION, scope, depth)
    assert isinstance(found, Expr)
    return found


# ---- literals ------------------------------------------------------------------------------------------------------------------------


def literal(g: Grammar, kind: Kind | None = None) -> Expr:
    if kind is Kind.INTEGER or (kind is None and g.chance(0.7)):
        text_ = str(g.random.randint(-3, 12))
        return Expr(text_, text_, INTEGER)
    text_ = g.random.choice(["0.5", "2.25", "-1.5", "10.00"])
    return Expr(text_, text_, Type(Kind.DECIMAL, len(text_.partition(".")[2])))


def word(g: Grammar) -> Expr:
    made = quoted(g.random.choice(WORDS))
    return Expr(made, made, STRING)


def moment(g: Grammar) -> Expr:
    made = f"DATE '{g.random.choice(DAYS)}'"
    return Expr(made, made, DATE)


# ---- numbers -------------------------------------------------------------------------------------------------------------------------


@production(NUMBER, 3)
def column(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    return g.col(scope, *NUMERIC)


def computed(template: str, kind: Type, *args: Expr) -> Expr:
    """Arithmetic, whose NaN is NULL."""
    return both(template, kind, *args, plain=f"nullif({template}, 'nan'::DOUBLE)" if kind == FLOAT else None)


@production(NUMBER, 5)
def sum_of(g: Grammar, scope: Scope, depth: int) -> Expr:
    a, b = number(g, scope, depth - 1), number(g, scope, depth - 1)
    return computed(f"{{0}} {g.random.choice('+-')} {{1}}", joined(a, b), g.loose(a), b.whole)


@production(NUMBER, 2)
def product_of(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a, b = number(g, scope, depth - 1), literal(g, Kind.INTEGER)
    kind = joined(a, b)
    return computed("{0} * {1}" if g.chance(0.5) else "{1} * {0}", kind, a.whole, b)


@production(NUMBER, 1)
def square(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = g.col(scope, Kind.INTEGER, Kind.FLOAT, where=lambda c: c.spec is not None and c.spec.low is not None)
    return None if a is None else both("{0} * {0}", a.type, a) if g.chance(0.5) else both("power({0}, 2)", FLOAT, a)


@production(NUMBER, 2)
def product_of_columns(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a, b = (g.col(scope, Kind.INTEGER, Kind.FLOAT, where=lambda c: c.spec is not None and c.spec.low is not None) for _ in range(2))
    return None if a is None or b is None else computed("{0} * {1}", joined(a, b), a, b)


@production(NUMBER, 1)
def quotient(g: Grammar, scope: Scope, depth: int) -> Expr:
    a, b = number(g, scope, depth - 1).whole, number(g, scope, depth - 1).whole
    return both("({0} / {1})", FLOAT, a, b, plain="nullif({0} / nullif({1}, 0), 'nan'::DOUBLE)")


@production(NUMBER, 1)
def halved(g: Grammar, scope: Scope, depth: int) -> Expr:
    return both("{0} / 2", FLOAT, number(g, scope, depth - 1).whole)


@production(NUMBER, 1)
def rest(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = g.col(scope, Kind.INTEGER)
    if a is None:
        return None
    b = g.col(scope, Kind.INTEGER) if g.chance(0.3) else literal(g, Kind.INTEGER)
    assert b is not None
    sign = g.random.choice(["%", "//"])
    return both(f"({{0}} {sign} ({{1}}))", INTEGER, a, b, plain=f"({{0}} {sign} nullif({{1}}, 0))")


@production(NUMBER, 1)
def of_one(g: Grammar, scope: Scope, depth: int) -> Expr:
    a = number(g, scope, depth - 1)
    match g.random.randrange(7):
        case 0:
            return both("-{0}", a.type, a.whole)
        case 1:
            return both("abs({0})", a.type, a)
        case 2:
            return both("sign({0})", INTEGER, a)
        case 3:
            kind = Type(Kind.DECIMAL) if a.type.kind is Kind.DECIMAL else a.type
            return both(f"{g.random.choice(['floor', 'ceil', 'round', 'trunc'])}({{0}})", kind, a)
        case 4:
            return both("sqrt(abs({0}))", FLOAT, a)
        case 5:
            return both("least({0}, 7)", joined(a, literal(g, Kind.INTEGER)), a)
        case _:
            return both("greatest({0}, -2, 1)", joined(a, literal(g, Kind.INTEGER)), a)


@production(NUMBER, 2)
def chosen(g: Grammar, scope: Scope, depth: int) -> Expr:
    a, b, test = number(g, scope, depth - 1), number(g, scope, depth - 1), condition(g, scope, 1)
    match g.random.randrange(6):
        case 0:
            return both("CASE WHEN {0} THEN {1} ELSE {2} END", joined(a, b), test, a, b)
        case 1:
            return both("CASE WHEN {0} THEN {1} END", a.type, test, a)
        case 2:
            return both("coalesce({0}, {1})", joined(a, b), a, b)
        case 3:
            return both("nullif({0}, {1})", a.type, a, literal(g, Kind.INTEGER))
        case 4:
            return both("CASE {0} WHEN 1 THEN {1} WHEN 2 THEN 3 ELSE -1 END", joined(b, literal(g, Kind.INTEGER)), a, b)
        case _:
            return both("if({0}, {1}, {2})", joined(a, b), test, a, b)


@production(NUMBER, 1)
def cast(g: Grammar, scope: Scope, depth: int) -> Expr:
    a = number(g, scope, depth - 1)
    name, kind = g.random.choice([("BIGINT", INTEGER), ("DOUBLE", FLOAT), ("DECIMAL(18, 2)", Type(Kind.DECIMAL, 2))])
    if g.chance(0.3):
        return both(f"{{0}}::{name}", kind, a.whole, plain=f"TRY_CAST({{0}} AS {name})")
    return both(f"CAST({{0}} AS {name})", kind, a, plain=f"TRY_CAST({{0}} AS {name})")


@production(NUMBER, 1)
def of_text(g: Grammar, scope: Scope, depth: int) -> Expr:
    a = text(g, scope, depth - 1)
    match g.random.randrange(3):
        case 0:
            return both("length({0})", INTEGER, a)
        case 1:
            return both("strpos({0}, 'b')", INTEGER, a)
        case _:
            return both("TRY_CAST({0} AS INTEGER)", INTEGER, a)


@production(NUMBER, 1)
def of_day(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = day(g, scope, depth - 1)
    if a is None:
        return None
    part = g.random.choice(["year({0})", "month({0})", "extract(day FROM {0})", "date_part('dow', {0})", "date_diff('day', DATE '2024-01-01', {0})"])
    return both(part, INTEGER, a)


# ---- texts and days ------------------------------------------------------------------------------------------------------------------


@production(TEXT, 3)
def of_texts(g: Grammar, scope: Scope, depth: int) -> Expr:
    a, b = text(g, scope, depth - 1), text(g, scope, depth - 1)
    match g.random.randrange(7):
        case 0:
            return both(f"{g.random.choice(['lower', 'upper', 'trim'])}({{0}})", STRING, a)
        case 1:
            return both("{0} || {1}", STRING, a.whole, b.whole)
        case 2:
            return both("concat({0}, '-', {1})", STRING, a, b)
        case 3:
            return both(f"{g.random.choice(['left', 'right'])}({{0}}, {g.random.randint(0, 2)})", STRING, a)
        case 4:
            return both("substring({0}, 1, 1)", STRING, a)
        case 5:
            return both("replace({0}, 'b', 'cc')", STRING, a)
        case _:
            return both("coalesce({0}, {1})", STRING, a, b)


@production(TEXT, 1)
def spelled(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = g.col(scope, Kind.INTEGER, Kind.DATE)
    return None if a is None else both("CAST({0} AS VARCHAR)", STRING, a)


@production(TEXT, 1)
def chosen_text(g: Grammar, scope: Scope, depth: int) -> Expr:
    return both("CASE WHEN {0} THEN {1} ELSE {2} END", STRING, condition(g, scope, 1), text(g, scope, 0), word(g))


@production(DAY, 2)
def moved(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = g.col(scope, Kind.DATE)
    if a is None:
        return None
    match g.random.randrange(4):
        case 0:
            return both("{0} + 3", DATE, a)
        case 1:
            return both("{0} - INTERVAL 1 MONTH", TIMESTAMP, a)
        case 2:
            return both("last_day({0})", DATE, a)
        case _:
            return both("coalesce({0}, DATE '2024-01-01')", DATE, a)


@production(DAY, 2)
def truncated(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = g.col(scope, Kind.DATE, Kind.TIMESTAMP)
    if a is None:
        return None
    if g.chance(0.3):
        return both("CAST({0} AS DATE)", DATE, a)
    unit = g.random.choice(["month", "year", "day", "week"])
    return both(f"date_trunc('{unit}', {{0}})", TIMESTAMP, a, plain=f"CAST(date_trunc('{unit}', {{0}}) AS TIMESTAMP)")


# ---- conditions ----------------------------------------------------------------------------------------------------------------------

SIGNS = ("=", "<>", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


@production(CONDITION, 4)
def compared(g: Grammar, scope: Scope, depth: int) -> Expr:
    a = number(g, scope, min(depth - 1, 1))
    b = literal(g) if g.chance(0.6) else number(g, scope, 0)
    return both(f"{{0}} {g.random.choice(SIGNS)} {{1}}", BOOLEAN, g.loose(a), b)


@production(CONDITION, 1)
def between(g: Grammar, scope: Scope, depth: int) -> Expr:
    a, low = number(g, scope, min(depth - 1, 1)), g.random.randint(-5, 3)
    word_ = g.random.choice(["BETWEEN", "NOT BETWEEN"])
    return both(f"{{0}} {word_} {low} AND {low + g.random.randint(0, 9)}", BOOLEAN, g.loose(a))


@production(CONDITION, 2)
def within(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    if g.chance(0.5):
        a, some = g.col(scope, Kind.INTEGER), [str(i) for i in g.random.sample(range(-1, 9), 3)]
    else:
        a, some = g.col(scope, Kind.STRING), [quoted(w) for w in g.random.sample(WORDS, 3)]
    if a is None:
        return None
    listed = ", ".join([*some, *(["NULL"] if g.chance(0.1) else [])])
    return both(f"{{0}} {g.random.choice(['IN', 'IN', 'NOT IN'])} ({listed})", BOOLEAN, a)


@production(CONDITION, 2)
def compared_text(g: Grammar, scope: Scope, depth: int) -> Expr:
    a = text(g, scope, min(depth - 1, 1))
    match g.random.randrange(4):
        case 0:
            pattern = g.random.choice(["a%", "%b%", "_", "%", "a_ "])
            return both(f"{{0}} {g.random.choice(['LIKE', 'NOT LIKE', 'ILIKE'])} '{pattern}'", BOOLEAN, a.whole)
        case 1:
            return both(f"{g.random.choice(['starts_with', 'contains'])}({{0}}, 'a')", BOOLEAN, a)
        case 2:
            return both(f"{{0}} {g.random.choice(SIGNS[:7])} {{1}}", BOOLEAN, g.loose(a), word(g))
        case _:
            return both(f"{{0}} {g.random.choice(['=', '<>'])} {{1}}", BOOLEAN, a.whole, text(g, scope, 0))


@production(CONDITION, 1)
def compared_day(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = day(g, scope, min(depth - 1, 1))
    if a is None:
        return None
    b = moment(g) if g.chance(0.5) else Expr(f"'{DAYS[1]}'", f"'{DAYS[1]}'", a.type)
    return both(f"{{0}} {g.random.choice(SIGNS[:7])} {{1}}", BOOLEAN, g.loose(a), b)


@production(CONDITION, 2)
def missing(g: Grammar, scope: Scope, depth: int) -> Expr:
    a = g.col(scope)
    assert a is not None
    return both(f"{{0}} {g.random.choice(['IS NULL', 'IS NOT NULL'])}", BOOLEAN, a)


@production(CONDITION, 1)
def flag(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    a = g.col(scope, Kind.BOOLEAN)
    return None if a is None else both(g.random.choice(["{0}", "NOT {0}", "{0} IS TRUE", "{0} IS NOT FALSE", "coalesce({0}, TRUE)"]), BOOLEAN, a)


@production(CONDITION, 3)
def logic(g: Grammar, scope: Scope, depth: int) -> Expr | None:
    if depth <= 0:
        return None
    a, b = condition(g, scope, depth - 1), condition(g, scope, depth - 1)
    match g.random.randrange(4):
        case 0:
            return both("NOT {0}", BOOLEAN, g.loose(a))
        case 1:
            return both("{0} IS NOT TRUE", BOOLEAN, a.whole)
        case 2:
            return both("{0} AND {1}", BOOLEAN, g.loose(a), g.loose(b))
        case _:
            return both("{0} OR {1}", BOOLEAN, g.loose(a), g.loose(b))
