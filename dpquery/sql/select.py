"""FROM and below: tables, views, WITH, and subqueries that filter and project. The privacy unit goes along unseen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import cast

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.rel import Compute, Keep
from dpquery.plan.scalar import Column, Scalar, walk
from dpquery.sql import byname, literals, peruser, public, publicrows, semi
from dpquery.sql.chains import chained
from dpquery.sql.correlated import Below, grouped_around
from dpquery.sql.dialect import parse_view
from dpquery.sql.env import Env, alias_of, called, named_item
from dpquery.sql.fields import peek, take
from dpquery.sql.limits import whole_number
from dpquery.sql.names import MOST_RELATIONS, Field, Frame, Scope, Source, Statement, aliased, declared, fold, identifier, note, view
from dpquery.sql.nested import chain
from dpquery.sql.publicwhere import narrowed, seated_where
from dpquery.sql.quoting import near_name, written
from dpquery.sql.rowwise import condition, conjunct_nodes, expression
from dpquery.sql.scans import scanned
from dpquery.sql.seats import Clauses, Seats, on
from dpquery.sql.sides import Bound, Open, Side, as_column
from dpquery.sql.stacks import stacked
from dpquery.sql.stars import star, unfolded
from dpquery.sql.terms import unapplied
from dpquery.sql.titles import title
from dpquery.sql.unanswered import is_aggregate
from dpquery.sql.wholerows import check_whole
from dpquery.values.types import Kind

MOST_COLUMNS = 1_000  # of a subquery
INLINED = 30  # parts of an expression that is written out where a subquery's column is used; larger ones become columns

Item = tuple[str, exp.Expr | None, Scalar]  # the name of a column of SELECT, its node (None: from a star), its value


def tables(statement: Statement, first: exp.From | None, joins: Sequence[exp.Join], where: exp.Expr | None, env: Env, node: exp.Expr) -> Side:
    """All of FROM. Joins apply conditions of WHERE where they can; `kept` applies the others."""
    if first is None:
        raise statement.refuse("NO_TABLE", "the SELECT reads no table", node, "FROM with a private table")
    places, seat = count(), partial(on, partial(seats, statement, env))
    whole = chain(statement, take(first, "this")[0], joins, lambda one: relation(statement, one, env, places), seat)
    return chained(statement, whole, where)


def relation(statement: Statement, node: exp.Expr, env: Env, places: Iterator[int]) -> Side:
    """One relation of FROM under its alias."""
    place = next(places)
    if env.lists is not None and env.lists.lists(node, env):
        return env.lists.listed(statement, node, env, place)
    match node:
        case exp.Table():
            side, name = _named(statement, node, env)
            alias, names = alias_of(statement, _without_name(node))
        case exp.Subquery():
            inner = take(node, "this", "alias")[0]
            if not isinstance(inner, exp.Query):
                raise statement.refuse("NESTED_JOIN", "a name alone in parentheses is not supported", inner, "the name without parentheses")
            side, name = query(statement, inner, env), ""
            alias, names = alias_of(statement, node)
        case exp.Values() | exp.Unnest():
            side, name = _listed(statement, node), ""
            alias, names = called(statement, take(node, "expressions", "alias")[1])
        case _:
            raise _other(statement, node)
    return _renamed(statement, side, alias or name, names, place, node)


def _without_name(node: exp.Table) -> exp.Table:
    take(node, "this", "alias")
    return node


def _listed(statement: Statement, node: exp.Values | exp.Unnest) -> Open:
    return literals.values(statement, node) if isinstance(node, exp.Values) else literals.unnested(statement, node)


BESIDE = "JOIN (SELECT key, MAX(x) AS m FROM .. GROUP BY key) AS s ON s.key = outer.key: what WHERE compares is a column to join on"


def _other(statement: Statement, node: exp.Expr) -> Refused:
    if isinstance(node, exp.Lateral):
        return statement.refuse("LATERAL", "LATERAL in FROM is not supported", node, BESIDE)
    return statement.refuse("UNSUPPORTED_FROM", f"{type(node).__name__.upper()} in FROM is not supported", node, "a table or a subquery")


def _renamed(statement: Statement, side: Side, alias: str, names: Sequence[str], place: int, node: exp.Expr) -> Side:
    """The relation under its alias, its first columns under the alias's names."""
    fields = side.frame.fields()
    if len(names) > len(fields):
        raise statement.refuse("ALIAS", f"the alias names {len(names)} columns of {len(fields)}", node)
    called = [Field(names[i] if i < len(names) else f.name, f.value) for i, f in enumerate(fields)]
    return replace(side, frame=Frame((Source(alias, tuple(called), place),)))


