"""What a price rests on, as JSON on each receipt: enforced bounds, noises, thresholds. From it anyone derives the price again, without the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

from dpquery.accounting.convert import delta_up
from dpquery.accounting.event import Price
from dpquery.ledger import chain
from dpquery.mechanisms import Noise, Randomness
from dpquery.plan.release import Bounding, CellBound, Choosing, Enforced, GroupCap, Idle, Mechanism, RowWeights
from dpquery.privacy import Bill, Priced, enforced, kept, price
from dpquery.values.types import Adjacency

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared

JSON = Any
ZERO = Fraction(0)
NOTHING = Price(ZERO, ZERO, ZERO)
MALFORMED = (*chain.MALFORMED, AssertionError)  # bounds that fit no noise, too


def written(prepared: Prepared) -> list[JSON]:
    """The bounds and noises of each release, in integers of its grid; parameters of noises as exact fractions."""
    return [
        {**_bounds(enforced(block.release)), "noises": [_noise(one) for one in block.priced.noises], "threshold": block.priced.threshold}
        for block in prepared.blocks
    ]


def derived(basis: Sequence[Mapping[str, JSON]], adjacency: str) -> Price:
    """P9 of what a receipt says: the price of its noises under its bounds. One of MALFORMED where it says nothing of the kind."""
    bounds = [_enforced(one) for one in basis]
    priced = [Priced(_noises(one["noises"]), one["threshold"], NOTHING, (), None, ZERO, ZERO, ZERO) for one in basis]
    return price(bounds, Bill(tuple(priced), NOTHING, None, ZERO, ZERO), Adjacency(adjacency))


def standing(basis: Sequence[Mapping[str, JSON]], adjacency: str, price: Price, epsilon: Fraction) -> Fraction:
    """P2, or P11 of a single release: the delta at which a statement of this price in rho keeps an epsilon."""
    if len(basis) == 1:
        return kept(_enforced(basis[0]), price, epsilon, Adjacency(adjacency))
    return delta_up(price.rho, epsilon) + price.delta


def _bounds(bounds: Enforced) -> dict[str, JSON]:
    return {
        "bounding": _bounding(bounds.bounding),
        "cells": [{**asdict(cell), "ranked": None if cell.ranked is None else str(cell.ranked)} for cell in bounds.cells],
        "selecting": bounds.selecting,
        "keyed": bounds.keyed,
        "listed": bounds.listed,
    }


def _bounding(bounding: Bounding) -> dict[str, JSON]:
    match bounding:
        case GroupCap(groups=groups, idle=idle):
            return {"groups": groups, "idle": None if idle is None else str(idle)}
        case RowWeights(rows=rows):
            return {"rows": rows}
        case _:
            assert_never(bounding)


def _noise(noise: Noise) -> dict[str, str]:
    return {"mechanism": str(noise.mechanism), "parameter": str(noise.parameter)}


def _enforced(one: Mapping[str, JSON]) -> Enforced:
    capped, cells = one["bounding"], tuple(map(_cell, one["cells"]))
    bounding: Bounding
    if "rows" in capped:
        bounding = RowWeights(_count(capped["rows"]))
    else:
        bounding = GroupCap(_count(capped["groups"]), None if capped["idle"] is None else Idle(capped["idle"]))
    return Enforced(bounding, cells, one["selecting"], one["keyed"], one["listed"])


def _cell(one: Mapping[str, JSON]) -> CellBound:
    if not isinstance(one["low"], int) or not isinstance(one["high"], int):
        raise TypeError("bounds are integers of the grid")
    return CellBound(**{**one, "ranked": None if one["ranked"] is None else Fraction(one["ranked"])})


def _noises(found: Sequence[Mapping[str, JSON]]) -> tuple[Noise, ...]:
    return tuple(Noise(_mechanism(one["mechanism"]), Fraction(one["parameter"])) for one in found)


def _mechanism(name: str) -> Randomness:
    return Mechanism(name) if name in tuple(Mechanism) else Choosing(name)


def _count(number: JSON) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError("a cap is a count")
    return number
