"""Windows over groups of several levels: they stand in a SELECT around all levels, which hand it what it reads as columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from dpquery.sql import edges
from dpquery.sql.fields import peek
from dpquery.sql.names import Scope, fold
from dpquery.sql.unanswered import called, is_aggregate, unwrapped


def windowed(node: exp.Expr, scope: Scope, aliases: Mapping[str, exp.Expr], following: tuple[str, ...] = ()) -> bool:
    """Whether it holds a window that is not a subquery's own, or the alias of what does."""
    for one in node.walk(prune=lambda one: isinstance(one, exp.Query)):
        if isinstance(one, exp.Window):
            return True
        if isinstance(one, exp.Column) and peek(one, "table") is None and scope.find(one) is None:
            name = fold(one.name)
            if name in aliases and name not in following and windowed(aliases[name], scope, aliases, (*following, name)):
                return True
    return False


@dataclass(frozen=True, slots=True)
class Around:
    """Moves expressions to the SELECT around the levels. Aggregates, keys and columns stay in these: `shown` as outputs, others `hidden`."""

    scope: Scope
    known: Callable[[exp.Expr], exp.Expr]  # an expression so that equal ones are equal
    keys: Collection[exp.Expr]  # known
    aliases: Mapping[str, exp.Expr]
    shown: Mapping[exp.Expr, str]  # known
    hidden: dict[exp.Expr, tuple[str, exp.Expr]] = field(default_factory=dict)  # by what is known
    read: set[str] = field(default_factory=set)  # columns of the levels, by their names
    following: list[str] = field(default_factory=list)

    def moved(self, node: exp.Expr, late: bool) -> exp.Expr:
        """The expression over columns of the levels. `late`: where an alias of SELECT comes before a column of its name."""
        if self._stays(node):
            followed = self._followed(node, late) if isinstance(node, exp.Column) else None
            return self._column(node) if followed is None else followed
        made = node.copy()
        if isinstance(node, exp.Query):
            return made
        for old, child in zip(list(node.iter_expressions()), list(made.iter_expressions()), strict=True):
            function = isinstance(node, exp.Window) and old is node.this
            child.replace(self._call(old) if function else self.moved(old, late or isinstance(node, exp.Window)))
        return made

    def _call(self, node: exp.Expr) -> exp.Expr:
        """The function of a window, which is none of the levels' aggregates: its arguments are moved."""
        made = node.copy()
        for old, child in zip(list(node.iter_expressions()), list(made.iter_expressions()), strict=True):
            child.replace(self.moved(old, late=True))
        return made

    def _stays(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Column | exp.Grouping | exp.GroupingId) or is_aggregate(unwrapped(node)) or called(node) in edges.NAMES:
            return True
        return not isinstance(node, exp.Query | exp.Subquery | exp.Literal) and self.known(node) in self.keys

    def _followed(self, node: exp.Column, late: bool) -> exp.Expr | None:
        """What the alias stands for that the name is; None where it is a key's or a column's."""
        name = fold(node.name)
        if peek(node, "table") is not None or name not in self.aliases or name in self.following:
            return None
        if self.known(node) in self.keys or (not late and self.scope.find(node) is not None):
            return None
        self.following.append(name)
        try:
            return exp.paren(self.moved(self.aliases[name], late), copy=False)
        finally:
            self.following.pop()

    def _column(self, node: exp.Expr) -> exp.Column:
        """The column of the levels that the expression is."""
        known = self.known(node)
        name = self.shown.get(known) or self.hidden.setdefault(known, (f"part {len(self.hidden) + 1}", node))[0]
        self.read.add(name)
        made = exp.column(name, quoted=True)
        made.meta.update(node.meta)
        return made
