"""What a statement would cost an account now: the price before it is paid, how often it fits, and what would fit instead.

All of it is a function of the statement, the schema, public tables and this one account.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpquery.ledger import Amounts, Room
from dpquery.ledger.amounts import text
from dpquery.plan.release import Ask, Choosing, Mechanism, PrivateKeys, Release
from dpquery.privacy import Bill, bill
from dpquery.values.types import Adjacency

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready

JSON = Any
FREE = Amounts()


@dataclass(frozen=True, slots=True)
class Now:
    """What a statement would cost an account if it were asked now.

    `charged` is nothing where the account was shown the answer already (`stored`); `fits` is how many more such statements it can pay, a million
    standing for that and more. Where that is none, `largest` is the largest price, in `unit`, at which the statement with the same noise fits.
    """

    account: str
    charged: Amounts
    stored: bool
    fits: int
    unit: str
    largest: Decimal | None = None
    instead: str | None = None

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        largest = None if self.largest is None else {self.unit: text(self.largest)}
        fits = {"charged": self.charged.as_dict(), "stored": self.stored, "fits": self.fits}
        return {"account": self.account, **fits, "largest": largest, "instead": self.instead}


def now(prepared: Prepared, room: Room, adjacency: Adjacency, stored: bool) -> Now:
    """What the statement would cost the account now, nothing where it has seen a `stored` answer; and what would fit where that does not."""
    price = Amounts.of(prepared.bill.price)
    charged = FREE if stored else price
    unit = "rho" if prepared.ask.rho is not None else "epsilon"
    fits, refusal = room.count(price), None if stored else room.refusal(charged)
    said = Now(room.name, charged, stored, fits, unit)
    if refusal is None:
        return said
    releases, asks = [block.release for block in prepared.blocks], [replace(block.ask, noise=_same(block)) for block in prepared.blocks]
    largest = room.largest(lambda size: Amounts.of(at(releases, asks, prepared.ask, size, adjacency).price), asked(prepared.ask))
    return replace(said, largest=largest, instead=refusal.instead)


def asked(ask: Ask) -> Fraction:
    """The size of a price: its epsilon, or its rho."""
    return ask.rho if ask.rho is not None else ask.epsilon or Fraction(0)


def at(releases: Sequence[Release], asks: Sequence[Ask], whole: Ask, size: Fraction, adjacency: Adjacency) -> Bill:
    """The bill of a statement at another size of its price, `whole`, split in the same proportions."""
    factor = size / asked(whole)
    return bill([_resized(one, factor) for one in releases], [_scaled(ask, factor) for ask in asks], _scaled(whole, factor), adjacency)


def beforehand(prepared: Prepared, room: Room) -> Iterator[str]:
    """What the account's holder should know before paying, of noise that was chosen neither by name nor by a price in rho."""
    if prepared.ask.rho is not None or prepared.bill.price.epsilon is not None or not left_open(prepared):
        return
    if room.pure:
        yield (
            f"The noise that errs least here is charged in rho; the cap of account `{room.name}` is in epsilon alone (delta 0) and cannot hold it. "
            "noise='laplace' can be held."
        )
    elif room.finite:
        yield (
            f"The noise that errs least here has no finite epsilon. Once it is charged, the epsilon that account `{room.name}` has spent "
            f"({text(room.account.spent.epsilon or Decimal(0))} so far) is infinite for good, and its rho alone says what is left. "
            "noise='laplace' keeps it finite."
        )


def left_open(prepared: Prepared) -> bool:
    """Whether the statement left the noise to choose, all of it; or for the price that meets an error, some."""
    return all(block.ask.noise is None for block in prepared.blocks) if prepared.aim is None else prepared.aim.open


def _scaled(ask: Ask, factor: Fraction) -> Ask:
    return replace(
        ask,
        epsilon=None if ask.epsilon is None else ask.epsilon * factor,
        rho=None if ask.rho is None else ask.rho * factor,
        selection_epsilon=None if ask.selection_epsilon is None else ask.selection_epsilon * factor,
    )


def _resized(release: Release, factor: Fraction) -> Release:
    """The release, explicit shares of its aggregates scaled with the price."""
    shared = tuple(one if one.share is None else replace(one, share=one.share * factor) for one in release.aggregates)
    return replace(release, aggregates=shared)


def _same(block: Ready) -> Mechanism | None:
    """The noise that was drawn up for a release, by name. Where modes have no noise of their own no name says it: the choice stays free."""
    if block.ask.noise is not None or block.release.modal:
        return block.ask.noise
    keys = block.release.keys
    own = keys.count if isinstance(keys, PrivateKeys) and block.ask.selection is not None else None
    drawn = next((noise.mechanism for part, noise in enumerate(block.priced.noises) if part != own), None)
    match drawn:
        case Choosing.PERMUTE_AND_FLIP:
            return Mechanism.LAPLACE
        case Choosing.EXPONENTIAL:
            return Mechanism.GAUSSIAN
        case _:
            return drawn
