"""Aggregates: each a card that says which integers are summed and how the noisy sums read. Adding one built from sums touches one card."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpquery.aggregates.byrank import QUANTILE_BY_RANK
from dpquery.aggregates.card import Bar, Card, Planned
from dpquery.aggregates.count import COUNT
from dpquery.aggregates.distinct import DISTINCT
from dpquery.aggregates.leading import LEADING
from dpquery.aggregates.mean import MEAN
from dpquery.aggregates.mode import MODE
from dpquery.aggregates.pair import PAIRS
from dpquery.aggregates.quantile import QUANTILE
from dpquery.aggregates.race import COUNTED, SUMMED
from dpquery.aggregates.spread import SPREADS
from dpquery.aggregates.total import TOTAL
from dpquery.aggregates.units import UNITS
from dpquery.plan.release import Aggregate

CARDS: Mapping[str, Card] = MappingProxyType(
    {card.name: card for card in (COUNT, UNITS, DISTINCT, TOTAL, MEAN, *SPREADS, *PAIRS, QUANTILE, QUANTILE_BY_RANK, MODE, COUNTED, SUMMED)}
)


def card(aggregate: Aggregate) -> Card:
    """How the noisy sums of an aggregate read."""
    return CARDS[aggregate.card] if aggregate.leading is None else LEADING


__all__ = ["CARDS", "Bar", "Card", "Planned", "card"]
