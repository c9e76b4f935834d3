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
from dpquery.release.caps import OCTAVE, Chosen, chosen
from dpquery.values.noisy import Noisy

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready

LAPLACE = 2**0.5  # deviations in a scale


@dataclass(frozen=True, slots=True)
class Found:
    """A cap in the value's own units, and the share of the total that it is expected to cut off; None: not known."""

    value: Fraction
    lost: float | None


def cap(feed: Feed, block: Ready, prepared: Prepared, noisy: Mapping[str, Noisy]) -> Found:
    """The cap that a release reads."""
    if feed.cap is None:
        raise AssertionError("what is read is no cap")
    histogram = next(one for one in prepared.blocks if one.name == feed.cap.histogram)
    (place,) = histogram.release.aggregates[0].parts
    counts = noisy[histogram.name].sums[place]
    made = chosen(counts, deviation(histogram.priced.noises[place]) / LAPLACE, _worth(block, feed.cap))
    return Found(_end(feed.cap, made.bin), _lost(made, counts))


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


def _lost(made: Chosen, counts: tuple[int, ...]) -> float | None:
    """The expected loss as a share of what the histogram itself says of the total."""
    if made.lost is None:
        return None
    total = sum(max(0, count) * 2.0 ** ((k - 0.5) / OCTAVE) for k, count in enumerate(counts[: made.bin + 1]))
    return min(1.0, made.lost / total) if total > 0 else None


def fitted(block: Ready, prepared: Prepared, noisy: Mapping[str, Noisy], told: Iterable[str]) -> Ready:
    """The release with its steps and bounds in the values' own units, now that the caps are known.

    Those of a stored answer are found anew: a Fault where they are others than those that it was told with, as another computer may round.
    """
    found = {feed.public: cap(feed, block, prepared, noisy) for feed in block.feeds if feed.cap is not None}
    if not found:
        return block
    known = tuple(told)
    if not all(any(one.endswith(_words(each)) for one in known) for each in found.values()):
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
    """A word on the cap that was chosen."""
    return f"{label}{_words(found)}"


def _words(found: Found) -> str:
    lost = "how much that cuts off is not known" if found.lost is None else f"about {100 * found.lost:.2g}% of the total is expected to be cut off"
    return f": what one unit brings is capped at {float(found.value):.6g}, chosen from a noisy histogram; {lost}."
