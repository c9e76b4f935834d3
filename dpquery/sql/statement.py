"""A SELECT that aggregates private rows: one release, and what stands right above its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.draft import FIRST, Block, Draft, Level, Post
from dpquery.plan.rel import Keep
from dpquery.plan.release import KeySource
from dpquery.plan.scalar import Column, columns, conjuncts
from dpquery.privacy.locality import owning
from dpquery.sql import automatic, leading, never, split, wider
from dpquery.sql import keys as grouping
from dpquery.sql import options as settings
from dpquery.sql import seats as seating
from dpquery.sql.above import Above, Keyed
from dpquery.sql.clause import HINT, Option
from dpquery.sql.env import Env, named_item
from dpquery.sql.feeds import Readers, key_table
from dpquery.sql.fields import take
from dpquery.sql.leading import Wanted
from dpquery.sql.limits import whole_number
from dpquery.sql.names import Scope, Statement, aliased
from dpquery.sql.options import Chosen
from dpquery.sql.peruser import outermost
from dpquery.sql.seats import Seats
from dpquery.sql.select import check_unread, kept, seats, tables
from dpquery.sql.sides import Bound, Open, facts
from dpquery.sql.stars import star, unfolded
from dpquery.sql.titles import title
from dpquery.sql.unanswered import is_aggregate, like, misspelled
from dpquery.sql.windows import window


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a SELECT, unwrapped. `level`: which of several levels of groups it is."""

    items: Sequence[exp.Expr]
    distinct: exp.Distinct | None
    where: exp.Expr | None
    group: exp.Group | None
    having: exp.Expr | None
    qualify: exp.Expr | None
    order: exp.Order | None
    limit: int | None
    offset: int | None
    level: Level | None = None

    @property
    def levels(self) -> int:
        """Over how many levels of groups what it pays is divided."""
        return 1 if self.level is None else self.level.count

    @property
    def cut(self) -> bool:
        """Whether some groups, or some of their rows, may be left out above the noise, or are put in order."""
        return any(one is not None for one in (self.distinct, self.having, self.qualify, self.order, self.limit, self.offset))


LEVEL = "level"  # in the meta of a SELECT that is one level of groups: which one
Item = tuple[str, str, exp.Expr]  # an output: alias (empty: none), name, expression

ALL = ("with_", "from_", "joins", "expressions", "distinct", "where", "group", "having", "qualify", "order", "limit", "offset", "hint")
LATE = "the public list of the keys is not narrowed by values that the statement releases first: groups that WHERE leaves out appear, too, near 0"


def clause(statement: Statement, select: exp.Select) -> tuple[Option, ...] | None:
    """The options of the SELECT's own DIFFERENTIAL_PRIVACY clause; None where it has none."""
    hint = take(select, *ALL)[-1]
    if hint is None:
        return None
    (mark,) = take(hint, "expressions")[0]
    level: Level | None = select.meta.get(LEVEL)
    return tuple(replace(one, levels=1 if level is None else level.count) for one in statement.clauses[int(mark.name.removeprefix(HINT))])


def block(
    statement: Statement, select: exp.Select, env: Env, readers: Readers, inner: bool = False, want: Wanted | None = None
) -> tuple[Above, Post]:
    """The SELECT that aggregates private rows, noted as a release of the statement; and what stands right above it.

    `want`: all that is read of it is where one of its columns is greatest, or least.
    """
    name = table_name(next(statement.noisy))
    chosen = settings.chosen(statement, clause(statement, select))
    own = replace(statement, tables={}, feeds=[], rows=chosen.rows)
    ctes, first, joins = take(select, *ALL)[:3]
    clauses = read_clauses(own, select)
    inside = env.within(own, ctes)
    side = tables(own, first, joins or (), clauses.where, inside, select)
    if isinstance(side, Open):
        message = "only public tables are read: there is nothing to protect"
        raise statement.refuse("PUBLIC_ONLY", message, first, "a private table, or the public table queried directly")
    settings.check_unit(own, chosen, side, owning(side.rel))
    found = _block(own, side, clauses, chosen, first, name, readers, inside, inner, want)
    check_unread(own, ctes, inside)
    return found


def table_name(number: int) -> str:
    """The noisy table of a statement's release, by its number."""
    return FIRST if number == 0 else f"{FIRST}_{number}"


