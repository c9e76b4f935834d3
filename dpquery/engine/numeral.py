"""Numbers as people write them, read exactly."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from dpquery.errors import Refused

MOST_PLACES = 400  # before and after the point of any number
Amount = str | int | float | Decimal | Fraction


def amount(name: str, given: Amount | None) -> Fraction | None:
    """The exact value of a number as people write it: 0.1 is one tenth, as text, Decimal or float. Refused if it is no finite number."""
    if given is None:
        return None
    if isinstance(given, Fraction) or (isinstance(given, int) and not isinstance(given, bool)):
        if max(given.numerator.bit_length(), given.denominator.bit_length()) > 4 * MOST_PLACES:
            raise no_proportion(name)
        return Fraction(given)
    text = str(given)
    if isinstance(given, bool) or not text.isascii() or text != text.strip() or "_" in text or len(text) > 100:
        raise _no_number(name)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _no_number(name) from None
    if not number.is_finite():
        raise Refused("BAD_PRICE", f"{name} must be a finite number", instead=f"give {name} as a plain decimal such as 0.5")
    if number and abs(number.adjusted()) > MOST_PLACES:
        raise no_proportion(name)
    return Fraction(number)


def no_proportion(name: str) -> Refused:
    """The refusal of a number that is far too large or too small."""
    return Refused("BAD_PRICE", f"{name} is out of all proportion", instead=f"give {name} as a plain decimal such as 0.5")


def _no_number(name: str) -> Refused:
    return Refused("BAD_PRICE", f"{name} is not a number", instead=f"give {name} as a plain decimal such as 0.5, without spaces")
