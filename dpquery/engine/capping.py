"""Caps that were chosen from released histograms: what they are, and releases read in units of them. Functions of released numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dpquery.errors import Fault
from dpquery.mechanisms import deviation
from dpquery.plan.draft import Cap, Feed
from dpquery.plan.release import ListedKeys, Release
from dpquery.plan.scalar import Interval
from dpquery.privacy import enforced, groups_of_a_unit
from dpquery.release.caps import OCTAVE, chosen
from dpquery.values.noisy import Noisy

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready

LAPLACE = 2**0.5  # deviations in a scale
UNKNOWN, TOO_LOW = "NOT TO BE RELIED ON: ", "TOO LOW: "


@dataclass(frozen=True, slots=True)
class Found:
    """A cap in the value's own units, the share of the total that it is expected to cut off, if known, and whether a noticeable one is likely."""

    value: Fraction
    lost: float | None
    likely: bool


def cap(feed: Feed, block: Ready, prepared: Prepared, noisy: Mapping[str, Noisy]) -> Found:
    """The cap that a release reads."""
    if feed.cap is None:
        raise AssertionError("what is read is no cap")
    histogram = next(one for one in prepared.blocks if one.name == feed.cap.histogram)
    (place,) = histogram.release.aggregates[0].parts
    counts = noisy[histogram.name].sums[place]
    made = chosen(counts, deviation(histogram.priced.noises[place]) / LAPLACE, _worth(block, feed.cap))
    return Found(_end(feed.cap, made.bin), made.lost, made.likely)


def _worth(block: Ready, cap: Cap) -> float:
    """For how many units a cap is as dear as what it cuts off: the noise of all groups in units of the cap, each of which it moves."""
    (place, *_) = next(one for one in block.release.aggregates if one.name == cap.ask).parts
    bounds, keys = enforced(block.release), block.release.keys
    groups = len(keys.rows) if isinstance(keys, ListedKeys) else groups_of_a_unit(bounds)
    widest = max(abs(bounds.cells[place].low), abs(bounds.cells[place].high))
    return max(1, groups) * deviation(block.priced.noises[place]) / LAPLACE / widest


def _end(cap: Cap, bin: int) -> Fraction:
    """The upper end of a bin, as a double has it."""
    end = Fraction(2.0 ** (cap.lowest + bin / OCTAVE))
    return Fraction(max(1, int(end))) if cap.whole else end


def fitted(block: Ready, prepared: Prepared, noisy: Mapping[str, Noisy], told: Iterable[str]) -> Ready:
    """The release with its steps and bounds in the values' own units, now that the caps are known.

    Those of a stored answer are found anew: a Fault where they are others than those that it was told with, as another computer may round.
    """
    found = {feed.public: cap(feed, block, prepared, noisy) for feed in block.feeds if feed.cap is not None}
    if not found:
        return block
    known = tuple(told)
    if not all(any(_capped(each) in one for one in known) for each in found.values()):
        raise Fault("PLAN_BROKEN", "a cap is not the one that was chosen")
    return replace(block, release=_in_own_units(block.release, {public: one.value for public, one in found.items()}))


def _in_own_units(release: Release, caps: Mapping[str, Fraction]) -> Release:
    aggregates = []
    for one in release.aggregates:
        if one.cap is not None:
            by = caps[one.cap]
            bounds = None if one.bounds is None else Interval(one.bounds.low * by, one.bounds.high * by)
            one = replace(one, step=one.step * by, bounds=bounds)
        aggregates.append(one)
    return replace(release, aggregates=tuple(aggregates))


def said(label: str, found: Found) -> str:
    """A word on the cap that was chosen, and on what it cuts off: no error bar says it, and so it is said loudly where it is likely to be much."""
    if found.lost is None:
        lost = "how much that cuts off is not known at this price, and no error bar covers it"
        lost += ": it may be much of the total. Pay more, or write bounds" if found.likely else ""
    else:
        lost = f"about {percent(found.lost)} of the total is expected to be cut off"
        lost += ", which no error bar covers" if found.likely else ""
    loud = "" if not found.likely else UNKNOWN if found.lost is None else TOO_LOW
    return f"{loud}{label}{_capped(found)}; {lost}."


def _capped(found: Found) -> str:
    return f": what one unit brings is capped at {float(found.value):.6g}, chosen from a noisy histogram"


def percent(share: float) -> str:
    """A share for people, with one digit below a tenth."""
    return "less than 0.1%" if 0 < share < 0.001 else f"{100 * share:.{1 if 0 < share < 0.1 else 0}f}%"


def loud_first(said: Iterable[str]) -> tuple[str, ...]:
    """The same words, those first that say that an answer is not to be relied on."""
    return tuple(sorted(said, key=lambda one: not one.startswith((UNKNOWN, TOO_LOW))))
