"""Accounts and the schema: whose account a name draws on, and which new accounts and caps a schema may bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import Final

from dpquery.errors import Fault, Refused, SchemaError
from dpquery.ledger.amounts import ZERO, minus, times, told
from dpquery.ledger.model import DATASET, Account, Amounts, Kind, Limit, Periods, Terms
from dpquery.ledger.renewal import sets_aside, total
from dpquery.schema.model import Caps, Schema

DEFAULT: Final = "default"
HALF: Final = Decimal("0.5")


def terms(schema: Schema, ledger: str) -> Terms:
    """The terms that a new ledger of this schema has."""
    unit = f"{schema.privacy_unit_table}.{schema.privacy_unit_column}"
    return Terms(ledger, schema.purse, unit, str(schema.adjacency), schema.oversubscribe, schema.unsafe_testing)


def agreed(fixed: Terms, schema: Schema) -> None:
    """Nothing, or the error: a Fault for a ledger of another data set, a SchemaError where the schema differs from what was fixed."""
    wanted = terms(schema, fixed.ledger)
    if wanted.dataset != fixed.dataset:
        raise Fault(
            "LEDGER_FOREIGN",
            f"this ledger belongs to `{fixed.dataset}`, not to {'the data set' if schema.account is None else 'the account'} `{wanted.dataset}`",
            instead="name the ledger of this data set; a data set keeps its name and its ledger, or its `account`, for life",
        )
    fields = (("privacy_unit", "privacy_unit"), ("adjacency", "adjacency"), ("oversubscribe", "oversubscribe"), ("unsafe_testing", "unsafe_testing"))
    for field, key in fields:
        was, now = _word(getattr(fixed, field)), _word(getattr(wanted, field))
        if was != now:
            message = (
                f"`{key}` is {now} in the schema, but the ledger was created with {was}: what was spent under one does not count under the other"
            )
            raise SchemaError("LEDGER_MISMATCH", message, instead=f"write `{key}: {was}`, as when the ledger was created")


def route(schema: Schema, analyst: str) -> tuple[str, ...]:
    """The keys of the accounts that an analyst's charge goes to, the own (paying) one first."""
    name = analyst if analyst in schema.analysts else DEFAULT
    if name not in schema.analysts:
        message = "there is no account for this name, and no shared account `default`"
        raise Refused("UNKNOWN_ANALYST", message, instead="name an analyst that the schema lists, or ask the data owner for an account")
    group = _groups(schema).get(name)
    return (key_of(Kind.ANALYST, name), *(() if group is None else (key_of(Kind.GROUP, group),)), DATASET)


def changes(schema: Schema, accounts: Mapping[str, Account], moment: int) -> tuple[tuple[Account, bool], ...]:
    """B3. The accounts that the schema makes (True) or changes (False), as they are then. SchemaError where a cap has no room.

    Caps only stop later charges: an account keeps what it spent, and counts at the largest cap it ever had, in the schema or not; one that renews,
    at those of all its periods (B4), which are counted from `moment` on where they are new. A grant counts as a larger cap does. A group's cap is
    set aside for its members: it counts as a whole, also where they hold less of it.

    Given   each charge is an analyst's account's, which is (epsilon, delta)-DP at its largest cap, however its questions are chosen (B1).
    Claim   without `oversubscribe` and `unsafe_testing`, the largest caps of all analysts that ever were add up to at most the data set's, so that
            all answers together are DP at the data set's largest cap; those of a group's members likewise, at the group's. (With the former, the
            data set's own sums, and each group's, are filtered by B1.)
    Proof   An account is never dropped, leaves no group once it has spent, its largest cap never falls, and wherever one is new or larger, or joins,
            the sum is tested again, a group at no less than its members hold. Accounts asked in turn, each question chosen after all answers,
            are interactive mechanisms side by side, which compose by adding up epsilons and deltas.
    Tight   What is left can be taken and spent: test_a_new_account_gets_what_is_left, test_a_raised_budget_makes_room
    Source  Vadhan and Zhang 2023; Lyu 2022 (concurrent composition); docs/pitfalls.md B3, B6, N3.
    """
    wanted = tuple(_wanted(schema, moment))
    found = tuple((_recapped(accounts[w.key], w, moment), False) if w.key in accounts else (w, True) for w in wanted)
    changed = tuple((account, new) for account, new in found if new or account != accounts[account.key])
    if not schema.oversubscribe and not schema.unsafe_testing:
        for account, _ in changed:
            _stays(account, accounts.get(account.key))
        after = {**accounts, **{account.key: account for account, _ in found}}
        _reserved(after, {a.key for a, new in changed if new or _grew(a, accounts[a.key])})
    return changed


def granted(schema: Schema, accounts: Mapping[str, Account], key: str, more: Limit) -> None:
    """Nothing, or the SchemaError where a grant of so much to this account has no room: B3's test, as for a cap that the schema raises."""
    before = accounts[key]
    account = before.given(more)
    if account.cap.delta >= 1 and not schema.unsafe_testing:
        raise SchemaError("BAD_BUDGET", f"delta would become {told(account.cap.delta)}: it stays below 1", instead="grant less")
    if schema.oversubscribe or schema.unsafe_testing:
        return
    if _grew(account, before):
        _reserved({**accounts, key: account}, {key})


