"""What is told of caps beside an answer: which ones were used, and which share of a total they cut off. Functions of released numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpquery.engine.receipt import plain
from dpquery.plan.draft import TIMES
from dpquery.plan.release import Aggregate, PrivateKeys
from dpquery.release import losses
from dpquery.release.losses import Loss
from dpquery.values.noisy import Noisy

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready

JSON = Any
CEILING = "the sum under its ceiling"
WIDER = f"the sum under {TIMES} times its bounds"


def caps(prepared: Prepared, noisy: Mapping[str, Noisy]) -> list[JSON]:
    """The caps that were chosen, or whose loss was paid for, aggregate by aggregate, as a receipt has them."""
    several = len(prepared.blocks) > 1
    doubt = 1 - prepared.ask.confidence
    return [{**one, **({"table": block.name} if several else {})} for block in prepared.blocks for one in _caps(block, noisy[block.name], doubt)]


def _caps(block: Ready, noisy: Noisy, doubt: Fraction) -> Iterator[dict[str, JSON]]:
    known = {one.name: one for one in block.release.aggregates}
    wider = {name: known[other] for name, other in block.wider}
    hidden = {other.name for other in wider.values()}
    for one in block.release.aggregates:
        if one.name in hidden or not (losses.raced(one) or one.cap is not None or one.name in wider):
            continue
        found: dict[str, JSON] = {"aggregate": one.label, "caps": _used(one, block, noisy)}
        if losses.raced(one) or one.name in wider:
            cut = _lost(one, wider.get(one.name), block, noisy, doubt)
            found["lost"] = {"share": cut.share, "low": cut.low, "high": cut.high, "of": WIDER if one.name in wider else CEILING}
        yield found


def _used(one: Aggregate, block: Ready, noisy: Noisy) -> list[JSON]:
    """Each cap with the number of groups in which it was used; null: no cap assured anything, and 0 is shown."""
    if losses.raced(one):
        won = losses.winners(one, block.release, noisy, block.priced)
        return [{"cap": None if cap is None else plain(cap), "groups": groups} for cap, groups in won.items()]
    bounds = one.bounds
    return [] if bounds is None else [{"cap": plain(bounds.magnitude), "groups": len(noisy.keys)}]


def _lost(one: Aggregate, other: Aggregate | None, block: Ready, noisy: Noisy, doubt: Fraction) -> Loss:
    """What the aggregate shows, beside the same within wider bounds, or under the ceiling."""
    shown = (losses.best if losses.raced(one) else losses.total)(one, noisy, block.priced, doubt / 2)
    whole = losses.total(one if other is None else other, noisy, block.priced, doubt / 2)
    if other is not None and one.parts == other.parts:  # no unit can bring more than the caps let through
        return Loss(0.0, 0.0, 0.0)
    keys, read = block.release.keys, {*one.parts, *(() if other is None else other.parts)}
    if isinstance(keys, PrivateKeys) and keys.count in read:  # groups are shown where its noise is high, and the rest is not seen
        return Loss(None, 0.0, 1.0)
    return losses.loss(shown, whole)


def said(told: list[JSON], confidence: Fraction) -> list[str]:
    """The same in words; what a histogram expects of a cap that it chose is said where that was."""
    return [f"{one['aggregate']}: {_won(one['caps'])}{_words(one['lost'], confidence)}." for one in told if "lost" in one]


def _won(used: list[JSON]) -> str:
    caps = [one["cap"] for one in used]
    if len(caps) == 1:
        return "no cap assures anything above 0; " if caps[0] is None else f"what one unit brings is capped at {caps[0]:.6g}; "
    each = (f"{'no cap' if one['cap'] is None else format(one['cap'], '.6g')} in {one['groups']} groups" for one in used)
    return f"what one unit brings is capped at {', '.join(each)}; " if caps else ""


def _words(lost: JSON, confidence: Fraction) -> str:
    if lost["share"] is None:
        return f"which share of {lost['of']} that cuts off is not known at this price"
    ends = f"{100 * lost['low']:.2g} to {100 * lost['high']:.2g} % with {float(confidence):.0%} confidence"
    return f"that cuts off about {100 * lost['share']:.2g} % of {lost['of']} ({ends})"
