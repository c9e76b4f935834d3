"""loss_epsilon: beside each COUNT and SUM the same within wider bounds, of which nothing is shown but what its bounds cut off."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpquery.aggregates.bounds import row_bounds
from dpquery.aggregates.total import unit_total
from dpquery.plan.draft import TIMES, AggregateAsk, Contributions, Draft
from dpquery.plan.scalar import Interval
from dpquery.sql.names import Statement
from dpquery.sql.options import Chosen
from dpquery.sql.race import CARDS

ONE = Interval(Fraction(-1), Fraction(1))
RACED = {raced: card for card, raced in CARDS.items()}


def watched(statement: Statement, draft: Draft, chosen: Chosen) -> tuple[Draft, tuple[tuple[str, str], ...]]:
    """The draft with an aggregate more for each of these, paid by equal parts of loss_epsilon; and the names of both. As it is without the option."""
    if chosen.loss is None:
        return draft, ()
    found = [(ask, _wider(ask, draft.contributions)) for ask in draft.asks if ask.card in (*CARDS, *RACED)]
    if not found or draft.contributions.weights is not None:
        why = "there is no COUNT or SUM" if not found else "max_rows_contributed weighs rows, and caps nothing"
        raise statement.refuse_at(
            "OPTION_WITHOUT_EFFECT", f"loss_epsilon has no effect: {why}", chosen.given["loss_epsilon"].position, "the statement without it"
        )
    share = chosen.loss / len(found)
    more = (replace(wide, name=f"w{ask.name}", label=f"{ask.label} within {TIMES} times its bounds", epsilon=share) for ask, wide in found)
    return replace(draft, asks=(*draft.asks, *more)), tuple((ask.name, f"w{ask.name}") for ask, _ in found)


def _wider(ask: AggregateAsk, contributions: Contributions) -> AggregateAsk:
    """The aggregate within bounds that are so many times as wide, and hold 0: of cells always, of rows where they are written."""
    rows = None if ask.per_row is None else _times(ask.per_row)
    return replace(ask, card=RACED.get(ask.card, ask.card), per_group=_times(_cell(ask, contributions)), per_row=rows)


def _cell(ask: AggregateAsk, contributions: Contributions) -> Interval:
    """The bounds of what a unit brings to a group."""
    most = contributions.rows
    if ask.auto:  # in units of the cap
        return ONE
    if ask.per_group is not None:
        return ask.per_group
    if ask.card == "count":
        return Interval(Fraction(0), Fraction(most))
    declared = None if contributions.rows_given else unit_total(ask)
    rows = None if ask.argument is None else row_bounds(ask, ask.argument)
    if declared is not None or rows is None:  # without any the aggregate itself is refused
        return declared or ONE
    return Interval(min(rows.low, rows.low * most), max(rows.high, rows.high * most))


def _times(bounds: Interval) -> Interval:
    return Interval(min(bounds.low, Fraction(0)) * TIMES, max(bounds.high, Fraction(0)) * TIMES)
