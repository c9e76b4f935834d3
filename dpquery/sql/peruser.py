"""A subquery's GROUP BY, HAVING, QUALIFY and DISTINCT: inside a unit, never across units. All of it stays below the noise.

The plan groups by the unit whatever is written. So that this changes nothing of what the text says, the text must hold the unit among its keys, or an
unmodified column that fixes it: a registered unique one, or one of a declared path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.inside import Place, Placing, Reduction, parts
from dpquery.plan.rel import Compute, Group, Keep, Lookup, Private, Windowed, output
from dpquery.plan.scalar import Column, Interval, Literal, Scalar, columns, replaced
from dpquery.privacy.locality import owning
from dpquery.sql import keys as grouping
from dpquery.sql.fields import peek, take, unread, unset
from dpquery.sql.modes import is_mode
from dpquery.sql.names import MADE, MOST_WINDOWS, Frame, Origin, Scope, Statement, aliased, note
from dpquery.sql.options import rows_in_group
from dpquery.sql.permode import mode
from dpquery.sql.perwindow import has_default, needs_number, window
from dpquery.sql.quoting import written
from dpquery.sql.reductions import reduction
from dpquery.sql.results import result
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.sides import Bound, as_column, computed, firm
from dpquery.sql.standins import stood_in
from dpquery.sql.titles import title
from dpquery.sql.unanswered import WRAPPERS, is_aggregate, unwrapped
from dpquery.values.types import INTEGER, Kind

CLAUSES = ("group", "having", "qualify")
Item = tuple[str, exp.Expr | None, Scalar]  # a column of SELECT: its name, its node, its value
Spelled = tuple[str, exp.Expr, Scalar | None]  # an item as written; with a value: one column of a star, which is the node
Reader = Callable[[exp.Expr, Scope, str], Scalar]
Seat = Callable[[Private, exp.Expr], tuple[Private, exp.Expr]]  # the rows with a column for each value of a subquery, which the expression reads
NOWHERE = Origin("", "", frozenset())


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a subquery that look at several rows of a unit."""

    group: exp.Group | None
    having: exp.Having | None
    qualify: exp.Qualify | None


def check_none(clauses: Clauses) -> None:
    """Refuses these clauses over public tables."""
    for name in CLAUSES:
        value = getattr(clauses, name)
        if not unset(value):
            raise unread(value, name, value)


def asked(items: Sequence[exp.Expr], clauses: Clauses) -> bool:
    """Whether a subquery looks at several rows of a unit."""
    return any(not unset(getattr(clauses, name)) for name in CLAUSES) or any(outermost(item, _is_wanted) for item in items)


def grouped(clauses: Clauses, items: Sequence[exp.Expr]) -> bool:
    """Whether a subquery groups the rows of a unit."""
    return clauses.group is not None or clauses.having is not None or any(outermost(item, is_reduction) for item in items)


def read(statement: Statement, side: Bound, clauses: Clauses, items: Sequence[Spelled], node: exp.Expr, seat: Seat) -> tuple[Bound, tuple[Item, ...]]:
    """The relation after GROUP BY and HAVING, and the columns of SELECT over it."""
    level = Level(statement, Scope(side.frame, statement), side.rel, seat)
    if grouped(clauses, [inner for _, inner, star in items if star is None]):
        level.group(clauses.group, items, node)
    if clauses.having is not None:
        level.keep(take(clauses.having, "this")[0], items, "HAVING")
    read_above = [inner for _, inner, _ in items] + ([] if clauses.qualify is None else [clauses.qualify])
    level.alike = not needs_number([found for one in read_above for found in outermost(one, _is_window)])
    found = level.items(items)
    if clauses.qualify is not None:
        level.keep(take(clauses.qualify, "this")[0], items, "QUALIFY")
    return Bound(level.rel, side.frame, side.kept), found


def distinct(statement: Statement, side: Bound, node: exp.Distinct) -> Bound:
    """Each of a unit's rows once."""
    take(node)
    whole = computed(statement, side)
    values = [f.value for f in whole.frame.fields()]
    keys = tuple(dict.fromkeys(value for value in values if isinstance(value, Column)))
    if not holds_unit(statement, whole.rel, keys):
        message = "DISTINCT in a subquery keeps each row of a unit once, so it needs the privacy unit among its columns"
        raise statement.refuse("DISTINCT_IN_SUBQUERY", message, node, unit_named(side.frame, whole.rel, "in SELECT"))
    return replace(whole, rel=Group(whole.rel, keys, ()))


def holds_unit(statement: Statement, rel: Private, keys: Sequence[Column]) -> bool:
    """Whether rows that agree on these columns are one unit's: one is the unit, or fixes it, by lineage, and no outer join has set it to NULL."""
    own, steady = owning(rel), firm(rel)
    return any(key.id in own or (key.id in steady and statement.origins.get(key.id, NOWHERE).fixes) for key in keys)


