"""TPC-H and TPC-DS for customers: each question answered, or refused with a rewrite that is answered, and held against the plain answer."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tpc_data
from tpc_questions import SETS, Question, plain, questions, schema, silent

from dpquery.engine import create_ledger, open_session
from dpquery.engine.session import Session
from dpquery.errors import Refused
from dpquery.release.answer import Answer

SCALES = {"tpch": 0.01, "tpcds": 0.01}  # 1,000 customers with orders
CONFIDENCE = "0.9999"
LEAST = {"tpch": 20, "tpcds": 10}
ALL = [pytest.param(name, one, id=one.id) for name in SETS for one in questions(name)]
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a set's data, made once."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            getattr(tpc_data, name)(made[name], SCALES[name])
        return made[name]

    return get


@pytest.fixture(scope="session")
def quiet(folder: Callable[[str], Path]) -> Iterator[Callable[[str], Session]]:
    """A session on a set with noise off."""
    opened: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in opened:
            opened[name] = _open(silent, name, folder(name))
        return opened[name]

    yield get
    for one in opened.values():
        one.close()


def _open(made: Callable[[str, Path], Path], name: str, folder: Path) -> Session:
    """Data has one ledger: each session has a copy of its own."""
    own = Path(tempfile.mkdtemp(dir=folder))
    shutil.copy(folder / f"{name}.duckdb", own)
    file = made(name, own)
    create_ledger(file)
    return open_session(file)


def _rows(answer: Answer) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in answer.table.columns), strict=True))


def _by_key(rows: list[tuple[Any, ...]], keys: int) -> Rows:
    found = {row[:keys]: row[keys:] for row in rows}
    assert len(found) == len(rows), "a key shows up twice"
    return found


def _is_empty(values: tuple[Any, ...], answer: Answer, keys: int) -> bool:
    """Whether a group that plain SQL does not show has no rows in it: its counts and sums are 0; a mean of nothing is anything."""
    wholes = [v for v, t in zip(values, answer.types[keys:], strict=True) if t != "DOUBLE" and v is not None]
    return all(value == 0 for value in wholes)


def test_there_are_enough_of_them() -> None:
    for name in SETS:
        ids = [one.id for one in questions(name)]
        assert len(set(ids)) == len(ids) >= LEAST[name]


@pytest.mark.parametrize(("name", "question"), ALL)
def test_the_page_has_the_question(name: str, question: Question) -> None:
    """`make tpc` writes it."""
    how = f"`{question.refused[0]}`, rewritten" if question.refused else "answered"
    page = (Path(__file__).parents[2] / "docs" / "tpc.md").read_text()
    assert f"| {question.id} | {question.title} | {how} |" in page
    assert not question.asks or f"- {question.id}: {question.asks}.\n" in page


@pytest.mark.parametrize(("name", "question"), ALL)
def test_without_noise_the_answer_is_the_plain_one(
    name: str, question: Question, quiet: Callable[[str], Session], folder: Callable[[str], Path]
) -> None:
    """The very text that plain SQL is asked, the data within the schema's bounds; no limit of contributions bites."""
    _compare(quiet(name).query(question.plain), question.plain, question.keys, plain(name, folder(name), bounded=True))


@pytest.mark.parametrize(("name", "question"), [one for one in ALL if one.values[1].capped])
def test_limits_leave_out_what_plain_sql_says_they_do(
    name: str, question: Question, quiet: Callable[[str], Session], folder: Callable[[str], Path]
) -> None:
    answer = quiet(name).query(question.private)
    assert _rows(answer) != _rows(quiet(name).query(question.plain)), "the limits bite"
    _compare(answer, question.capped, question.keys, plain(name, folder(name), bounded=True))


def _compare(answer: Answer, sql: str, keys: int, con: duckdb.DuckDBPyConnection) -> None:
    got = _by_key(_rows(answer), keys)
    with con:
        wanted = _by_key(con.sql(sql).fetchall(), keys)
    assert wanted, "the question is about somebody"
    assert wanted.keys() <= got.keys()
    for key, values in got.items():
        if key in wanted:
            assert [_number(v) for v in values] == pytest.approx([_number(v) for v in wanted[key]], rel=1e-9, abs=1e-9), key
        else:
            assert _is_empty(values, answer, keys), key
    if "ORDER BY" in sql:
        assert [key for key in got if key in wanted] == list(wanted), "the order of rows"


def _number(value: Any) -> Any:
    return float(value) if value is not None else None


@pytest.mark.parametrize(("name", "question"), [one for one in ALL if one.values[1].refused])
def test_the_form_that_is_refused_is_refused_by_name(name: str, question: Question, quiet: Callable[[str], Session]) -> None:
    assert question.refused is not None
    assert question.asks, "says how it is restated"
    session = quiet(name)
    before = session.budget().entries
    with pytest.raises(Refused) as refused:
        session.query(question.refused[1])
    assert refused.value.code == question.refused[0]
    assert refused.value.position is not None
    assert refused.value.instead
    assert session.budget().entries == before


@pytest.mark.parametrize("name", [one if one == "tpch" else pytest.param(one, marks=pytest.mark.slow) for one in SETS])
def test_at_epsilon_1_answers_are_priced_and_within_their_error_bars(
    name: str, quiet: Callable[[str], Session], folder: Callable[[str], Path]
) -> None:
    """Each question once. An error bar speaks of noise, so the answer without noise is what lies within it, at a confidence of 1 - 1e-4."""
    ordinary, noisy, inside, cells = _open(schema, name, folder(name)), 0, 0, 0
    for asked, question in enumerate(questions(name)):
        answer = ordinary.query(question.private, confidence=CONFIDENCE)
        assert answer.receipt["price"]["epsilon"] == "1"
        assert ordinary.budget().entries == asked + 1
        true, got = (_by_key(_rows(one), question.keys) for one in (quiet(name).query(question.private), answer))
        noisy += got != true
        found = [*_within(answer, got, true, question.keys)]
        inside, cells = inside + sum(found), cells + len(found)
    ordinary.close()
    assert noisy > len(questions(name)) / 2, "counts of few rows may come out as they are, most answers do not"
    assert cells > 100
    assert cells - inside <= 4


def _within(answer: Answer, got: Rows, true: Rows, keys: int) -> Iterator[bool]:
    """For each cell that has an error bar whether the value without noise lies within it."""
    for row, (key, values) in enumerate(got.items()):
        for i, bars in enumerate(answer.intervals[keys:]):
            bar = bars[row] if bars is not None else None
            if bar is not None and key in true and values[i] is not None:
                yield float(bar[0]) <= float(true[key][i]) <= float(bar[1])


COMMAS = (
    "customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey",
    "lineitem, orders, customer, nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey",
    "lineitem CROSS JOIN customer JOIN orders ON c_custkey = o_custkey AND l_orderkey = o_orderkey",
)


@pytest.mark.parametrize("relations", COMMAS)
def test_commas_lose_no_rows(relations: str, quiet: Callable[[str], Session], folder: Callable[[str], Path]) -> None:
    sql = f"SELECT count(*) AS n FROM {relations}"
    with duckdb.connect(str(folder("tpch") / "tpch.duckdb"), read_only=True) as con:
        assert _rows(quiet("tpch").query(sql)) == con.execute(sql).fetchall()