def read_clauses(statement: Statement, select: exp.Select) -> Clauses:
    """The clauses of a SELECT, unwrapped."""
    _, _, _, items, distinct, where, group, having, qualify, order, limit, offset, _ = take(select, *ALL)
    if distinct is not None and take(distinct, "on")[0] is not None:
        raise statement.refuse("DISTINCT_ON", "DISTINCT ON is not supported", distinct, "GROUP BY, or DISTINCT")
    return Clauses(
        items,
        distinct,
        None if where is None else take(where, "this")[0],
        group,
        None if having is None else take(having, "this")[0],
        None if qualify is None else take(qualify, "this")[0],
        order,
        whole_number(statement, limit, "LIMIT"),
        whole_number(statement, offset, "OFFSET"),
        select.meta.get(LEVEL),
    )


# ---- the block -----------------------------------------------------------------------------------------------------------------------


def _block(
    statement: Statement,
    side: Bound,
    clauses: Clauses,
    chosen: Chosen,
    first: exp.From,
    name: str,
    readers: Readers,
    env: Env,
    inner: bool,
    want: Wanted | None,
) -> tuple[Above, Post]:
    seat = seats(statement, env, side)
    clauses, items = _seated(clauses, _items(statement, side, clauses), seat)
    aliases = aliased((alias, node) for alias, _, node in items)
    where = seat.where(clauses.where)
    whole = kept(statement, seat.side, where, env, aliases)
    scope = Scope(whole.frame, statement)
    named = [(title_, node) for _, title_, node in items]
    keys, distinct = _keys(statement, whole, clauses, named, replace(scope, aliases=aliases))
    alias = f"r{next(statement.copies)}" if inner else "t"
    above = Above(
        statement, scope, aliases, window, partial(readers.inner, env=env), rel=whole.rel, keys=keys, name=name, alias=alias, choices=chosen.choices
    )
    parts = split.Parts(named, clauses.having, clauses.qualify, clauses.order, clauses.limit, clauses.offset, distinct)
    post = split.post(above, parts, inner)
    if not keys and not above.asks:
        raise _raw(statement, items[0][2] if items else None)
    asks, sources, warnings = tuple(above.asks), _sources(statement, whole, keys, chosen), list[str]()
    _check_kept(statement, side, whole, keys, sources, warnings, above, first)
    if chosen.threshold and not side.kept and grouping.sources(keys, whole):
        warnings.append("a public list of the keys is known, but group_selection_strategy asks for a threshold: groups can be missing")
    late = bool(sources) and grouping.late(keys, whole)
    warnings += [LATE] if late else []
    if keys and not sources:
        warnings += grouping.alone(statement, keys, whole)
    chosen = settings.selecting(statement, chosen, sources, tuple(k.key.name for k in keys), clauses.level)
    asks = automatic.asked(tuple(replace(ask, epsilon=settings.part(ask.epsilon, clauses.levels)) for ask in asks), chosen.auto or statement.auto)
    settings.check_shares(statement, chosen, asks)
    draft = Draft(
        input=whole.rel,
        keys=tuple(k.key for k in keys),
        sources=sources,
        asks=asks,
        contributions=settings.contributions(statement, chosen, whole.rel, bool(keys), asks, first),
        minimum=max(statement.schema.min_units_per_group, chosen.minimum or 1),
        listed=key_table(statement, tuple(k.key for k in keys), sources, first),
    )
    if sources and draft.listed is None and chosen.price.noise is None and chosen.loss is None and not clauses.cut:
        draft = draft if late else replace(draft, lead=leading.lead(want, above, named, post.outputs, asks))
    warnings += never.told([*facts(whole.rel), *(ask.where for ask in asks)])
    draft, pairs = wider.watched(statement, automatic.capped(statement, draft, name, chosen.price, table_name), chosen)
    options = {name: one.position for name, one in chosen.given.items()}
    statement.blocks.append(Block(name, draft, chosen.price, tuple(statement.feeds), options, wider=pairs, level=clauses.level))
    statement.warnings.extend(warnings)
    return above, post


def _seated(clauses: Clauses, items: Sequence[Item], seat: Seats) -> tuple[Clauses, tuple[Item, ...]]:
    """The clauses with columns in place of subqueries below the noise: in keys, and inside aggregates."""
    above = clauses.having, clauses.qualify, clauses.order
    tops = [node for _, _, node in items] + [node for node in above if node is not None]
    grouped = clauses.group is not None or clauses.distinct is None or any(holds_aggregate(node) for node in tops)
    given = seating.Clauses(tuple((name, node) for _, name, node in items), clauses.group, above, grouped)
    found = seat.clauses(given)
    if found is given:
        return clauses, tuple(items)
    having, qualify, order = found.others
    made = tuple((alias, name, node) for (alias, _, _), (name, node) in zip(items, found.items, strict=True))
    return replace(clauses, group=found.group, having=having, qualify=qualify, order=cast("exp.Order | None", order)), made


