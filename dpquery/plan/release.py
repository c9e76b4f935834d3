"""What crosses the noise line: integers per unit and group, how they are bounded, and which groups may appear.

In order: rows -> (key list filter) -> per-row integers -> cells: one per unit, group and part -> clamp -> group cap -> exact sums -> noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import assert_never

from dpquery.plan.beside import Beside
from dpquery.plan.leading import Leading
from dpquery.plan.rel import Private, Public
from dpquery.plan.scalar import Column, Interval, Scalar
from dpquery.values.types import Type, Value

WEIGHT_BITS = 20  # row weights are integers in units of 2^-20
SATURATION = 2**62  # where rows saturate when only a per-group bound was given


# ---- parts: one integer column of the noisy table each ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class One:
    """Each row adds 1; where `value` is given, each row in which it is neither NULL nor NaN."""

    value: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """Each row adds its value in whole grid units: x = clamp(floor(value / step + 1/2), low, high); NULL and NaN add nothing.

    `centred` rows add the half units 2x - (low + high) instead, which lie in [-(high - low), high - low].
    """

    value: Scalar
    step: Fraction
    low: int
    high: int
    centred: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """Each row adds x'y' - less, of the half units x' and y' of two values; a row in which either is NULL or NaN adds nothing.

    A square, whose factors are equal, takes half the square of their width off, so that it lies around 0.
    """

    left: Units
    right: Units
    less: int = 0


@dataclass(frozen=True, slots=True)
class Element:
    """Each row brings its value to a set; NULL and NaN bring nothing."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Clamp:
    """The cell is the sum of its rows, clamped; a cell without a counted row stays out (adds 0, not `low`)."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class HeavyMean:
    """The cell is the sum s of its n counted rows where n <= rows, else s * rows / n truncated towards zero: a heavy unit keeps its mean.

    Rows lie in [-width, width], so the cell lies in [-rows * width, rows * width]; the plan clamps to that as well.
    """

    rows: int
    width: int


@dataclass(frozen=True, slots=True)
class UnitMean:
    """The cell is the mean of its rows, clamped to [low, high], in half units from the middle of these; 0 without a counted row.

    The mean in half units is truncated towards zero, the cell lies in [-(high - low), high - low].
    """

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Present:
    """The cell is 1 if it has a counted row, else 0: distinct units."""


@dataclass(frozen=True, slots=True)
class Additive:
    """Under RowWeights: the cell is the sum of weight times row, each row in [-width, width]; no clamp on the cell."""

    width: int


@dataclass(frozen=True, slots=True)
class Elements:
    """The cell is a set: at most `most` of its rows' values, chosen by a salted hash of (unit, key, value).

    What is released of a group is the number of values in the union of its cells: the one thing that is no sum over units.
    """

    most: int


@dataclass(frozen=True, slots=True)
class Bins:
    """The cell is `count` integers, one for each bin of `width` grid units from the row's `low` on: what the unit's rows in the bin weigh.

    Each of its n counted rows weighs (min(rows, n) << 20) // n, so that the integers of a cell add up to at most rows << 20. With `rank` one bin of a
    group is chosen: that below which such a fraction of the group's weight lies, as nearly as may be. Chosen from a `side` it is one that begins
    no later (-1), or ends no earlier (1) than that: those of both sides together, but with probability `doubt`.
    """

    rows: int
    width: int
    count: int
    rank: Fraction | None = None
    side: int = 0
    doubt: Fraction | None = None


Row = One | Units | Product | Element
Cell = Clamp | HeavyMean | UnitMean | Present | Additive | Elements | Bins


@dataclass(frozen=True, slots=True)
class Part:
    """One released integer per group, or one for each of its bins.

    Equality of parts is the test for sharing: same expression, filter, NULL rule, centre, clamp, heavy-unit rule.
    `where` is the FILTER; a row counts where it is true.
    """

    row: Row
    cell: Cell
    where: Scalar | None = None

    @property
    def numbers(self) -> int:
        """How many integers it releases of a group."""
        return self.cell.count if isinstance(self.cell, Bins) else 1

    @property
    def reads(self) -> tuple[Scalar, ...]:
        """The expressions whose values it is made of, FILTER included."""
        match self.row:
            case One(value=value) | Units(value=value) | Element(value=value):
                read = [value]
            case Product(left=left, right=right):
                read = [left.value, right.value]
            case _:
                assert_never(self.row)
        return tuple(one for one in (*read, self.where) if one is not None)


# ---- bounding and keys ---------------------------------------------------------------------------------------------------------------


class Idle(StrEnum):
    """Why a group cap cannot bite, and so is not lowered."""

    NO_KEYS = "there is no GROUP BY"
    UNIT_KEY = "the key depends on the unit alone"
    ALL_KEYS = "no more keys are listed than the cap allows"
    COMPARED = "nothing is shown but which group has the most, or the least"


@dataclass(frozen=True, slots=True)
class GroupCap:
    """A unit stays in at most `groups` groups, chosen by a salted hash of (unit, key).

    `idle` names the reason for which the plan proves that the cap cannot bite, and so is not lowered; None: it is lowered. `groups` is then what
    the proof yields: 1, 1 or the number of listed keys.
    """

    groups: int
    idle: Idle | None = None


@dataclass(frozen=True, slots=True)
class RowWeights:
    """Each of a unit's n rows weighs (min(rows, n) << 20) // n, n counted over all groups: the weights of a unit add up to at most rows << 20."""

    rows: int


