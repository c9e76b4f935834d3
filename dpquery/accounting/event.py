"""What a statement costs, as pure data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Price:
    """What the ledger is charged for one statement: it is (epsilon, delta)-DP where epsilon is finite, and delta-approximate rho-zCDP.

    `epsilon` is None for infinite (some noise is Gaussian). `delta` holds the selection deltas only; conversion's part of a statement's delta is
    the account's own (delta_conv). All are rounded up.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction
