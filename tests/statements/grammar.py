"""The vocabulary of random statements, and where productions are registered.

Every node is written twice: `dp` for dpquery, `plain` for DuckDB over clean data. Both are the analyst's own text but for what the privacy unit needs
(`__u`) and for what is NULL in dpquery where DuckDB fails. An operator joins the grammar by a production: a function under `@production(KIND)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from worlds import ColumnSpec, World

from dpquery.values.types import FLOAT, INTEGER, Kind, Type


@dataclass(frozen=True)
class Col:
    """A visible column. `text` is how a statement writes it; `spec` what is declared of it while it is unmodified.

    `firm`: no outer join can have set it to NULL. `unit`: it holds the row's unit (not firm: or NULL). `ties`: what its equality with another such
    column proves to be one unit. `private`: it comes from a private table.
    """

    text: str
    name: str
    type: Type
    spec: ColumnSpec | None = None
    private: bool = True
    firm: bool = True
    unit: bool = False
    ties: frozenset[tuple[str, ...]] = frozenset()
    full: str = ""  # of a column that USING merged: how it is written beside another of its name


@dataclass(frozen=True)
class Expr:
    """A row-wise expression; `reads` are the texts of its columns, `bare` the column that it is."""

    dp: str
    plain: str
    type: Type
    reads: frozenset[str] = frozenset()
    bare: Col | None = None

    @property
    def whole(self) -> Expr:
        """In parentheses, unless it is a column."""
        return self if self.bare else replace(self, dp=f"({self.dp})", plain=f"({self.plain})")


@dataclass(frozen=True)
class Rel:
    """What stands after FROM. `unit` is the plain text of the row's unit (None: public); `where` are conditions that have to stand in WHERE."""

    dp: str
    plain: str
    unit: str | None
    cols: tuple[Col, ...]
    where: tuple[Expr, ...] = ()
    kept: str | None = None  # the alias of a public relation all of whose rows an outer join keeps


@dataclass(frozen=True)
class Agg:
    """An aggregate: COUNT ("count"), COUNT(DISTINCT unit) ("units"), SUM ("total"), AVG ("mean"), .., with its bounds as written."""

    dp: str
    card: str
    value: Expr | None = None
    where: Expr | None = None
    per_row: tuple[str, str] | None = None
    per_group: tuple[str, str] | None = None
    other: Expr | None = None  # a second argument
    fractions: tuple[str, ...] = ()  # of quantiles, whether they are some of the values, and of two the greater
    discrete: bool = False
    upper: bool = False
    listed: bool = False  # whether they are a list, and which value of it is shown
    place: int | None = None
    unit: int = 1  # microseconds or days of a released moment that a unit of its values is worth


@dataclass(frozen=True)
class Key:
    """A key as an expression; `listed`: it has a public list by itself or by a condition in WHERE."""

    value: Expr
    listed: bool
    aliased: bool = False  # WHERE reads it by its alias


@dataclass(frozen=True)
class More:
    """A further column of the answer: as the statement writes it, and over the columns k0, .., a0, .. of the answer without noise."""

    dp: str
    plain: str


@dataclass(frozen=True)
class Limits:
    """The caps in force."""

    groups: int = 3
    rows: int = 2
    weights: int | None = None
    minimum: int = 1


@dataclass
class Statement:
    """A statement: `dp` its text, the rest what the reference is made of. `sort` and `having` are (index of aggregate, sign or number)."""

    dp: str
    ctes: tuple[str, ...]
    rel: Rel
    where: tuple[Expr, ...]
    keys: tuple[Key, ...]
    aggs: tuple[Agg, ...]
    limits: Limits
    threshold: bool = False
    having: tuple[int, str, int] | None = None
    sort: tuple[int, bool] | None = None
    limit: int | None = None
    shown: tuple[int, ...] = ()  # places of the keys in the answer, then of the aggregates
    units: frozenset[str] = frozenset()  # texts of the columns that hold a unit
    in_order: bool = False  # keys are grouped in the order of SELECT, not in that of `keys`
    more: tuple[More, ...] = ()  # columns after those
    qualify: More | None = None
    offset: int = 0


Production = Callable[..., Any]
NUMBER: list[tuple[int, Production]] = []
TEXT: list[tuple[int, Production]] = []
DAY: list[tuple[int, Production]] = []
CONDITION: list[tuple[int, Production]] = []
RELATION: list[tuple[int, Production]] = []
AGGREGATE: list[tuple[int, Production]] = []
KEY: list[tuple[int, Production]] = []


def production(kind: list[tuple[int, Production]], weight: int = 1) -> Callable[[Production], Production]:
    """Registers a way to make a node of this kind. It returns None where it cannot be used."""

    def register(function: Production) -> Production:
        kind.append((weight, function))
        return function

    return register


@dataclass
class Grammar:
    """One statement in the making."""

    random: Random
    world: World
    ctes: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def make(self, kind: list[tuple[int, Production]], *args: Any) -> Any:
        """A node of this kind, by a production that can be used here."""
        weights = [weight for weight, _ in kind]
        for _ in range(50):
            (chosen,) = self.random.choices(kind, weights)
            made = chosen[1](self, *args)
            if made is not None:
                return made
        raise AssertionError("no production fits")

    def col(self, scope: Sequence[Col], *kinds: Kind, where: Callable[[Col], bool] = lambda c: True) -> Expr | None:
        """A column of one of the kinds; rather one that a subquery computed, or that an outer join may have set to NULL."""
        found = [c for c in scope if (not kinds or c.type.kind in kinds) and where(c)]
        weights = [(3 if c.spec is None else 1) * (1 if c.firm else 2) for c in found]
        return self.read(self.random.choices(found, weights)[0]) if found else None

    def read(self, col: Col) -> Expr:
        """The column as an expression, now and then in capitals."""
        dp = col.text.upper() if self.chance(0.05) else col.text
        return Expr(dp, col.text, col.type, frozenset({col.text}), col)

    def loose(self, expr: Expr) -> Expr:
        """The expression with or without parentheses: where they are missing both readers must agree on what binds tighter."""
        return expr if self.chance(0.3) else expr.whole


def both(template: str, type: Type, *args: Expr, plain: str | None = None) -> Expr:
    """An expression from the texts of others, in both spellings."""
    reads = frozenset(text for arg in args for text in arg.reads)
    return Expr(template.format(*(a.dp for a in args)), (plain or template).format(*(a.plain for a in args)), type, reads)


def renamed(text: str, name: str, other: str) -> str:
    """The text with something else in place of a name. What stands in quotes is no name, however it reads."""
    return re.sub(rf"'(?:[^']|'')*'|\b{re.escape(name)}\b", lambda m: m[0] if m[0].startswith("'") else other, text)


def joined(*exprs: Expr) -> Type:
    """The common type of numbers."""
    kinds = [e.type for e in exprs]
    if any(t.kind is Kind.FLOAT for t in kinds):
        return FLOAT
    return max((t for t in kinds if t.kind is Kind.DECIMAL), key=lambda t: t.scale, default=INTEGER)


def visible(grammar: Grammar, cols: Iterable[Col]) -> tuple[Col, ...]:
    """The columns as they may be written in one place: without their table where that is clear."""
    cols = tuple(cols)
    names = [c.name for c in cols]
    return tuple(replace(c, text=c.name) if names.count(c.name) == 1 and "." in c.text and grammar.chance(0.4) else c for c in cols)
