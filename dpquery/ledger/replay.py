"""What the log's entries do to the accounts: the same function when an entry is made and when the log is read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dpquery.ledger.amounts import parsed, text
from dpquery.ledger.model import JSON, Account, Amounts, Kind, Limit, Terms

FORMAT: Final = 1
OUTCOMES: Final = frozenset({"released", "failed", "timeout", "interrupted"})
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
            return (accounts[body["account"]].recapped(_limit(body), body["group"]),)
        case "timeout" | "interrupted":
            account = accounts[body["account"]]
            return (replace(account, timeouts=account.timeouts + 1, strikes=account.strikes + 1),)
        case "unlocked":
            return (replace(accounts[body["account"]], strikes=0),)
        case "created" | "registered" | "refused" | "released" | "failed" | "balanced":
            return ()
        case _:
            raise ValueError("an event that this format does not have")


def terms(body: Mapping[str, JSON]) -> Terms:
    """The terms in the first entry."""
    if body["event"] != "created" or body["format"] != FORMAT:
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
        **account.cap.as_dict(),
    }


def recapping(account: Account) -> dict[str, JSON]:
    """What the entry of an account's changed cap or group says."""
    return {"event": "caps", "account": account.key, "group": account.group, **account.cap.as_dict()}


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
        }
        for a in sorted(accounts, key=lambda a: a.key)
    ]


def restored(held: Sequence[Mapping[str, JSON]]) -> dict[str, Account]:
    """The accounts behind `balanced`."""
    return {one["account"]: _restored(one) for one in held}


def _restored(one: Mapping[str, JSON]) -> Account:
    counts = (one["entries"], one["timeouts"], one["strikes"])
    return replace(
        _opened(one), largest=_limit(one["largest"]), spent=amounts(one["spent"]), entries=counts[0], timeouts=counts[1], strikes=counts[2]
    )


def _made(accounts: Accounts, body: Mapping[str, JSON]) -> Account:
    account = _opened(body)
    if account.key in accounts:
        raise ValueError("an account that exists is made again")
    return account


def _opened(body: Mapping[str, JSON]) -> Account:
    cap = _limit(body)
    kind = Kind(body["kind"])
    return Account(body["account"], kind, body["name"], body["group"], body["tested"], cap, cap, parsed(body["delta_conv"]))


def _limit(body: Mapping[str, JSON]) -> Limit:
    return Limit(parsed(body["epsilon"]), parsed(body["delta"]))
