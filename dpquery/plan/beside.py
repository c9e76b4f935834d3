"""What stands beside a source of keys: further public relations that conditions on its rows read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpquery.plan.rel import Public
from dpquery.plan.scalar import Scalar


class Near(StrEnum):
    """How the rows of a source of keys stand to those of another public relation."""

    JOINED = "joined"
    LEFT = "left"  # joined, or by themselves with NULLs
    SOME = "some"  # they have a partner
    NONE = "none"  # they have none


@dataclass(frozen=True, slots=True)
class Beside:
    """A public relation that conditions on a source of keys read, too. What joins it is in `KeySource.prune`, or of other kinds in `on`."""

    public: Public
    how: Near
    on: tuple[Scalar, ...] = ()
