"""What the SQL entrance hands over: the question before any public table was looked at and before anything was bounded or priced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from dpquery.errors import Position
from dpquery.plan.leading import Lead
from dpquery.plan.rel import Filling, Private, Public
from dpquery.plan.release import Key, KeySource, Mechanism
from dpquery.plan.scalar import Column, Interval, Scalar
from dpquery.values.types import Type, Value


@dataclass(frozen=True, slots=True)
class AggregateAsk:
    """One aggregate as written. `card` is its card's name: "count" (COUNT(*), COUNT(x)), "units" (COUNT(DISTINCT unit)), "total" (SUM), "mean" (AVG).

    `per_group` and `per_row` are contribution bounds as written, those of a row of all arguments; `epsilon` is an explicit share, `other` a second
    argument. `fractions` say which quantiles it is, `listed` as a list; `discrete`: one of the values, of two `upper` the greater. `values` are those
    that may be the most frequent one. Dates and timestamps have quantiles of their days or microseconds since 1970; `moment` is then the type of the
    result, in which 1 of these is worth `unit`. `doubt` is how often the error bar of a quantile that is chosen by rank may miss it. `name` is its
    column in the noisy table. `auto`: its bounds are chosen from the data, by a release of their own, whose result will be `cap`: bounds are in units
    of that.
    """

    name: str
    label: str
    card: str
    argument: Scalar | None
    where: Scalar | None
    per_group: Interval | None = None
    per_row: Interval | None = None
    epsilon: Fraction | None = None
    position: Position | None = None
    other: Scalar | None = None
    fractions: tuple[Fraction, ...] = ()
    listed: bool = False
    discrete: bool = False
    upper: bool = False
    values: tuple[Value, ...] = ()
    doubt: Fraction = Fraction(1, 20)
    moment: Type | None = None
    unit: int = 1
    auto: bool = False
    cap: Column | None = None


@dataclass(frozen=True, slots=True)
class Contributions:
    """The contribution limits in force: the statement's OPTIONS, else the tables' (the least), else the schema's. `weights` is max_rows_contributed.

    `groups_given` and `rows_given` say that the statement itself set that limit: then no default is in play and no warning about it is due.
    `listed` is how many groups there are in all: 1 without GROUP BY, None where private rows say.
    """

    groups: int
    rows: int
    join_rows: int
    weights: int | None = None
    groups_given: bool = False
    rows_given: bool = False
    listed: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """One aggregate block. `sources` cover all keys (then the keys are public) or the keys are private and `sources` is empty.

    `minimum` is the least number of units for which a private group is meant to appear (schema's floor, raised by the statement). `listed`, where a
    source is filled between the releases, will hold the key list. With `lead` nothing is shown but the key of one group.
    """

    input: Private
    keys: tuple[Key, ...]
    sources: tuple[KeySource, ...]
    asks: tuple[AggregateAsk, ...]
    contributions: Contributions
    minimum: int = 1
    listed: Public | None = None
    lead: Lead | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Price and noise as the statement itself gives them (OPTIONS); None where it is silent. `plain`: its SELECT has no such clause.

    `levels`: into how many releases its price is divided already, this one among them.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    noise: Mechanism | None = None
    selection: Mechanism | None = None
    selection_epsilon: Fraction | None = None
    confidence: Fraction | None = None
    plain: bool = False
    levels: int = 1


@dataclass(frozen=True, slots=True)
class Affine:
    """An output that is factor * aggregate + offset: its interval follows from the aggregate's, of a list from that of the value at `place`."""

    aggregate: str
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Ratio:
    """An output that is factor * top / bottom of two aggregates: its interval is Fieller's."""

    top: str
    bottom: str
    factor: Fraction = Fraction(1)


class Operation(StrEnum):
    """What arithmetic above the noise does to error bars. ROUND is to a number of digits after the point."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    ROUND = "round"
    FLOOR = "floor"
    CEIL = "ceil"
    ABS = "abs"
    SQRT = "sqrt"
    GREATEST = "greatest"
    LEAST = "least"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal number in a combined output."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Combined:
    """An output computed from others: its interval is theirs by interval arithmetic, each at a confidence at which all of them hold at once."""

    operation: Operation
    parts: tuple[Affine | Ratio | Combined | Constant | Either, ...]
    digits: int = 0


class Edge(StrEnum):
    """What a column shows of an error bar instead of a value: one of its ends, or a report of the value with its bar and its noise."""

    LOW = "low"
    HIGH = "high"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Either:
    """An output of UNION ALL: in each row its interval is that of the branch which the row comes from."""

    branches: tuple[Affine | Ratio | Combined | Constant | Either | None, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer. `interval` says how its error bar follows from the released aggregates; None: it has none.

    `noisy` is whether it is computed from them at all: a key is not. With `edge` it shows that of the bar, and has none of its own. `chosen`: it is a
    value of a list, right or wrong, not more or less, or a bin that was chosen by rank: neither has a bar. `missing`: why it may be NULL, in words.
    `bare`: its text says itself where it is, and computes nothing that could fail.
    """

    name: str
    interval: Affine | Ratio | Combined | Either | None = None
    noisy: bool = False
    edge: Edge | None = None
    chosen: bool = False
    missing: str = ""
    bare: bool = False


TIMES = 10  # as wide are the bounds beside which a loss is measured
FIRST = "noisy"  # the table of a statement's first release; further ones are noisy_1, noisy_2, ..
ALONE = (("t", FIRST),)


@dataclass(frozen=True, slots=True)
class Post:
    """What happens above the noise: `sql` (DuckDB) reads the tables of the releases, each with columns k0.. (keys), a0.. (aggregates) and `__row`.

    Its output columns are `outputs`, in order, then one for each of `rows`: an alias and the table whose row number it holds, so that error bars
    find their rows; none where rows were merged. Aggregates are called a0 where `rows` is `ALONE`, else by alias and name: t1.a0.
    `sql` cannot fail at run time: what overflows is NULL. `places` are the expressions that it is made of, outputs first, and where the analyst wrote
    them.
    """

    sql: str
    outputs: tuple[Output, ...]
    rows: tuple[tuple[str, str], ...] = ALONE
    places: tuple[tuple[str, Position | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Cap:
    """How a cap follows from a histogram: bin k of the released table `histogram`, counted from 0, ends at 2^(lowest + k/4), up to `bins` of them.

    `whole`: of rows that are counted. `ask` is the aggregate that is capped, in the release that reads it.
    """

    histogram: str
    ask: str
    lowest: int
    bins: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Feed:
    """Released values that a later release reads: `sql` over the noisy `tables`, with a column of each of the `types`.

    In the plan they are the rows of the public relation `public`: one at most, or different ones. `label` is the analyst's text of a value.
    With `cap` it is the cap that is chosen from a histogram, of which `sql` only says the columns.
    """

    public: str
    sql: str
    types: tuple[Type, ...]
    filling: Filling
    tables: tuple[str, ...] = ()
    label: str = ""
    cap: Cap | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """One of `count` levels of groups of a SELECT, the `number`th of the statement that has such: those by its keys at these `places`."""

    number: int
    count: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One release of a statement: the table that its noisy values become, what is measured, and the options of its own SELECT.

    `feeds` are the released values that it reads, `places` where its OPTIONS name what. One that `serves` another chooses a cap for it, and is paid
    from its price. `wider` are pairs of aggregates, the second of which is the first within wider bounds, for what lies between. `level`: which of
    several levels of groups it is.
    """

    name: str
    draft: Draft
    options: Options
    feeds: tuple[Feed, ...] = ()
    places: Mapping[str, Position] = field(default_factory=dict)
    serves: str = ""
    wider: tuple[tuple[str, str], ...] = ()
    level: Level | None = None

    @property
    def pays(self) -> bool:
        """Whether anything in it is noisy: not where public keys are all that is shown."""
        return bool(self.draft.asks) or not self.draft.sources


@dataclass(frozen=True, slots=True)
class Opened:
    """A public relation that what stands above the noise reads: `public` is made of the declared public `tables`; `single`: it may have one row."""

    public: Public
    tables: tuple[str, ...]
    single: bool = False
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """Two relations joined by no equality of their columns: the engine makes up to `most` pairs of rows.

    Of public ones `sides` are SQL over the public `tables`; above the noise they are items of FROM over what is read there. How many rows an
    `unsure` one has is known after the noise only: at most all combinations of rows of what it reads.
    """

    sides: tuple[str, str]
    tables: tuple[str, ...]
    most: int
    position: Position | None = None
    unsure: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True)
class Question:
    """A statement, read in full: its releases in the order in which they are made, and what is done with them, `opened` beside them.

    `ends` are the aggregates, by table and name, whose error bars are read above the noise: a1 has columns l1 and h1 for them beside it.
    `products` are of public relations, `paired` of what stands above the noise with public ones. `outermost` is the place of the release that is the
    outermost SELECT itself, whose OPTIONS speak for the statement; None: none is.
    """

    blocks: tuple[Block, ...]
    post: Post
    warnings: tuple[str, ...] = ()
    outermost: int | None = 0
    opened: tuple[Opened, ...] = ()
    products: tuple[Product, ...] = ()
    paired: tuple[Product, ...] = ()
    ends: frozenset[tuple[str, str]] = frozenset()

    def ends_of(self, table: str) -> frozenset[str]:
        """The aggregates of a release whose error bars are read."""
        return frozenset(name for of, name in self.ends if of == table)
