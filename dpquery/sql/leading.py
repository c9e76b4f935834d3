"""ARG_MAX and ARG_MIN over a release of which nothing else is read: then the key is chosen, and no count or sum is released (C17).

What is read in any other way keeps its noisy values: a second column, a condition, an order, another use of a WITH query, keys from private rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpquery.aggregates.leading import COMPARED
from dpquery.plan.draft import AggregateAsk, Output
from dpquery.plan.leading import Lead
from dpquery.sql.env import Env, alias_of, named_item
from dpquery.sql.fields import peek, take
from dpquery.sql.lift import Lifter, Where
from dpquery.sql.names import Statement, fold, identifier
from dpquery.sql.titles import label
from dpquery.sql.unanswered import is_aggregate

PLAIN = ("joins", "distinct", "where", "group", "having", "qualify", "order", "limit", "offset", "hint")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of a SELECT: the names of the output whose value is wanted, and of the one that says where; by the analyst's text."""

    of: exp.Select
    most: bool
    key: str
    score: str
    label: str


def mentions(tree: exp.Expr) -> Counter[str]:
    """How often each relation is named in a text, by folded name."""
    return Counter(fold(one.name) for one in tree.find_all(exp.Table))


def wanted(statement: Statement, node: exp.Select, env: Env, named: Counter[str], known: dict[int, Wanted]) -> Wanted | None:
    """What is wanted of the SELECT whose groups this one only compares, kept in `known`; None where it reads anything else of it."""
    items, first = peek(node, "expressions"), peek(node, "from_")
    if not items or len(items) != 1 or first is None or any(peek(node, name) for name in PLAIN):
        return None
    item = named_item(statement, items[0])[1]
    read = [one for one in item.walk() if isinstance(one, exp.Query | exp.Window | exp.Filter | exp.Column) or is_aggregate(one)]
    pick = next((one for one in read if isinstance(one, exp.ArgMax | exp.ArgMin)), None)
    if pick is None or any(pick.args[name] for name in pick.args if name not in ("this", "expression")):
        return None
    key, score = pick.this, pick.expression
    alone = all(any(one is it for it in (pick, key, score)) for one in read)
    if not alone or not isinstance(key, exp.Column) or not isinstance(score, exp.Column):
        return None
    below = _below(statement, take(first, "this")[0], env, named)
    if below is None:
        return None
    known[id(below)] = Wanted(below, isinstance(pick, exp.ArgMax), key.name, score.name, label(pick))
    return known[id(below)]


def _below(statement: Statement, source: exp.Expr, env: Env, named: Counter[str]) -> exp.Select | None:
    """The SELECT that a relation of FROM is, where this is its only use and its columns keep their names."""
    if not isinstance(source, exp.Table | exp.Subquery) or alias_of(statement, source)[1]:
        return None
    if isinstance(source, exp.Table):
        name = fold(identifier(source.this)) if isinstance(source.this, exp.Identifier) else ""
        if name not in env.queries or named[name] != 1:
            return None
        source = env.queries[name][0]
        if alias_of(statement, source)[1]:
            return None
    found = take(source, "this", "alias")[0]
    while isinstance(found, exp.Subquery):
        (found,) = take(found, "this")
    return found if isinstance(found, exp.Select) else None


def lead(
    want: Wanted | None, above: Lifter, items: Sequence[tuple[str, exp.Expr]], outputs: Sequence[Output], asks: Sequence[AggregateAsk]
) -> Lead | None:
    """What is chosen of the groups of a SELECT: none where more than the key of one of them would be needed to answer."""
    if want is None or len(asks) != 1 or asks[0].card not in COMPARED or asks[0].auto:
        return None
    key, score = (_only(name, outputs) for name in (want.key, want.score))
    if key is None or score is None or outputs[key].noisy or outputs[score].edge is not None:
        return None
    names = [one.name if isinstance(one, exp.Column) else "" for one in (above.lift(items[place][1], Where.SELECT) for place in (key, score))]
    if not names[0].startswith("k") or names[1] != asks[0].name:
        return None
    return Lead(want.most, int(names[0][1:]), want.label)


def _only(name: str, outputs: Sequence[Output]) -> int | None:
    """The place of the one output of this name."""
    places = [place for place, one in enumerate(outputs) if fold(one.name) == fold(name)]
    return places[0] if len(places) == 1 else None


def chosen(statement: Statement, tables: Sequence[tuple[str, str]], want: Wanted | None) -> bool:
    """Whether what a SELECT reads is a release of which one group is chosen; nothing but what wants that may read it."""
    read = {table for _, table in tables}
    found = any(block.draft.lead is not None and block.name in read for block in statement.blocks)
    if found and want is None:
        raise AssertionError("of a choice nothing is shown but what was chosen")
    return found
