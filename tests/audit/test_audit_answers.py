"""End to end, to the last cell: whole answers of neighbouring data sets, seen by a tester that knows neither noise nor data.

What is done above the noise (arithmetic, HAVING, ORDER BY, LIMIT, windows) must not tell more than the noisy sums do; nor must an answer as an
analyst gets it, through every room of the product.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from audit_releases import weaker
from audit_shapes import LISTED, SALT, made
from audit_tester import Array, Found, by_histogram, claims, judged, line

from dpquery.backends.duckdb import DuckDB
from dpquery.backends.lower import lower
from dpquery.engine import asking, open_session
from dpquery.engine.session import Prepared, Session
from dpquery.mechanisms import Noise, SystemBits, sample
from dpquery.plan.draft import FIRST
from dpquery.privacy.cost import Priced
from dpquery.release import answer as answers
from dpquery.release import noise
from dpquery.values.exact import Exact

UPPER_PARTS = {  # the version of unit 1 that is there or gone, the groups that can show, the statement
    "ratio above the noise": ("high", "", "SELECT sum(signed) / count(*) AS ratio FROM orders"),
    "HAVING, ORDER BY, LIMIT, rank": (
        "high",
        "acdef",
        "SELECT k, count(*) AS n, sum(signed) / count(*) AS ratio, rank() OVER (ORDER BY count(*) DESC) AS place "
        f"FROM orders {LISTED} HAVING count(*) > 1 ORDER BY n DESC LIMIT 3",
    ),
    "private keys in order": (
        "shared",
        "abefgh",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, delta = 0.02) k, count(DISTINCT pid) AS n FROM orders GROUP BY k ORDER BY n DESC",
    ),
}
WHOLE = "SELECT count(*) AS n FROM orders"
FEW, MANY, QUERIES = 500, 8_000, 3_000


def opened(folder: Path, unit: str = "high") -> tuple[Session, Session]:
    """The data set with this version of unit 1 and the one without it."""
    return open_session(made(folder / "one", "add_remove", unit)), open_session(made(folder / "two", "add_remove", "gone"))


def exactly(session: Session, sql: str) -> tuple[Prepared, Exact]:
    prepared = session._prepare(sql, asking.call(), "duckdb")
    table = prepared.blocks[0].release.table
    return prepared, session.backend.run(lower(prepared.blocks[0].release, SALT), tuple(key.type for key in table.keys), len(table.parts))


def finished(session: Session, prepared: Prepared, exact: Exact, drawn: Priced, groups: str, count: int) -> Array:
    """So many answers by all that follows the sums: noise, aggregates, upper part."""
    found = []
    for _ in range(count):
        noisy = noise.add(exact, prepared.blocks[0].release, drawn, SystemBits())
        columns = {FIRST: answers.columns(noisy, prepared.blocks[0].release)}
        _, table, lost = answers.finished(prepared.question.post, columns, prepared.releases, session.schema.limits)
        assert not lost
        width = len(prepared.question.post.outputs)
        found.append(seen(table.select(range(width)).to_pylist(), groups, width))
    return np.array(found)


def seen(rows: Sequence[dict[str, Any]], groups: str = "", width: int = 0) -> list[float]:
    """An answer as numbers: for each group its place in the answer and its values; NaN where there is none."""
    if not groups:
        return [_number(v) for v in rows[0].values()]
    by_key = {row["k"]: [float(place), *(_number(v) for name, v in row.items() if name != "k")] for place, row in enumerate(rows)}
    return [float(len(rows)), *(v for key in groups for v in by_key.get(key, [np.nan] * width))]


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def shown(one: Array, two: Array, priced: Priced) -> list[Found]:
    return judged(*by_histogram(one, two), claims(priced))


def upper_part(folder: Path, name: str, count: int, multiple: str = "1") -> list[Found]:
    unit, groups, sql = UPPER_PARTS[name]
    sides = opened(folder, unit)
    try:
        (prepared, _), _ = made_of = [exactly(side, sql) for side in sides]
        drawn = weaker(prepared.blocks[0].priced, Fraction(multiple))
        one, two = (finished(side, *given, drawn, groups, count) for side, given in zip(sides, made_of, strict=True))
        return shown(one, two, prepared.blocks[0].priced)
    finally:
        for side in sides:
            side.close()


def test_arithmetic_above_the_noise_tells_no_more(tmp_path: Path) -> None:
    found = upper_part(tmp_path, "ratio above the noise", FEW)
    assert not any(f.broken for f in found)


@pytest.mark.audit
@pytest.mark.parametrize("name", UPPER_PARTS)
def test_nor_does_any_upper_part(tmp_path: Path, name: str, record_property: Any) -> None:
    start = process_time()
    found = upper_part(tmp_path / "real", name, MANY)
    seconds = process_time() - start
    power = next((m for m in ("0.6", "0.4", "0.3") if any(f.broken for f in upper_part(tmp_path / m, name, MANY, m))), None)
    record_property(
        "audit",
        json.dumps(line(name, "add_remove", (UPPER_PARTS[name][0], "gone"), {"histogram": found}, MANY, power and f"{power} of the noise", seconds)),
    )
    assert not [f for f in found if f.broken]
    assert power is not None


@pytest.mark.audit
def test_nor_do_answers_as_an_analyst_gets_them(tmp_path: Path, record_property: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer is asked for anew: read, bounded, charged, noised, finished. Each engine runs the statement once and keeps its exact sum.

    No false alarm beyond those of all audits together. Half the noise is found out in all but one of thousands of runs.
    """
    monkeypatch.setattr(DuckDB, "run", kept(DuckDB.run))
    start = process_time()
    found = asked(tmp_path / "real")
    seconds = process_time() - start
    monkeypatch.setattr(noise, "sample", half)
    weakened = asked(tmp_path / "weak")
    power = "0.5" if any(f.broken for f in weakened) else None
    record_property(
        "audit",
        json.dumps(
            line("whole answers: count", "add_remove", ("high", "gone"), {"histogram": found}, QUERIES, power and f"{power} of the noise", seconds)
        ),
    )
    assert not [f for f in found if f.broken]
    assert power is not None


def kept(run: Callable[..., Exact]) -> Callable[..., Exact]:
    """Runs once for each engine: whichever rows the caps choose, the sum that is asked for is the same."""
    known: dict[int, tuple[DuckDB, Exact]] = {}

    def instead(self: DuckDB, *given: Any) -> Exact:
        if id(self) not in known:
            known[id(self)] = self, run(self, *given)
        return known[id(self)][1]

    return instead


def half(drawn: Noise, count: int, bits: SystemBits) -> Any:
    return sample(Noise(drawn.mechanism, drawn.parameter / 2), count, bits)


def asked(folder: Path) -> list[Found]:
    sides = opened(folder)
    try:
        priced = exactly(sides[0], WHOLE)[0].blocks[0].priced
        one, two = (np.array([seen(side.query(WHOLE, fresh=True).table.to_pylist()) for _ in range(QUERIES)]) for side in sides)
        return shown(one, two, priced)
    finally:
        for side in sides:
            side.close()
