"""Caps that renew: which periods are due by the clock, and whether there is room for them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dpquery.ledger.model import DATASET, JSON, NOTHING, Account, Kind, Limit, Periods

DAY: Final = 86_400


def due(accounts: Mapping[str, Account], free: bool, moment: int) -> Iterator[Mapping[str, JSON]]:
    """B4. The entries that say which periods begin at `moment` (in seconds of Unix time), and for which there is no room.

    Each boundary that was passed takes one more cap of its account out of what is left, in the order of time, then of names; a boundary at which
    nothing is left is passed for good, but for the last one, which is tried again, though never before its time by the clock. `free`: nothing is
    reserved.

    Given   an account whose cap renews: each period's charges alone are tested against the cap, as in B1, at the one delta_conv.
    Claim   the answers of a period are DP at the largest cap of that period; all answers of all analysts stay DP at the data set's largest cap,
            as in B3; and which periods begin is a function of the clock and of what the owner did, never of a question or an answer.
    Proof   A period is an account of B1 whose sums begin at nothing. Periods follow one another, so their epsilons and deltas add up (B3): an
            account counts there at the sum of the largest caps of all its periods, `reserved`, and a period begins only where the sum of all
            accounts that ever were still fits. Spent amounts decide nothing here: an account that asked nothing uses up its periods as any other
            does, so that what is left for the next one tells nothing of what was asked. A clock that was set back passes no boundary.
    Tight   Every period's cap can be spent in full: test_every_period_can_be_spent_in_full
    Source  Rogers et al. 2016; Vadhan and Zhang 2023; docs/pitfalls.md B3, N3.
    """
    renewing = {a.key: a for a in accounts.values() if a.periods is not None and a.periods.days is not None}
    ahead = {key: _passed(account, moment) for key, account in renewing.items()}
    if free:
        for key, number in sorted(ahead.items()):
            begun_before = _periods(renewing[key]).number
            if number > begun_before:
                yield _renewed(key, number, number - begun_before)
        return
    room, taken, begun, full = Unreserved(accounts), Counter[str](), dict[str, int](), set[str]()
    for _, key, number in heapq.merge(*(_boundaries(renewing[key], ahead[key], moment) for key in sorted(renewing))):
        if key in full:
            continue
        if room.takes(renewing[key]):
            taken[key] += 1
            begun[key] = number
        else:
            full.add(key)
            if len(full) == len(renewing):
                break
    for key in sorted(renewing):
        if taken[key]:
            yield _renewed(key, begun[key], taken[key])
        if key in full and ahead[key] > _periods(renewing[key]).number:
            yield {"event": "lapsed", "account": key, "period": ahead[key]}


def _renewed(key: str, number: int, times: int) -> Mapping[str, JSON]:
    return {"event": "renewed", "account": key, "period": number, "times": times}


class Unreserved:
    """What is left of the data set's cap, and of each group's: members' caps count towards their group's, which counts as a whole (`sets_aside`)."""

    def __init__(self, accounts: Mapping[str, Account]) -> None:
        self._accounts = accounts
        analysts = [a for a in accounts.values() if a.kind is Kind.ANALYST]
        self._held = {g.name: total(a.reserved for a in analysts if a.group == g.name) for g in accounts.values() if g.kind is Kind.GROUP}
        self._loose = total(a.reserved for a in analysts if a.group is None)

    def takes(self, account: Account) -> bool:
        """Whether the account's cap fits once more; then it is taken."""
        held, loose = dict(self._held), self._loose
        if account.group is None:
            loose = loose + account.base
        else:
            held[account.group] = held[account.group] + account.base
            if not _within(held[account.group], self._group(account.group).cap):
                return False
        if not _within(total([loose, *(sets_aside(self._group(name), one) for name, one in held.items())]), self._accounts[DATASET].cap):
            return False
        self._held, self._loose = held, loose
        return True

    def _group(self, name: str) -> Account:
        return self._accounts[f"{Kind.GROUP}:{name}"]


def sets_aside(group: Account, held: Limit) -> Limit:
    """What a group whose members hold so much takes of the data set's budget: its cap in force, also where a schema lists it no more."""
    return held.or_more(group.cap)


def total(limits: Iterable[Limit]) -> Limit:
    """All of them together, exactly."""
    whole = NOTHING
    for limit in limits:
        whole = whole + limit
    return whole


def _within(limit: Limit, most: Limit) -> bool:
    return limit.epsilon <= most.epsilon and limit.delta <= most.delta


def _boundaries(account: Account, ahead: int, moment: int) -> Iterator[tuple[int, str, int]]:
    """When each period began that was not counted yet, and its number; first, the last one again where it found no room, and not where the clock was
    set back since to before it began (what begins before its time is taken for forged: `audit`)."""
    periods = _periods(account)
    if periods.lapsed and ahead <= periods.number and begins(periods, periods.number) <= moment:
        yield 0, account.key, periods.number
    for number in range(periods.number + 1, ahead + 1):
        yield begins(periods, number), account.key, number


def begins(periods: Periods, number: int) -> int:
    """When the period of that number began, or will."""
    return periods.since + number * (periods.days or 0) * DAY


def _passed(account: Account, moment: int) -> int:
    """How many boundaries were passed by then; as many as were counted already, where the clock was set back."""
    periods = _periods(account)
    return max(periods.number, (moment - periods.since) // ((periods.days or 0) * DAY))


def _periods(account: Account) -> Periods:
    assert account.periods is not None
    return account.periods
