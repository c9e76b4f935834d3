"""The price a statement asks for: its own OPTIONS, the caller's arguments, the schema's policy; read as exact numbers, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypedDict, Unpack

from dpquery.accounting.convert import epsilon_up
from dpquery.engine.goal import Error, Goal, goals
from dpquery.engine.numeral import Amount, amount, no_proportion
from dpquery.errors import Position, Refused
from dpquery.plan.draft import Options, Question
from dpquery.plan.release import Ask, Mechanism
from dpquery.schema.model import Schema
from dpquery.values.types import LEAST_AMOUNT

LARGEST_EPSILON = Fraction(50)
CHOICE = Fraction(1, 10)  # of a release's price, for the histograms from which its caps are chosen
LEAST_DOUBT = Fraction(1, 10**100)  # of an error bar: what is left of 1 stays far above the least double, split among many outputs too
PRICES: tuple[Literal["epsilon"], Literal["delta"], Literal["rho"]] = ("epsilon", "delta", "rho")
NAMED = {
    **dict.fromkeys(("TWO_PRICES", "SHARES_EXCEED_PRICE", "PRICE_SHARES"), ("epsilon", "rho")),
    **dict.fromkeys(("EPSILON_TOO_LARGE", "BAD_PRICE"), ("epsilon", "rho")),
    **dict.fromkeys(("DELTA_SHARE", "BAD_DELTA", "RHO_NEEDS_DELTA", "PRIVATE_KEYS_NEED_DELTA"), ("delta",)),
    "GAUSSIAN_NEEDS_DELTA": ("delta", "noise"),
    **dict.fromkeys(("TWO_CONFIDENCES", "BAD_CONFIDENCE"), ("confidence_level",)),
}
"""What the refusals of prices that do not fit each other are about."""


@dataclass(frozen=True, slots=True)
class Call:
    """What the caller asked for beside the statement; None where silent."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    confidence: Fraction | None = None
    noise: Mechanism | None = None
    error: tuple[Goal, ...] = ()
    auto: bool = False
    tidy: bool = False


class Wanted(TypedDict, total=False):
    """What a caller may ask for beside the statement, as people write it."""

    epsilon: Amount | None
    delta: Amount | None
    rho: Amount | None
    confidence: Amount | None
    noise: str | None
    error: Error | None
    bounds: str | None
    tidy: bool


def call(**wanted: Unpack[Wanted]) -> Call:
    """The caller's arguments as exact numbers."""
    epsilon, delta, rho = (amount(name, wanted.get(name)) for name in PRICES)
    confidence, noise, error = amount("confidence", wanted.get("confidence")), _noise(wanted.get("noise")), goals(wanted.get("error"))
    return Call(epsilon, delta, rho, confidence, noise, error, _auto(wanted.get("bounds")), wanted.get("tidy") is True)


def _auto(given: str | None) -> bool:
    """Whether bounds that the statement does not write are chosen from the data."""
    if given is not None and (not isinstance(given, str) or given.lower() != "auto"):
        raise Refused("OPTION_VALUE", "bounds are 'auto', or written in the statement", instead="auto")
    return given is not None


def _noise(given: str | None) -> Mechanism | None:
    """The noise of that name. Refused for any other."""
    names = {one.value: one for one in Mechanism}
    if given is None:
        return None
    if not isinstance(given, str) or given.lower() not in names:
        raise Refused("OPTION_VALUE", "no noise has this name", instead=f"one of {', '.join(names)}; without one the noise that errs least is chosen")
    return names[given.lower()]


def asks(question: Question, given: Call, schema: Schema) -> tuple[Ask, tuple[Ask, ...]]:
    """The statement's price, and each release's part of it with its own noise. Refused where they do not fit each other or the policy."""
    try:
        return _asks(question, given, schema)
    except Refused as refused:
        refused.position = refused.position or place(question, NAMED.get(refused.code, ()))
        raise


def place(question: Question, names: Sequence[str]) -> Position | None:
    """Where the statement's OPTIONS name one of these for the last time."""
    found = [block.places[name] for block in question.blocks for name in names if name in block.places]
    return max(found, key=lambda one: (one.line, one.column), default=None)


@contextmanager
def placed(question: Question, parts: Sequence[Ask]) -> Iterator[None]:
    """A price that is refused is shown where it stands, a share that exceeds its release's price first."""
    try:
        yield
    except Refused as refused:
        own = _share(question, parts) if refused.code == "SHARES_EXCEED_PRICE" else None
        refused.position = refused.position or own or place(question, NAMED.get(refused.code, ()))
        raise


def _share(question: Question, parts: Sequence[Ask]) -> Position | None:
    """The last aggregate whose own epsilon leaves less than nothing of its release's."""
    for block, part in zip(question.blocks, parts, strict=True):
        own = [one for one in block.draft.asks if one.epsilon is not None]
        taken = sum((one.epsilon or Fraction(0) for one in own), part.selection_epsilon or Fraction(0))
        if part.epsilon is not None and taken >= part.epsilon:
            return own[-1].position if own else block.places.get("group_selection_epsilon")
    return None


