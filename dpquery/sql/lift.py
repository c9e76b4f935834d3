"""Expressions above the noise: the parser's tree is kept, its names become columns of a table `t` of released values.

What the table's own columns are is for each kind of table to say. Whatever is not built from them by the allow-list is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from sqlglot import exp

from dpquery.plan.coerce import LONGEST
from dpquery.sql import edges, indexed, subqueries
from dpquery.sql.abroad import rounding, wide
from dpquery.sql.allowed import FUNCTIONS, NODES, TYPES
from dpquery.sql.casts import sizes
from dpquery.sql.clock import told
from dpquery.sql.division import Lifts, divided
from dpquery.sql.fields import rebuild, take
from dpquery.sql.names import Scope, Statement, column_name, fold, meant
from dpquery.sql.public import written
from dpquery.sql.semi import test_of
from dpquery.sql.sides import Bar, Cell, Released
from dpquery.sql.unanswered import called, is_aggregate, like, unwrapped
from dpquery.values.types import INTEGER, NULL, Kind, Type

OFFERED = "arithmetic, comparisons, CASE, CAST, COALESCE, ROUND and other functions of one value"
MOST_NODES = 20_000  # lifted for one statement, aliases written out
MOST_JOINED = 64  # texts of at most LONGEST characters


class Where(Enum):
    """Where an expression stands: what an unqualified name means there, and whether a window may stand there."""

    SELECT = auto()
    HAVING = auto()
    QUALIFY = auto()
    ORDER = auto()
    WINDOW = auto()


@dataclass(slots=True)
class Lifter:
    """What is collected while expressions over released values are read: each becomes one over the columns of a table `t`."""

    statement: Statement
    scope: Scope
    aliases: Mapping[str, exp.Expr]
    window: Callable[[Lifter, exp.Window], str]  # how a window is read; it reads its arguments as cells
    scalar: Callable[[exp.Expr, Lifter, bool], Released]  # how a subquery is read that may read this row: a value, or several rows
    types: list[Type | None] = field(default_factory=list)  # of the outputs, where they are known
    unique: frozenset[int] | None = None  # places of the outputs that tell rows apart, where some are known to
    scalars: list[Released] = field(default_factory=list)
    subqueries: dict[int, str] = field(default_factory=dict)  # their columns, by id of their node
    alike: dict[exp.Expr, str] = field(default_factory=dict)  # the same by the node, of those that release nothing
    marks: list[str] = field(default_factory=list)  # subqueries that are looked up for each row, or that it is compared with
    given: list[str] = field(default_factory=list)  # what these read of the row
    lendings: int = 0  # how often they did
    outer: Lifter | None = None  # of the row around this subquery
    windows: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)  # cells that hold 64-bit integers
    lifted: int = 0
    following: list[str] = field(default_factory=list)  # aliases whose expressions are being read
    joined: int = 0  # texts
    unsure: bool = False  # whether noisy values decide which rows there are

    def lift(self, node: exp.Expr, where: Where, lists: bool = False) -> exp.Expr:
        """The expression over the noisy table's columns; a list is refused, unless `lists` may stand there."""
        self.lifted += 1
        if self.lifted > MOST_NODES:
            raise self.statement.refuse("TOO_COMPLEX", f"more than {MOST_NODES:,} parts above the noise, aliases written out", node)
        if isinstance(node, exp.DPipe | exp.Concat):
            self._check_joined(node)
        found = self._outside(node) or self._key(node) or told(node, self.scope)
        if found is not None:
            return found
        test = test_of(node) if isinstance(node, exp.Exists | exp.In | exp.EQ | exp.NEQ) else None
        if test is not None:
            return subqueries.condition(self, test, lambda one: self.lift(one, Where.HAVING), guarded)
        match node:
            case exp.Column():
                found = self._column(node, where)
            case exp.Window():
                return self._window(node, where)
            case exp.DataType():
                return self._type(node)
            case exp.Query() | exp.Subquery():
                found = subqueries.value(self, node)
            case exp.Bracket():
                return self._value(node, where)
            case exp.Paren() if lists:
                found = self.enclosed(self.lift(node.this, where, lists))
            case _ if is_aggregate(unwrapped(node)):
                found = self._aggregate(node)
            case _:
                return self._plain(node, where)
        if not lists and self.is_list(found):
            raise indexed.misplaced(self.statement, node)
        return found

    def enclosed(self, found: exp.Expr) -> exp.Expr:
        """What was lifted in parentheses; a list as it is."""
        return found if self.is_list(found) else exp.paren(found, copy=False)

    def followed(self, node: exp.Column, alias: exp.Expr, where: Where) -> exp.Expr:
        """What an alias stands for. Refused where that reads the alias again: it would have no end."""
        name = fold(node.name)
        if name in self.following:
            message = f"{node.name!r} is read in the expression that it is the name of, and no column is called so"
            known = ", ".join(dict.fromkeys(self.scope.frame.names()))[:200]
            raise self.statement.refuse("ALIAS", message, node, f"a column in its place: one of {known}" if known else "another name")
        self.following.append(name)
        try:
            return self.enclosed(self.lift(alias, where, lists=True))
        finally:
            self.following.pop()

    def is_list(self, node: exp.Expr) -> bool:
        """Whether what was lifted is a list."""
        kind = self.typed(node)
        return kind is not None and kind.kind is Kind.LIST

    def typed(self, node: exp.Expr) -> Type | None:
        """The type of a column, or of a value of a list, or of NULL, that was lifted; None where it is not known."""
        if isinstance(node, exp.Null):
            return NULL
        value = indexed.extracted(node)
        if value is not None:
            kind = self.kind(value[0].name)
            return None if kind is None else kind.element
        return self.kind(node.name) if isinstance(node, exp.Column) else None

    # ---- what differs between tables --------------------------------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The text of the table, a name or a subquery in brackets."""
        raise NotImplementedError

    @property
    def closed(self) -> str:
        """What holds all of its rows, as an item of FROM that reads nothing of a row around it."""
        return self.table

    @property
    def tied(self) -> bool:
        """Whether its rows are those that equal the row around it in a column."""
        return False

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Its columns that hold row numbers of noisy tables: how the table appears, its name, the column."""
        raise NotImplementedError

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that tell its rows apart."""
        raise NotImplementedError

    @property
    def apart(self) -> tuple[str, ...] | None:
        """The columns whose values tell its rows apart, if any do."""
        return self.ties

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        """The column of the table that the node is, as a key of GROUP BY; None where it is none."""
        raise NotImplementedError

    def _column(self, node: exp.Column, where: Where) -> exp.Expr:
        """What a name means that is no key."""
        raise NotImplementedError

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        """The column of an aggregate."""
        raise NotImplementedError

    def kind(self, name: str) -> Type | None:
        """The type of a column of the table or of a cell, where it is known."""
        raise NotImplementedError

    def length(self, name: str) -> int | None:
        """How many values a list has, where it is known."""
        return None

    def below_sums(self) -> Lifts | Scope:
        """How what an aggregate reads is read: over released values, or over private rows."""
        raise NotImplementedError

    def end(self, node: exp.Expr) -> exp.Expr:
        """The end of an error bar, from columns of the table; refused where it has none."""
        raise edges.misplaced(self.statement, node)

    def own(self, name: str) -> Cell | None:
        """What is known of a column of the table; None of one that is computed above it."""
        raise NotImplementedError

    def chosen(self, node: exp.Expr) -> bool:
        """Whether the expression is one of a list of values or a bin, which was chosen: no number beside it says how right it is."""
        return False

    def card(self, name: str) -> str:
        """The card of an aggregate, by the name that error bars call it."""
        return self.statement.cards[name]

    # ---- what does not ----------------------------------------------------------------------------------------------------------

    def bar(self, node: exp.Column) -> Bar:
        """How the column's error bar follows from those of aggregates."""
        found = self._cell(node.name)
        return None if found is None else found.bar

    def missing(self, node: exp.Column) -> str:
        """Why the column may be NULL, where what it comes from says so."""
        found = self._cell(node.name)
        return "" if found is None else found.missing

    def is_noisy(self, node: exp.Column) -> bool:
        """Whether there is noise in the column."""
        found = self._cell(node.name)
        return found is None or found.noisy

    def _cell(self, name: str) -> Cell | None:
        return self.scalars[int(name[1:])].cells[0] if name.startswith("y") else self.own(name)

    @property
    def depth(self) -> int:
        """How many rows are around this one."""
        return 0 if self.outer is None else self.outer.depth + 1

    def named(self, node: exp.Column) -> exp.Expr | None:
        """The item of SELECT whose alias the name is."""
        name, table = column_name(node, self.statement.source)
        return meant(self.statement, node, self.aliases) if table is None and fold(name) in self.aliases else None

    def _outside(self, node: exp.Expr) -> exp.Column | None:
        """The column of a row around this subquery that a name means which nothing here has."""
        if self.outer is None or not isinstance(node, exp.Column) or self.scope.inside(node):
            return None
        name, table = column_name(node, self.statement.source)
        return None if table is None and fold(name) in self.aliases else self.outer.lent_to(node)

    def lent_to(self, node: exp.Column) -> exp.Column | None:
        """A column of this row as a subquery reads it."""
        return subqueries.lent(self, node, lambda one: self.lift(one, Where.HAVING), guarded)

    def _check_joined(self, node: exp.Expr) -> None:
        """Refuses texts joined so often that one row's would be beyond all measure: the engine's own limit on memory does not count every text."""
        self.joined += 1 if isinstance(node, exp.DPipe) else len(node.expressions)
        if self.joined > MOST_JOINED:
            raise self.statement.refuse("TOO_COMPLEX", f"more than {MOST_JOINED} texts joined above the noise, aliases written out", node)

    def _value(self, node: exp.Bracket, where: Where) -> exp.Expr:
        """One value of a list."""
        of = self.lift(node.this, where, lists=True)
        if not self.is_list(of):
            raise self.statement.refuse("FUNCTION_ABOVE_NOISE", "an index is for lists of quantiles", node, "QUANTILE_CONT(x, [0.1, 0.9])[1]")
        return indexed.extract(of, indexed.place(self.statement, node, self.length(of.name)))

    def _window(self, node: exp.Window, where: Where) -> exp.Expr:
        if where in (Where.HAVING, Where.WINDOW):
            what = "HAVING" if where is Where.HAVING else "another window"
            raise self.statement.refuse("WINDOW", f"a window inside {what} is not possible", node, "QUALIFY, or ORDER BY")
        text = self.window(self, node)
        if text not in self.windows:
            self.windows.append(text)
        return exp.column(f"w{self.windows.index(text)}", table="t")

    def cell(self, node: exp.Expr) -> exp.Column:
        """A column that holds the expression below the windows: an argument of a window, or what it is ordered by."""
        lifted = self.lift(node, Where.WINDOW)
        if isinstance(lifted, exp.Column):
            return lifted
        text = guarded(lifted)
        if text not in self.cells:
            self.cells.append(text)
        name = f"p{self.cells.index(text)}"
        if self._integral(lifted):
            self.whole.add(name)
        return exp.column(name, table="t")

    def _integral(self, node: exp.Expr) -> bool:
        """Whether the expression is surely of DuckDB's 64-bit integers."""
        match node:
            case exp.Column():
                return self.kind(node.name) == INTEGER
            case exp.Literal():
                return not node.is_string and node.name.isdigit() and len(node.name) < 10
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._integral(node.left) and self._integral(node.right)
            case exp.Paren() | exp.Neg():
                return self._integral(node.this)
            case _:
                return False

    def _type(self, node: exp.DataType) -> exp.Expr:
        """The type, made anew: of the parser's only its name and its digits are kept."""
        kind, params, _nested = take(node, "this", "expressions", "nested")
        name, found = str(getattr(kind, "name", kind)), sizes(node)
        if name not in TYPES or (params and (name != "DECIMAL" or len(found) > 2 or not all(0 <= size <= 38 for size in found))):
            what = name if name not in TYPES else f"{name} of that size"
            raise self.statement.refuse(
                "TYPE_NOT_ALLOWED", f"no cast to {what} above the noise", node, "BIGINT, DECIMAL(p, s), DOUBLE, VARCHAR, DATE"
            )
        return exp.DataType(this=kind, expressions=[exp.DataTypeParam(this=exp.Literal.number(size)) for size in found])

    def _plain(self, node: exp.Expr, where: Where) -> exp.Expr:
        if isinstance(node, exp.In):
            self._check_in(node)
        if isinstance(node, exp.SafeDivide):
            top, bottom = (self.lift(side, where) for side in take(node, "this", "expression"))
            return exp.Div(this=exp.paren(top, copy=False), expression=exp.Nullif(this=bottom, expression=exp.Literal.number(0)))
        if isinstance(node, exp.Div) and take(node, *NODES[exp.Div])[2]:
            left, right = (exp.paren(self.lift(side, where), copy=False) for side in take(node, *NODES[exp.Div])[:2])
            return divided(self, node, left, right, where)
        if isinstance(node, exp.Cast) and rounding(node) is not None:
            return self._rounded(node, where)
        if isinstance(node, exp.Star):
            raise self.statement.refuse("STAR", "a star cannot stand beside aggregates", node, "the keys by name")
        if isinstance(node, exp.Literal) and not node.name.isprintable() and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in node.name):
            raise self.statement.refuse("BAD_LITERAL", "a text holds a character that cannot be passed on", node)
        if isinstance(node, exp.Literal) and len(node.name) > LONGEST:
            raise self.statement.refuse("TOO_COMPLEX", f"a literal has more than {LONGEST} characters", node)
        names = NODES.get(type(node))
        if called(node) in edges.NAMES:
            return self.end(node)
        if called(node) in FUNCTIONS:
            names = ("this", "expressions")
            self._check_call(node)
        if names is None:
            what = self.statement.spelled(node)
            if self._shadowed(node) is not None:
                name = self._shadowed(node)
                message = f"GROUP BY {name} is the column of that name, so that {what} of single rows stands above the noise here"
                raise self.statement.refuse(
                    "FUNCTION_ABOVE_NOISE", message, node, f"another name for it: .. AS {name}_group .. GROUP BY {name}_group"
                )
            raise self.statement.refuse("FUNCTION_ABOVE_NOISE", f"{what} is not in the allow-list above the noise{like(node)}", node, OFFERED)
        return self.lift_children(node, where)

    def _shadowed(self, node: exp.Expr) -> str | None:
        """The alias of the output that holds the node, where a column has the same name: GROUP BY means that."""
        names = [name for name, one in self.aliases.items() if any(below is node for below in one.walk())]
        return next((name for name in names if self.scope.frame.find(name)), None)

    def lift_children(self, node: exp.Expr, where: Where) -> exp.Expr:
        """The node itself, over the noisy table's columns."""
        names = ("this", "expressions") if called(node) in FUNCTIONS else NODES[type(node)]
        return rebuild(node, names, lambda child: self.lift(child, where))

    def _check_in(self, node: exp.In) -> None:
        _, listed, _, unnest, field = take(node, "this", "expressions", "query", "unnest", "field")
        if not (listed or unnest or field is not None):
            raise self.statement.refuse("SYNTAX", "IN stands without a list", node, "x IN (1, 2, 3)")

    def _rounded(self, node: exp.Cast, where: Where) -> exp.Expr:
        """A cast to integers in a dialect that gets rid of fractions in another way than DuckDB."""
        found, way = self.lift_children(node, where), rounding(node)
        if way is not None and not self._integral(found.this):
            found.set("this", way(this=found.this))
        if wide(node):
            found.set("to", exp.DataType(this=exp.DType.BIGINT))
        return found

    def _check_call(self, node: exp.Expr) -> None:
        _, args = take(node, "this", "expressions")
        if called(node).startswith("date") and not (args and isinstance(args[0], exp.Literal)):
            raise self.statement.refuse("WRONG_ARGUMENTS", "date_part takes a literal part", node, "date_part('year', d)")


def guarded(lifted: exp.Expr) -> str:
    """The text of an expression that is NULL where it would fail."""
    text = written(lifted)
    bare = lifted
    while isinstance(bare, exp.Paren):
        bare = bare.this
    return text if isinstance(bare, exp.Column | exp.Literal | exp.Null | exp.Boolean) else f"TRY({text})"
