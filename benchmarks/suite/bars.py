"""Ratios that dpquery is held to, each against another statement of plain DuckDB asked right before it."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from suite import data, figures, lowering
from suite.report import spread
from suite.systems import PLACE, SYSTEMS, Running
from suite.workloads import told

BY_CATEGORY = "SELECT count(*) FROM (SELECT user_id, category FROM events GROUP BY user_id, category)"
BY_KEY = "SELECT count(*) FROM (SELECT user_id, key FROM events GROUP BY user_id, key)"


@dataclass(frozen=True, slots=True)
class Bar:
    """dpquery's CPU seconds for `sql` are at most `most` times those of `beside`, and `more` seconds."""

    title: str
    sql: str
    beside: str
    what: str
    most: float
    more: float = 0.0
    keys: int = 1  # columns of dpquery's answer
    beside_keys: int = 0


def _with(options: str, rest: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {rest}"


SUMS = "count(*) AS n, sum(amount) AS s FROM events"
BARS = (
    Bar("group cap, count + sum, 30 keys", f"SELECT category, {SUMS} GROUP BY category", BY_CATEGORY, "F", 2.4),
    Bar("group cap, count + sum, 100,000 keys", f"SELECT key, {SUMS} GROUP BY key", BY_KEY, "F", 3.0),
    Bar(
        "per-group caps only, count + sum, 30 keys",
        _with("max_groups_contributed=30", f"category, {SUMS} GROUP BY category"),
        BY_CATEGORY,
        "F",
        1.4,
    ),
    Bar("row weights, count + sum, 30 keys", _with("max_rows_contributed=200", f"category, {SUMS} GROUP BY category"), BY_CATEGORY, "F", 0.9),
    Bar(
        "unit attribute through a join",
        "SELECT country, count(*) AS n, sum(amount) AS s FROM events JOIN users USING (user_id) GROUP BY country",
        "SELECT count(*) FROM (SELECT user_id FROM events GROUP BY user_id)",
        "GROUP BY unit",
        1.5,
    ),
    Bar(
        "one row per unit",
        "SELECT country, count(*) AS n, avg(age) AS m FROM users GROUP BY country",
        "SELECT country, count(*) AS n, avg(age) AS m FROM users GROUP BY country",
        "plain",
        1.5,
        0.03,
        beside_keys=1,
    ),
    Bar(
        "count distinct units, cap idle",
        "SELECT count(DISTINCT user_id) AS n FROM events",
        "SELECT count(DISTINCT user_id) AS n FROM events",
        "plain",
        1.0,
        keys=0,
    ),
)


def report(rows: int, rounds: int, threads: int) -> list[str]:
    """The table of what holds and what does not."""
    return list(_table(rows, rounds, threads))


def _table(rows: int, rounds: int, threads: int) -> Iterator[str]:
    folder = PLACE / "data" / str(rows)
    data.make(folder, rows)
    yield f"## What dpquery is held to: {rows:,} rows, {rounds} rounds, CPU\n"
    yield "| what | dpquery, s | beside | s | ratio | at most | |"
    yield "|" + "---|" * 7
    for bar, ours, beside, ratios in _measured(folder, rows, rounds, threads):
        middle = statistics.median(ratios)
        limit = f"{bar.most:g}" + (f" + {1000 * bar.more:.0f} ms" if bar.more else "")
        held = statistics.median(a - bar.most * b for a, b in zip(ours, beside, strict=True)) <= bar.more
        cells = bar.title, spread(figures.spread(ours)), bar.what, spread(figures.spread(beside)), f"{middle:.2f}", limit, _word(held)
        yield "| " + " | ".join(cells) + " |"
    for title, seconds, most in (("parse to lowered statement, warm", _lowering(), 0.015), ("noise for 100,000 groups x 2 columns", _noise(), 0.1)):
        found = figures.spread(seconds)
        yield f"| {title} | {spread(found)} | | | {1000 * found.middle:.0f} ms | {1000 * most:.0f} ms | {_word(found.middle <= most)} |"
    yield ""


def _word(held: bool) -> str:
    return "holds" if held else "**missed**"


def _measured(folder: Any, rows: int, rounds: int, threads: int) -> Iterator[tuple[Bar, list[float], list[float], list[float]]]:
    by_name = {one.name: one for one in SYSTEMS}
    ours, plain = (Running(by_name[name], sys.executable, folder, told(rows, threads), 3600.0) for name in ("dpquery", "duckdb"))
    found: dict[str, list[tuple[float, float]]] = {bar.title: [] for bar in BARS}
    try:
        for i in range(rounds + 1):
            for bar in BARS:
                beside, own = _cpu(plain.ask("bar", bar.beside, bar.beside_keys)), _cpu(ours.ask("bar", bar.sql, bar.keys))
                print(
                    f"{rows:,} rows, round {i}, {bar.title}: {own:.3f} s, {bar.what} {beside:.3f} s, {own / beside:.2f}", file=sys.stderr, flush=True
                )
                if i > 0:
                    found[bar.title].append((own, beside))
    finally:
        ours.end()
        plain.end()
    for bar in BARS:
        pairs = found[bar.title]
        yield bar, [a for a, _ in pairs], [b for _, b in pairs], [a / b for a, b in pairs]


def _cpu(said: Mapping[str, Any]) -> float:
    if "cannot" in said:
        raise SystemExit(f"a statement that has to be answered is not: {said['cannot']}")
    return float(said["cpu"])


def _lowering() -> list[float]:
    """Seconds from text to lowered statement, price and bounds included, engine not: the slowest of the statements above, warm."""
    import tempfile
    from pathlib import Path

    from dpquery.engine import create_ledger, open_session

    schema_text = _schema_text()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data.make(folder, 1000)
        (folder / "events.yaml").write_text(schema_text)
        create_ledger(folder / "events.yaml")
        session = open_session(folder / "events.yaml")
        spent: dict[str, list[float]] = {}
        for _ in range(21):
            for bar in BARS:
                spent.setdefault(bar.title, []).append(lowering.seconds(bar.sql, session))
        session.close()
    return max((times[1:] for times in spent.values()), key=statistics.median)


def _schema_text() -> str:
    sys.path.insert(0, str(PLACE.parent.parent / "benchmarks" / "adapters"))
    from dpquery_itself import schema

    return str(schema(told(1000, 2)))


def _noise() -> list[float]:
    from dpquery.mechanisms import Noise, SystemBits, sample
    from dpquery.plan.release import Mechanism

    noise, spent = Noise(Mechanism.GAUSSIAN, Fraction(10**12)), []
    for _ in range(8):
        start = time.process_time()
        for _ in range(2):
            sample(noise, 100_000, SystemBits())
        spent.append(time.process_time() - start)
    return spent[1:]
