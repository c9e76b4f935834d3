"""The figures as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite import figures
from suite.figures import Off, Spread
from suite.measure import Cell, Measured
from suite.systems import SYSTEMS
from suite.workloads import DELTA, EPSILON, GROUPS, ROWS, WORKLOADS, Workload

TITLES = {one.name: one.title for one in SYSTEMS}
HEAD = ("system", "CPU, s", "over DuckDB", "wall, s", "peak, MB", "groups", "RMSE (bias)")


def number(value: float) -> str:
    """Three digits, or all of a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(found: Spread) -> str:
    return f"{number(found.middle)} ({number(found.low)} – {number(found.high)})"


def _off(name: str, found: Off | None) -> str:
    if found is None:
        return f"{name} –"
    share = f" = {number(100 * found.rmse / abs(found.mean))} %" if found.mean else ""
    return f"{name} {number(found.rmse)}{share} ({number(found.bias)})"


def _line(title: str, cell: Cell, plain: Cell | None, work: Workload, found: Measured, private: bool) -> str:
    if cell.cannot is not None or not cell.cpu:
        return f"| {title} | n/a: {cell.cannot or 'was not asked'} | | | | | |"
    cpu = figures.spread(cell.cpu)
    over = f"{cpu.middle / max(figures.spread(plain.cpu).middle, 1e-3):.1f}" if plain and plain.cpu else "–"
    accuracy, groups = "", ""
    if private:
        true = found.true.get(work.name, {})
        groups = f"{100 * figures.released(cell.answers, true):.3g} %"
        accuracy = "; ".join(_off(name, figures.off(cell.answers, true, i)) for i, name in enumerate(work.measures))
    walls, peaks = figures.spread(cell.wall), figures.spread(cell.peak)
    return f"| {title} | {spread(cpu)} | {over} | {spread(walls)} | {number(peaks.middle)} | {groups} | {accuracy} |"


def table(found: Measured, workloads: Sequence[Workload] = WORKLOADS) -> Iterator[str]:
    """One table a workload."""
    systems = list(dict.fromkeys(system for system, _ in found.cells))
    for work in workloads:
        rounds = max((len(found.cells[system, work.name].cpu) for system in systems), default=0)
        yield f"### {work.title}: {found.rows:,} rows\n"
        yield f"`{' '.join(work.sql.split())}` ({rounds} rounds)\n"
        yield "| " + " | ".join(HEAD) + " |"
        yield "|" + "---|" * len(HEAD)
        plain = found.cells.get(("duckdb", work.name))
        for system in systems:
            yield _line(TITLES[system], found.cells[system, work.name], plain, work, found, system not in ("duckdb", "floor"))
        yield ""


def missing(found: Measured, asked: Sequence[str]) -> Iterator[str]:
    for name in asked:
        if name not in found.versions:
            yield f"- {TITLES[name]}: does not install here; left out."


def head(machine: str, versions: Sequence[str], command: str) -> Iterator[str]:
    """What is measured, on what."""
    yield "# Benchmarks\n"
    yield f"Written by `{command}` on: {machine}.\n"
    yield f"Versions: {', '.join(versions)}.\n"
    yield (
        f"All at epsilon {EPSILON:g}, delta {DELTA:g}, per user, and told the same: at most {GROUPS} groups a user, {ROWS} rows in each, amounts in\n"
        "[0, 500], ages in [0, 120], and the same public keys. One process tree, asked in rounds whose order changes, the first round dropped.\n"
        "CPU is user and system time of a system's processes; peak memory is theirs added up, during the question. Spreads are median (quartiles).\n"
        "`groups`: share of true groups that appear. RMSE, in the number's own units and as a share of the mean true value, and bias (mean error)\n"
        "are against the true answer, over all groups that appear and all rounds; n count, s sum, m mean, q median. What limits leave out counts\n"
        "as error. Peers hold their data as suits them best, loaded beforehand and not measured; dpquery and DuckDB read Parquet each time.\n"
    )