def _asks(question: Question, given: Call, schema: Schema) -> tuple[Ask, tuple[Ask, ...]]:
    blocks = [block for block in question.blocks if not block.serves]
    outermost = None if question.outermost is None else blocks.index(question.blocks[question.outermost])
    options, paying = [_named(block.options, given.noise) for block in blocks], [block.pays for block in blocks]
    plain = all(one.plain for one in options)
    whole = replace(ask(_whole(options, paying, outermost, schema), given, schema), plain=plain)
    if len(options) == 1:
        return whole, _served(question, {blocks[0].name: whole})
    parts = _parts(options, paying, outermost, whole)
    own = {
        block.name: replace(whole, epsilon=epsilon, rho=rho, noise=one.noise, selection=one.selection, selection_epsilon=one.selection_epsilon)
        for block, one, (epsilon, rho) in zip(blocks, options, parts, strict=True)
    }
    return whole, _served(question, own)


def _served(question: Question, own: Mapping[str, Ask]) -> tuple[Ask, ...]:
    """Each release's part of the price, where those that choose caps for another take theirs from its part, in equal shares."""
    serving = [block.serves for block in question.blocks]
    found = []
    for block in question.blocks:
        mine = own[block.serves or block.name]
        part = CHOICE / serving.count(block.serves) if block.serves else 1 - CHOICE if block.name in serving else Fraction(1)
        made = replace(mine, epsilon=mine.epsilon and mine.epsilon * part, rho=mine.rho and mine.rho * part)
        found.append(replace(made, selection=None, selection_epsilon=None) if block.serves else made)
    return tuple(found)


def _named(options: Options, noise: Mechanism | None) -> Options:
    """The options with the noise that the caller names. Refused where the statement names another."""
    if noise is None or options.noise is noise:
        return options
    if options.noise is not None:
        raise Refused("TWO_PRICES", "the statement's OPTIONS and the call name different noises", instead="give it in one place")
    return replace(options, noise=noise)


def _whole(options: Sequence[Options], paying: Sequence[bool], outermost: int | None, schema: Schema) -> Options:
    """The price that the statement as a whole names: its only release's, the sum of all that pay, or that of its outermost SELECT."""
    if len(options) == 1:
        return options[0]
    levels = {one.confidence for one in options if one.confidence is not None}
    if len(levels) > 1:
        raise Refused("TWO_CONFIDENCES", "the statement's OPTIONS name different confidence levels", instead="confidence_level once")
    confidence = min(levels, default=None)
    payers = [one for one, pays in zip(options, paying, strict=True) if pays]
    if payers and all(map(_priced, payers)):
        epsilon, rho = _sum(one.epsilon for one in payers), _sum(one.rho for one in payers)
        if epsilon is not None and rho is not None:
            raise Refused("TWO_PRICES", "some releases of the statement are priced in epsilon, others in rho", instead="one of them for all")
        if all(one.delta is None and one.levels == len(payers) for one in payers):  # one clause speaks for all
            return Options(epsilon=epsilon, rho=rho, confidence=confidence)
        deltas = [Fraction(schema.per_query.delta) / one.levels if one.delta is None else one.delta for one in payers]
        return Options(epsilon=epsilon, rho=rho, delta=sum(deltas, Fraction(0)), confidence=confidence)
    for place, one in enumerate(options):
        if place != outermost and one.delta is not None:
            message = "the statement's delta is split over its releases, and one of them names its own"
            raise Refused(
                "DELTA_SHARE", message, instead="OPTIONS(epsilon = .., delta = ..) in each SELECT that aggregates, or in the outermost alone"
            )
    outer = Options() if outermost is None else options[outermost]
    inner = [one for place, one in enumerate(options) if place != outermost and paying[place]]
    if _priced(outer) and any(map(_priced, inner)):
        message = "some releases of the statement name a price of their own, and others do not"
        raise Refused("PRICE_SHARES", message, instead="OPTIONS(epsilon = ..) in each SELECT that aggregates, or in the outermost alone")
    return Options(epsilon=outer.epsilon, rho=outer.rho, delta=outer.delta, confidence=confidence)


def _parts(options: Sequence[Options], paying: Sequence[bool], outermost: int | None, whole: Ask) -> list[tuple[Fraction | None, Fraction | None]]:
    """Each release's part of epsilon and of rho: its own, and of what these leave an equal part; nothing for one that shows no noisy value."""
    in_rho = whole.rho is not None
    own = [one.rho if in_rho else one.epsilon for one in options]
    if any((one.epsilon if in_rho else one.rho) is not None for one in options):
        raise Refused("TWO_PRICES", "a release is priced in another currency than its statement", instead="epsilon for all, or rho for all")
    if outermost is not None and not all(_priced(one) for one, pays in zip(options, paying, strict=True) if pays) and _priced(options[outermost]):
        own[outermost] = None  # it speaks for the statement
    own = [part if pays else Fraction(0) for part, pays in zip(own, paying, strict=True)]
    total = whole.rho if whole.rho is not None else whole.epsilon or Fraction(0)
    silent, rest = own.count(None), total - sum(one for one in own if one is not None)
    if rest < 0 or (silent and rest <= 0):
        message = "the prices of single releases leave less than nothing of the statement's"
        raise Refused("SHARES_EXCEED_PRICE", message, instead="smaller prices for these, or a larger one for the statement")
    shares = [rest / silent if one is None else one for one in own]
    return [(None, share) if in_rho else (share, None) for share in shares]


