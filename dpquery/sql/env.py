"""What names of relations mean besides the schema, and the names that a text gives: aliases of relations, of their columns, of items of SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from dpquery.plan.rel import Public
from dpquery.plan.scalar import Column
from dpquery.sql.fields import take
from dpquery.sql.names import Frame, Statement, fold, identifier
from dpquery.sql.quoting import RESERVED
from dpquery.sql.sides import Open


class Lists(Protocol):
    """Who reads relations of released values."""

    def lists(self, node: exp.Expr, env: Env) -> bool:
        """Whether a relation of FROM has released rows."""

    def releases(self, node: exp.Expr, env: Env) -> bool:
        """Whether a query has."""

    def open(self, node: exp.Expr, env: Env) -> bool:
        """Whether all that a query reads is public."""

    def listed(self, statement: Statement, node: exp.Expr, env: Env, place: int) -> Open:
        """Such a relation, or such a query."""

    def value(self, statement: Statement, frame: Frame, node: exp.Expr, env: Env) -> tuple[Public, Column]:
        """The released value of a subquery: a public relation of one row, and its column."""


@dataclass(frozen=True, slots=True)
class Env:
    """What names of relations mean besides the schema: WITH queries by folded name, each with the Env of its own text; views being read.

    `lists` reads relations of released values.
    """

    queries: Mapping[str, tuple[exp.CTE, Env]] = field(default_factory=dict)
    views: frozenset[str] = frozenset()
    lists: Lists | None = None

    def within(self, statement: Statement, clause: exp.With | None) -> Env:
        """The names inside a query that has this WITH clause: each of its queries sees those before it."""
        env = self
        if clause is None:
            return env
        own: set[str] = set()
        for query in take(clause, "expressions")[0]:
            name = alias_of(statement, query)[0]
            if fold(name) in own:
                raise statement.refuse("DUPLICATE_ALIAS", f"two WITH queries are called {name!r}", query, "a name of its own for each")
            own.add(fold(name))
            env = replace(env, queries={**env.queries, fold(name): (query, env)})
        return env


def alias_of(statement: Statement, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
    """The alias of a relation and the names that it gives to columns."""
    return called(statement, take(node, "this", "alias")[1])


def called(statement: Statement, alias: exp.Expr | None) -> tuple[str, tuple[str, ...]]:
    """The name that an alias gives to a relation, and those that it gives to columns."""
    if alias is None:
        return "", ()
    if isinstance(alias, exp.Identifier):
        return _own_name(statement, alias), ()
    this, names = take(alias, "this", "columns")
    if this is not None and not isinstance(this, exp.Identifier):
        raise statement.refuse("ALIAS", "an alias is a name", alias)
    return "" if this is None else _own_name(statement, this), tuple(_column_alias(statement, one) for one in names or ())


def _own_name(statement: Statement, node: exp.Identifier) -> str:
    """The name that an alias gives; a reserved word is one only in quotes: elsewhere it starts a clause that was not finished."""
    name, is_quoted = take(node, "this", "quoted")
    if not is_quoted and fold(name) in RESERVED:
        raise statement.refuse("SYNTAX", f"{name!r} is a word of SQL, not a name", node, f'"{name}" in quotation marks, if it is meant as a name')
    return str(name)


def _column_alias(statement: Statement, node: exp.Expr) -> str:
    if not isinstance(node, exp.Identifier):
        raise statement.refuse("ALIAS", "the columns of an alias are names without types", node, "t(a, b)")
    return identifier(node)


def named_item(statement: Statement, node: exp.Expr) -> tuple[str, exp.Expr]:
    """An item of SELECT as its alias (empty: none) and its expression."""
    if not isinstance(node, exp.Alias):
        return "", node
    this, alias = take(node, "this", "alias")
    if not isinstance(alias, exp.Identifier):
        raise statement.refuse("ALIAS", "an alias is a name", node)
    return _own_name(statement, alias), this
