"""SELECT over several rows of public tables: GROUP BY, HAVING, aggregates, ORDER BY with LIMIT. Exact, for nothing, and of public rows only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.scalar import Column, Literal, Scalar
from dpquery.sql import keys as grouping
from dpquery.sql import public
from dpquery.sql.fields import take
from dpquery.sql.names import Field, Frame, Scope, Source, Statement, aliased, column_name, fold, note
from dpquery.sql.peruser import lifted
from dpquery.sql.publicvalues import aggregate
from dpquery.sql.rowwise import condition, expression
from dpquery.sql.scalar import MOST_NODES
from dpquery.sql.sides import Open
from dpquery.sql.unanswered import is_aggregate
from dpquery.sql.windows import direction

ENDS = ("order", "limit", "offset")
Named = tuple[str, exp.Expr]  # the name of an output, and its expression


@dataclass(slots=True)
class Groups:
    """Public rows in groups: columns of keys, then of aggregates, as texts over the relation `q`."""

    statement: Statement
    side: Open
    keys: dict[Scalar, Column] = field(default_factory=dict)
    made: list[Column] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        return Scope(self.side.frame, self.statement)

    @property
    def called(self) -> dict[int, str]:
        return {c.id: f"q.c{i}" for i, c in enumerate(self.side.columns)}

    def key(self, name: str, node: exp.Expr) -> None:
        value = expression(node, self.scope, "GROUP BY")
        if value not in self.keys and not isinstance(value, Literal):
            self.keys[value] = self._column(public.renewed(self.statement, name, value), public.text_of(node, self.scope, self.called))

    def _column(self, column: Column, text: str) -> Column:
        self.made.append(column)
        self.texts.append(public.cast_to(text, column.type))
        return column

    def over(self, node: exp.Expr) -> exp.Expr:
        """The expression over groups: columns in place of keys and aggregates. What is neither is refused."""
        found = lifted(node, self._is_made, self._made)
        for below in found.find_all(exp.Column):
            if below.name != "x" and self.scope.find(below) is not None:
                message = f"column {below.name!r} is neither in GROUP BY nor inside an aggregate"
                raise self.statement.refuse("NOT_GROUPED", message, below, f"{below.name} in GROUP BY, or MIN({below.name})")
        return found

    def _is_made(self, node: exp.Expr) -> bool:
        if is_aggregate(node) or any(is_aggregate(below) for below in node.walk()):
            return is_aggregate(node)
        return not isinstance(node, exp.Paren) and self._value(node) in self.keys

    def _value(self, node: exp.Expr) -> Scalar | None:
        try:
            return expression(node, self.scope, "GROUP BY")
        except Refused:
            return None

    def _made(self, node: exp.Expr) -> Column:
        if not is_aggregate(node):
            return self.keys[expression(node, self.scope, "GROUP BY")]
        text, column = aggregate(self.statement, node, self.scope, self.called)
        return self._column(column, text)

    def rel(self, where: exp.Expr | None) -> Open:
        """The groups, of the rows for which WHERE is true."""
        kept = "" if where is None else f" WHERE {public.text_of(where, self.scope, self.called)}"
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(self.keys)))}" if self.keys else ""
        texts = ", ".join(f"{text} AS c{i}" for i, text in enumerate(self.texts))
        return Open(
            f"SELECT {texts} FROM ({self.side.sql}) AS q{kept}{by}", tuple(self.made), Frame((Source("", ()),)), self.side.tables, most=self.side.most
        )


def grouped(
    statement: Statement, side: Open, items: Sequence[Named], group: exp.Group | None, having: exp.Expr | None, where: exp.Expr | None, distinct: bool
) -> Open:
    """SELECT .. [WHERE ..] GROUP BY .. [HAVING ..] of public rows."""
    found = Groups(statement, side)
    items = _each_spelled_out(found.scope, items)
    for name, node in () if group is None else grouping.grouped(statement, group, items, found.scope):
        found.key(name, node)
    aliases = aliased(items)
    outputs = [(name, found.over(node)) for name, node in items]
    test = None if having is None else found.over(_spelled_out(found.scope, having, aliases))
    if where is not None:
        condition(where, found.scope, "WHERE")
    if not found.texts:
        raise statement.refuse("GROUP_BY_IN_SUBQUERY", "GROUP BY of literals alone is not supported", group, "a column of the table")
    rel = found.rel(where)
    scope = Scope(rel.frame, statement)
    if test is not None:
        condition(test, scope, "HAVING")
    values = [(name, node, expression(node, scope, "a subquery's SELECT")) for name, node in outputs]
    return public.selected(statement, rel, values, test, distinct, 0)


def _each_spelled_out(scope: Scope, items: Sequence[Named]) -> list[Named]:
    """The items with the expressions of earlier ones in place of their names."""
    found, aliases = list[Named](), dict[str, exp.Expr]()
    for name, node in items:
        named = any(isinstance(one, exp.Column) and fold(one.name) in aliases and not scope.inside(one) for one in node.walk())
        found.append((name, _spelled_out(scope, node, aliases) if named else node))
        if any(islice(found[-1][1].walk(), MOST_NODES, None)):
            raise scope.statement.refuse("TOO_COMPLEX", f"more than {MOST_NODES:,} parts, aliases written out", node)
        note(aliases, *found[-1])
    return found


def _spelled_out(scope: Scope, node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    """An expression with those of SELECT in place of their names."""

    def change(below: exp.Expr) -> exp.Expr:
        if not isinstance(below, exp.Column) or scope.inside(below):
            return below
        name, table = column_name(below, scope.source)
        return exp.paren(aliases[fold(name)]) if table is None and fold(name) in aliases else below

    return exp.paren(node).transform(change)


def first(statement: Statement, made: Open, order: exp.Order | None, limits: tuple[int | None, int | None], node: exp.Expr) -> Open:
    """The first rows in an order of the outputs; all of them break ties, so that which rows these are does not depend on how they are stored."""
    limit, offset = limits
    terms = []
    for term in () if order is None else take(order, "expressions")[0]:
        this, desc, nulls = take(term, "this", "desc", "nulls_first")
        terms.append(f"c{_place(statement, made, this)}{direction(desc, nulls)}")
    if limit is None and offset is None:
        return made  # without LIMIT an order says nothing
    if not terms:
        message = "which rows LIMIT keeps is not said"
        raise statement.refuse("LIMIT_IN_SUBQUERY", message, node, "ORDER BY with columns of SELECT in front of it")
    terms += [f"c{i} NULLS LAST" for i in range(len(made.columns))]
    ends = f"{'' if limit is None else f' LIMIT {limit}'}{'' if offset is None else f' OFFSET {offset}'}"
    sql = f"SELECT * FROM ({made.sql}) AS q ORDER BY {', '.join(terms)}{ends}"
    return Open(sql, made.columns, made.frame, made.tables, most=made.most if limit is None else max(1, min(made.most, limit)))


def _place(statement: Statement, made: Open, node: exp.Expr) -> int:
    fields: Sequence[Field] = made.frame.fields()
    if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name[:9]) <= len(fields):
        return int(node.name) - 1
    names = [fold(one.name) for one in fields]
    if isinstance(node, exp.Column) and names.count(fold(node.name)) == 1:
        return names.index(fold(node.name))
    raise statement.refuse("ORDER_BY_IN_SUBQUERY", "ORDER BY here takes columns of SELECT by name", node, "the expression in SELECT, too")