def _priced(options: Options) -> bool:
    return options.epsilon is not None or options.rho is not None


def _sum(values: Iterable[Fraction | None]) -> Fraction | None:
    found = [value for value in values if value is not None]
    return sum(found, Fraction(0)) if found else None


def ask(options: Options, given: Call, schema: Schema) -> Ask:
    """The price and noise of the statement. Refused where statement and caller differ, or where the policy does not allow it."""
    epsilon = _agreed("epsilon", options.epsilon, given.epsilon)
    rho = _agreed("rho", options.rho, given.rho)
    delta = _agreed("delta", options.delta, given.delta)
    if epsilon is not None and rho is not None:
        raise Refused("TWO_PRICES", "epsilon and rho are two ways to name one price", instead="give one of them")
    if delta is None:
        delta = Fraction(schema.per_query.delta)
    if epsilon is None and rho is None:
        epsilon = None if schema.per_query.epsilon is None else Fraction(schema.per_query.epsilon)
    if epsilon is None and rho is None:
        raise Refused("NO_PRICE", "neither the statement nor the schema's per_query names a price", instead="give an epsilon, such as 0.5")
    _in_range(epsilon, rho, delta, schema)
    confidence = _agreed("confidence_level", options.confidence, given.confidence)
    confidence = Fraction(95, 100) if confidence is None else confidence
    if not Fraction(1, 2) <= confidence < 1:
        raise Refused("BAD_CONFIDENCE", "the confidence level must lie in [0.5, 1)", instead="0.95 is usual")
    if 1 - confidence < LEAST_DOUBT:
        raise Refused("BAD_CONFIDENCE", "the confidence level is out of all proportion", instead="0.95 is usual")
    return Ask(delta, epsilon, rho, options.noise, options.selection, options.selection_epsilon, confidence)


def _agreed(name: str, in_statement: Fraction | None, in_call: Fraction | None) -> Fraction | None:
    if in_statement is not None and in_call is not None and in_statement != in_call:
        raise Refused("TWO_PRICES", f"the statement's OPTIONS and the call name different values of {name}", instead="give it in one place")
    return in_call if in_statement is None else in_statement


def _in_range(epsilon: Fraction | None, rho: Fraction | None, delta: Fraction, schema: Schema) -> None:
    for name, value in (("epsilon", epsilon), ("rho", rho)):
        if value is not None and value <= 0:
            raise Refused("BAD_PRICE", f"{name} must be above 0: no answer is free", instead=f"give a positive {name}, such as 0.5")
        if value is not None and value < LEAST_AMOUNT:
            raise no_proportion(name)
    unsafe = schema.unsafe_testing
    if delta < 0 or delta > 1 or (delta == 1 and not unsafe):
        raise Refused("BAD_DELTA", "delta must lie in [0, 1)", instead="give a small delta, such as 1e-9, far below 1 / number of people")
    if 0 < delta < LEAST_AMOUNT:
        raise Refused("BAD_DELTA", "delta is out of all proportion", instead="give delta as 0, or as a plain decimal such as 1e-9")
    most = max(schema.budget.delta, schema.per_query.delta)
    if not unsafe and delta > most:  # else a large delta would make a small epsilon of any price, and pass the limits on epsilon
        raise Refused("BAD_DELTA", f"delta is above the data set's, {most}", instead=f"a delta of at most {most}; 1e-9 is usual")
    if rho is not None and delta == 0:
        raise Refused("RHO_NEEDS_DELTA", "a price in rho has no epsilon at delta 0", instead="give a delta, or a price in epsilon")
    if epsilon is not None:
        within_policy(epsilon, schema)
    elif rho is not None and delta < 1:
        within_policy(epsilon_up(rho, delta), schema)


def within_policy(epsilon: Fraction | None, schema: Schema) -> None:
    """Nothing, or Refused where a statement's epsilon passes 50 or the schema's per_query.max_epsilon."""
    largest = schema.per_query.max_epsilon
    if not schema.unsafe_testing and (epsilon is None or epsilon > LARGEST_EPSILON):
        raise Refused("EPSILON_TOO_LARGE", "epsilon above 50 protects nobody", instead="give an epsilon of at most 50; below 1 is usual")
    if largest is not None and (epsilon is None or epsilon > Fraction(largest)):
        raise Refused(
            "EPSILON_TOO_LARGE",
            f"the schema allows at most epsilon {largest} per statement",
            instead=f"epsilon = {largest} or less, or several statements; the data's owner may set per_query.max_epsilon higher",
        )