def unit_named(frame: Frame, rel: Private, where: str) -> str:
    """The unit in the statement's own words."""
    own = owning(rel)
    fields = [(s.alias, f) for s in frame.sources for f in s.fields if isinstance(f.value, Column) and f.value.id in own]
    found = [".".join(map(written, filter(None, (alias, f.name)))) for alias, f in fields]
    return f"{found[0]} {where}" if found else f"the unit's column in the relation, and {where}"


# ---- nodes that several rows make ----------------------------------------------------------------------------------------------------


def is_reduction(node: exp.Expr) -> bool:
    """Whether the node is an aggregate, with what stands around its call."""
    return is_aggregate(node) or isinstance(node, WRAPPERS)


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window)


def _is_wanted(node: exp.Expr) -> bool:
    return is_reduction(node) or _is_window(node)


def outermost(node: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> tuple[exp.Expr, ...]:
    """The nodes that are wanted, but none inside another, nor in a subquery. A window's function is no aggregate; its arguments may hold some."""
    found, waiting = list[exp.Expr](), [node]
    while waiting:
        one = waiting.pop()
        if wanted(one):
            found.append(one)
        elif isinstance(one, exp.Window):
            waiting += [child for child in one.iter_expressions() if child is not one.this] + list(unwrapped(one.this).iter_expressions())
        elif not isinstance(one, exp.Query):
            waiting += one.iter_expressions()
    return tuple(found)


def lifted(node: exp.Expr, wanted: Callable[[exp.Expr], bool], made: Callable[[exp.Expr], Column]) -> exp.Expr:
    """A copy of the expression, with columns in place of the nodes that are wanted."""
    whole = exp.Paren(this=node.copy())
    for below in outermost(whole, wanted):
        below.replace(_read_as(below, made(below)))
    inner: exp.Expr = take(whole, "this")[0]
    return inner


def _read_as(node: exp.Expr, made: Column) -> exp.Column:
    """The column in the node's place."""
    column = exp.column("x")
    column.meta.update(node.meta)
    column.meta[MADE] = made
    return column


# ---- levels --------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Level:
    """Where clauses are read, from GROUP BY upwards: the relation so far, and what names mean over it.

    Names are those of FROM. Over groups an expression that is a key reads its column; what is neither a key nor made here is refused.
    """

    statement: Statement
    scope: Scope
    rel: Private
    seat: Seat
    keys: dict[Scalar, Scalar] = field(default_factory=dict)
    made: dict[Reduction, Column] = field(default_factory=dict)
    visible: set[int] | None = None  # None: all columns of FROM
    copies: dict[int, exp.Expr] = field(default_factory=dict)  # of expressions by id of their node, with columns in place of aggregates
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)  # of SELECT, as windows see them
    placed: dict[int, exp.Expr] = field(default_factory=dict)  # and of these with columns in place of windows
    seats: dict[int, exp.Expr] = field(default_factory=dict)  # of expressions by id of their node, with columns in place of subqueries
    alike: bool = True  # whether all windows see equal rows in one order by themselves
    number: Column | None = None  # of each row among those of its unit, where windows are not alike

    def group(self, clause: exp.Group | None, items: Sequence[Spelled], node: exp.Expr) -> None:
        """The groups of GROUP BY with all aggregates that SELECT, HAVING and QUALIFY read."""
        if clause is None:
            first = next((found for _, inner, _ in items for found in outermost(inner, is_reduction)), node)
            message = "an aggregate in a subquery goes over rows of one unit, so it needs GROUP BY with the privacy unit"
            raise self.statement.refuse("AGGREGATE_IN_SUBQUERY", message, first, unit_named(self.scope.frame, self.rel, "in GROUP BY"))
        star = next((inner for _, inner, value in items if value is not None), None)
        if star is not None:
            raise self.statement.refuse("STAR", "a star beside GROUP BY is not supported", star, "the keys by name")
        named = [(name or title(inner), inner) for name, inner, _ in items]
        below = self.rel
        scope = replace(self.scope, aliases=aliased((name, inner) for name, inner, _ in items))
        for _, key in grouping.grouped(self.statement, clause, named, self.scope):
            self._key(key, scope)
        made = tuple((column, value) for value, column in self.keys.items() if isinstance(column, Column) and column != value)
        columns_ = tuple(column for column in self.keys.values() if isinstance(column, Column))
        below = Compute(below, made) if made else below
        if not holds_unit(self.statement, below, columns_):
            message = "GROUP BY in a subquery groups the rows of one unit, so it needs the privacy unit among its keys"
            raise self.statement.refuse("GROUP_BY_IN_SUBQUERY", message, clause, unit_named(self.scope.frame, self.rel, "in GROUP BY"))
        self.rel = Group(below, columns_, ())
        self.visible = {column.id for column in columns_}

    def _key(self, node: exp.Expr, scope: Scope) -> None:
        value = expression(node, scope, "GROUP BY")
        if value.type.kind in (Kind.INTERVAL, Kind.NULL):
            raise self.statement.refuse("KEY_TYPE", f"a key cannot be of type {value.type}", node, "a CAST to another type")
        if value not in self.keys and not isinstance(value, Literal):  # a literal keeps nothing apart, and has to stay one inside functions
            self.keys[value] = value if isinstance(value, Column) else as_column(self.statement, "key", value)

    def keep(self, node: exp.Expr, items: Sequence[Spelled], clause: str) -> None:
        """The rows for which a condition is true."""
        aliases = aliased((name, inner) for name, inner, star in items if star is None)
        predicate = self._read(node, aliases, clause, condition, windows=clause != "HAVING")
        self.rel = Keep(self.rel, predicate)

    def items(self, items: Sequence[Spelled]) -> tuple[Item, ...]:
        """The columns of SELECT; each sees the names of those before it."""
        found, aliases = list[Item](), dict[str, exp.Expr]()
        for name, inner, star in items:
            value = star if star is not None else self._read(inner, dict(aliases), "a subquery's SELECT", expression)
            found.append((name or title(inner), inner, value))
            if star is None:
                note(aliases, name, inner)
        return tuple(found)

    def _read(self, node: exp.Expr, aliases: Mapping[str, exp.Expr], clause: str, reader: Reader, windows: bool = True) -> Scalar:
        """The expression over the relation so far."""
        node, aliases = self._seated(node), {name: self._seated(inner) for name, inner in aliases.items()}
        self.aliases = {name: self._lifted(inner, False) for name, inner in aliases.items()}
        seen = {name: self._lifted(inner, True) for name, inner in aliases.items()} if windows else self.aliases
        return self._checked(reader(self._lifted(node, windows), replace(self.scope, aliases=seen), clause), node)

    def _seated(self, node: exp.Expr) -> exp.Expr:
        """The expression with columns of these rows in place of its subqueries. Those inside aggregates are columns of the rows below already."""
        if id(node) not in self.seats:
            known = {column.id for column in output(self.rel)}
            self.rel, self.seats[id(node)] = self.seat(self.rel, node)
            if self.visible is not None:
                self.visible |= {column.id for column in output(self.rel)} - known
        return self.seats[id(node)]

    def _checked(self, value: Scalar, node: exp.Expr) -> Scalar:
        """The expression over groups, where there are some: of keys and of what was made of several rows."""
        found = replaced(value, self.keys)
        for column in columns(found):
            if self.visible is not None and column.id not in self.visible:
                raise self._ungrouped(column, node)
        return found

    def _lifted(self, node: exp.Expr, windows: bool) -> exp.Expr:
        """The expression with columns in place of its aggregates, if there are groups, and of its windows, where they may stand."""
        found = node
        if self.visible is not None:
            if id(node) not in self.copies:
                self.copies[id(node)] = lifted(node, is_reduction, self.reduced)
            found = self.copies[id(node)]
        if not windows:
            return found
        if id(found) not in self.placed:
            self.placed[id(found)] = lifted(found, _is_window, self._windowed) if outermost(found, _is_window) else found
        return self.placed[id(found)]

    def _windowed(self, node: exp.Expr) -> Column:
        """The column of a window."""
        if not isinstance(node, exp.Window):
            raise AssertionError("a window is wanted")
        statement = self.statement
        if has_default(node.this):
            return self._defaulted(node, node.this)
        other = stood_in(statement, node)
        if isinstance(other, exp.Window):
            other.set("this", lifted(other.this, _is_window, self._windowed))
            return self._windowed(other)
        if other is not None:
            return self._column(self._inner(lifted(other, _is_window, self._windowed)))
        if not self.alike and self.number is None:
            self.number = self._numbered()
        item, partition, order, frame = window(statement, node, self._inner, self._column, self._own, self.number)
        self._check_room(node)
        if not holds_unit(statement, self.rel, partition):
            message = "a window in a subquery goes over the rows of one unit, so it needs the privacy unit in its partition"
            raise statement.refuse("WINDOW", message, node, unit_named(self.scope.frame, self.rel, "in PARTITION BY"))
        rows = rows_in_group(statement, self.rel)
        if isinstance(item, Reduction):
            made = result(item, title(node), next(statement.ids), rows)
        else:
            counts = None if item.value is not None or rows is None else Interval(Fraction(1), Fraction(max(rows, 1)))
            made = Column(next(statement.ids), title(node), item.type, item.value.declared if item.value is not None else counts)
        self.rel = Windowed(self.rel, made, item, partition, order, frame)
        statement.windows.append(made.id)
        if self.visible is not None:
            self.visible.add(made.id)
        return made

    def _check_room(self, node: exp.Expr) -> None:
        if len(self.statement.windows) >= MOST_WINDOWS:
            message = f"more than {MOST_WINDOWS} windows inside a unit and expressions that they read"
            raise self.statement.refuse("TOO_COMPLEX", message, node, "fewer of them, or columns in place of expressions")

    def _defaulted(self, node: exp.Window, function: exp.Expr) -> Column:
        """LAG or LEAD with a default: that where there is no such row, which is where 1 in place of the value is NULL."""
        plain, there = node.copy(), node.copy()
        for one in (plain, there):
            one.this.set("default", None)
        there.this.set("this", exp.Literal.number(1))
        default, kept = peek(function, "default"), self._windowed(plain)
        value, found = _read_as(node, kept), _read_as(node, self._windowed(there))
        chosen = exp.If(this=exp.Is(this=found, expression=exp.Null()), true=default.copy())
        made = self._inner(exp.Case(ifs=[chosen], default=value))
        if made.type != kept.type:  # engines cast the default, which would change it
            message = f"the default is no value of the column's type, {kept.type}"
            raise self.statement.refuse("TYPE_MISMATCH", message, default, f"a CAST of the default to {kept.type}")
        return self._column(made)

    def _numbered(self) -> Column:
        """A number for each row of a unit, in the order of all columns: below all windows, so that these see equal rows in one order."""
        made = Column(next(self.statement.ids), "number", INTEGER)
        self.rel = Windowed(self.rel, made, Placing(Place.ROW_NUMBER, None, INTEGER), (), ())
        return made

    def _inner(self, node: exp.Expr) -> Scalar:
        """A row-wise expression inside a window."""
        return self._checked(expression(node, replace(self.scope, aliases=self.aliases), "a window"), node)

    def _column(self, value: Scalar) -> Column:
        """The expression as a column."""
        if isinstance(value, Column):
            return value
        made = as_column(self.statement, "term", value)
        self.statement.windows.append(made.id)
        self.rel = _computed(self.rel, made, value)
        if self.visible is not None:
            self.visible.add(made.id)
        return made

    def _own(self, node: exp.Expr) -> Reduction:
        """An aggregate that goes over a window; over groups it reads keys and aggregates."""
        found = reduction(self.statement, node, replace(self.scope, aliases=self.aliases))
        value, where, by = (None if part is None else replaced(part, self.keys) for part in (found.value, found.where, found.by))
        found = replace(found, value=value, where=where, by=by)
        for column in (c for part in parts(found) for c in columns(part)):
            if self.visible is not None and column.id not in self.visible:
                raise self._ungrouped(column, node)
        return found

    def reduced(self, node: exp.Expr) -> Column:
        """The column of an aggregate; equal ones share it."""
        group = self.group_below()
        if is_mode(node):
            self._check_room(node)
            onto, found = mode(self.statement, node, self.scope, group)
        else:
            onto, found = group, reduction(self.statement, node, self.scope)
        if found not in self.made:
            self.made[found] = result(found, title(node), next(self.statement.ids), rows_in_group(self.statement, group.input))
            self.rel = _regrouped(self.rel, group, replace(onto, items=(*group.items, (self.made[found], found))))
            if self.visible is not None:
                self.visible.add(self.made[found].id)
        return self.made[found]

    def group_below(self) -> Group:
        """The group that aggregates belong to: below HAVING."""
        rel = self.rel
        while not isinstance(rel, Group):
            if not isinstance(rel, Keep | Compute | Windowed | Lookup):
                raise AssertionError("HAVING, windows and values alone stand above the groups")
            rel = rel.input
        return rel

    def _ungrouped(self, column: Column, node: exp.Expr) -> Refused:
        message = f"column {column.name!r} is neither in GROUP BY nor inside an aggregate"
        return self.statement.refuse("NOT_GROUPED", message, node, f"{written(column.name)} in GROUP BY, or MIN({written(column.name)})")


def _regrouped(rel: Private, group: Group, made: Group) -> Private:
    """The relation with another group in place of this one."""
    if rel is group:
        return made
    if isinstance(rel, Keep | Compute | Windowed | Lookup):
        return replace(rel, input=_regrouped(rel.input, group, made))
    raise AssertionError("HAVING, windows and values alone stand above the groups")


def _computed(rel: Private, made: Column, value: Scalar) -> Private:
    """The relation with one more column, beside those that it has already and below windows whose columns it does not read: each step costs time."""
    reads = columns(value)
    match rel:
        case Windowed(input=below, column=column, partition=by) if by and column not in reads:
            return replace(rel, input=_computed(below, made, value))
        case Compute(items=items) if reads.isdisjoint(column for column, _ in items):
            return replace(rel, items=(*items, (made, value)))
        case _:
            return Compute(rel, ((made, value),))
