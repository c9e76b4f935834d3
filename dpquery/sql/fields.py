"""Read it or refuse it: the only place where the arguments of a sqlglot node are touched.

A node of the parser may carry dozens of optional clauses. Whoever reads a node names the arguments that it understands; any other one that is
set is refused by name, so that no clause is ever dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql.refuse import refuse


class Clause(NamedTuple):
    """How an argument that nobody reads is refused: its code, its name in SQL, and what to write instead."""

    code: str
    words: str
    instead: str | None = None
    why: str = "is not supported, and leaving it out would change the answer"


CLAUSES: dict[str, Clause] = {
    "sample": Clause(
        "TABLESAMPLE",
        "TABLESAMPLE / USING SAMPLE",
        "leave the sample out: the noise protects, sampling does not",
        "would answer for other rows each time, and the price is that of all rows",
    ),
    "pivots": Clause("PIVOT", "PIVOT / UNPIVOT", "SUM(CASE WHEN y = 1 THEN x ELSE 0 END) for each column"),
    "laterals": Clause(
        "LATERAL",
        "LATERAL VIEW",
        "explode(array(1, 2)) of literals, or a declared table with a row for each item",
        "makes rows of the items that a row holds, and no column here holds any",
    ),
    "qualify": Clause("QUALIFY", "QUALIFY", "HAVING, or QUALIFY on a window over aggregates"),
    "locks": Clause("LOCK", "FOR UPDATE / FOR SHARE", None, "locks rows that a statement is to write, and no statement writes here"),
    "into": Clause("SELECT_INTO", "INTO"),
    "hint": Clause("HINT", "a hint", None, "says how an engine is to work, which is not for a statement to say here"),
    "kind": Clause("SELECT_KIND", "SELECT AS STRUCT / AS VALUE"),
    "connect": Clause("CONNECT_BY", "CONNECT BY"),
    "match": Clause("MATCH_RECOGNIZE", "MATCH_RECOGNIZE"),
    "distribute": Clause("DISTRIBUTE_BY", "DISTRIBUTE BY"),
    "sort": Clause("SORT_BY", "SORT BY", "ORDER BY"),
    "cluster": Clause("CLUSTER_BY", "CLUSTER BY", "ORDER BY"),
    "cube": Clause("CUBE", "CUBE", "one statement per combination of keys"),
    "rollup": Clause("ROLLUP", "ROLLUP", "one statement per level"),
    "grouping_sets": Clause("GROUPING_SETS", "GROUPING SETS", "one statement per set of keys"),
    "totals": Clause("GROUP_TOTALS", "WITH TOTALS", "one more statement without GROUP BY"),
    "all": Clause("GROUP_BY_ALL", "GROUP BY ALL", "GROUP BY with the keys' names"),
    "on_condition": Clause("JOIN_CONDITION", "this join condition"),
    "match_condition": Clause("ASOF_JOIN", "MATCH_CONDITION"),
    "recursive": Clause("RECURSIVE", "WITH RECURSIVE", "a subquery without recursion"),
    "ordinality": Clause("ORDINALITY", "WITH ORDINALITY"),
    "version": Clause("TIME_TRAVEL", "FOR VERSION / FOR SYSTEM_TIME"),
    "when": Clause("TIME_TRAVEL", "AT / BEFORE"),
    "only": Clause("ONLY", "ONLY"),
    "partition": Clause("PARTITION", "PARTITION"),
    "catalog": Clause("QUALIFIED_NAME", "a catalogue name", "the table's name alone"),
    "db": Clause("QUALIFIED_NAME", "a schema name", "the table's name alone"),
    "except_": Clause("STAR_EXCLUDE", "EXCLUDE / EXCEPT here", "the columns by name"),
    "replace": Clause("STAR_REPLACE", "REPLACE here", "the columns by name"),
    "rename": Clause("STAR_RENAME", "RENAME here", "the columns by name"),
    "ilike": Clause("STAR_LIKE", "LIKE after a star", "the columns by name"),
    "with_": Clause("WITH", "WITH here", "the WITH clause in front of the statement"),
    "ordered": Clause("AGGREGATE_ORDER_BY", "ORDER BY inside a function"),
    "group": Clause("GROUP_BY_IN_SUBQUERY", "GROUP BY in a subquery", "GROUP BY in the outermost SELECT, with HAVING, ORDER BY and windows over it"),
    "having": Clause("HAVING_IN_SUBQUERY", "HAVING in a subquery", "HAVING in the outermost SELECT"),
    "order": Clause("ORDER_BY_IN_SUBQUERY", "ORDER BY in a subquery", "ORDER BY in the outermost SELECT"),
    "limit": Clause("LIMIT_IN_SUBQUERY", "LIMIT in a subquery", "LIMIT in the outermost SELECT, or a condition in WHERE"),
    "offset": Clause("LIMIT_IN_SUBQUERY", "OFFSET in a subquery", "OFFSET in the outermost SELECT, or a condition in WHERE"),
    "joins": Clause("NESTED_JOIN", "a join inside another join's side", "the joins one after another, each with its own ON"),
    "exclude": Clause("WINDOW_EXCLUDE", "EXCLUDE in a window", "the frame without it"),
    "percent": Clause("LIMIT_PERCENT", "LIMIT in percent", "LIMIT with a number of rows"),
    "with_ties": Clause("WITH_TIES", "WITH TIES", "LIMIT with a number of rows"),
}


def take(node: exp.Expr, *names: str) -> tuple[Any, ...]:
    """The arguments of these names, in this order, None where absent; refuses the node if any other argument of it is set."""
    args = node.args
    for name, value in args.items():
        if name not in names and not unset(value):
            raise unread(node, name, value)
    return tuple(args.get(name) for name in names)


def peek(node: exp.Expr, name: str) -> Any:
    """One argument of a node that is read in full elsewhere; None where absent."""
    return node.args.get(name)


def unset(value: object) -> bool:
    """Whether an argument says nothing: absent, false or an empty list. A zero or an empty text says something."""
    return value is None or value is False or (isinstance(value, list | tuple) and not value)


def unread(node: exp.Expr, name: str, value: object) -> Refused:
    """The refusal of an argument that nobody reads."""
    clause = CLAUSES.get(name) or Clause("UNSUPPORTED_CLAUSE", f"{name.rstrip('_').replace('_', ' ')!r} in {type(node).__name__.upper()}")
    first = value[0] if isinstance(value, list | tuple) else value
    where = first if isinstance(first, exp.Expr) else node  # one without a place stands where its parent does
    message = f"{clause.words} {clause.why}"
    return refuse(clause.code, message, node=where, instead=clause.instead or "the statement without it")


def rebuild(node: exp.Expr, names: tuple[str, ...], change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The node with each child changed and all else as it was; refused, as in `take`, if it has an argument that is not named."""
    take(node, *names)

    def changed(value: Any) -> Any:
        if isinstance(value, exp.Expr):
            return change(value)
        return [changed(item) for item in value] if isinstance(value, list) else value

    return type(node)(**{name: changed(value) for name, value in node.args.items()})


WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9._]+([eE][+-]?[0-9]+)?", re.ASCII)
OURS = re.compile(r"[a-z]|[a-z][0-9]+|__row", re.ASCII)  # tables and columns of the statements that we write


def argument(node: exp.Expr, name: str) -> Any:
    """One argument, to look at before the node is read; None where it is not set."""
    return node.args.get(name)


def texts(node: exp.Expr) -> Iterator[str]:
    """The bare texts that a node itself holds."""
    for value in node.args.values():
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


def check_written(node: exp.Expr) -> None:
    """Refuses a tree that holds a query, a name that is not ours, or a text of the parser's that is no plain word: written out, it could be any SQL.

    The last gate before text goes to an engine. Each expression was read by an allow-list; what the parser keeps as bare text in a node (a unit, the
    size of a type, a name in quotes) is written out as it stands, so it must not be able to end the expression.
    """
    for below in node.walk():
        if isinstance(below, exp.Query | exp.Table | exp.Command):
            raise refuse("UNSUPPORTED_EXPRESSION", "a query inside an expression cannot be passed on", node=below)
        for text in texts(below):
            if not _harmless(below, text):
                raise refuse("UNSUPPORTED_EXPRESSION", f"{text[:40]!r} is no word that can be passed on", node=below)


def _harmless(node: exp.Expr, text: str) -> bool:
    """Whether a text in a node is a literal, which is quoted when it is written, a name of ours, a number or a plain word."""
    match node:
        case exp.Literal() if node.is_string:
            return True
        case exp.Identifier():
            return OURS.fullmatch(text) is not None
        case _:
            return WORD.fullmatch(text) is not None