def _items(statement: Statement, side: Bound, clauses: Clauses) -> tuple[Item, ...]:
    """The outputs: alias (empty: none), name, expression. A star stands for the declared columns where they are keys, and is refused elsewhere."""
    found: list[Item] = []
    for node in unfolded(statement, clauses.items, side.frame):
        stars = star(statement, node, side.frame)
        if stars is not None:
            if clauses.distinct is None or clauses.group is not None:
                raise _raw(statement, node)
            found += [("", f.name, _spelled_out(f.name, node)) for f in stars]
            continue
        alias, inner = named_item(statement, node)
        found.append((alias, alias or _title(inner, side), inner))
    return tuple(found)


def _spelled_out(name: str, node: exp.Expr) -> exp.Expr:
    """A column that a star stands for, in the star's place."""
    made = exp.column(name, quoted=True)
    made.meta.update(node.meta)
    return made


def _title(node: exp.Expr, side: Bound) -> str:
    """The name of an output without alias; a column is called as it is declared."""
    name = title(node)
    if isinstance(node, exp.Column):
        known = side.frame.find(name)
        return known[0].name if known else name
    return name


def _raw(statement: Statement, node: exp.Expr | None) -> Refused:
    unknown = None if node is None else misspelled(node)
    if unknown is not None:
        message = f"no function {statement.spelled(unknown)} is known here{like(unknown)}"
        return statement.refuse("UNKNOWN_FUNCTION", message, unknown, "COUNT, COUNT(DISTINCT unit), SUM or AVG")
    message = "rows of a private table are never shown"
    return statement.refuse("RAW_ROWS", message, node, "aggregates such as COUNT(*), SUM(x), AVG(x), with GROUP BY for each group")


def _keys(statement: Statement, side: Bound, clauses: Clauses, items: Sequence[tuple[str, exp.Expr]], scope: Scope) -> tuple[tuple[Keyed, ...], bool]:
    """The grouping keys, and whether DISTINCT stays above the noise. SELECT DISTINCT of keys alone is GROUP BY."""
    if clauses.group is not None:
        named = grouping.grouped(statement, clauses.group, items, scope)
        return grouping.keyed(statement, named, scope, side), clauses.distinct is not None
    tops = [node for _, node in items] + [n for n in (clauses.having, clauses.qualify, clauses.order) if n is not None]
    if any(holds_aggregate(node) for node in tops) or clauses.having is not None:
        return (), clauses.distinct is not None
    for node in tops:
        for below in node.walk():
            if isinstance(below, exp.Window):
                message = "a window over private rows copies one unit's values to others"
                raise statement.refuse("WINDOW", message, below, "the window over aggregates, with GROUP BY")
    if clauses.distinct is None:
        raise _raw(statement, items[0][1] if items else None)
    return grouping.keyed(statement, items, scope, side), False


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether the expression holds an aggregate; the function of a window is none, but its arguments may hold one."""
    return bool(outermost(node, is_aggregate))


def _sources(statement: Statement, side: Bound, keys: Sequence[Keyed], chosen: Chosen) -> tuple[KeySource, ...]:
    """Where the key list comes from. A threshold or a minimum of units asked for by name makes the keys private."""
    if not keys or ((chosen.threshold or chosen.minimum is not None) and not side.kept):
        return ()
    return grouping.sources(keys, side)


def _check_kept(
    statement: Statement,
    side: Bound,
    whole: Bound,
    keys: Sequence[Keyed],
    sources: Sequence[KeySource],
    warnings: list[str],
    above: Above,
    first: exp.From,
) -> None:
    """Refuses an outer join that keeps a public table's rows, unless these are the key list and nothing else was asked of them."""
    if not side.kept:
        return
    values = [k.key.value for k in keys if isinstance(k.key.value, Column) and k.key.value.public in side.kept]
    instead = "GROUP BY with a column of that table, or an INNER JOIN"
    if {v.public for v in values} != side.kept or not sources:
        message = "an outer join that keeps a public table's rows is answered only where they are the list of all keys"
        raise statement.refuse("KEPT_PUBLIC", message, first, instead)
    if isinstance(whole.rel, Keep) and whole.rel is not side.rel:
        own = {v.id for v in values}
        for fact in conjuncts(whole.rel.predicate):
            if not {c.id for c in columns(fact)} <= own:
                message = "WHERE above an outer join that keeps a public table's rows can only read that table's keys"
                raise statement.refuse("KEPT_PUBLIC", message, first, "the condition in ON, or in a subquery, or an INNER JOIN")
    if any(ask.card != "units" and (ask.argument is None or all(c.public in side.kept for c in columns(ask.argument))) for ask in above.asks):
        warnings.append("rows of the public table without a match are listed as keys, but COUNT(*) and aggregates of public columns leave them out")
