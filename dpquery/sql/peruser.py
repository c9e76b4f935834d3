"""A subquery's GROUP BY, HAVING, QUALIFY and DISTINCT: inside a unit, never across units. All of it stays below the noise.

The plan groups by the unit whatever is written. So that this changes nothing of what the text says, the text must hold the unit among its keys, or an
unmodified column that fixes it: a registered unique one, or one of a declared path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.inside import Reduction
from dpquery.plan.rel import Compute, Group, Keep, Private
from dpquery.plan.scalar import Column, Literal, Scalar, columns, replaced
from dpquery.privacy.locality import owning
from dpquery.sql import keys as grouping
from dpquery.sql.fields import take, unread, unset
from dpquery.sql.names import MADE, Frame, Origin, Scope, Statement, fold
from dpquery.sql.options import rows_in_group
from dpquery.sql.reductions import reduction, result
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.sides import Bound, as_column, computed, firm
from dpquery.sql.titles import title
from dpquery.sql.unanswered import WRAPPERS, is_aggregate
from dpquery.values.types import Kind

CLAUSES = ("group", "having", "qualify")
Item = tuple[str, exp.Expr | None, Scalar]  # a column of SELECT: its name, its node, its value
Spelled = tuple[str, exp.Expr, Scalar | None]  # an item as written; with a value: one column of a star, which is the node
NOWHERE = Origin("", "", frozenset())


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a subquery that look at several rows of a unit."""

    group: exp.Group | None
    having: exp.Having | None
    qualify: exp.Qualify | None


def check_none(node: exp.Select, clauses: Clauses) -> None:
    """Refuses these clauses over public tables."""
    for name in CLAUSES:
        value = getattr(clauses, name)
        if not unset(value):
            raise unread(node, name, value)


def asked(items: Sequence[exp.Expr], clauses: Clauses) -> bool:
    """Whether a subquery looks at several rows of a unit."""
    return any(not unset(getattr(clauses, name)) for name in CLAUSES) or any(_outermost(item, _is_reduction) for item in items)


def read(statement: Statement, side: Bound, clauses: Clauses, items: Sequence[Spelled], node: exp.Expr) -> tuple[Bound, tuple[Item, ...]]:
    """The relation after GROUP BY and HAVING, and the columns of SELECT over it."""
    if not unset(clauses.qualify):
        raise unread(node, "qualify", clauses.qualify)
    level = Level(statement, Scope(side.frame, statement), side.rel)
    if clauses.group is not None or clauses.having is not None or any(_outermost(inner, _is_reduction) for _, inner, star in items if star is None):
        level.group(clauses.group, items, node)
    if clauses.having is not None:
        level.keep(take(clauses.having, "this")[0], items, "HAVING")
    found = level.items(items)
    return Bound(level.rel, side.frame, side.kept), found


def distinct(statement: Statement, side: Bound, node: exp.Distinct) -> Bound:
    """Each of a unit's rows once."""
    on = take(node, "on")[0]
    if on is not None:
        raise statement.refuse("DISTINCT_ON", "DISTINCT ON is not supported", on, "DISTINCT, or GROUP BY")
    whole = computed(statement, side)
    values = [f.value for f in whole.frame.fields()]
    keys = tuple(dict.fromkeys(value for value in values if isinstance(value, Column)))
    if not holds_unit(statement, whole.rel, keys):
        message = "DISTINCT in a subquery keeps each row of a unit once, so it needs the privacy unit among its columns"
        raise statement.refuse("DISTINCT_IN_SUBQUERY", message, node, _unit_named(side.frame, whole.rel, "in SELECT"))
    return replace(whole, rel=Group(whole.rel, keys, ()))


def holds_unit(statement: Statement, rel: Private, keys: Sequence[Column]) -> bool:
    """Whether rows that agree on these columns are one unit's: one is the unit, or fixes it, by lineage, and no outer join has set it to NULL."""
    own, steady = owning(rel), firm(rel)
    return any(key.id in own or (key.id in steady and statement.origins.get(key.id, NOWHERE).fixes) for key in keys)