def _named(statement: Statement, node: exp.Table, env: Env) -> tuple[Side, str]:
    """The relation that a name means: a WITH query, a declared table, a view of the schema. Nothing else exists."""
    this = take(node, "this", "alias")[0]
    if next(statement.relations) > MOST_RELATIONS:
        raise statement.refuse("TOO_COMPLEX", f"more than {MOST_RELATIONS} relations, those inside views and WITH queries included", node)
    if isinstance(this, exp.GenerateSeries):
        listed = literals.series(statement, this)
        return listed, listed.columns[0].name
    if not isinstance(this, exp.Identifier):
        message = f"{statement.spelled(this)}: functions in FROM reach data outside the schema"
        raise statement.refuse("TABLE_FUNCTION", message, this, "a declared table")
    name = identifier(this)
    found = env.queries.get(fold(name))
    if found is not None:
        cte, inside = found
        statement.queries.add(id(cte))
        alias, names = alias_of(statement, cte)
        side = query(statement, take(cte, "this", "alias")[0], inside)
        return _renamed(statement, side, alias, names, 0, cte), name
    table = declared(statement, name)
    if table is not None:
        return (public.base(statement, table, name, 0) if table.public else scanned(statement, table)), name
    text = view(statement, name)
    if text is not None:
        return _view(statement, node, name, text, env), name
    known = [*statement.schema.tables, *statement.schema.views, *(query_name for query_name in env.queries)]
    raise statement.refuse(
        "UNKNOWN_TABLE", f"no table {name[:60]!r} is declared{near_name(name, known)}", node, "one of " + ", ".join(map(written, known))[:200]
    )


def _view(statement: Statement, node: exp.Table, name: str, text: str, env: Env) -> Side:
    """The view's query in place of its name. What is wrong inside is told at the name."""
    if fold(name) in env.views:
        raise statement.refuse("VIEW_CYCLE", f"the view {name!r} reads itself", node, "a table, until the data owner has mended the view")
    try:
        inside = replace(statement, source=text, named={})
        return query(inside, parse_view(text), Env(views=env.views | {fold(name)}, lists=env.lists))
    except Refused as wrong:
        raise statement.refuse(wrong.code, f"in the view {name!r}: {wrong.message}", node, wrong.instead) from None


# ---- subqueries ----------------------------------------------------------------------------------------------------------------------


def query(statement: Statement, node: exp.Expr, env: Env) -> Side:
    """A subquery that filters and projects, as a relation."""
    while isinstance(node, exp.Subquery):
        (node,) = take(node, "this")
    if isinstance(node, exp.SetOperation):
        clause, first, second, distinct, *matched = take(node, "with_", "this", "expression", "distinct", *byname.MATCHED)
        inside = env.within(statement, clause)
        both = byname.sides(statement, node, byname.by_name(matched), query(statement, first, inside), query(statement, second, inside))
        return stacked(statement, node, *both, bool(distinct))
    if isinstance(node, exp.Values):
        return literals.values(statement, node)
    if not isinstance(node, exp.Select):
        raise _other(statement, node)
    known = ("expressions", "with_", "distinct", "from_", "joins", "where", *peruser.CLAUSES)
    items, clause, distinct, first, joins, where, *rest = take(node, *known, *publicrows.ENDS)
    inside = env.within(statement, clause)
    test = None if where is None else take(where, "this")[0]
    bare = first is None and not any(isinstance(item, exp.Star) for item in items)
    side = literals.nothing(statement) if bare else tables(statement, first, joins or (), test, inside, node)
    scope = Scope(side.frame, statement)
    items = unfolded(statement, items, side.frame)
    clauses = peruser.Clauses(*rest[:3])
    if isinstance(side, Open) and side.released is None:
        side, test = _seated(statement, side, test, inside)
        rows = _several(statement, side, items, clauses, test, distinct)
        if rows is None:
            rows = _public(statement, side, _items(statement, _spelled(statement, items, side.frame), scope), test, distinct, scope)
        check_unread(statement, clause, inside)
        order, limit, offset = rest[3:]
        limits = whole_number(statement, limit, "LIMIT"), whole_number(statement, offset, "OFFSET")
        return publicrows.first(statement, rows, order, limits, limit or offset or node)
    if isinstance(side, Bound):
        check_whole(statement, side, node)
    take(node, *known)
    if isinstance(side, Open):
        peruser.check_none(clauses)
        columns = _items(statement, _spelled(statement, items, side.frame), scope)
        check_unread(statement, clause, inside)
        return _public(statement, side, columns, test, distinct, scope)
    _check_kept(statement, side, first)
    made = _rows(statement, side, items, clauses, test, inside, node)
    check_unread(statement, clause, inside)
    return made if distinct is None else peruser.distinct(statement, made, distinct)