def _recapped(account: Account, wanted: Account, moment: int) -> Account:
    days = None if wanted.periods is None else wanted.periods.days
    return account.recapped(wanted.cap, wanted.group, days, moment)


def _wanted(schema: Schema, moment: int) -> Iterator[Account]:
    """The accounts that the schema lists, as new ones."""
    yield _new(Kind.DATASET, DATASET, None, schema.budget, schema.oversubscribe)
    for name, group in schema.groups.items():
        yield _new(Kind.GROUP, name, None, group.caps, schema.oversubscribe)
    groups = _groups(schema)
    for name, caps in schema.analysts.items():
        account = _new(Kind.ANALYST, name, groups.get(name), caps, True)
        yield account if caps.period is None else replace(account, periods=Periods(caps.period, moment))


def _new(kind: Kind, name: str, group: str | None, caps: Caps, tested: bool) -> Account:
    cap = Limit(caps.epsilon, caps.delta)
    return Account(key_of(kind, name), kind, name, group, tested, cap, cap, delta_conv=times(caps.delta, HALF))


def _stays(account: Account, before: Account | None) -> None:
    """SchemaError where an account leaves a group whose cap binds what it spent: another member could spend as much again."""
    if before is not None and before.group not in (None, account.group) and before.lifetime != Amounts():
        message = f"`{account.name}` has spent from the cap of group `{before.group}`, and stays its member"
        raise SchemaError("MEMBER_LEAVES", message, instead=f"keep `{account.name}` among the members of `{before.group}`, or out of `analysts`")


def _grew(account: Account, before: Account) -> bool:
    """Whether the account takes more of what is reserved than before, or takes it from another group; of a group, its cap in force."""
    if account.kind is Kind.GROUP:
        return account.cap.or_more(before.cap) != before.cap
    return account.reserved != before.reserved or account.group != before.group


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a whole: what it takes, and whether it is new or takes more than before."""

    name: str
    takes: Limit
    grown: bool


def _reserved(accounts: Mapping[str, Account], grown: set[str]) -> None:
    """SchemaError unless members, each at its largest cap, fit into their group's, and groups and all others into the data set's budget.

    Sums that nothing was added to need no second look: they stood under a budget that was in force, and lowering caps takes nothing back.
    """
    analysts = [a for a in accounts.values() if a.kind is Kind.ANALYST]
    parts = [_Part(f"`{a.name}`", a.reserved, a.key in grown) for a in analysts if a.group is None]
    for group in (a for a in accounts.values() if a.kind is Kind.GROUP):
        members = [_Part(f"`{a.name}`", a.reserved, a.key in grown) for a in analysts if a.group == group.name]
        _fit(members, group, f"the cap of group `{group.name}`")
        held = total(m.takes for m in members)
        parts.append(_Part(f"group `{group.name}`", sets_aside(group, held), group.key in grown or any(m.grown for m in members)))
    _fit(parts, accounts[DATASET], "the data set's budget")


def _fit(parts: list[_Part], whole: Account, name: str) -> None:
    if not any(part.grown for part in parts):
        return
    others = [part for part in parts if not part.grown]
    wanted, held = total(part.takes for part in parts), total(part.takes for part in others)
    for field, read in _FIELDS:
        most = read(whole.cap)
        if read(wanted) <= most:
            continue
        taken = ", ".join(f"{part.name} {told(read(part.takes))}" for part in others) or "none"
        rest = max(ZERO, minus(most, read(held)))
        names = ", ".join(part.name for part in parts if part.grown)
        raise SchemaError(
            "CAPS_EXCEED_BUDGET",
            f"the caps on {field} add up to {told(read(wanted))}, above {name} of {told(most, ROUND_FLOOR)}; every account that ever was counts, "
            f"each at the largest cap it ever had, and in each period that began, a group at no less than its cap ({taken})",
            instead=f"{field} {told(rest, ROUND_FLOOR)} is left for {names}: write no more, or raise {name}",
        )


def _epsilon(limit: Limit) -> Decimal:
    return limit.epsilon


def _delta(limit: Limit) -> Decimal:
    return limit.delta


_FIELDS: Final[tuple[tuple[str, Callable[[Limit], Decimal]], ...]] = (("epsilon", _epsilon), ("delta", _delta))


def _groups(schema: Schema) -> dict[str, str]:
    """The group of each member."""
    return {member: name for name, group in schema.groups.items() for member in group.members}


def keys(schema: Schema) -> frozenset[str]:
    """The keys of the accounts that the schema lists."""
    return frozenset([DATASET, *(key_of(Kind.GROUP, name) for name in schema.groups), *(key_of(Kind.ANALYST, name) for name in schema.analysts)])


def key_of(kind: Kind, name: str) -> str:
    """The key of an account."""
    return DATASET if kind is Kind.DATASET else f"{kind}:{name}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
