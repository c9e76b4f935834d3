"""What the log's entries do to the accounts: the same function when an entry is made and when the log is read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dpquery.ledger.amounts import parsed, text
from dpquery.ledger.model import DATASET, JSON, NOTHING, Account, Amounts, Kind, Limit, Periods, Terms

FORMAT: Final = 2
OLDEST: Final = 1  # what a ledger may have been created with; `upgraded` says that it is read by the present format from there on
OUTCOMES: Final = frozenset({"released", "failed", "timeout", "interrupted"})
LATER: Final = frozenset({"granted", "renewed", "lapsed", "joined", "shown", "restored", "looked"})  # events that the oldest format does not have
Accounts = Mapping[str, Account]


def applied(accounts: Accounts, body: Mapping[str, JSON]) -> tuple[Account, ...]:
    """The accounts that an entry changes, as it leaves them. KeyError, TypeError or ValueError for an entry that cannot follow."""
    match body["event"]:
        case "charged" | "shown":  # a stored answer costs who sees it first what it cost, and the data set nothing
            price = amounts(body)
            return tuple(replace(a, spent=a.spent + price, entries=a.entries + 1) for a in (accounts[key] for key in body["accounts"]))
        case "account":
            return (_made(accounts, body),)
        case "caps":
            return (accounts[body["account"]].recapped(_limit(body), body["group"], body.get("period"), body.get("since", 0)),)
        case "granted":
            return (accounts[body["account"]].given(_limit(body)),)
        case "renewed":
            return (accounts[body["account"]].renewed(body["period"], body["times"]),)
        case "lapsed":
            return (accounts[body["account"]].lapsed(body["period"]),)
        case "timeout" | "interrupted":
            account = accounts[body["account"]]
            return (replace(account, timeouts=account.timeouts + 1, strikes=account.strikes + 1),)
        case "unlocked":
            return (replace(accounts[body["account"]], strikes=0),)
        case "created" | "registered" | "refused" | "released" | "failed" | "balanced" | "upgraded" | "joined" | "restored" | "looked":
            return ()
        case _:
            raise ValueError("an event that this format does not have")


def paying(own: Account, shown: bool) -> tuple[str, ...]:
    """The keys of the accounts that a charge to this analyst's account goes to; the data set pays for no stored answer that is shown again."""
    group = () if own.group is None else (f"{Kind.GROUP}:{own.group}",)
    return (own.key, *group, *(() if shown else (DATASET,)))


def terms(body: Mapping[str, JSON]) -> Terms:
    """The terms in the first entry."""
    if body["event"] != "created" or not OLDEST <= body["format"] <= FORMAT:
        raise ValueError("the log does not begin with its creation")
    names = ("ledger", "dataset", "privacy_unit", "adjacency", "oversubscribe", "unsafe_testing")
    return Terms(*(body[name] for name in names))


def amounts(body: Mapping[str, JSON]) -> Amounts:
    """The amounts of an entry, or of an account's sums."""
    epsilon = body["epsilon"]
    return Amounts(None if epsilon == "infinite" else parsed(epsilon), parsed(body["rho"]), parsed(body["delta"]))


def opening(account: Account) -> dict[str, JSON]:
    """What the entry of a new account says."""
    return {
        "event": "account",
        "account": account.key,
        "kind": str(account.kind),
        "name": account.name,
        "group": account.group,
        "tested": account.tested,
        "delta_conv": text(account.delta_conv),
        **_terms(account),
    }


def recapping(account: Account) -> dict[str, JSON]:
    """What the entry of an account's changed cap or group says."""
    return {"event": "caps", "account": account.key, "group": account.group, **_terms(account)}


def _terms(account: Account) -> dict[str, JSON]:
    """What the schema says of an account."""
    periods = account.periods
    renewing = {} if periods is None or periods.days is None else {"period": periods.days, "since": periods.since}
    return {**account.base.as_dict(), **renewing}


def balanced(accounts: Sequence[Account]) -> list[JSON]:
    """All accounts as an entry of the log holds them, so that the log need not be read from its first line each time."""
    return [
        {
            **opening(a),
            "largest": a.largest.as_dict(),
            "spent": a.spent.as_dict(),
            "entries": a.entries,
            "timeouts": a.timeouts,
            "strikes": a.strikes,
            **({} if a.granted == NOTHING else {"granted": a.granted.as_dict()}),
            **({} if a.periods is None else {"periods": a.periods.as_dict()}),
        }
        for a in sorted(accounts, key=lambda a: a.key)
    ]


def restored(held: Sequence[Mapping[str, JSON]]) -> dict[str, Account]:
    """The accounts behind `balanced`."""
    return {one["account"]: _restored(one) for one in held}


def _restored(one: Mapping[str, JSON]) -> Account:
    counts = {name: one[name] for name in ("entries", "timeouts", "strikes")}
    granted = _limit(one["granted"]) if "granted" in one else NOTHING
    opened = replace(_opened(one), **counts, granted=granted, periods=periods(one.get("periods")))
    return replace(opened, cap=opened.cap + granted, largest=_limit(one["largest"]), spent=amounts(one["spent"]))


def periods(held: Mapping[str, JSON] | None) -> Periods | None:
    """The periods behind `Periods.as_dict`."""
    if held is None:
        return None
    counts = (held["days"], held["since"], held["number"], held["lapsed"])
    return Periods(*counts, _limit(held["reserved"]), amounts(held["spent"]))


def _made(accounts: Accounts, body: Mapping[str, JSON]) -> Account:
    account = _opened(body)
    if account.key in accounts:
        raise ValueError("an account that exists is made again")
    return account


def _opened(body: Mapping[str, JSON]) -> Account:
    cap = _limit(body)
    kind = Kind(body["kind"])
    account = Account(body["account"], kind, body["name"], body["group"], body["tested"], cap, cap, parsed(body["delta_conv"]))
    return replace(account, periods=Periods(body["period"], body["since"])) if "period" in body else account


def _limit(body: Mapping[str, JSON]) -> Limit:
    return Limit(parsed(body["epsilon"]), parsed(body["delta"]))
