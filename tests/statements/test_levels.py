"""Random statements in groups of several levels: what each level alone answers, one after another; neighbours of each level; one price for all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import combinations
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import statements
from grammar import Agg, Expr, Key, Rel
from inside import Inside
from relations import views
from several import PRICES, multiset, prepared, silent, stands
from worlds import MAIN, World, world

from dpquery.errors import Refused

ANSWERED = 4
PLACE = "rank() OVER (PARTITION BY {} ORDER BY {})"
SETS = {
    "ROLLUP": lambda keys: [keys[:n] for n in range(len(keys), -1, -1)],
    "CUBE": lambda keys: [some for n in range(len(keys), -1, -1) for some in combinations(keys, n)],
    "GROUPING SETS": lambda keys: [keys, *((key,) for key in keys), keys[:1], ()],
}


class Parts:
    """The parts of a random statement, of which one over several levels is made."""

    def __init__(self, g: Any, rel: Rel, where: list[Expr], keys: list[Key], aggs: list[Agg], limits: Any, options: str, threshold: bool) -> None:
        self.ctes = f"WITH {', '.join(dp for dp, _ in g.ctes)} " if g.ctes else ""
        self.tail = f" FROM {rel.dp}" + (f" WHERE {' AND '.join(e.dp for e in where)}" if where else "")
        self.keys = [key.value.dp for key in keys]
        self.aggs = [f"{agg.dp} AS a{j}" for j, agg in enumerate(aggs)]
        self.usable = bool(keys and aggs and not options) and all(key.value.reads and not key.aliased for key in keys) and "()" not in str(self.aggs)

    def level(self, group: str, shown: Sequence[str], more: Sequence[str] = ()) -> str:
        items = [f"{key if key in shown else 'NULL'} AS k{i}" for i, key in enumerate(self.keys)]
        return f"{self.ctes}SELECT {', '.join([*items, *self.aggs, *more])}{self.tail}{f' GROUP BY {group}' if group else ''}"


def parts(made: World, seed: str, monkeypatch: pytest.MonkeyPatch) -> Parts | None:
    """Those of the random statement of a seed; None where it has no keys, or more than its text says."""
    kept: list[Parts] = []
    real = statements._written

    def written(*given: Any) -> Any:
        kept.append(Parts(*given))
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(statements, "_written", written)
        statements.statement(made, seed)
    found = kept[-1]
    return found if found.usable and len(set(found.keys)) == len(found.keys) else None


def texts(found: Parts, word: str, more: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The statement over several levels, and those of its levels."""
    keys = tuple(found.keys[:3])
    sets = SETS[word](keys)
    group = (
        ", ".join(f"({', '.join(some)})" for some in sets) if word == "GROUPING SETS" else ", ".join(f"({key})" for key in keys)
    )  # the parser takes no comparison as it is
    rest = found.keys[3:]
    whole = found.level(", ".join([*rest, f"{word} ({group})"]), found.keys, more)
    return whole, [found.level(", ".join([*rest, *some]), [*rest, *some]) for some in sets]


@pytest.mark.lemma("P8", "P9", "P10")
@pytest.mark.parametrize("word", SETS)
def test_levels_answer_what_each_alone_does(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(list(SETS).index(word))
    views(made)
    backend, answered = Inside(made, MAIN), 0
    for seed in range(40 * ANSWERED):
        if answered == ANSWERED:
            break
        found = parts(made, f"levels {word} {seed}", monkeypatch)
        if found is None:
            continue
        whole, levels = texts(found, word)
        alone, refusal = None, None
        with suppress(Refused):
            alone = [row for text in levels for row in _rows(silent(made, prepared(made, backend, text, seed)))]
        try:
            ready = prepared(made, backend, whole, seed)
        except Refused as refused:
            refusal = refused
        assert alone is not None or refusal is not None, f"a level of it is refused\n{whole}"
        if refusal is not None:
            assert alone is None or refusal.code in PRICES | {"TOO_COMPLEX"} or "privacy unit" in refusal.message, (
                f"{refusal.code}: {refusal.message}\n{whole}"
            )
            continue
        assert len(ready.releases) == len(levels), whole
        assert multiset(_rows(silent(made, ready))) == multiset(alone), whole
        assert (ready.bill.price.epsilon or 0) <= Fraction(made.schema.per_query.epsilon or 0), "all levels for one price"
        if answered < 2:
            stands(made, ready)
        answered += 1
        placed = prepared(made, backend, texts(found, word, [f"{PLACE.format('k0', 'a0')} AS place"])[0], seed)
        assert multiset(_rows(silent(made, placed))) == multiset(_placed(alone or [], len(found.keys))), whole
    assert answered == ANSWERED


def _placed(rows: list[tuple[Any, ...]], first: int) -> list[tuple[Any, ...]]:
    """The rows with their places among those of one first key, by the aggregate behind the keys."""
    if not rows:
        return []
    with duckdb.connect() as con:
        con.register("rows", pa.table({f"c{i}": pa.array(column) for i, column in enumerate(zip(*rows, strict=True))}))
        return con.execute(f"SELECT *, {PLACE.format('c0', f'c{first}')} FROM rows").fetchall()


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
