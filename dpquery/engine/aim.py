"""Accuracy first: the least price whose noise stays within an error, found before anything is run.

Which price is tried, and which is taken, depends on the statement, the schema, public tables and the account alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpquery.aggregates import card, linear
from dpquery.engine import asking
from dpquery.engine.cost import at
from dpquery.engine.goal import Allowed
from dpquery.errors import Refused
from dpquery.ledger import Amounts, Room
from dpquery.ledger.amounts import rounded_up, shown_up, text
from dpquery.ledger.sizes import DIGITS, edge
from dpquery.mechanisms import beyond_up
from dpquery.plan.draft import Affine, Either, Output, Question
from dpquery.plan.release import Ask, ListedKeys, Mechanism, NoKeys, Release
from dpquery.privacy import Bill
from dpquery.schema.model import Schema
from dpquery.values.types import Adjacency

JSON = Any
NOT_COVERED = "It is the error of the noise alone: what clamps and limits on contributions change or leave out is not covered."
FURTHEST = Fraction(10) ** 30  # times the error that was asked for: as far as it is looked what a price buys


@dataclass(frozen=True, slots=True)
class Target:
    """One noisy number of each group that a column shows: how much of its noise, in units of the grid, the column may be off by."""

    column: str
    goal: Allowed
    release: int
    part: int
    units: Fraction
    draws: int


@dataclass(frozen=True, slots=True)
class Tried:
    """The least price at which noise of one kind meets the targets; `size` is None where none up to the largest allowed does."""

    noise: Mechanism | None
    size: Decimal | None
    price: Amounts | None
    fits: bool


@dataclass(frozen=True, slots=True)
class Aim:
    """What was aimed at, what was tried, and the price that was taken: the least that fits, else the least.

    `open`: the statement left the noise to choose. `joint` is of how many numbers the confidence holds at once; None: of those of one group, as how
    many there are is private. `reach`, where nothing fits, says by column which error what is left of the account does buy; it is empty where nothing
    is left.
    """

    whole: Ask
    asks: tuple[Ask, ...]
    targets: tuple[Target, ...]
    open: bool
    joint: int | None
    tried: tuple[Tried, ...]
    reach: tuple[tuple[str, Decimal], ...] | None = None

    @property
    def columns(self) -> dict[str, Allowed]:
        """The error that each column may have."""
        return {target.column: target.goal for target in self.targets}

    def met(self, billed: Bill, times: Fraction = Fraction(1)) -> bool:
        """Whether the noise of a bill stays within so many times the errors with the confidence."""
        return _met(billed, _narrowest(self.targets), self.whole.confidence, times)

    @property
    def said(self) -> str:
        """What the price was found for, and what it does not cover."""
        errors = ", ".join(f"{name} ± {_short(goal.error)}{f' ({goal.of})' if goal.of else ''}" for name, goal in self.columns.items())
        at_once = "for the numbers of one group at once" if self.joint is None else f"for all {self.joint} at once" if self.joint > 1 else ""
        return " ".join(f"The price was found for {errors} with {float(self.whole.confidence):.6g} confidence {at_once}".split()) + f". {NOT_COVERED}"

    @property
    def instead(self) -> str | None:
        """Which error what is left does buy, where this one cannot be paid."""
        if self.reach is None:
            return None
        bought = ", ".join(f"{name} ± {_short(Fraction(error))}" for name, error in self.reach)
        return f"what is left buys an error of {bought}" if bought else "nothing is left that could buy any error: ask the data owner for more budget"

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        return {
            "confidence": text(rounded_up(self.whole.confidence)),
            "joint": self.joint,
            "errors": [{"column": name, "error": _short(goal.error), "of": goal.of} for name, goal in self.columns.items()],
            "tried": [_tried(one) for one in self.tried],
            "left_buys": None if self.reach is None else {name: text(error) for name, error in self.reach},
            "not_covered": NOT_COVERED,
        }


def first(call: asking.Call, question: Question, schema: Schema) -> asking.Call:
    """The call at the largest price that the schema allows. Refused where a price is named beside the error, which finds one."""
    named = [one.options.epsilon or one.options.rho or one.options.selection_epsilon for one in question.blocks]
    shares = [one.epsilon for block in question.blocks for one in block.draft.asks]
    if call.epsilon is not None or call.rho is not None or any(one is not None for one in (*named, *shares)):
        raise Refused("TWO_PRICES", "an error finds the price, and the statement or the call names one too", instead="give the error, or the price")
    largest = schema.per_query.max_epsilon
    return replace(call, epsilon=asking.LARGEST_EPSILON if largest is None else min(asking.LARGEST_EPSILON, Fraction(largest)))


def hit(
    question: Question,
    releases: Sequence[Release],
    asked: tuple[Ask, tuple[Ask, ...]],
    goals: Mapping[str | None, Allowed],
    room: Room | None,
    schema: Schema,
) -> Aim:
    """The aim of a statement whose asks are at the largest price allowed; `goals` are by column, that of None for all others.

    Refused where no price meets it, or where an error depends on private rows.
    """
    whole, asks = asked
    targets = tuple(_targets(question, releases, goals))
    search = _Search(releases, whole, targets, schema.adjacency, room)
    kinds = [(noise, tuple(_named(ask, noise) for ask in asks)) for noise in _noises(whole, asks)]
    tried = [(search.least(noise, with_noise), with_noise) for noise, with_noise in kinds]
    met = sorted((one for one in tried if one[0].size is not None), key=lambda one: (not one[0].fits, one[0].size))
    if not met:
        raise _out_of_reach([search.bought(with_noise, search.top) for _, with_noise in kinds], search.top)
    best, with_noise = met[0]
    size = Fraction(best.size or 0)
    reach = None if best.fits else search.reach([with_noise for _, with_noise in kinds])
    own, parts = search.asks(with_noise, size)
    free = any(ask.noise is None for ask in asks)
    return Aim(own, parts, targets, free, _joint(targets, releases), tuple(one for one, _ in tried), reach)


@dataclass(frozen=True, slots=True)
class _Search:
    releases: Sequence[Release]
    whole: Ask
    targets: tuple[Target, ...]
    adjacency: Adjacency
    room: Room | None

    @property
    def top(self) -> Fraction:
        return self.whole.epsilon or Fraction(0)

    def asks(self, asks: tuple[Ask, ...], size: Fraction) -> tuple[Ask, tuple[Ask, ...]]:
        own = replace(asks[0], epsilon=size) if len(asks) == 1 else replace(self.whole, epsilon=size)
        return own, tuple(replace(ask, epsilon=(ask.epsilon or Fraction(0)) * size / self.top) for ask in asks)

    def bill(self, asks: tuple[Ask, ...], size: Fraction) -> Bill:
        return at(self.releases, asks, self.whole, size, self.adjacency)

    def met(self, billed: Bill, times: Fraction = Fraction(1)) -> bool:
        return _met(billed, _narrowest(self.targets), self.whole.confidence, times)

    def least(self, noise: Mechanism | None, asks: tuple[Ask, ...]) -> Tried:
        _, size = edge(lambda size: not self.met(self.bill(asks, size)), self.top)
        if size is None:
            return Tried(noise, None, None, False)
        price = Amounts.of(self.bill(asks, Fraction(size)).price)
        return Tried(noise, size, price, self.room is None or self.room.accepts(price))

    def bought(self, asks: tuple[Ask, ...], size: Fraction) -> tuple[tuple[str, Decimal], ...]:
        """The errors that a price buys, in proportion to those that were asked for."""
        billed, columns = self.bill(asks, size), _columns(self.targets)
        one = next(iter(columns.values())).error  # what is looked for is the first column's error, and in proportion those of others
        far = one
        while far < FURTHEST * one and not self.met(billed, far / one):
            far *= 10
        _, error = edge(lambda error: not self.met(billed, error / one), far)
        return () if error is None else tuple((name, shown_up(goal.error * Fraction(error) / one, DIGITS)) for name, goal in columns.items())

    def reach(self, kinds: Sequence[tuple[Ask, ...]]) -> tuple[tuple[str, Decimal], ...]:
        """The least errors that what is left of the account buys."""
        room, found = self.room, []
        for asks in kinds if room is not None else ():
            largest = room.largest(_priced(self, asks), self.top) if room is not None else None
            if largest is not None:
                found.append(self.bought(asks, Fraction(largest)))
        return min(filter(None, found), key=lambda errors: errors[0][1], default=())


def _met(billed: Bill, targets: Sequence[Target], confidence: Fraction, times: Fraction) -> bool:
    """Whether the noise stays within so many times the targets with the confidence."""
    draws = ((billed.releases[t.release].noises[t.part], int(t.units * times), t.draws) for t in targets)
    return beyond_up(draws) <= 1 - confidence


def _priced(search: _Search, asks: tuple[Ask, ...]) -> Callable[[Fraction], Amounts]:
    return lambda size: Amounts.of(search.bill(asks, size).price)


def _noises(whole: Ask, asks: tuple[Ask, ...]) -> list[Mechanism | None]:
    """The kinds of noise to try: those that the statement leaves open."""
    if all(ask.noise is not None for ask in asks):
        return [None]
    return [Mechanism.LAPLACE, *([Mechanism.GAUSSIAN] if whole.delta > 0 else [])]


def _named(ask: Ask, noise: Mechanism | None) -> Ask:
    return replace(ask, noise=noise) if ask.noise is None else ask


def _columns(targets: Sequence[Target]) -> dict[str, Allowed]:
    return {target.column: target.goal for target in targets}


def _joint(targets: Sequence[Target], releases: Sequence[Release]) -> int | None:
    if any(not isinstance(releases[t.release].keys, NoKeys | ListedKeys) for t in targets):
        return None
    return sum({(t.release, t.part): t.draws for t in targets}.values())


# ---- which noise a column shows ------------------------------------------------------------------------------------------------------


def _targets(question: Question, releases: Sequence[Release], goals: Mapping[str | None, Allowed]) -> Iterator[Target]:
    """What has to be met: each column with a goal, by the noise that it shows."""
    names = {output.name for output in question.post.outputs}
    unknown = next((name for name in goals if name is not None and name not in names), None)
    if unknown is not None:
        raise Refused("BAD_ERROR", f"the answer has no column `{unknown[:100]}`", instead=f"one of {', '.join(sorted(names))}")
    shown = [(output, goals.get(output.name, goals.get(None))) for output in question.post.outputs]
    found = [one for output, goal in shown if goal for one in _shown(output, goal, question, releases, named=output.name in goals)]
    if not found:
        raise Refused("BAD_ERROR", "the answer has no noisy column, which could be off", instead="leave the error out, and name a price")
    yield from found


def _narrowest(targets: Iterable[Target]) -> tuple[Target, ...]:
    """For each noise the narrowest of the columns that show it."""
    found: dict[tuple[int, int], Target] = {}
    for one in sorted(targets, key=lambda one: -one.units):
        found[one.release, one.part] = one
    return tuple(found.values())


def _shown(output: Output, goal: Allowed, question: Question, releases: Sequence[Release], *, named: bool) -> Iterator[Target]:
    """The noise that a column shows; nothing of one that shows none. Refused where its error is no multiple of one noise."""
    if output.edge is not None or (output.interval is None and not output.noisy):
        if named:
            raise Refused("BAD_ERROR", f"`{output.name}` shows no noisy value", instead="name a column that does")
        return
    for how in _branches(output.interval):
        place = None if not isinstance(how, Affine) else _place(how, question, releases)
        if place is None or not isinstance(how, Affine):
            message = f"how far off `{output.name}` is depends on private rows, or on several noises: no price can be found for its error beforehand"
            raise Refused(
                "ERROR_DEPENDS", message, instead="an error for each count or sum by name: --error n=50, error={'n': 50}; explain shows the rest"
            )
        release, part, step = place
        if how.factor:
            keys = releases[release].keys
            draws = len(keys.rows) if isinstance(keys, ListedKeys) else 1
            yield Target(output.name, goal, release, part, goal.error / abs(how.factor * step), draws)


def _branches(how: object) -> Iterator[object]:
    if isinstance(how, Either):
        for branch in how.branches:
            yield from _branches(branch)
    else:
        yield how


def _place(how: Affine, question: Question, releases: Sequence[Release]) -> tuple[int, int, Fraction] | None:
    """The release and the part whose noise a column shows, and what a unit of it is worth; None where it is no multiple of one."""
    alias, dot, own = how.aggregate.rpartition(".")
    rows = question.post.rows
    name = dict(rows)[alias] if dot else rows[0][1] if rows else None
    release = next((place for place, block in enumerate(question.blocks) if block.name == name), None)
    if release is None:
        return None
    aggregate = next(one for one in releases[release].aggregates if one.name == own)
    if aggregate.cap is not None or card(aggregate).expected_error is not linear.expected_error:
        return None
    return release, aggregate.parts[0], aggregate.step


# ---- words ---------------------------------------------------------------------------------------------------------------------------


def _short(error: Fraction) -> str:
    return text(shown_up(error, DIGITS))


def _tried(one: Tried) -> dict[str, JSON]:
    size = None if one.size is None else text(one.size)
    charged = None if one.price is None else one.price.as_dict()
    return {"noise": None if one.noise is None else str(one.noise), "epsilon": size, "charged": charged, "fits": one.fits}


def _out_of_reach(found: Sequence[tuple[tuple[str, Decimal], ...]], top: Fraction) -> Refused:
    errors = min(filter(None, found), key=lambda errors: errors[0][1], default=())
    bought = ", ".join(f"{name} ± {text(error)}" for name, error in errors)
    message = f"no price up to epsilon {text(rounded_up(top))}, the largest for one statement, meets this error"
    return Refused("ERROR_TOO_SMALL", message, instead=f"that price buys {bought}" if bought else "a larger error")
