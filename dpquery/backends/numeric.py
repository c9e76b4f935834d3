"""Total forms of arithmetic: what would overflow, divide by zero or leave a domain is NULL."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from dpquery.backends.shapes import Form, Piece, Pieces, bare, plain
from dpquery.backends.values import type_name
from dpquery.plan.coerce import DIGITS
from dpquery.plan.scalar import Call, Cast, Literal, Scalar
from dpquery.values.types import FLOAT, INTEGER, Kind


def _by_kind(integer: Form, decimal: Form, real: Form) -> Form:
    def form(call: Call, pieces: Pieces) -> Piece:
        match call.args[0].type.kind:
            case Kind.INTEGER:
                return integer(call, pieces)
            case Kind.DECIMAL:
                return decimal(call, pieces)
            case _:
                return real(call, pieces)

    return form


def _wide(template: str) -> Form:
    """128-bit arithmetic on 64-bit integers never overflows; the result is NULL where it does not fit into 64."""
    return plain(f"TRY_CAST({template} AS BIGINT)")


def _decimal_sum(sign: str) -> Form:
    """Two decimals of 37 digits have a sum of 38: operands with 38 digits are NULL."""

    def form(call: Call, pieces: Pieces) -> Piece:
        narrow = f"DECIMAL({DIGITS - 1},{call.type.scale})"
        return Piece(f"(TRY_CAST({pieces[0].text} AS {narrow}) {sign} TRY_CAST({pieces[1].text} AS {narrow}))")

    return form


def _decimal_product(call: Call, pieces: Pieces) -> Piece:
    """Factors are narrowed until their widths add up to 38, so that no product overflows; a factor that does not fit is NULL."""
    scales = [arg.type.scale for arg in call.args]
    before = _shared(DIGITS - sum(scales), [_before(arg) for arg in call.args])
    narrowed = (f"TRY_CAST({p.text} AS DECIMAL({i + scale},{scale}))" for p, i, scale in zip(pieces, before, scales, strict=True))
    return Piece(f"CAST({' * '.join(narrowed)} AS {type_name(call.type)})")


def _shared(room: int, wanted: list[int | None]) -> tuple[int, int]:
    """How two factors share the digits before the point: who knows how many it needs takes those, the other the rest; else half each."""
    first, second = wanted
    if second is not None:
        taken = min(second, room - 1)
        return room - taken, taken
    if first is not None:
        taken = min(first, room - 1)
        return taken, room - taken
    return room - room // 2, room // 2


def _before(arg: Scalar) -> int | None:
    """The digits before the point that a factor surely gets by with: a literal's own, an integer's 19."""
    match arg:
        case Literal(value=value):
            return max(1, len(str(abs(int(Decimal(str(value or 0)))))))
        case Cast(arg=below) if below.type == INTEGER and arg.type.scale == 0:
            return 19
        case _:
            return None


def _float_sum(sign: str) -> Form:
    """NaN only from two infinities; -0.0 only from -0.0."""

    def form(call: Call, pieces: Pieces) -> Piece:
        a, b = pieces
        nan = a.nan or b.nan or not (a.finite or b.finite)
        return Piece(f"({a.text} {sign} {b.text})", nan, a.minus and (b.minus or sign == "-"))

    return form


def _float_product(call: Call, pieces: Pieces) -> Piece:
    """NaN only from 0 times infinity."""
    a, b = pieces
    tame = (a.finite and b.finite) or any(_nonzero(arg) for arg in call.args)
    return Piece(f"({a.text} * {b.text})", a.nan or b.nan or not tame, True)


def _quotient(call: Call, pieces: Pieces) -> Piece:
    """Division by 0 is NULL; NaN only from two infinities."""
    a, b = pieces
    return Piece(f"({a.text} / {_divisor(call.args[1], b)})", a.nan or b.nan or not (a.finite or b.finite), True)


def _nonzero(arg: Scalar) -> bool:
    return isinstance(arg, Literal) and arg.value is not None and bool(arg.value)


def _divisor(arg: Scalar, piece: Piece) -> str:
    """The divisor, NULL where it is 0. Spelled out, as NULLIF is to the engine: what is written twice is to be seen twice."""
    return piece.text if _nonzero(arg) else f"CASE WHEN {piece.text} <> 0 THEN {piece.text} END"


def _int_quotient(call: Call, pieces: Pieces) -> Piece:
    """Only -2^63 // -1 overflows, so a literal divisor other than 0 and -1 needs no care."""
    divisor = call.args[1]
    if isinstance(divisor, Literal) and divisor.value not in (None, 0, -1):
        return Piece(f"({pieces[0].text} // {bare(divisor)})")
    return Piece(f"TRY_CAST({pieces[0].text}::HUGEINT // {_divisor(divisor, pieces[1])} AS BIGINT)")


def _rest(call: Call, pieces: Pieces) -> Piece:
    a, b = pieces
    text = f"({a.text} % {_divisor(call.args[1], b)})"
    return Piece(text, a.nan or b.nan or not a.finite, True) if call.type == FLOAT else Piece(text)


