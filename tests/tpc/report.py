#!/usr/bin/env python3
"""Writes docs/tpc.md: how near to the plain answer each question's answers at epsilon 1 are. Takes minutes; noise makes each run's figures others."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tpc_data
from tpc_questions import SETS, Question, plain, questions, schema

from dpquery.engine import create_ledger, open_session
from dpquery.engine.session import Session
from dpquery.errors import Error

DOCUMENT = Path(__file__).parents[2] / "docs" / "tpc.md"
CUSTOMERS = {"tpch": 150_000, "tpcds": 100_000}  # at scale 1
SCALES = (0.01, 0.1)
RUNS = 3
BUDGETS = "budget: {epsilon: 1e4, delta: 1e-3}\nper_query: {epsilon: 1, max_epsilon: 4, delta: 1e-7}\n"
HEAD = """# TPC-H and TPC-DS for customers

The 22 questions of TPC-H and {tpcds} of TPC-DS, with a customer as the privacy unit: schemas/tpch.yaml, schemas/tpcds.yaml. Those that list
customers, read public tables alone, or compare each row with rows of others are refused, and asked in a form that is answered. tests/tpc has texts,
refused forms and contribution limits, and compares each answer without noise with what plain DuckDB says. `make tpc` writes this page.

Parameters are wider and keys coarser than in the benchmarks where these single out a handful of rows: that is what few customers allow. Data of
TPC-H is from the generator `tpchgen-cli`. None for TPC-DS can be installed from the registries; its data has the benchmark's names of tables and
columns and made-up rows, so that figures say how the engine fares, and nothing of the benchmark's data. What belongs to nobody (sales without a
customer) is in no answer.

**groups** are those of the plain answer, **shown** is the share of them that is answered, **error** the median over their cells and over several
runs of |answer - plain answer| / |plain answer|, at epsilon 1 for the whole statement and a delta of 1e-7: noise together with what contribution
limits and bounds leave out. At 100 % there is no answer to speak of: ask for coarser groups, or more customers. Noise stays while the data grows.
"""


@dataclass(frozen=True)
class Figures:
    """Of one question at one scale; `failed` is the code where it is not answered there."""

    groups: int
    shown: float
    error: float | None
    failed: str = ""


@contextmanager
def data(name: str, scale: float) -> Iterator[tuple[Session, Any]]:
    """A session on the data, and a connection for plain SQL."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        getattr(tpc_data, name)(folder, scale)
        copy = Path(tempfile.mkdtemp(dir=folder))
        shutil.copy(folder / f"{name}.duckdb", copy)
        file = schema(name, copy, BUDGETS)
        create_ledger(file)
        session = open_session(file)
        try:
            with plain(name, folder) as con:
                yield session, con
        finally:
            session.close()


def measured(session: Session, con: Any, question: Question) -> Figures:
    """The figures of several runs."""
    width = question.keys
    true = {row[:width]: row[width:] for row in con.sql(question.plain).fetchall()}
    shown, errors = [], list[float]()
    for _ in range(RUNS):
        try:
            columns = [column.to_pylist() for column in session.query(question.private).table.columns]
        except Error as error:
            return Figures(len(true), 0.0, None, error.code)
        got = {row[:width]: row[width:] for row in zip(*columns, strict=True)}
        shown.append(len(true.keys() & got.keys()) / len(true))
        for key in true.keys() & got.keys():
            errors += [_error(a, b) for a, b in zip(got[key], true[key], strict=True)]
    return Figures(len(true), median(shown), median(errors) if errors else None)


def _error(answer: Any, true: Any) -> float:
    if answer is None or not true:
        return 0.0 if answer == true else float("inf")
    return abs(float(answer) - float(true)) / abs(float(true))


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return "> 1000 %" if share > 10 else f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def _line(question: Question, found: Sequence[Figures]) -> str:
    how = f"`{question.refused[0]}`, rewritten" if question.refused else "answered"
    cells = [f"{one.groups} | {_percent(one.shown)} | {f'`{one.failed}`' if one.failed else _percent(one.error)}" for one in found]
    return f"| {question.id} | {question.title} | {how} | {' | '.join(cells)} |"


def page() -> str:
    """The text of docs/tpc.md."""
    lines = [HEAD.format(tpcds=len(questions("tpcds")))]
    for name, title in SETS.items():
        found: dict[str, list[Figures]] = {question.id: [] for question in questions(name)}
        for scale in SCALES:
            with data(name, scale) as (session, con):
                for question in questions(name):
                    found[question.id].append(measured(session, con, question))
        sizes = [f"{round(CUSTOMERS[name] * scale):,} customers: groups | shown | error" for scale in SCALES]
        lines += [f"## {title}", "", f"| no. | question | | {' | '.join(sizes)} |", "|---|---|---|" + "--:|" * 3 * len(SCALES)]
        lines += [_line(question, found[question.id]) for question in questions(name)]
        lines += ["", "Asked otherwise than in the benchmark:", ""]
        lines += [f"- {question.id}: {question.asks}." for question in questions(name) if question.asks]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    DOCUMENT.write_text(page())