def _rows(
    statement: Statement, side: Bound, items: Sequence[exp.Expr], clauses: peruser.Clauses, test: exp.Expr | None, env: Env, node: exp.Select
) -> Bound:
    """The rows of a subquery that reads private ones."""
    spelled, grouped = _spelled(statement, items, side.frame), peruser.grouped(clauses, items)
    seat = seats(statement, env, side)
    given = Clauses(tuple((name, inner) for name, inner, _ in spelled), clauses.group, (clauses.having, clauses.qualify), grouped)
    found = seat.clauses(given)
    spelled = tuple((name, inner, star_) for (name, inner), (_, _, star_) in zip(found.items, spelled, strict=True))
    aliases = aliased((name, inner) for name, inner, star_ in spelled if star_ is None)
    where = seat.where(test)
    whole = kept(statement, seat.side, where, env, aliases)
    if peruser.asked(items, clauses):
        whole, columns = peruser.read(statement, whole, _clauses(found), spelled, node, seat.over)
    else:
        columns = _items(statement, spelled, Scope(side.frame, statement))
    return _projected(statement, whole, columns)


def _clauses(found: Clauses) -> peruser.Clauses:
    having, qualify = found.others
    return peruser.Clauses(found.group, cast("exp.Having | None", having), cast("exp.Qualify | None", qualify))


def _spelled(statement: Statement, nodes: Sequence[exp.Expr], frame: Frame) -> tuple[peruser.Spelled, ...]:
    """The items of SELECT as written: the alias (empty: none) and the expression, or a star's columns."""
    found: list[peruser.Spelled] = []
    for node in nodes:
        stars = star(statement, node, frame)
        found += [(*named_item(statement, node), None)] if stars is None else [(f.name, node, f.value) for f in stars]
        if len(found) > MOST_COLUMNS:  # stars upon stars double them at each level
            raise statement.refuse("TOO_COMPLEX", f"the subquery has more than {MOST_COLUMNS:,} columns", node, "the columns that are used, by name")
    return tuple(found)


def check_unread(statement: Statement, clause: exp.With | None, env: Env) -> None:
    """Reads the WITH queries that nothing refers to, so that what they hold is refused as anywhere else."""
    for cte in () if clause is None else take(clause, "expressions")[0]:
        if id(cte) not in statement.queries:
            _, inside = env.queries[fold(alias_of(statement, cte)[0])]
            apart = replace(statement, tables={}, blocks=[], feeds=[], opened=[], products=[], paired=[], warnings=[])
            query(apart, take(cte, "this", "alias")[0], inside)


def kept(statement: Statement, side: Bound, nodes: Sequence[exp.Expr], env: Env, aliases: Mapping[str, exp.Expr] | None = None) -> Bound:
    """The rows for which the conditions of WHERE are true: first those on the row itself, then those on a subquery's rows."""
    scope = Scope(side.frame, statement, aliases or {})
    tests = _different([test for node in nodes if (test := semi.condition_of(node)) is not None], env)
    predicate = unapplied(side, [condition(node, scope, "WHERE") for node in nodes if semi.condition_of(node) is None])
    own = side if predicate is None else replace(side, rel=Keep(side.rel, predicate))
    return semi.kept_by(statement, own, tests, scope, lambda query_, outer: _inner(statement, query_, outer, env))