def _unit_named(frame: Frame, rel: Private, where: str) -> str:
    """The unit in the statement's own words."""
    own = owning(rel)
    fields = [(s.alias, f) for s in frame.sources for f in s.fields]
    found = [f"{alias}.{f.name}" if alias else f.name for alias, f in fields if isinstance(f.value, Column) and f.value.id in own]
    return f"{found[0]} {where}" if found else f"the unit's column in the relation, and {where}"


# ---- nodes that several rows make ----------------------------------------------------------------------------------------------------


def _is_reduction(node: exp.Expr) -> bool:
    return is_aggregate(node) or isinstance(node, WRAPPERS)


def _outermost(node: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> tuple[exp.Expr, ...]:
    """The nodes that are wanted, but none inside another, nor in a subquery. A window's function is no aggregate; its arguments may hold some."""
    found, waiting = list[exp.Expr](), [node]
    while waiting:
        one = waiting.pop()
        if wanted(one):
            found.append(one)
        elif isinstance(one, exp.Window):
            waiting += [below for child in one.iter_expressions() for below in (_arguments(child) if child is one.this else [child])]
        elif not isinstance(one, exp.Query):
            waiting += one.iter_expressions()
    return tuple(found)


def _arguments(function: exp.Expr) -> Iterator[exp.Expr]:
    return function.iter_expressions()


def lifted(node: exp.Expr, wanted: Callable[[exp.Expr], bool], made: Callable[[exp.Expr], Column]) -> exp.Expr:
    """A copy of the expression, with columns in place of the nodes that are wanted."""
    whole = exp.Paren(this=node.copy())
    for below in _outermost(whole, wanted):
        column = exp.column("x")
        column.meta.update(below.meta)
        column.meta[MADE] = made(below)
        below.replace(column)
    inner: exp.Expr = take(whole, "this")[0]
    return inner


# ---- levels --------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Level:
    """Where clauses are read, from GROUP BY upwards: the relation so far, and what names mean over it.

    Names are those of FROM. Over groups an expression that is a key reads its column; what is neither a key nor made here is refused.
    """

    statement: Statement
    scope: Scope
    rel: Private
    keys: dict[Scalar, Scalar] = field(default_factory=dict)
    made: dict[Reduction, Column] = field(default_factory=dict)
    visible: set[int] | None = None  # None: all columns of FROM
    copies: dict[int, exp.Expr] = field(default_factory=dict)  # of expressions by id of their node, with columns in place of aggregates

    def group(self, clause: exp.Group | None, items: Sequence[Spelled], node: exp.Expr) -> None:
        """The groups of GROUP BY with all aggregates that SELECT, HAVING and QUALIFY read."""
        if clause is None:
            first = next((found for _, inner, _ in items for found in _outermost(inner, _is_reduction)), node)
            message = "an aggregate in a subquery goes over rows of one unit, so it needs GROUP BY with the privacy unit"
            raise self.statement.refuse("AGGREGATE_IN_SUBQUERY", message, first, _unit_named(self.scope.frame, self.rel, "in GROUP BY"))
        star = next((inner for _, inner, value in items if value is not None), None)
        if star is not None:
            raise self.statement.refuse("STAR", "a star beside GROUP BY is not supported", star, "the keys by name")
        named = [(name or title(inner), inner) for name, inner, _ in items]
        below = self.rel
        for _, key in grouping.grouped(self.statement, clause, named, self.scope):
            self._key(key)
        made = tuple((column, value) for value, column in self.keys.items() if isinstance(column, Column) and column != value)
        columns_ = tuple(column for column in self.keys.values() if isinstance(column, Column))
        below = Compute(below, made) if made else below
        if not holds_unit(self.statement, below, columns_):
            message = "GROUP BY in a subquery groups the rows of one unit, so it needs the privacy unit among its keys"
            raise self.statement.refuse("GROUP_BY_IN_SUBQUERY", message, clause, _unit_named(self.scope.frame, self.rel, "in GROUP BY"))
        self.rel = Group(below, columns_, ())
        self.visible = {column.id for column in columns_}

    def _key(self, node: exp.Expr) -> None:
        value = expression(node, self.scope, "GROUP BY")
        if value.type.kind in (Kind.INTERVAL, Kind.NULL):
            raise self.statement.refuse("KEY_TYPE", f"a key cannot be of type {value.type}", node, "a CAST to another type")
        if value not in self.keys and not isinstance(value, Literal):  # a literal keeps nothing apart, and has to stay one inside functions
            self.keys[value] = value if isinstance(value, Column) else as_column(self.statement, "key", value)

    def keep(self, node: exp.Expr, items: Sequence[Spelled], clause: str) -> None:
        """The rows for which a condition is true."""
        aliases = {fold(name): inner for name, inner, star in reversed(items) if name and star is None}
        predicate = self._read(node, aliases, clause, condition)
        self.rel = Keep(self.rel, predicate)

    def items(self, items: Sequence[Spelled]) -> tuple[Item, ...]:
        """The columns of SELECT; each sees the names of those before it."""
        found, aliases = list[Item](), dict[str, exp.Expr]()
        for name, inner, star in items:
            value = star if star is not None else self._read(inner, dict(aliases), "a subquery's SELECT", expression)
            found.append((name or title(inner), inner, value))
            if name and star is None:
                aliases.setdefault(fold(name), inner)
        return tuple(found)

    def _read(self, node: exp.Expr, aliases: Mapping[str, exp.Expr], clause: str, reader: Callable[[exp.Expr, Scope, str], Scalar]) -> Scalar:
        """The expression over the relation so far."""
        seen = {name: self._lifted(inner) for name, inner in aliases.items()}
        value = replaced(reader(self._lifted(node), replace(self.scope, aliases=seen), clause), self.keys)
        if self.visible is not None:
            for column in columns(value):
                if column.id not in self.visible:
                    raise self._ungrouped(column, node)
        return value

    def _lifted(self, node: exp.Expr) -> exp.Expr:
        if self.visible is None:
            return node
        if id(node) not in self.copies:
            self.copies[id(node)] = lifted(node, _is_reduction, self._reduced)
        return self.copies[id(node)]

    def _reduced(self, node: exp.Expr) -> Column:
        """The column of an aggregate; equal ones share it."""
        group = self._group()
        found = reduction(self.statement, node, self.scope)
        if found not in self.made:
            self.made[found] = result(found, title(node), next(self.statement.ids), rows_in_group(self.statement, group.input))
            self.rel = _with_item(self.rel, group, (self.made[found], found))
            if self.visible is not None:
                self.visible.add(self.made[found].id)
        return self.made[found]

    def _group(self) -> Group:
        """The group that aggregates belong to: below HAVING."""
        rel = self.rel
        while not isinstance(rel, Group):
            if not isinstance(rel, Keep):
                raise AssertionError("only HAVING stands above the groups while aggregates are read")
            rel = rel.input
        return rel

    def _ungrouped(self, column: Column, node: exp.Expr) -> Refused:
        message = f"column {column.name!r} is neither in GROUP BY nor inside an aggregate"
        return self.statement.refuse("NOT_GROUPED", message, node, f"{column.name} in GROUP BY, or MIN({column.name})")


def _with_item(rel: Private, group: Group, item: tuple[Column, Reduction]) -> Private:
    """The relation with one more aggregate in its group."""
    if rel is group:
        return replace(group, items=(*group.items, item))
    if isinstance(rel, Keep):
        return replace(rel, input=_with_item(rel.input, group, item))
    raise AssertionError("the group stands below HAVING alone")
