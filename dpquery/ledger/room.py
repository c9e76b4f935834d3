"""One account as it stands, to try prices on before they are asked for: nothing is charged, and no other account is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from dpquery.errors import OverBudget
from dpquery.ledger import policy
from dpquery.ledger.model import Account, Amounts, Left

DIGITS: Final = 6  # significant digits of the largest size that fits
LEAST: Final = -12  # the power of ten below which no size is looked for


@dataclass(frozen=True, slots=True)
class Room:
    """What prices fit into one account. `locked`: none does; `unlimited`: all do, for tests."""

    account: Account
    locked: bool = False
    unlimited: bool = False

    @property
    def name(self) -> str:
        """The account's name."""
        return self.account.name

    @property
    def finite(self) -> bool:
        """Whether its epsilons still add up: no charge so far was in rho alone."""
        return self.account.spent.epsilon is not None

    @property
    def pure(self) -> bool:
        """Whether its cap is in epsilon alone: it has no delta to convert rho with, so that nothing charged in rho alone fits."""
        return min(self.account.delta_conv, self.account.cap.delta) == 0

    @property
    def left(self) -> Left:
        """What surely fits still."""
        return policy.left(self.account)

    def accepts(self, price: Amounts) -> bool:
        """Whether the price fits now."""
        return not self.locked and (self.unlimited or policy.accepts(self.account, price))

    def count(self, price: Amounts) -> int:
        """How often the price fits from now on; 1,000,000 stands for that and more."""
        if self.locked:
            return 0
        return policy.MANY if self.unlimited else policy.count(self.account, price)

    def after(self, price: Amounts) -> Room:
        """The room that is left once the price was charged."""
        return replace(self, account=replace(self.account, spent=self.account.spent + price))

    def refusal(self, price: Amounts) -> OverBudget | None:
        """Why the price does not fit; None where it does."""
        if self.accepts(price):
            return None
        return policy.account_locked(self.account) if self.locked else policy.over_budget(self.account, self.account, price)

    def largest(self, price: Callable[[Fraction], Amounts], below: Fraction) -> Decimal | None:
        """The largest size of six significant digits, below one that does not fit, whose price fits; None where none of 1e-12 or more does.

        Exact prices are tried, by bisection: the result fits. That a step more does not holds where prices grow with their size.
        """
        if self.locked:
            return None
        top = _exponent(below)
        found = next((e for e in range(top, LEAST - 1, -1) if Fraction(10) ** e < below and self.accepts(price(Fraction(10) ** e))), None)
        if found is None:
            return None
        unit = found - DIGITS + 1
        fits, unfit = 10 ** (DIGITS - 1), 10**DIGITS
        while unfit - fits > 1:
            middle = (fits + unfit) // 2
            size = middle * Fraction(10) ** unit
            if size < below and self.accepts(price(size)):
                fits = middle
            else:
                unfit = middle
        return Decimal(fits).scaleb(unit).normalize()


def _exponent(size: Fraction) -> int:
    """The power of ten at or below a size above 0."""
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    return exponent if Fraction(10) ** exponent <= size else exponent - 1
