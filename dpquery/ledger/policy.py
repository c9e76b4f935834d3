"""Who may spend how much: pure functions of accounts and prices. Nothing here is rounded down in the analyst's favour."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpquery.accounting import convert, zcdp
from dpquery.errors import OverBudget
from dpquery.ledger.amounts import ZERO, minus, shown_down, shown_up, text
from dpquery.ledger.model import Account, Amounts, Balance, Kind, Left, Limit, Period, Rung, Terms
from dpquery.ledger.renewal import begins

MANY: Final = 1_000_000  # as far as `count` counts
TINIEST: Final = Decimal("1e-40")  # a smaller rho is converted as this one: exactness there would cost time and buy nothing
LADDER_BASE: Final = Fraction(1, 1024)  # rho_0 of the ladder
LADDER_RUNGS: Final = 40


def accepts(account: Account, price: Amounts) -> bool:
    """Whether the account's filter lets the price through."""
    return within(account.cap, account.delta_conv, account.spent + price)


def within(cap: Limit, delta_conv: Decimal, spent: Amounts) -> bool:
    """B1. Whether sums of charges stay within a cap, with rho converted at delta_conv.

    Given   charges chosen adaptively, prices included; each is (epsilon, delta)-DP where its epsilon is finite, and delta-approximate rho-zCDP.
    Claim   accepting while this holds of the sums keeps the account (cap.epsilon, cap.delta)-DP.
    Proof   the deltas add up along every path to at most cap.delta - delta_conv. Split the final transcripts by the branch that let the last
            charge in: where epsilons add up to at most cap.epsilon the loss is at most that, surely; elsewhere the rho filter converts to
            cap.epsilon but for delta_conv, which is fixed beforehand. Each branch alone is a filter, and both only shrink as sums grow.
            A cap whose delta is lowered below delta_conv uses what there is of it: less is accepted than under the largest cap.
    Tight   test_ten_times_a_tenth_fills_one, test_tight_last_gaussian, test_selection_deltas_never_reach_into_delta_conv
    Source  Rogers et al. 2016 (the filter of epsilons); Whitehouse et al. 2023 (that of rho); the union of the two by the proof above.
    """
    converting = min(delta_conv, cap.delta)
    if spent.delta > minus(cap.delta, converting):
        return False
    if spent.epsilon is not None and spent.epsilon <= cap.epsilon:
        return True
    converted = _converted(spent.rho, converting)
    return converted is not None and converted <= Fraction(cap.epsilon)


def refusing(accounts: Iterable[Account], price: Amounts) -> Account | None:
    """The first account whose filter decides and refuses the price."""
    return next((a for a in accounts if a.tested and not accepts(a, price)), None)


def count(account: Account, price: Amounts) -> int:
    """How often the price fits into the account from now on; 1,000,000 where it is that or more."""
    fits, unfit = 0, MANY + 1
    while unfit - fits > 1:
        middle = (fits + unfit) // 2
        if accepts(account, price.times(middle)):
            fits = middle
        else:
            unfit = middle
    return fits


def left(account: Account) -> Left:
    """What surely fits still: a pure epsilon, or a rho, each with a selection delta."""
    converting = min(account.delta_conv, account.cap.delta)
    delta = minus(minus(account.cap.delta, converting), account.spent.delta)
    if delta < 0:  # the cap on delta was lowered below what was spent: nothing fits
        return Left(ZERO, ZERO, ZERO)
    rho = max(Fraction(0), _room(account.cap.epsilon, converting) - Fraction(account.spent.rho))
    converted = shown_down(zcdp.laplace_epsilon_down(rho)) if rho else ZERO
    pure = ZERO if account.spent.epsilon is None else minus(account.cap.epsilon, account.spent.epsilon)
    return Left(max(shown_down(Fraction(pure), 24), converted, ZERO), shown_down(rho), shown_down(Fraction(delta), 24))


def locked(account: Account, timeouts_allowed: int) -> bool:
    """Whether the account has timed out too often since it was last unlocked."""
    return account.strikes >= timeouts_allowed


def balance(account: Account, terms: Terms, timeouts_allowed: int) -> Balance:
    """The account as its holder may see it: a function of this account alone."""
    return Balance(
        dataset=terms.dataset,
        account=account.name,
        cap=account.cap,
        spent=account.spent,
        left=left(account),
        guarantee=account.reserved,
        delta_conv=account.delta_conv,
        ladder=() if terms.unsafe_testing else ladder(account),
        entries=account.entries,
        timeouts=account.timeouts,
        locked=account.kind is Kind.ANALYST and locked(account, timeouts_allowed),
        unsafe_testing=terms.unsafe_testing,
        granted=account.granted,
        lifetime=account.lifetime,
        period=_period(account),
    )


def _period(account: Account) -> Period | None:
    periods = account.periods
    if periods is None or periods.days is None:
        return None
    began, ends = (_day(begins(periods, number)) for number in (periods.number, periods.number + 1))
    return Period(periods.days, periods.number + 1, began, ends, periods.lapsed, account.largest)


def _day(moment: int) -> str:
    """A moment of Unix time in ISO 8601; the last one that there is, for later ones."""
    last = datetime.max.replace(microsecond=0, tzinfo=UTC)
    return min(last, datetime.fromtimestamp(min(moment, int(last.timestamp())), UTC)).isoformat().replace("+00:00", "Z")