Bounding = GroupCap | RowWeights


@dataclass(frozen=True, slots=True)
class Key:
    """One grouping expression with its output name and canonical type."""

    name: str
    value: Scalar
    type: Type


@dataclass(frozen=True, slots=True)
class NoKeys:
    """No GROUP BY: exactly one row, whatever the data."""


@dataclass(frozen=True, slots=True)
class ListedKeys:
    """A key list fixed before the charge: a set of tuples parallel to the keys, sorted, at most 10,000. Every one appears; other rows are dropped."""

    rows: tuple[tuple[Value, ...], ...]
    origin: str  # for people: "declared values of users.country"


@dataclass(frozen=True, slots=True)
class ReleasedKeys:
    """A key list that earlier releases of the statement make: at most 10,000 different tuples, known to nobody before. Every one of them appears;
    other rows are dropped.

    `public` will hold the place of each and the tuple itself.
    """

    public: Public
    origin: str


@dataclass(frozen=True, slots=True)
class PrivateKeys:
    """Keys that come from private rows: a group appears if its noisy count of distinct units, less (minimum - 1), reaches the threshold.

    `count` is the index of the part that counts distinct units (cells 0 or 1).
    """

    count: int
    minimum: int = 1


Keys = NoKeys | ListedKeys | ReleasedKeys | PrivateKeys


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where a key list comes from, before the public tables were looked at: distinct tuples for the keys at `positions`.

    Exactly one of `public` (with `columns`, ids of its columns) and `literals` is given. `prune` are the conjuncts of WHERE that read nothing
    but these columns (or these keys' expressions): a key for which one is not true is left out. `whole` says that no row of the statement can
    have another key (for want of NULLs in them, neither can those of a public table). With `image`, a column and an expression of it, the literals
    are values of that column, and the keys those of the expression, that of NULL included where it is not NULL; `prune` reads the column. `beside`
    are further public relations that it and `columns` may read.
    """

    positions: tuple[int, ...]
    origin: str
    public: Public | None = None
    columns: tuple[int, ...] = ()
    literals: tuple[tuple[Value, ...], ...] = ()
    prune: tuple[Scalar, ...] = ()
    whole: bool = False
    image: tuple[Column, Scalar] | None = None
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitTable:
    """The bounded table: for each unit and group, one integer per part."""

    input: Private
    keys: tuple[Key, ...]
    parts: tuple[Part, ...]
    bounding: Bounding


@dataclass(frozen=True, slots=True)
class Quantile:
    """Which quantiles an aggregate is, and of what its parts count the rows: values in [low, high] grid units, in bins of these widths, widest first.

    `discrete`: one of the values, else between the two that are nearest; where a fraction of the rows ends between two values it is the lower one,
    or the `upper`. A value may be `slack` away from the middle of its unit. `doubt` is that of its error bar, where that is chosen, too.
    """

    fractions: tuple[Fraction, ...]
    low: int
    high: int
    widths: tuple[int, ...]
    discrete: bool = False
    slack: Fraction = Fraction(0)
    upper: bool = False
    doubt: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of the statement: a column of the noisy table, finished by a card from the parts at `parts`.

    `label` is the analyst's text; `bounds` are those enforced, in the value's own units; `share` an explicit `epsilon =>`. `notes` say how it is
    bounded, `cuts` what a limit that the statement did not set may leave out of it, `less` what each row of the parts was lessened by, `quantile`
    which one it is, `values` what is counted, of which the most frequent one is shown; with `leading` one group is chosen by it. With `cap`, a
    relation that holds a released value, step and bounds are in units of that.
    """

    name: str
    label: str
    card: str
    parts: tuple[int, ...]
    type: Type
    step: Fraction
    bounds: Interval | None = None
    share: Fraction | None = None
    notes: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    less: tuple[int, ...] = ()
    quantile: Quantile | None = None
    values: tuple[Value, ...] = ()
    cap: str | None = None
    leading: Leading | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """One aggregate block: everything that is priced, lowered and released together. `warnings` is what the bounding gives reason to say."""

    table: UnitTable
    keys: Keys
    aggregates: tuple[Aggregate, ...]
    warnings: tuple[str, ...] = ()

    @property
    def ranked(self) -> tuple[int, ...]:
        """The parts of which a bin is chosen by rank."""
        return tuple(i for i, part in enumerate(self.table.parts) if isinstance(part.cell, Bins) and part.cell.rank is not None)

    @property
    def modal(self) -> tuple[int, ...]:
        """The parts of which nothing is shown but which of their integers is the largest: those of modes alone."""
        modes, others = ({part for one in self.aggregates if bool(one.values) is mode for part in one.parts} for mode in (True, False))
        return tuple(sorted(modes - others))


class Mechanism(StrEnum):
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class Choosing(StrEnum):
    """How one integer of each group is chosen by its size, where nothing is shown of a part but which one it is."""

    PERMUTE_AND_FLIP = "permute_and_flip"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Ask:
    """The price and noise that were asked for. Exactly one of epsilon and rho is given; delta covers conversion and selection together."""

    delta: Fraction
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    noise: Mechanism | None = None
    selection: Mechanism | None = None
    selection_epsilon: Fraction | None = None
    confidence: Fraction = Fraction(95, 100)
    plain: bool = False  # without a DIFFERENTIAL_PRIVACY clause, so that the price is split where noise counts


@dataclass(frozen=True, slots=True)
class CellBound:
    """The closed interval in which a clamp keeps every cell of one part (`weighted`: every row, before its weight).

    `united`: cells are sets of so many values, of which the released sum is the size of the union. `bins`: cells are so many integers, none below 0,
    that add up to at most `high` (0: one integer), of which one is chosen by the rank `ranked`, if given. `led`: one group is chosen by its sum."""

    low: int
    high: int
    weighted: bool = False
    united: bool = False
    bins: int = 0
    ranked: Fraction | None = None
    led: bool = False


@dataclass(frozen=True, slots=True)
class Enforced:
    """All that the privacy argument may read of a release: bounding, the clamp of each part, and which part decides whether a group appears. Derived
    once from the plan (privacy/contribution.py) and once, independently, by the lowering from what it wrote; the two prices must agree."""

    bounding: Bounding
    cells: tuple[CellBound, ...]
    selecting: int | None  # index of the part that counts distinct units for PrivateKeys
    keyed: bool  # whether there is a GROUP BY
    listed: int | None = None  # how many groups there are in all, where the keys are listed
