"""What the owner and the clock change of the accounts: the schema's caps, grants, periods; and the balances that shorten reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from dpquery.errors import Refused
from dpquery.ledger import log, renewal, replay, reserve, versions
from dpquery.ledger.model import JSON, NOTHING, Account, Kind, Limit
from dpquery.ledger.store import Transaction
from dpquery.schema.model import Schema
from dpquery.values.types import LEAST_AMOUNT

BALANCE_EVERY: Final = 5000  # lines of the log that `open` reads again at most, about
LONGEST_REASON: Final = 1000  # characters
LARGEST: Final = 10**6  # of one grant


def due(tx: Transaction, schema: Schema) -> bool:
    """Whether opening has something to write."""
    accounts = tx.accounts()
    return _long(tx) or any(renewals(accounts, schema)) or bool(reserve.changes(schema, accounts, log.moment()))


def brought_up(tx: Transaction, schema: Schema) -> None:
    """The schema's accounts and caps are in force, and a long log holds a fresh balance.

    Periods that are due begin first, under the caps that were in force at their time; those that found no room are tried again under the new ones.
    """
    renewed(tx, tx.accounts(), schema)
    accounts = tx.accounts()
    for account, new in reserve.changes(schema, accounts, log.moment()):
        if new:
            log.append(tx, replay.opening(account))
        else:
            log.append(tx, replay.recapping(account), [accounts[account.key]])
    renewed(tx, tx.accounts(), schema)
    if _long(tx):
        held = replay.balanced(tuple(tx.accounts().values()))
        log.append(tx, {"event": "balanced", "accounts": held, "versions": versions.counts(tx)})


def renewals(accounts: Mapping[str, Account], schema: Schema) -> Iterator[Mapping[str, JSON]]:
    """The entries of periods that are due now."""
    if any(account.periods is not None for account in tuple(accounts.values())):
        yield from renewal.due(dict(accounts), schema.oversubscribe or schema.unsafe_testing, log.moment())


def renewed(tx: Transaction, accounts: Mapping[str, Account], schema: Schema) -> None:
    """Periods that are due have begun."""
    now = dict(accounts)
    for body in renewals(accounts, schema):
        _, changed = log.append(tx, body, [now[body["account"]]])
        now |= {account.key: account for account in changed}


def granted(tx: Transaction, accounts: Mapping[str, Account], schema: Schema, whose: tuple[Kind, str], more: Limit, reason: str) -> Account:
    """The account after a grant, and after the periods that now find room.

    Refused for an account that is none of the schema's, or a grant of nothing or without a reason.
    """
    key = reserve.key_of(*whose)
    if key not in accounts or key not in reserve.keys(schema):
        message = f"the schema has no {whose[0]} `{whose[1]}` with an account of its own"
        raise Refused("UNKNOWN_ACCOUNT", message, instead="a name under `analysts` or `groups`, `--analyst default`, or `--dataset`")
    if not (_grantable(more.epsilon) and _grantable(more.delta)) or more == NOTHING:
        message = f"a grant is of epsilon or delta from 1e-100 to {LARGEST:,}"
        raise Refused("BAD_GRANT", message, instead="`--epsilon 0.5`")
    if not reason.strip() or len(reason) > LONGEST_REASON or not reason.isprintable():
        message = f"a grant has a reason of 1 to {LONGEST_REASON} printable characters, which the log keeps"
        raise Refused("BAD_GRANT", message, instead="`--reason TEXT`")
    reserve.granted(schema, accounts, key, more)
    body = {"event": "granted", "account": key, **more.as_dict(), "reason": reason}
    _, (account,) = log.append(tx, body, [accounts[key]])
    renewed(tx, {**accounts, key: account}, schema)  # a period that found no room has some now
    return tx.accounts()[key]


def _grantable(amount: Decimal) -> bool:
    return amount.is_finite() and (amount == 0 or LEAST_AMOUNT <= amount <= LARGEST)


def _long(tx: Transaction) -> bool:
    start = tx.balanced()
    return tx.head()[0] - (start.seq if start else 0) > BALANCE_EVERY
