"""Joins that are said to multiply no row (L9 and R5 take them at their word): of each the plan itself shows why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sql_shop import ask

from dpquery.plan.rel import Compute, Group, Match, Private, output, walk
from dpquery.plan.scalar import conjuncts, equated
from dpquery.privacy.rows import rows_per_unit
from dpquery.sql.sides import one_each

STATEMENTS = (
    "SELECT COUNT(*) FILTER (WHERE o.paid OR EXISTS (SELECT 1 FROM users u WHERE u.user_id = o.user_id)) FROM orders o",
    "SELECT COUNT(*) FILTER (WHERE o.paid OR EXISTS (SELECT 1 FROM orders p WHERE p.user_id = o.user_id AND p.day = o.day)) FROM orders o",
    "SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM order_items i WHERE i.order_id = o.order_id AND o.paid) THEN amount ELSE 0 END) FROM orders o",
    "SELECT SUM(CASE WHEN day IN (SELECT p.day FROM orders p WHERE p.user_id = o.user_id AND p.channel = o.channel) THEN 1 ELSE 0 END) FROM orders o",
    "SELECT COUNT(*) FILTER (WHERE paid OR day NOT IN (SELECT p.day FROM orders p WHERE p.user_id = o.user_id)) FROM orders o",
    "SELECT COUNT(*) FILTER (WHERE age > 9 OR user_id IN (SELECT user_id FROM orders)) FROM users",
    "SELECT COUNT(*) FILTER (WHERE o.paid OR EXISTS (SELECT 1 FROM orders p WHERE p.user_id = o.user_id AND p.amount / 2 = o.amount)) FROM orders o",
    "SELECT COUNT(*) FROM orders o JOIN order_items i USING (order_id)",
    "SELECT COUNT(*) FROM order_items i LEFT JOIN orders o ON i.order_id = o.order_id",
    "SELECT COUNT(*) FROM users u LEFT JOIN (orders o JOIN order_items i ON i.order_id = o.order_id) ON u.user_id = o.user_id",
)


def reason(rel: Match) -> str | None:
    """Why no row of one side meets several of the other."""
    tests = list(conjuncts(rel.on))
    for side in (rel.left, rel.right):
        if rows_per_unit(side) == 1:
            return "one row"
        if one_each(side, tests):
            return "a unique key"
        if (group := _group(side)) is not None and equated(tests, {c.id for c in output(side)}) >= {key.id for key in group.keys}:
            return "all keys of groups"
    return None


def _group(rel: Private) -> Group | None:
    while isinstance(rel, Compute):
        rel = rel.input
    return rel if isinstance(rel, Group) else None


@pytest.mark.lemma("L9", "R5")
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_join_that_multiplies_no_row_shows_why(sql: str) -> None:
    (block,) = ask(sql).blocks
    single = [rel for rel in walk(block.draft.input) if isinstance(rel, Match) and rel.single]
    assert single
    assert all(reason(rel) for rel in single)


def test_groups_of_which_a_key_is_not_compared_are_met_twice() -> None:
    """The check itself."""
    (block,) = ask(next(sql for sql in STATEMENTS if "p.channel = o.channel" in sql)).blocks
    (rel,) = (rel for rel in walk(block.draft.input) if isinstance(rel, Match) and len(conjuncts(rel.on)) == 2)
    assert reason(rel) == "all keys of groups"
    assert [reason(replace(rel, on=on)) for on in (*conjuncts(rel.on), None)] == [None, None, None]
