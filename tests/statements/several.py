"""Statements of several releases: random statements joined, united and used as values, and what a plain engine says of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
from checked import NOW, SILENT, neighbours
from grammar import Statement
from inside import Inside
from worlds import MAIN, World

from dpquery.backends.lower import lower
from dpquery.backends.port import BoundedSQL
from dpquery.backends.public import facts
from dpquery.engine import asking
from dpquery.mechanisms import SystemBits
from dpquery.plan.draft import Question
from dpquery.plan.release import Release
from dpquery.privacy import Bill, bill, bound, price
from dpquery.release import answer, noise
from dpquery.sql import read

ABOVE: tuple[str, ...] = (
    "SELECT * FROM {a}",
    "SELECT count(*) AS n, max(x.a0) AS m FROM {a}",
    "SELECT x.a0, y.b0 FROM {a}, {b}",
    "SELECT x.a0, count(*) AS n FROM {a} CROSS JOIN {b} GROUP BY x.a0",
    "SELECT x.a0, y.b0 FROM {a} FULL JOIN {b} ON CAST(x.a0 AS VARCHAR) = CAST(y.b0 AS VARCHAR)",
    "SELECT {last} AS v FROM {a} UNION ALL SELECT {last} FROM {a}",
    "SELECT CAST(a0 AS VARCHAR) AS v FROM {a} INTERSECT SELECT CAST(b0 AS VARCHAR) FROM {b}",
    "SELECT count(*) AS n, (SELECT count(*) FROM {b}) AS m FROM {a}",
    "SELECT DISTINCT x.a0 FROM {a} WHERE (SELECT count(*) FROM {b}) >= 0",
    "SELECT x.a0, CAST(x.a0 AS VARCHAR) NOT IN (SELECT CAST(y.b0 AS VARCHAR) FROM {b}) AS m FROM {a}",
    "SELECT x.a0 FROM {a} WHERE NOT EXISTS (SELECT 1 FROM {b} WHERE CAST(y.b0 AS VARCHAR) = CAST(x.a0 AS VARCHAR))",
    "SELECT x.a0, (SELECT count(*) FROM {b} WHERE CAST(y.b0 AS VARCHAR) <= CAST(x.a0 AS VARCHAR)) AS m FROM {a}",
    "WITH w AS (SELECT * FROM {a}) SELECT l.a0, count(*) OVER () AS n FROM w AS l LEFT JOIN w AS r USING (a0)",
    "SELECT CAST(a0 AS VARCHAR) AS v FROM {a} EXCEPT SELECT CAST(b0 AS VARCHAR) FROM {b}",
)
"""What stands above two released tables."""

PRICES = frozenset({"PRICE_SHARES", "DELTA_SHARE", "TWO_PRICES", "TWO_CONFIDENCES", "BAD_CONFIDENCE", "SHARES_EXCEED_PRICE", "BAD_DELTA"})
OTHERS = frozenset({"DP_INTERVAL", "REPORT_FORMAT", "UNKNOWN_COLUMN", "USING", "SET_OPERATION", "LIST_ABOVE_NOISE"})
"""What is refused besides what each statement alone is refused for."""


@dataclass(frozen=True)
class Several:
    """A statement over two others, whose answers are its tables `x` and `y`."""

    dp: str
    plain: str
    inner: tuple[Statement, Statement]


def combined(above: str, one: Statement, other: Statement) -> Several:
    width = {"a": len(one.shown) + len(one.more), "b": len(other.shown) + len(other.more)}
    last = f"a{len(one.shown) - 1}" if not one.more else "a0"
    names = {letter: ", ".join(f"{letter}{i}" for i in range(width[letter])) for letter in "ab"}
    given = {"a": f"({one.dp}) AS x({names['a']})", "b": f"({other.dp}) AS y({names['b']})"}
    plain = {"a": f"first AS x({names['a']})", "b": f"second AS y({names['b']})"}
    return Several(above.format(**given, last=last), above.format(**plain, last=last), (one, other))


def usable(one: Statement) -> bool:
    """Whether a random statement can stand inside another one."""
    return not one.units and not any(word in one.dp for word in ("DP_INTERVAL", "report_format", "OPTIONS"))


@dataclass(frozen=True)
class Ready:
    question: Question
    releases: tuple[Release, ...]
    bill: Bill
    lowered: tuple[BoundedSQL, ...]


def prepared(made: World, backend: Inside, text: str, salt: int) -> Ready:
    """What the engine does before it reads a private row."""
    question = read(text, made.schema, now=NOW)
    whole, asks = asking.asks(question, asking.call(), made.schema)
    drafts = [block.draft for block in question.blocks]
    releases = tuple(bound(d, f) for d, f in zip(drafts, facts(drafts, backend), strict=True))
    billed = bill(releases, asks, whole, made.schema.adjacency)
    lowered = tuple(lower(release, salt) for release in releases)
    assert price([one.enforced for one in lowered], billed, made.schema.adjacency) == billed.price
    return Ready(question, releases, billed, lowered)


def stands(made: World, ready: Ready) -> None:
    """Each release alone stays within its claims; price, texts and types are those of any other data set."""
    for release, lowered in zip(ready.releases, ready.lowered, strict=True):
        kinds = [key.type for key in release.table.keys]
        results = {name: Inside(made, name).run(lowered, kinds, len(release.table.parts)) for name in made.variants}
        neighbours(made, lowered.enforced, results)


def silent(made: World, ready: Ready) -> pa.Table:
    """The answer without noise, and with all groups."""
    tables = {}
    for block, release, priced, lowered in zip(ready.question.blocks, ready.releases, ready.bill.releases, ready.lowered, strict=True):
        exact = Inside(made, MAIN).run(lowered, [key.type for key in release.table.keys], len(release.table.parts))
        quiet = replace(priced, noises=(SILENT,) * len(priced.noises), threshold=None if priced.threshold is None else 1)
        tables[block.name] = answer.columns(noise.add(exact, release, quiet, SystemBits()), release)
    releases = {block.name: release for block, release in zip(ready.question.blocks, ready.releases, strict=True)}
    how, table, lost = answer.finished(ready.question.post, tables, releases, made.schema.limits)
    assert not lost
    return table.select(range(len(how.outputs)))


def expected(several: Several, tables: Mapping[str, pa.Table]) -> list[tuple[Any, ...]]:
    """What a plain engine says, the answers of both statements being its tables."""
    with duckdb.connect() as con:
        for name, table in tables.items():
            con.register(name, table.rename_columns([f"c{i}" for i in range(table.num_columns)]))
        return con.execute(several.plain).fetchall()


def multiset(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(_plain(value) for value in row)) for row in rows)


def _plain(value: Any) -> Any:
    number: Callable[[Any], bool] = lambda v: hasattr(v, "as_integer_ratio") and not isinstance(v, bool)  # noqa: E731
    return f"{float(value):.9g}" if number(value) else value
