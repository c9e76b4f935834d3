"""Exact decimals: what is charged is rounded up once, and from then on only added."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import Final

from dpquery.numbers import decimal_up

DIGITS: Final = 34  # significant digits of a stored amount
ZERO: Final = Decimal(0)
EXACT: Final = Context(prec=100_000, traps=[Inexact, InvalidOperation])  # adds exactly, or raises
WIDEST: Final = 40  # powers of ten that are written out; beyond them an exponent is shorter


def rounded_up(value: Fraction) -> Decimal:
    """The least decimal of at least 34 significant digits that is >= `value`; `value` itself where it is such a decimal, as 0.1 is."""
    return decimal_up(value, _places(value)).normalize(EXACT)


def shown_up(value: Fraction, digits: int = 12) -> Decimal:
    """A decimal >= `value` of so many significant digits, for people."""
    exact = rounded_up(value)
    return Context(prec=digits, rounding=ROUND_CEILING).plus(exact).normalize(EXACT)


def shown_down(value: Fraction, digits: int = 12) -> Decimal:
    """A decimal <= `value` of so many significant digits, for people."""
    return Context(prec=digits, rounding=ROUND_FLOOR).divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(EXACT)


def told(amount: Decimal, rounding: str = ROUND_CEILING) -> str:
    """The amount in the words of a refusal: exact where that is short, else in 12 digits, which differ from it on the side of `rounding`."""
    exact = text(amount)
    return exact if len(exact) <= WIDEST else text(Context(prec=12, rounding=rounding).plus(amount))


def plus(a: Decimal, b: Decimal) -> Decimal:
    """The exact sum."""
    return EXACT.add(a, b)


def minus(a: Decimal, b: Decimal) -> Decimal:
    """The exact difference."""
    return EXACT.subtract(a, b)


def times(amount: Decimal, factor: int | Decimal) -> Decimal:
    """The exact product."""
    return EXACT.multiply(amount, Decimal(factor))


def text(amount: Decimal) -> str:
    """One text per number: plain digits where they are few, else with an exponent."""
    amount = amount.normalize(EXACT)
    return format(amount, "f") if not amount or abs(amount.adjusted()) <= WIDEST else str(amount)


def parsed(written: object) -> Decimal:
    """The amount behind a text of `text`. ValueError for anything else."""
    if not isinstance(written, str):
        raise ValueError("an amount is a text")
    try:
        amount = Decimal(written)
    except InvalidOperation:
        raise ValueError("no decimal") from None
    if not amount.is_finite() or amount < 0 or text(amount) != written:
        raise ValueError("no amount as it is written here")
    return amount


def _places(value: Fraction) -> int:
    """Digits after the point that make at least 34 significant ones."""
    if value >= 1:
        return max(0, DIGITS - (int(value).bit_length() - 1) * 30_103 // 100_000)
    if value <= 0:
        return DIGITS
    return DIGITS + (value.denominator // value.numerator).bit_length() * 30_103 // 100_000 + 1
