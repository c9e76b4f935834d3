"""Expressions above the noise: the parser's tree is kept, aggregates become columns a0, a1, .. of the noisy table and keys k0, k1, ..

Equal aggregates are asked for once. What is neither a key, nor an aggregate, nor built from these by the allow-list is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpquery.aggregates.byrank import BY_RANK
from dpquery.errors import Refused
from dpquery.plan.draft import FIRST, Affine, AggregateAsk, Edge
from dpquery.plan.rel import Private
from dpquery.plan.release import Key
from dpquery.plan.scalar import Column, Scalar
from dpquery.sql import aggregates, edges, quantiles
from dpquery.sql.bars import ADDITIVE, error_bar
from dpquery.sql.lift import Lifter, Where
from dpquery.sql.modes import MODE
from dpquery.sql.names import Scope, Statement, column_name
from dpquery.sql.quoting import near_name, written
from dpquery.sql.rowwise import expression
from dpquery.sql.sides import Cell
from dpquery.values.types import FLOAT, INTEGER, Type


@dataclass(frozen=True, slots=True)
class Keyed:
    """A grouping key as the statement knows it: its plan key, the expressions that are it, and the nodes that spelled it."""

    key: Key
    values: tuple[Scalar, ...]
    nodes: tuple[exp.Expr, ...]


BARLESS = (MODE,)  # a value among others has no ends


MOST_AGGREGATES = 200  # of one release: the engine's planning is quadratic in them
PAIR = 4  # as many as one aggregate of two columns is made of, at least


@dataclass(slots=True)
class Above(Lifter):
    """The same over one noisy table, whose aggregates are asked for as they are met."""

    rel: Private = field(kw_only=True)
    keys: tuple[Keyed, ...] = field(kw_only=True)
    name: str = FIRST  # of the noisy table
    alias: str = "t"  # how it appears
    choices: bool = False  # whether quantiles are chosen by rank
    asks: list[AggregateAsk] = field(default_factory=list)
    asked: dict[AggregateAsk, str] = field(default_factory=dict)  # and their names

    @property
    def table(self) -> str:
        return self.name

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        return ((self.alias, self.name, "__row"),)

    @property
    def ties(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.keys)))

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        """The key's column where the node spells a key: the same column by lineage, or the same expression of such columns."""
        if isinstance(node, exp.Literal) or not any(type(node) is type(one) for keyed in self.keys for one in keyed.nodes):
            return None
        if isinstance(node, exp.Column):
            seen = self.scope.find(node)
            return None if seen is None else self._key_of(seen.value)
        try:
            return self._key_of(expression(node, self.below_sums(), "SELECT"))
        except Refused:
            return None

    def _key_of(self, value: Scalar) -> exp.Expr | None:
        return next((exp.column(f"k{i}", table="t") for i, keyed in enumerate(self.keys) if value in keyed.values), None)

    def _column(self, node: exp.Column, where: Where) -> exp.Expr:
        """A name that is no key: an alias of SELECT where the engine looks there, else refused."""
        name, table = column_name(node, self.statement.source)
        seen = self.scope.find(node)
        alias = self.named(node)
        if alias is not None and (seen is None or where is not Where.SELECT):
            return self.followed(node, alias, where)
        if seen is None:
            names = [k.key.name for k in self.keys] + list(self.aliases) if table is None else []
            message = f"no column {name!r}{near_name(name, [*names, *self.scope.frame.names()])}"
            known = ", ".join(written(one) for one in dict.fromkeys([*names, *self.scope.frame.names()]))
            raise self.statement.refuse("UNKNOWN_COLUMN", message, node, f"one of {known[:200]}")
        if isinstance(seen.value, Column) and seen.value.id in aggregates.unit_columns(self.rel):
            raise unit_as_output(self.statement, node, name)
        message = f"column {name!r} is neither a key of GROUP BY nor inside an aggregate"
        aggregate = "AVG" if seen.value.type.numeric else "COUNT"
        raise self.statement.refuse("NOT_GROUPED", message, node, f"{written(name)} in GROUP BY, or {aggregate}({written(name)})")

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        """The aggregate's column; the same aggregate is asked for once."""
        made = aggregates.ask(self.statement, node, self.below_sums(), self.rel)
        made = quantiles.by_rank(made) if self.choices else made
        same = replace(made, name="", label="", position=None)  # labels and places do not matter
        name = self.asked.setdefault(same, f"a{len(self.asks)}")
        if name == f"a{len(self.asks)}":
            if sum(max(PAIR if one.other else 1, len(one.fractions)) for one in (*self.asks, made)) > MOST_AGGREGATES:
                message = f"more than {MOST_AGGREGATES} aggregates, those of two columns counted {PAIR} times, a list by its length"
                raise self.statement.refuse("TOO_COMPLEX", message, node, "fewer aggregates, or several statements: the price is split among them")
            self.asks.append(replace(made, name=name))
        return exp.column(name, table="t")

    def kind(self, name: str) -> Type | None:
        """The type of a column of the noisy table or of a cell, where it is known."""
        for ask in self.asks:
            if ask.name == name:
                return _type_of(ask)
        if name in self.whole:
            return INTEGER
        if name.startswith("y"):
            return self.scalars[int(name[1:])].cells[0].type
        if name.startswith(("l", "h")):
            return FLOAT
        return next((keyed.key.type for i, keyed in enumerate(self.keys) if name == f"k{i}"), None)

    def length(self, name: str) -> int | None:
        return next((len(ask.fractions) for ask in self.asks if ask.name == name), None)

    def below_sums(self) -> Scope:
        return replace(self.scope, aliases=self.aliases)

    def end(self, node: exp.Expr) -> exp.Expr:
        """The end of the error bar of a count or sum: what is computed from the aggregate, computed from that end of its bar."""
        shown = edges.shown(self.statement, node)
        of = None if shown is None else self.lift(shown.of, Where.ORDER)
        bar = None if of is None else error_bar(self, of)
        own = isinstance(bar, Affine) and any(ask.name == bar.aggregate for ask in self.asks)
        if shown is None or of is None or not own or not isinstance(bar, Affine) or self.card(bar.aggregate) not in ADDITIVE:
            raise edges.unread(self.statement, node)
        self.statement.ends.setdefault((self.name, bar.aggregate), node)
        side = "l" if (shown.edge is Edge.LOW) == (bar.factor > 0) else "h"
        column = exp.column(f"{side}{bar.aggregate[1:]}", table="t")
        moved = of.transform(lambda one: column.copy() if isinstance(one, exp.Column) and one.name == bar.aggregate else one)
        return moved if isinstance(moved, exp.Column) else exp.paren(moved, copy=False)

    def own(self, name: str) -> Cell | None:
        if name.startswith(("l", "h")):
            return Cell(name, FLOAT, True)
        if name.startswith("k"):
            return Cell(name, self.kind(name))
        if not name.startswith("a"):
            return None
        return Cell(name, self.kind(name), True, None if self.card(name) in BARLESS else Affine(name))

    def chosen(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.startswith("a") and self.card(node.name) in BARLESS

    def card(self, name: str) -> str:
        return next((ask.card for ask in self.asks if ask.name == name), None) or self.statement.cards[name]


def _type_of(ask: AggregateAsk) -> Type:
    """The type of a released aggregate."""
    if ask.card == MODE and ask.argument is not None:
        return ask.argument.type
    if ask.card in ("quantile", BY_RANK):
        kind = ask.moment or (ask.argument.type if ask.discrete and ask.argument is not None else FLOAT)
        return kind.listed if ask.listed else kind
    if ask.card not in ("count", "units", "distinct", "total", "race_count", "race_total"):
        return FLOAT
    return INTEGER if ask.card not in ("total", "race_total") or ask.argument is None else ask.argument.type


def unit_as_output(statement: Statement, node: exp.Expr, name: str) -> Refused:
    """The refusal of the privacy unit as a key or an output."""
    message = f"{name!r} is the privacy unit: one group per unit, or a list of units, is what must not be shown"
    return statement.refuse("UNIT_AS_OUTPUT", message, node, f"COUNT(DISTINCT {written(name)}), or another key")
