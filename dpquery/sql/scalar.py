"""Row-wise expressions: from the parser's tree to typed plan expressions of the allow-list, or a refusal with its place.

Aggregates, windows, subqueries and stars are not for rows; whoever handles them does so before calling `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from sqlglot import exp

from dpquery.plan.coerce import GREATEST_INTEGER, LEAST_INTEGER, LONGEST, Mismatch, convert
from dpquery.plan.functions import MANY, call, choose
from dpquery.plan.lengths import bulk
from dpquery.plan.scalar import Call, Literal, Scalar, children
from dpquery.sql.abroad import rounding, wide
from dpquery.sql.calls import CALLS
from dpquery.sql.casts import cast_to, narrowed, type_of
from dpquery.sql.fields import take
from dpquery.sql.moments import shift, shift_by
from dpquery.sql.visit import DEEPEST, At, Reader, Scope, clock, visit
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, NULL, STRING, TIMESTAMP, Kind, Type

MOST_NODES = 2_000  # of one expression, columns of subqueries written out, literals of IN lists not counted
PATTERNED = ("regexp", "regexp_extract", "regexp_replace")
MOST_PATTERNS = 32  # of one expression: the engine may hold 8 MB for each
MOST_CHARACTERS = 64 * LONGEST  # that the engine may hold for one row: 64 texts of full length


def read(node: exp.Expr, scope: Scope) -> Scalar:
    """The typed expression. Raises Refused where it is not in the allow-list, has no type, or is too large."""
    at = At(scope, READERS)
    scalar = visit(node, at)
    nodes, level, characters, patterns = 0, 0, 0, 0
    layer: list[Scalar] = [scalar]
    while layer:
        nodes, level = nodes + len(layer), level + 1
        if nodes > MOST_NODES or level > DEEPEST:
            raise at.refuse("TOO_COMPLEX", f"the expression has more than {MOST_NODES:,} parts, or {DEEPEST} within each other", node)
        patterns += sum(isinstance(one, Call) and one.function in PATTERNED for one in layer)
        if patterns > MOST_PATTERNS:
            raise at.refuse("TOO_COMPLEX", f"the expression has more than {MOST_PATTERNS} regular expressions", node, "one with |, or LIKE")
        characters += sum(bulk(one) for one in layer)
        if characters > MOST_CHARACTERS:
            raise at.refuse("TOO_COMPLEX", "the expression builds too many long texts", node, "left(s, 100) of long texts first")
        layer = [child for one in layer for child in _parts(one)]
    return scalar


def _parts(scalar: Scalar) -> tuple[Scalar, ...]:
    return scalar.args[:1] if isinstance(scalar, Call) and scalar.function == "in" else children(scalar)


# ---- leaves --------------------------------------------------------------------------------------------------------------------------


def _column(node: exp.Column, at: At) -> Scalar:
    return at.scope.column(node)


def _literal(node: exp.Literal, at: At) -> Scalar:
    text, is_string = take(node, "this", "is_string")
    return Literal(_text(str(text)), STRING) if is_string else _number(str(text))


def _text(text: str) -> str:
    if len(text) > LONGEST:
        raise Mismatch(f"a text literal has more than {LONGEST} characters", code="TOO_COMPLEX")
    if "\0" in text or (not text.isprintable() and any(0xD800 <= ord(one) <= 0xDFFF for one in text)):
        raise Mismatch("a text literal holds a character that cannot be passed on", code="BAD_LITERAL")
    return text


def _number(text: str) -> Literal:
    """As DuckDB types it: an integer, a decimal, or with an exponent a double; too many digits go one further."""
    if len(text) > 400:
        raise Mismatch("a number has more than 400 digits", code="BAD_LITERAL")
    try:
        value = Decimal(text)
    except ArithmeticError:
        value = Decimal("NaN")
    if not (value.is_finite() and text.isascii()):
        raise Mismatch(f"{text!r} is not a number", code="BAD_LITERAL")
    scale = len(text.partition(".")[2])
    if "e" in text.lower() or len(value.as_tuple().digits) > 38 or scale > 38:
        real = float(text)
        if real in (float("inf"), float("-inf")):
            raise Mismatch(f"{text} is too large for a double", code="BAD_LITERAL")
        return Literal(real, FLOAT)
    if "." not in text and value <= GREATEST_INTEGER:
        return Literal(int(value), INTEGER)
    return Literal(value, Type(Kind.DECIMAL, scale))


def _boolean(node: exp.Boolean, at: At) -> Scalar:
    (value,) = take(node, "this")
    return Literal(bool(value), BOOLEAN)


def _null(node: exp.Null, at: At) -> Scalar:
    take(node)
    return Literal(None, NULL)


def _today(node: exp.Expr, at: At) -> Scalar:
    take(node)
    return Literal(clock(at.scope).date(), DATE)


def _now(node: exp.Expr, at: At) -> Scalar:
    take(node)
    return Literal(clock(at.scope), TIMESTAMP)


# ---- operators -----------------------------------------------------------------------------------------------------------------------


def _chain(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """A left-deep run of binary operators, innermost first, each with its right operand; the first pair holds the leftmost operand itself."""
    run = []
    while type(node) in OPERATORS:
        left, right = take(node, "this", "expression", "typed", "safe")[:2]
        run.append((node, right))
        node = left
        while isinstance(node, exp.Paren):
            (node,) = take(node, "this")
    run.append((node, node))
    yield from reversed(run)


def _arithmetic(node: exp.Expr, at: At) -> Scalar:
    """Left-deep runs are read in a loop, so that a long sum is no deep one."""
    (left, _), *run = _chain(node)
    found: exp.Expr | Scalar = left
    for operator, right in run:
        found = _operate(operator, found, right, at)
    return _seen(found, at)


def _operate(node: exp.Expr, left: exp.Expr | Scalar, right: exp.Expr, at: At) -> Scalar:
    try:
        months = shift(right) if isinstance(node, exp.Add | exp.Sub) else None
        if months is not None:
            return shift_by(_seen(left, at), months, -1 if isinstance(node, exp.Sub) else 1)
        months = shift(left) if isinstance(node, exp.Add) and isinstance(left, exp.Expr) else None
        if months is not None:
            return shift_by(visit(right, at), months, 1)
        return OPERATORS[type(node)](node, _seen(left, at), visit(right, at))
    except Mismatch as error:
        raise at.refuse(error.code, error.message, node, error.instead) from None


def _seen(operand: exp.Expr | Scalar, at: At) -> Scalar:
    return visit(operand, at) if isinstance(operand, exp.Expr) else operand


def _add(node: exp.Expr, a: Scalar, b: Scalar) -> Scalar:
    if a.type == DATE and b.type in (INTEGER, NULL):
        return call("add_days", a, b)
    if b.type == DATE and a.type in (INTEGER, NULL):
        return call("add_days", b, a)
    return call("add", a, b)


def _sub(node: exp.Expr, a: Scalar, b: Scalar) -> Scalar:
    kinds = {a.type.kind, b.type.kind}
    if a.type == DATE and b.type in (INTEGER, NULL):
        return call("add_days", a, negated(b))
    if Kind.TIMESTAMP in kinds and kinds <= {Kind.TIMESTAMP, Kind.DATE, Kind.STRING}:
        raise Mismatch("the difference of timestamps is an INTERVAL, which has no sum", instead="date_diff('second', a, b)")
    if Kind.DATE in kinds and kinds <= {Kind.DATE, Kind.STRING}:
        return call("days_between", convert(a, DATE), convert(b, DATE))
    return call("sub", a, b)


def _div(node: exp.Expr, a: Scalar, b: Scalar) -> Scalar:
    """`typed` says that the dialect divides integers into integers."""
    typed = take(node, "this", "expression", "typed", "safe")[2]
    return call("intdiv" if typed and a.type == INTEGER and b.type == INTEGER else "div", a, b)


def _named(name: str) -> Callable[[exp.Expr, Scalar, Scalar], Scalar]:
    return lambda node, a, b: call(name, a, b)


def _logic(name: str, kind: type[exp.Expr]) -> Reader:
    """AND and OR of any length become one call."""

    def reader(node: exp.Expr, at: At) -> Scalar:
        found, stack = [], [node]
        while stack:
            one = stack.pop()
            while isinstance(one, exp.Paren):
                (one,) = take(one, "this")
            if isinstance(one, kind):
                left, right = take(one, "this", "expression")
                stack += [right, left]
            else:
                found.append(visit(one, at))
        return call(name, *found)

    return reader


def _negation(node: exp.Not, at: At) -> Scalar:
    return call("not", visit(take(node, "this")[0], at))


def _minus(node: exp.Neg, at: At) -> Scalar:
    return negated(visit(take(node, "this")[0], at))


def negated(scalar: Scalar) -> Scalar:
    """The opposite number; of a literal a literal."""
    match scalar:
        case Literal(value=bool()) | Literal(value=None):
            return call("neg", scalar)
        case Literal(value=int(value)) if value > LEAST_INTEGER:
            return Literal(-value, INTEGER)
        case Literal(value=Decimal() as value, type=kind):
            small = kind.scale == 0 and -value >= LEAST_INTEGER
            return Literal(int(-value), INTEGER) if small else Literal(-value if value else value, kind)
        case Literal(value=float(value)):
            return Literal(-value + 0.0, FLOAT)
        case _:
            return call("neg", scalar)


def _compare(name: str) -> Reader:
    def reader(node: exp.Expr, at: At) -> Scalar:
        left, right = take(node, "this", "expression")
        return call(name, visit(left, at), visit(right, at))

    return reader


def _is(node: exp.Is, at: At) -> Scalar:
    this, expression, negate = take(node, "this", "expression", "negate")
    match expression:
        case exp.Null():
            name = "is_null"
        case exp.Boolean():
            name = "is_true" if take(expression, "this")[0] else "is_false"
        case _:
            raise at.refuse("UNSUPPORTED_EXPRESSION", "IS takes NULL, TRUE or FALSE", expression)
    found = call(name, visit(this, at))
    return call("not", found) if negate else found


def _between(node: exp.Between, at: At) -> Scalar:
    return call("between", *(visit(part, at) for part in take(node, "this", "low", "high")))


def _in(node: exp.In, at: At) -> Scalar:
    this, listed, query, unnest, field = take(node, "this", "expressions", "query", "unnest", "field")
    if query or unnest or field is not None:
        raise at.refuse("SUBQUERY_HERE", "IN takes a list of literals here", node, "x IN (1, 2, 3), or a join on the privacy unit")
    if not listed:
        raise at.refuse("SYNTAX", "IN stands without a list", node, "x IN (1, 2, 3)")
    if len(listed) > MANY:
        raise at.refuse("TOO_COMPLEX", f"IN takes at most {MANY:,} literals", node)
    return call("in", visit(this, at), *(visit(one, at) for one in listed))


def _like(node: exp.Like | exp.ILike, at: At, escape: exp.Expr | None = None) -> Scalar:
    this, pattern, negate = take(node, "this", "expression", "negate")
    rest = () if escape is None else (visit(escape, at),)
    found = call("ilike" if isinstance(node, exp.ILike) else "like", visit(this, at), visit(pattern, at), *rest)
    return call("not", found) if negate else found


def _escape(node: exp.Escape, at: At) -> Scalar:
    this, escape = take(node, "this", "expression")
    if not isinstance(this, exp.Like | exp.ILike):
        raise at.refuse("UNSUPPORTED_EXPRESSION", "ESCAPE belongs to LIKE and ILIKE", node)
    return _like(this, at, escape)


# ---- choice and casts ----------------------------------------------------------------------------------------------------------------


def _case(node: exp.Case, at: At) -> Scalar:
    this, ifs, default = take(node, "this", "ifs", "default")
    subject = None if this is None else visit(this, at)
    branches = []
    for branch in ifs:
        when, then = take(branch, "this", "true")
        condition = visit(when, at)
        branches.append((condition if subject is None else call("eq", subject, condition), visit(then, at)))
    return choose(branches, None if default is None else visit(default, at))


def _if(node: exp.If, at: At) -> Scalar:
    condition, then, otherwise = take(node, "this", "true", "false")
    return choose([(visit(condition, at), visit(then, at))], None if otherwise is None else visit(otherwise, at))


def _nullif(node: exp.Nullif, at: At) -> Scalar:
    left, right = (visit(part, at) for part in take(node, "this", "expression"))
    return choose([(call("eq", left, right), Literal(None, NULL))], left)


def _coalesce(node: exp.Coalesce, at: At) -> Scalar:
    this, rest, *_ = take(node, "this", "expressions", "is_nvl", "is_null")
    return call("coalesce", *(visit(part, at) for part in (this, *(rest or ()))))


def _extreme(name: str) -> Reader:
    """GREATEST and LEAST; in dialects where one NULL makes the result NULL, that is written out."""

    def reader(node: exp.Expr, at: At) -> Scalar:
        this, rest, ignore = take(node, "this", "expressions", "ignore_nulls")
        args = tuple(visit(part, at) for part in (this, *(rest or ())))
        found = call(name, *args)
        if ignore or len(args) == 1:
            return found
        return choose([(call("or", *(call("is_null", arg) for arg in args)), Literal(None, NULL))], found)

    return reader


def _cast(node: exp.Cast | exp.TryCast, at: At) -> Scalar:
    this, to, *_ = take(node, "this", "to", "safe", "requires_string", "null_on_text_overflow", "probe_date_format")
    arg, lenient = _whole(node, visit(this, at)), isinstance(node, exp.TryCast)
    found = cast_to(arg, type_of(to, at), lenient=lenient)
    return found if wide(node) else narrowed(found, to, arg, lenient=lenient)


def _whole(node: exp.Expr, scalar: Scalar) -> Scalar:
    """What a cast makes an integer of, without the fraction that the dialect gets rid of in another way than DuckDB."""
    way = rounding(node)
    if way is None or scalar.type.kind not in (Kind.FLOAT, Kind.DECIMAL):
        return scalar
    return call("round" if way is exp.Round else "trunc", scalar)


OPERATORS: dict[type[exp.Expr], Callable[[exp.Expr, Scalar, Scalar], Scalar]] = {
    exp.Add: _add,
    exp.Sub: _sub,
    exp.Mul: _named("mul"),
    exp.Div: _div,
    exp.IntDiv: _named("intdiv"),
    exp.Mod: _named("mod"),
    exp.DPipe: _named("cat"),
}
"""The operators that are read in runs."""

READERS: dict[type[exp.Expr], Reader] = {
    **CALLS,
    **dict.fromkeys(OPERATORS, _arithmetic),
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.CurrentDate: _today,
    exp.CurrentTimestamp: _now,
    exp.Localtimestamp: _now,
    exp.CurrentDatetime: _now,
    exp.And: _logic("and", exp.And),
    exp.Or: _logic("or", exp.Or),
    exp.Not: _negation,
    exp.Neg: _minus,
    exp.EQ: _compare("eq"),
    exp.NEQ: _compare("ne"),
    exp.LT: _compare("lt"),
    exp.LTE: _compare("le"),
    exp.GT: _compare("gt"),
    exp.GTE: _compare("ge"),
    exp.NullSafeEQ: _compare("not_distinct"),
    exp.NullSafeNEQ: _compare("distinct"),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme("greatest"),
    exp.Least: _extreme("least"),
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
"""The reader of each kind of node; a node without one is refused."""
