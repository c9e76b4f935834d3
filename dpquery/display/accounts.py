"""Accounts and the ledger's log, for people and machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_DOWN
from typing import TYPE_CHECKING, Any

from rich.text import Text

from dpquery.display.pages import Lines, amounts
from dpquery.display.text import Column, amount, facts, grid, remaining, safe

if TYPE_CHECKING:
    from dpquery.engine import Balance, Logged


def budget(found: Balance, fits: Mapping[str, int], units: Mapping[str, Any] | None = None) -> Lines:
    """A budget for people: raw sums, the cap and what it promises, the ladder, and how many queries more would fit; `units` as of `together`."""
    content = found.as_dict()
    yield facts([*_spent(content), *_promised(content), *_left(content, fits), *(() if units is None else _together(units))])
    if content["locked"]:
        yield Text("The account is locked: too many statements ran out of time or memory, or were interrupted. The data owner can unlock it.")
    if content["oversubscribe"]:
        yield Text("The caps are oversubscribed: what is promised is the data set's budget alone; a cap only says when an account is stopped.")
    if content["unsafe_testing"]:
        yield Text("UNSAFE TESTING: the schema lifts the limits; answers protect nobody.")
    yield from _ladder(content["ladder"])


def _spent(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    period, count = content["period"], content["entries"]
    entries = f"{count} {'entry' if count == 1 else 'entries'}"
    yield "data set", content["dataset"]
    yield "account", content["analyst"]
    if content["spent"] == content["lifetime"] and period is None:
        yield "spent", f"{amounts(content['spent'])}, in {entries}"
    else:
        yield "spent", f"{amounts(content['spent'])}, since the present period began"
        yield "in all", f"{amounts(content['lifetime'])}, in {entries}"


def _promised(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    period, cap = content["period"], amounts(content["cap"])
    granted = f" ({amounts(content['granted'])} of it granted)" if any(float(x) for x in content["granted"].values()) else ""
    if period is None:
        yield "cap", f"{cap}{granted}: the promise about all answers together"
    else:
        yield "cap", f"{cap}{granted}, for each {period['days']} days: the promise about the answers of one period"
        next_ = "the budget has no room for the next one: the cap stays as it is" if period["lapsed"] else f"ends {period['ends']}"
        yield "period", f"{period['number']}, began {period['began']}, {next_}"
    if content["guarantee"] != content["cap"]:
        why = "over all periods" if period is not None else "the largest cap that was in force"
        yield "promise", f"{amounts(content['guarantee'])}, about all answers ever: {why}"


def _left(content: Mapping[str, Any], fits: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    yield "left", f"{remaining(content)}{_otherwise(content)}"
    yield "", "(delta is for private groups; half of the cap's is set aside to convert rho)"
    yield "fits", ", ".join(f"{count} at epsilon {price}" for price, count in fits.items()) + " (Laplace noise, public groups)"


def _together(units: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    people = f"{units['units']} people"
    yield people, f"{_promise(units)}: the promise to so many together, about all answers ever"
    if "period" in units:
        yield "", f"{_promise(units['period'])}: about the answers of one period"


def _promise(one: Mapping[str, Any]) -> str:
    return f"epsilon {amount(one['epsilon'])}, " + (
        "delta 1 or more, which promises nothing" if one["delta"] is None else f"delta {amount(one['delta'])}"
    )


def _otherwise(content: Mapping[str, Any]) -> str:
    """The other measure of what is left, while both are in force."""
    return "" if content["spent"]["epsilon"] == "infinite" else f"; or rho {amount(content['left']['rho'], ROUND_DOWN)}, if that goes further"


def _ladder(rungs: Sequence[Mapping[str, Any]]) -> Lines:
    if not rungs:
        return
    yield Text("\nFixed in advance: while the spent rho is at most so much, the loss is at most epsilon, but for delta.")
    yield grid(
        [
            Column("rho", tuple(amount(rung["rho"]) for rung in rungs), number=True),
            Column("epsilon", tuple(amount(rung["epsilon"]) for rung in rungs), number=True),
            Column("delta", tuple(amount(rung["delta"]) for rung in rungs), number=True),
            Column("", tuple("holds" if rung["holds"] else "passed" for rung in rungs)),
        ]
    )


def log_as_json(accounts: Sequence[Balance], logged: Sequence[Logged]) -> dict[str, Any]:
    """Accounts and log for machines."""
    entries = [
        {"seq": line.seq, "id": line.id, "time": line.time, "event": line.event, **_what(line.body), "commitment": line.commitment} for line in logged
    ]
    return {"accounts": [account.as_dict() for account in accounts], "entries": entries}


def _what(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: body[key]
        for key in ("analyst", "name", "epsilon", "rho", "delta", "code", "entry", "version", "account", "reason", "period", "times")
        if key in body
    }


def log(accounts: Sequence[Balance], logged: Sequence[Logged]) -> Lines:
    """Accounts and log for people: who spent how much, then a line an entry."""
    spent = [account.as_dict() for account in accounts]
    yield grid(
        [
            Column("account", tuple(safe(account["analyst"]) for account in spent)),
            *(
                Column(f"spent {name}", tuple(amount(account["lifetime"][name]) for account in spent), number=True)
                for name in ("epsilon", "rho", "delta")
            ),
            Column("cap", tuple(amount(account["cap"]["epsilon"]) for account in spent), number=True),
        ]
    )
    yield Text("")
    yield grid(
        [
            Column("", tuple(str(line.seq) for line in logged), number=True),
            Column("time", tuple(line.time[:16] for line in logged), number=True),
            Column("event", tuple(line.event for line in logged)),
            Column("who", tuple(_who(line.body) for line in logged)),
            Column("what", tuple(_added(line) for line in logged)),
            Column("entry", tuple(line.id[:12] for line in logged)),
        ]
    )


def _who(body: Mapping[str, Any]) -> str:
    """Whom a line of the log is about: the analyst who asked, or the account that was made."""
    return safe(str(body.get("analyst") or body.get("name") or str(body.get("account", "")).split(":")[-1]))


def _added(line: Logged) -> str:
    """What a line of the log adds: the price, an account's cap, a version, why it was refused, or which entry it settles."""
    body = line.body
    match line.event:
        case "charged" | "shown" if body["epsilon"] == "infinite":
            return f"rho {amount(body['rho'])}"
        case "charged" | "shown":
            return f"epsilon {amount(body['epsilon'])}"
        case "account" | "caps" if "period" in body:
            return f"cap {amount(body['epsilon'])} each {body['period']} days"
        case "account" | "caps":
            return f"cap {amount(body['epsilon'])}"
        case "granted":
            return safe(f"{amounts({name: body[name] for name in ('epsilon', 'delta') if body[name] != '0'})}: {body['reason']}")
        case "renewed" if body["times"] > 1:
            return f"period {body['period'] + 1}, {body['times']} caps on"
        case "renewed":
            return f"period {body['period'] + 1}"
        case "lapsed":
            return f"no room for period {body['period'] + 1}"
        case "restored":
            return safe(f"forgot line {body['line']}: {body['reason']}")
        case "registered" | "looked":
            return f"version {body['version']}"
        case "refused":
            return safe(str(body.get("code", "")))
        case _:
            return safe(str(body.get("entry", "")))[:12]
