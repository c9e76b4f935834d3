"""One account as it stands, to try prices on before they are asked for: nothing is charged, and no other account is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from dpquery.errors import OverBudget
from dpquery.ledger import policy
from dpquery.ledger.model import Account, Amounts, Left
from dpquery.ledger.sizes import edge


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

    def largest(self, price: Callable[[Fraction], Amounts], top: Fraction) -> Decimal | None:
        """The largest size of six significant digits, up to `top`, whose price fits; None where none of 1e-12 or more does.

        Exact prices are tried: the result fits. That a step more does not holds where prices grow with their size.
        """
        return None if self.locked else edge(lambda size: self.accepts(price(size)), top)[0]