def _float_step(template: str, *, nan: bool = False, minus: bool = True, finite: bool = True) -> Form:
    """A float function of one argument that maps NaN to NaN; `minus`: can make a -0.0; `finite`: finite for finite arguments."""

    def form(call: Call, pieces: Pieces) -> Piece:
        (a, *_) = pieces
        return Piece(template.format(a.text), a.nan or nan, minus or a.minus, finite and a.finite)

    return form


def _kept(call: Call) -> int:
    """The digits that round and trunc keep."""
    last = call.args[1] if len(call.args) > 1 else None
    return int(last.value) if isinstance(last, Literal) and isinstance(last.value, int) else 0


def _round_integer(function: str) -> Form:
    """Rounding 19 digits to tens and more may need a 20th."""

    def form(call: Call, pieces: Pieces) -> Piece:
        if _kept(call) >= 0:
            return pieces[0]
        return Piece(f"TRY_CAST({function}(CAST({pieces[0].text} AS DECIMAL(19,0)), {_kept(call)}) AS BIGINT)")

    return form


def _round_decimal(function: str) -> Form:
    """Rounding to tens and more may need one more digit, so it starts from 37: a value of 38 digits is NULL."""

    def form(call: Call, pieces: Pieces) -> Piece:
        digits, scale = _kept(call), call.args[0].type.scale
        if digits >= scale:
            return pieces[0]
        if digits >= 0:
            return Piece(f"CAST({function}({pieces[0].text}, {digits}) AS {type_name(call.type)})")
        narrow = f"TRY_CAST({pieces[0].text} AS DECIMAL({DIGITS - 1},{scale}))" if scale < DIGITS else pieces[0].text
        return Piece(f"CAST({function}({narrow}, {digits}) AS {type_name(call.type)})")

    return form


def _round_float(function: str) -> Form:
    def form(call: Call, pieces: Pieces) -> Piece:
        a, digits = pieces[0], _kept(call)
        text = f"{function}({a.text}, {digits})" if digits else f"{function}({a.text})"
        return Piece(text, a.nan, True, a.finite)

    return form


def _towards(function: str) -> Form:
    return lambda call, pieces: Piece(f"CAST({function}({pieces[0].text}) AS {type_name(call.type)})") if call.args[0].type.scale else pieces[0]


def _same(call: Call, pieces: Pieces) -> Piece:
    return pieces[0]


def _log(call: Call, pieces: Pieces) -> Piece:
    base, x = (piece.clean for piece in pieces)
    return Piece(f"log(CASE WHEN {base} > 0 AND {base} <> 1 THEN {base} END, CASE WHEN {x} > 0 THEN {x} END)", True, True)


def _power(call: Call, pieces: Pieces) -> Piece:
    """NULL for 0 to a negative power, as for a division by 0. NaN would not pass through pow(), so it is NULL before."""
    x, y = (piece.clean for piece in pieces)
    exponent = call.args[1]
    if isinstance(exponent, Literal) and isinstance(exponent.value, float):
        text = f"pow({x}, {y})" if exponent.value >= 0 else f"pow(CASE WHEN {x} <> 0 THEN {x} END, {y})"
    else:
        text = f"CASE WHEN {x} <> 0 OR {y} >= 0 THEN pow({x}, {y}) END"
    return Piece(text, True, True)


NUMERIC: Mapping[str, Form] = {
    "add": _by_kind(_wide("{0}::HUGEINT + {1}"), _decimal_sum("+"), _float_sum("+")),
    "sub": _by_kind(_wide("{0}::HUGEINT - {1}"), _decimal_sum("-"), _float_sum("-")),
    "mul": _by_kind(_wide("{0}::HUGEINT * {1}"), _decimal_product, _float_product),
    "div": _quotient,
    "intdiv": _int_quotient,
    "mod": _rest,
    "neg": _by_kind(_wide("-({0}::HUGEINT)"), plain("(-({0}))"), _float_step("(-({0}))")),
    "abs": _by_kind(_wide("abs({0}::HUGEINT)"), plain("abs({0})"), _float_step("abs({0})", minus=False)),
    "sign": plain("CAST(sign({0}) AS BIGINT)"),
    "floor": _by_kind(_same, _towards("floor"), _float_step("floor({0})", minus=False)),
    "ceil": _by_kind(_same, _towards("ceil"), _float_step("ceil({0})")),
    "round": _by_kind(_round_integer("round"), _round_decimal("round"), _round_float("round")),
    "trunc": _by_kind(_round_integer("trunc"), _round_decimal("trunc"), _round_float("trunc")),
    "sqrt": _float_step("sqrt(CASE WHEN {0} >= 0 THEN {0} END)", minus=False),
    "exp": _float_step("exp({0})", minus=False, finite=False),
    "ln": _float_step("ln(CASE WHEN {0} > 0 THEN {0} END)"),
    "log10": _float_step("log10(CASE WHEN {0} > 0 THEN {0} END)"),
    "log2": _float_step("log2(CASE WHEN {0} > 0 THEN {0} END)"),
    "log": _log,
    "power": _power,
}
"""The forms of arithmetic."""