def _different(tests: Sequence[semi.Test], env: Env) -> list[semi.Test]:
    """The conditions, those with public rows once each, however often they are written."""
    open_ = [env.lists is not None and env.lists.open(test.query, env) for test in tests]
    return list({(test.negated, test.node if once else id(test.node)): test for test, once in zip(tests, open_, strict=True)}.values())


def _inner(statement: Statement, node: exp.Expr, outer: Scope, env: Env) -> semi.Inner:
    """The subquery of EXISTS or IN. Its rows count once, so that DISTINCT says nothing."""
    while isinstance(node, exp.Subquery):
        (node,) = take(node, "this")
    if not semi.plain(node) or _of_all(node, env) or (_releases(node, env) and not semi.reads_outside(node)):
        try:
            side = env.lists.listed(statement, node, env, 0) if env.lists is not None and _releases(node, env) else query(statement, node, env)
        except Refused as wrong:
            raise grouped_around(statement, node, outer, wrong) from None
        return semi.Inner(side, tuple(f.value for f in side.frame.fields()), (), Scope(side.frame, statement))
    items, clause, distinct, first, joins, where = take(node, "expressions", "with_", "distinct", "from_", "joins", "where")
    _check_distinct(statement, distinct)
    inside = env.within(statement, clause)
    test = None if where is None else take(where, "this")[0]
    side = tables(statement, first, joins or (), test, inside, node)
    if isinstance(side, Open) and side.released is None:
        side, test = _seated(statement, side, test, inside)
    spelled, nodes = _spelled(statement, unfolded(statement, items, side.frame), side.frame), conjunct_nodes(test)
    if isinstance(side, Bound):
        seat = seats(statement, inside, side, outer)
        found = seat.clauses(Clauses(tuple((name, one) for name, one, _ in spelled), None, (), False)).items
        spelled, nodes = tuple((name, one, star_) for (name, one), (_, _, star_) in zip(found, spelled, strict=True)), seat.where(test)
        side = seat.side
    scope = Scope(side.frame, statement, outer=outer)
    own, across = semi.split(nodes, scope)
    values = tuple(value for _, _, value in _items(statement, spelled, scope))
    check_unread(statement, clause, inside)
    if isinstance(side, Bound):
        _check_kept(statement, side, first)
        side = kept(statement, side, own, inside)
    elif own:
        side = narrowed(statement, side, own, scope)
        scope = scope.over(side.frame)
        values = tuple(value for _, _, value in _items(statement, _spelled(statement, items, side.frame), scope))
    return semi.Inner(side, values, across, scope)


def _of_all(node: exp.Expr, env: Env) -> bool:
    """Whether the subquery is one row of aggregates of public rows."""
    own = (below for item in peek(node, "expressions") for below in item.walk(prune=lambda one: isinstance(one, exp.Query)))
    return env.lists is not None and env.lists.open(node, env) and any(map(is_aggregate, own))


def _releases(node: exp.Expr, env: Env) -> bool:
    return env.lists is not None and env.lists.releases(node, env)


def _seated(statement: Statement, side: Open, test: exp.Expr | None, env: Env) -> tuple[Open, exp.Expr | None]:
    """Public rows and what WHERE asks of them, subqueries over public tables as columns."""
    return (side, None) if test is None else seated_where(statement, side, test, env, _below(statement, env))


def seats(statement: Statement, env: Env, side: Bound, outer: Scope | None = None) -> Seats:
    """The rows, to which values of subqueries become columns."""
    return Seats(statement, side, env, _below(statement, env), outer)


def _below(statement: Statement, env: Env) -> Below:
    """Who reads what a subquery holds."""

    def read(node: exp.Select) -> Side:
        clause, first, joins, test = take(node, "with_", "from_", "joins", "where", "expressions", "distinct")[:4]
        inside = env.within(statement, clause)
        return tables(statement, first, joins or (), None if test is None else take(test, "this")[0], inside, node)

    return Below(read, partial(_once, statement, env), partial(_inside, statement, env), lambda other: _below(other, env).tables)