def ladder(account: Account) -> tuple[Rung, ...]:
    """B2. The filters fixed in advance: rho_0 * 2^j for j = 1, 2, .., each at delta_conv / (j (j + 1)); past cap and sum.

    Given   an account; its charges as in B1.
    Claim   with the deltas of selection beside them, all rungs hold at once, so that the smallest one that is at least the spent rho may be read
            at any time, at a moment chosen by looking at the answers too.
    Proof   Split the transcripts by the rung that is read. On those of rung j the answers are those of a filter that stops at its rho (B1), for
            which the mass of loss above its epsilon is at most its delta (V1). 1/(j (j + 1)) adds up to at most 1: delta_conv for all of them.
    Tight   The rung that is read is less than twice the spent rho: test_ladder_is_fixed_in_advance_and_adds_up
    Source  Rogers et al. 2016 (odometers); Whitehouse et al. 2023.
    """
    top, spent = _room(account.largest.epsilon, account.delta_conv), Fraction(account.lifetime.rho)
    rungs: list[Rung] = []
    for j in range(1, LADDER_RUNGS + 1) if top else ():
        rho, delta = LADDER_BASE * 2**j, Fraction(account.delta_conv) / (j * (j + 1))
        epsilon = _of_rung(rho, delta)
        if epsilon is None:
            break
        rungs.append(Rung(shown_up(rho), epsilon, shown_up(delta), spent <= rho))
        if rho >= max(top, spent):
            break
    return tuple(rungs)


def over_budget(account: Account, own: Account, price: Amounts) -> OverBudget:
    """The refusal of a price. Of accounts other than the analyst's own it says no more than that they have no room."""
    asked = f"the price ({_phrase(price)})"
    if account is not own:
        whose = "the data set's budget" if account.kind is Kind.DATASET else "the budget of the analyst's group"
        return OverBudget("OVER_BUDGET", f"{asked} does not fit into {whose}", instead="ask for less, or ask the data owner for more budget")
    rest, spent = left(account), account.spent
    message = (
        f"{asked} does not fit into what account `{account.name}` has left. Spent {_since(account)}: {_phrase(spent)}, "
        f"of a cap of epsilon {_short(account.cap.epsilon)}, delta {_short(account.cap.delta)}"
    )
    return OverBudget("OVER_BUDGET", message, instead=_instead(account, rest, price))


def _since(account: Account) -> str:
    period = _period(account)
    if period is None:
        return "so far"
    wanting = ", as the budget had no room for the next" if period.lapsed else f" (it ends {period.ends})"
    return f"in this period of {period.days} days{wanting}"


def account_locked(account: Account) -> OverBudget:
    """The refusal of every price of a locked account."""
    message = f"account `{account.name}` is locked after {account.strikes} statements that ran out of time or memory, or were interrupted"
    return OverBudget("ACCOUNT_LOCKED", message, instead="ask the data owner to unlock it")


def _instead(account: Account, rest: Left, price: Amounts) -> str:
    """What would fit."""
    if price.delta > rest.delta:
        if rest.delta == 0:
            return "this account has no delta left for private keys: group by public keys, or ask the data owner for more budget"
        return f"what is left of delta for private keys is {_short(rest.delta)}: ask for a smaller delta, or group by public keys"
    fits: list[str] = []
    if rest.epsilon:
        fits.append(f"Laplace noise fits up to epsilon {text(rest.epsilon)}")
    if rest.rho:
        fits.append(f"Gaussian noise up to rho {text(rest.rho)}")
    elif price.epsilon is None and account.delta_conv == 0:
        fits.append("Gaussian noise never fits: the account was made with delta 0")
    if not rest.epsilon and not rest.rho:
        fits.append("ask the data owner for more budget")
    return "; ".join(fits)


def _phrase(amounts: Amounts) -> str:
    epsilon = "infinite (Gaussian noise)" if amounts.epsilon is None else _short(amounts.epsilon)
    return f"epsilon {epsilon}, rho {_short(amounts.rho)}, delta {_short(amounts.delta)}"


def _short(amount: Decimal) -> str:
    shown = shown_up(Fraction(amount), 6)
    return text(shown) if not shown or -5 < shown.adjusted() < 15 else f"{shown:e}"


@lru_cache(maxsize=4096)
def _converted(rho: Decimal, delta: Decimal) -> Fraction | None:
    """The epsilon of a rho at a delta, rounded up; None for infinite, which it also is where the delta says nothing (1 or more)."""
    return convert.epsilon_up(Fraction(max(rho, TINIEST) if rho else rho), Fraction(delta)) if delta < 1 else None


@lru_cache(maxsize=1024)
def _of_rung(rho: Fraction, delta: Fraction) -> Decimal | None:
    """A rung's epsilon, rounded up as it is shown: the same at each look, as the ladder is fixed in advance."""
    epsilon = convert.epsilon_up(rho, delta)
    return None if epsilon is None else shown_up(epsilon)


@lru_cache(maxsize=256)
def _room(epsilon: Decimal, delta: Decimal) -> Fraction:
    """The largest rho that converts to `epsilon` at `delta`, rounded down."""
    return convert.rho_down(Fraction(epsilon), Fraction(delta)) if 0 < delta < 1 else Fraction(0)
