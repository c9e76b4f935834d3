"""What may be spent: budget, caps of analysts and groups, prices, limits; and whether they add up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from dpquery.schema.file import AnalystPart, CapsPart, LimitsPart, SchemaFile
from dpquery.schema.model import Caps, Group, Limits, PerQuery
from dpquery.schema.where import Step, Where, near
from dpquery.values.types import LEAST_AMOUNT

DEFAULT: Final = "default"
MAX_BUDGET: Final = Decimal(10**6)
MAX_EPSILON: Final = Decimal(50)  # of one statement
UNSAFE: Final = Decimal("1e40")  # with `unsafe_testing`: large enough to turn noise off
MAX_TIMEOUT: Final = Decimal(86_400)
MIN_QUANTUM: Final = Decimal("0.001")  # a finer grid would hide nothing
MIN_MEMORY: Final = 16 * 10**6
MAX_MEMORY: Final = 2**50
MAX_THREADS: Final = 1024
UNITS: Final = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

_MEMORY = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,3}))?\s*([KMGT]I?B)", re.ASCII | re.IGNORECASE)


def caps(part: CapsPart, unsafe: bool, where: Where, *path: Step) -> Caps:
    """One cap; SchemaError where it is out of range."""
    _epsilon(part.epsilon, UNSAFE if unsafe else MAX_BUDGET, unsafe, where, *path, "epsilon")
    _delta(part.delta, unsafe, UNSAFE, where, *path, "delta")
    return Caps(epsilon=part.epsilon, delta=part.delta, period=part.period if isinstance(part, AnalystPart) else None)


def per_query(part: SchemaFile, where: Where) -> PerQuery:
    """The price of a statement and its largest; SchemaError where one is out of range or they contradict."""
    prices, unsafe = part.per_query, part.unsafe_testing
    most = UNSAFE if unsafe else MAX_EPSILON
    for key, value in (("max_epsilon", prices.max_epsilon), ("epsilon", prices.epsilon)):
        if value is not None:
            _epsilon(value, most, unsafe, where, "per_query", key)
    _delta(prices.delta, unsafe, Decimal(1), where, "per_query", "delta")
    if prices.epsilon is not None and prices.max_epsilon is not None and prices.epsilon > prices.max_epsilon:
        raise where.error("BAD_BUDGET", f"({prices.epsilon}) is above max_epsilon ({prices.max_epsilon})", "per_query", "epsilon")
    return PerQuery(epsilon=prices.epsilon, max_epsilon=prices.max_epsilon, delta=prices.delta)


def accounts(part: SchemaFile, budget: Caps, where: Where) -> tuple[dict[str, Caps], dict[str, Group]]:
    """The caps of analysts and groups. Unless oversubscribed they add up: members to the group's, groups and others to the data set's."""
    unsafe = part.unsafe_testing
    if part.analysts is None and part.groups:
        raise where.error("BAD_BUDGET", "there are groups but no analysts", "groups", instead="give each member a cap under `analysts`")
    if part.analysts is None:
        return {DEFAULT: budget}, {}
    analysts = {name: caps(cap, unsafe, where, "analysts", _named(name, where, "analysts")) for name, cap in part.analysts.items()}
    groups: dict[str, Group] = {}
    grouped: dict[str, str] = {}
    for name, group in part.groups.items():
        if _named(name, where, "groups") in analysts:
            raise where.error("DUPLICATE_NAME", f"`{name}` is the name of an analyst too", "groups", name)
        cap = caps(group, unsafe, where, "groups", name)
        for i, member in enumerate(group.members):
            _member(member, analysts, grouped, where, "groups", name, "members", i)
            grouped[member] = name
        groups[name] = Group(caps=cap, members=tuple(group.members))
        _fits({m: analysts[m] for m in group.members}, cap, part.oversubscribe, f"the group `{name}`", where, "groups", name)
    loose = {name: cap for name, cap in analysts.items() if name not in grouped}
    shares = {**loose, **{name: group.caps for name, group in groups.items()}}
    _fits(shares, budget, part.oversubscribe, "the budget", where, "analysts")
    return analysts, groups


def limits(part: LimitsPart, where: Where) -> Limits:
    """What one statement may use; SchemaError where a limit is out of range."""
    if not 0 < part.timeout <= MAX_TIMEOUT:
        raise where.error("OUT_OF_RANGE", f"must be above 0 and at most {MAX_TIMEOUT:,} seconds, not {part.timeout}", "limits", "timeout")
    if part.threads > MAX_THREADS:
        raise where.error("OUT_OF_RANGE", f"must be at most {MAX_THREADS:,}, not {part.threads}", "limits", "threads")
    if part.response_quantum is not None and not MIN_QUANTUM <= part.response_quantum <= MAX_TIMEOUT:
        message = f"must be {MIN_QUANTUM} to {MAX_TIMEOUT:,} seconds, not {part.response_quantum}"
        raise where.error("OUT_OF_RANGE", message, "limits", "response_quantum", instead="leave it out: replies then leave at once")
    return Limits(
        timeout=part.timeout,
        memory=_memory(part.memory, where),
        threads=part.threads,
        timeouts_per_account=part.timeouts_per_account,
        response_quantum=part.response_quantum,
    )


def _epsilon(value: Decimal, most: Decimal, unsafe: bool, where: Where, *path: Step) -> None:
    if value <= 0:
        raise where.error("OUT_OF_RANGE", f"must be above 0, not {value}", *path)
    _proportion(value, where, *path)
    if value > most:
        instead = None if unsafe else "`unsafe_testing: true` lifts this limit, for tests only: nothing is protected then"
        raise where.error("OUT_OF_RANGE", f"must be at most {most:,}, not {value}", *path, instead=instead)


def _delta(value: Decimal, unsafe: bool, most: Decimal, where: Where, *path: Step) -> None:
    if value < 0:
        raise where.error("OUT_OF_RANGE", f"must not be below 0, but is {value}", *path)
    if value:
        _proportion(value, where, *path)
    if unsafe and value > most:
        raise where.error("OUT_OF_RANGE", f"must be at most {most:,}, not {value}", *path)
    if not unsafe and value >= 1:
        raise where.error("OUT_OF_RANGE", f"must be below 1, not {value}", *path, instead="much less than one in the number of units, such as 1e-6")


def _proportion(value: Decimal, where: Where, *path: Step) -> None:
    if value < LEAST_AMOUNT:
        raise where.error("OUT_OF_RANGE", f"must not be below 1e-100, as {value} is: it is out of all proportion", *path)


def _named(name: str, where: Where, key: str) -> str:
    if name != name.strip() or not name.isprintable() or len(name) > 128:
        raise where.error("BAD_NAME", "a name has 1 to 128 printable characters, without spaces at the ends", key, name)
    return name


def _member(member: str, analysts: Mapping[str, Caps], grouped: Mapping[str, str], where: Where, *path: Step) -> None:
    if member == DEFAULT:
        raise where.error("BAD_BUDGET", f"`{DEFAULT}` is shared by all names not listed, and cannot be in a group", *path)
    if member not in analysts:
        close = near(member, analysts)
        instead = f"did you mean `{close}`?" if close else "give each member a cap under `analysts`"
        raise where.error("BAD_BUDGET", f"no analyst is called `{member}`", *path, instead=instead)
    if member in grouped:
        raise where.error("BAD_BUDGET", f"`{member}` is in a group already: `{grouped[member]}`", *path)


def _fits(shares: Mapping[str, Caps], whole: Caps, oversubscribe: bool, name: str, where: Where, *path: Step) -> None:
    for key in ("epsilon", "delta"):
        most = Fraction(getattr(whole, key))
        parts = {share: Fraction(getattr(cap, key)) for share, cap in shares.items()}
        above = [share for share, part in parts.items() if part > most]
        if above:
            raise where.error("BAD_BUDGET", f"the {key} of `{above[0]}` is above that of {name} ({getattr(whole, key)})", *path)
        if not oversubscribe and sum(parts.values()) > most:
            message = f"the caps on {key} add up to {_total(parts.values())}, above that of {name} ({getattr(whole, key)})"
            instead = "lower the caps; `oversubscribe: true` allows it, and promises only the data set's guarantee"
            raise where.error("BAD_BUDGET", message, *path, instead=instead)


def _total(parts: Iterable[Fraction]) -> str:
    total = sum(parts, Fraction(0))
    return str(total) if total.denominator == 1 else f"{float(total):.12g}"


def _memory(text: str, where: Where) -> int:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise where.error("WRONG_TYPE", f"must be an amount of memory, not `{text[:60]}`", "limits", "memory", instead="write 500MB or 4GB")
    amount = int(Fraction(f"{match[1]}.{match[2] or 0}") * UNITS[match[3].upper()])
    if not MIN_MEMORY <= amount <= MAX_MEMORY:
        raise where.error("OUT_OF_RANGE", "must be at least 16MB and at most 1PB", "limits", "memory")
    return amount
