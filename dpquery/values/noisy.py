"""Released integers: public from here on."""

from __future__ import annotations

from dataclasses import dataclass

from dpquery.values.types import Value


@dataclass(frozen=True, slots=True)
class Noisy:
    """Per released group the noisy integer of each part, in grid units, laid out as `Exact`.

    Of a part of several integers they stand one group after another: those of group i from i times their number on.
    """

    keys: tuple[tuple[Value, ...], ...]
    sums: tuple[tuple[int, ...], ...]
