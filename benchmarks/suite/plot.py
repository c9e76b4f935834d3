"""The figures as a picture, where matplotlib is installed (the extra `bench`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite import figures
from suite.measure import Cell, Measured
from suite.report import TITLES
from suite.workloads import Workload


def draw(found: Measured, workloads: Sequence[Workload], file: Path) -> bool:
    """CPU seconds, and error as a share of the true mean; bars are medians, whiskers quartiles. False, after a message, without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: pip install 'dpquery[bench]' (matplotlib)", file=sys.stderr)
        return False
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dpquery"
    from matplotlib import pyplot

    systems = list(dict.fromkeys(system for system, _ in found.cells))
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(13, 9), layout="constrained")
    for i, system in enumerate(systems):
        colour = f"C{i}"
        _bars(above, i, len(systems), [_cpu(found.cells[system, work.name]) for work in workloads], TITLES[system], colour)
        if system not in ("duckdb", "floor"):
            _bars(below, i, len(systems), [_error(found, system, work) for work in workloads], TITLES[system], colour)
    for axes, label in ((above, f"CPU seconds, {found.rows:,} rows"), (below, "RMSE of the first number, % of its true mean")):
        axes.set_yscale("log")
        axes.set_ylabel(label)
        axes.set_xticks(range(len(workloads)), [work.name for work in workloads])
        axes.grid(axis="y", alpha=0.3)
        axes.legend(ncols=4, fontsize=8)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
    return True


def _cpu(cell: Cell) -> figures.Spread | None:
    return figures.spread(cell.cpu) if cell.cpu and cell.cannot is None else None


def _error(found: Measured, system: str, work: Workload) -> figures.Spread | None:
    """Of each answer on its own, so that there is a spread."""
    cell, true = found.cells[system, work.name], found.true.get(work.name, {})
    each = [one for one in (figures.off([answer], true, 0) for answer in cell.answers) if one is not None and one.mean]
    return figures.spread([100 * one.rmse / abs(one.mean) for one in each]) if each else None


def _bars(axes: Any, i: int, systems: int, found: Sequence[figures.Spread | None], title: str, colour: str) -> None:
    width = 0.8 / systems
    shown = [(place - 0.4 + (i + 0.5) * width, one) for place, one in enumerate(found) if one is not None and one.middle > 0]
    if not shown:
        return
    whiskers = [[one.middle - one.low for _, one in shown], [one.high - one.middle for _, one in shown]]
    axes.bar([x for x, _ in shown], [one.middle for _, one in shown], width, yerr=whiskers, label=title, color=colour, capsize=2)