def _once(statement: Statement, env: Env, node: exp.Expr) -> Side:
    return query(statement, node, env)


def _inside(statement: Statement, env: Env, node: exp.Expr, outer: Scope) -> semi.Inner:
    return _inner(statement, node, outer, env)


def _check_kept(statement: Statement, side: Bound, first: exp.Expr) -> None:
    if side.kept:
        message = "an outer join that keeps a public table's rows can only be answered where GROUP BY lists them, in the outermost SELECT"
        raise statement.refuse("KEPT_PUBLIC", message, first, "the outer join in the outermost SELECT, or an INNER JOIN")


def _check_distinct(statement: Statement, distinct: exp.Distinct | None) -> None:
    on = None if distinct is None else take(distinct, "on")[0]
    if on is not None:
        raise statement.refuse("DISTINCT_ON", "DISTINCT ON is not supported", on, "DISTINCT")


def _public(statement: Statement, side: Open, items: Sequence[Item], test: exp.Expr | None, distinct: exp.Distinct | None, scope: Scope) -> Open:
    _check_distinct(statement, distinct)
    if test is not None:
        condition(test, scope, "WHERE")
    for _, node, value in items:
        if value.type.kind in (Kind.INTERVAL, Kind.NULL):
            raise statement.refuse("COLUMN_TYPE", f"a column cannot be of type {value.type}", node, "a CAST to another type")
    return public.selected(
        statement, side, [(name, node if node is not None else value, value) for name, node, value in items], test, distinct is not None, 0
    )


def _several(
    statement: Statement, side: Open, nodes: Sequence[exp.Expr], clauses: peruser.Clauses, test: exp.Expr | None, distinct: exp.Distinct | None
) -> Open | None:
    """The groups of public rows; None where each row stands for itself."""
    peruser.check_none(replace(clauses, group=None, having=None))
    own = (below for node in nodes for below in node.walk(prune=lambda one: isinstance(one, exp.Query)))  # not those of a subquery
    if clauses.group is None and clauses.having is None and not any(map(is_aggregate, own)):
        return None
    for node in nodes:
        window = node.find(exp.Window)
        if window is not None:
            message = "a window over public rows is not supported"
            raise statement.refuse("WINDOW", message, window, "GROUP BY in a subquery of its own, joined by its keys")
        if star(statement, node, side.frame) is not None:
            raise statement.refuse("STAR", "a star beside GROUP BY is not supported", node, "the keys by name")
    _check_distinct(statement, distinct)
    named = [(name or title(inner), inner) for name, inner in (named_item(statement, node) for node in nodes)]
    having = None if clauses.having is None else take(clauses.having, "this")[0]
    return publicrows.grouped(statement, side, named, clauses.group, having, test, distinct is not None)


def _items(statement: Statement, spelled: Sequence[peruser.Spelled], scope: Scope) -> tuple[Item, ...]:
    """The columns of a subquery's SELECT."""
    found: list[Item] = []
    aliases: dict[str, exp.Expr] = {}
    for name, inner, value in spelled:
        if value is not None:
            found.append((name, None, value))
            continue
        if any(is_aggregate(below) for below in inner.walk(prune=lambda one: isinstance(one, exp.Query))):
            message = "an aggregate in a subquery is not supported"
            raise statement.refuse("AGGREGATE_IN_SUBQUERY", message, inner, "the aggregate in the outermost SELECT")
        found.append((name or title(inner), inner, expression(inner, replace(scope, aliases=dict(aliases)), "a subquery's SELECT")))
        note(aliases, name, inner)
    return tuple(found)


def _projected(statement: Statement, side: Bound, items: Sequence[Item]) -> Bound:
    """The relation with these columns. Small expressions are written out where they are used, large ones become columns."""
    made: list[tuple[Column, Scalar]] = []
    fields = []
    for name, _, value in items:
        if not isinstance(value, Column) and value.type.kind is not Kind.NULL and sum(1 for _ in walk(value)) > INLINED:
            made.append((as_column(statement, name, value), value))
            value = made[-1][0]
        fields.append(Field(name, value))
    rel = Compute(side.rel, tuple(made)) if made else side.rel
    return Bound(rel, Frame((Source("", tuple(fields)),)), side.kept)
