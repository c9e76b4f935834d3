"""What an account's promise to one person comes to for several of them together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpquery.accounting.textbook.groups import group_delta_up
from dpquery.errors import Refused
from dpquery.ledger.amounts import shown_up, text

if TYPE_CHECKING:
    from dpquery.engine import Balance

MOST = 10_000  # people
LARGEST = Fraction(1000)  # a loss beyond it is none that anybody would state a delta for


def together(found: Balance, units: int) -> Mapping[str, Any]:
    """For k people: k epsilon, and delta (e^(k epsilon) - 1) / (e^epsilon - 1), rounded up; a delta of None says that nothing is promised.

    Of all answers ever; where the cap renews, of one period's answers too. Refused for what is no number of people.
    """
    if type(units) is not int or not 1 <= units <= MOST:
        raise Refused("USAGE", f"so many people together are a whole number from 1 to {MOST:,}", instead="together(3)")
    whole = {"units": units, **_promise(Fraction(found.guarantee.epsilon), Fraction(found.guarantee.delta), units)}
    if found.period is None:
        return whole
    own = found.period.guarantee
    return {**whole, "period": _promise(Fraction(own.epsilon), Fraction(own.delta), units)}


def _promise(epsilon: Fraction, delta: Fraction, units: int) -> Mapping[str, Any]:
    loss = epsilon * units
    if not delta:
        return {"epsilon": text(shown_up(loss)), "delta": "0"}
    least = group_delta_up(epsilon, delta, units) if loss <= LARGEST else Fraction(1)
    return {"epsilon": text(shown_up(loss)), "delta": text(shown_up(least)) if least < 1 else None}
