"""Replies after the charge leave on the time grid that the schema sets, whatever became of the statement; and what the grid is good for, measured."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import people
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing_lab import QUICK, Stage, made

from dpquery.backends.duckdb import DuckDB
from dpquery.backends.process import fault
from dpquery.engine import pace
from dpquery.engine.pace import Clock
from dpquery.engine.session import LATE, Session
from dpquery.errors import Error, Fault, Refused
from dpquery.schema.model import Limits

Before = Callable[[], None]


@pytest.fixture(scope="module")
def unspent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("unspent"), ", timeout: 60, timeouts_per_account: 100, response_quantum: 5")


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def session(unspent: Path, tmp_path: Path, stage: Stage) -> Iterator[Session]:
    with people.opened(people.copied(unspent, tmp_path / "kept")) as (opened,):
        session = Session(opened.schema, None, None, Clock(stage.now, stage.sleep))
        yield session
        session.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Before], None]:
    """Sets what happens in the engine before it runs a statement."""

    real = DuckDB.run

    def put(before: Before) -> None:
        def instead(self: DuckDB, *given: Any) -> Any:
            before()
            return real(self, *given)

        monkeypatch.setattr(DuckDB, "run", instead)

    return put


def raising(error: BaseException, stage: Stage, seconds: float) -> Before:
    def before() -> None:
        stage.pass_by(seconds)
        raise error

    return before


def outcome(session: Session) -> list[str]:
    return [line.event for line in session.ledger.entries() if line.event in ("charged", "released", "failed", "timeout", "interrupted", "refused")]


@given(
    st.decimals("0.001", "86400", allow_nan=False, places=3),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.sampled_from([0.25, 1.0]),
)
def test_a_wait_ends_on_the_grid(quantum: Decimal, seconds: float, least: float, soundly: float) -> None:
    """At a multiple of the quantum, one at least; not before `least`, and no more than a quantum late; sleeps that end early are continued."""
    stage = Stage()

    def sleep(asked: float) -> None:
        stage.sleep(max(asked * soundly, 1e-4))

    grid = pace.begin(Limits(response_quantum=quantum), Clock(stage.now, sleep))
    stage.pass_by(seconds)
    grid.wait(1000 + least)
    q, waited = float(quantum), stage.now() - 1000
    assert abs(waited - round(waited / q) * q) <= 1.1e-4
    assert max(q, seconds, least) - 1e-6 <= waited <= max(seconds, least) + q + 1.1e-4


def test_without_a_quantum_nothing_waits(stage: Stage) -> None:
    grid = pace.begin(Limits(), Clock(stage.now, stage.sleep))
    stage.pass_by(0.3)
    grid.wait()
    grid.wait(2000)
    assert (stage.now(), stage.slept, grid.silent) == (1000.3, [], False)


@pytest.mark.parametrize(("seconds", "leaves"), [(0, 5), (1.5, 5), (4.9, 5), (5.2, 10), (33, 35)])
def test_an_answer_leaves_on_the_grid(seconds: float, leaves: float, session: Session, stage: Stage, run: Callable[[Before], None]) -> None:
    run(lambda: stage.pass_by(seconds))
    assert session.query(QUICK).table.num_rows == 1
    assert stage.now() == 1000 + leaves
    assert outcome(session) == ["charged", "released"]


@pytest.mark.parametrize(
    ("error", "code", "settled"),
    [
        (fault("ENGINE_MEMORY"), "ENGINE_MEMORY", "timeout"),
        (fault("ENGINE_FAILED"), "ENGINE_FAILED", "timeout"),
        (Fault("DATA_CHANGED", "the data changed"), "DATA_CHANGED", "failed"),
        (Refused("ODD", "a refusal after the charge"), "INTERNAL", "timeout"),
        (ValueError("SECRET"), "INTERNAL", "timeout"),
        (SystemExit(3), "INTERNAL", "timeout"),
    ],
)
def test_a_failure_leaves_on_the_grid(
    error: BaseException, code: str, settled: str, session: Session, stage: Stage, run: Callable[[Before], None]
) -> None:
    run(raising(error, stage, 6.5))
    with pytest.raises(Fault) as told:
        session.query(QUICK)
    assert (told.value.code, stage.now(), bool(told.value.entry)) == (code, 1010, True)
    assert "SECRET" not in str(told.value)
    assert outcome(session) == ["charged", settled]


def test_a_failure_above_the_noise_leaves_on_the_grid(session: Session, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> Any:
        stage.pass_by(7)
        raise fault("ENGINE_MEMORY")

    monkeypatch.setattr("dpquery.release.answer.finished", broken)
    with pytest.raises(Fault):
        session.query(QUICK)
    assert stage.now() == 1010


@pytest.mark.parametrize("seconds", [60, 60.4, 61.9, 62.9])
def test_a_time_out_leaves_at_one_moment(seconds: float, session: Session, stage: Stage, run: Callable[[Before], None]) -> None:
    """How soon the engine heeds its interrupt, and whether it has to be killed, does not show."""
    run(raising(fault("ENGINE_TIMEOUT"), stage, seconds))
    with pytest.raises(Fault):
        session.query(QUICK)
    assert stage.now() == 1000 + 65 >= 1000 + 60 + LATE


def test_above_the_time_limit_there_is_one_moment_for_all(tmp_path: Path, stage: Stage, run: Callable[[Before], None]) -> None:
    """What is left is an answer or a failure, and failures are counted."""
    schema = made(tmp_path, ", timeout: 60, timeouts_per_account: 100, response_quantum: 70")
    ends: list[tuple[float, BaseException | None]] = [(0.1, None), (59, None), (62, fault("ENGINE_TIMEOUT")), (30, fault("ENGINE_MEMORY"))]
    with people.opened(schema) as (opened,):
        session = Session(opened.schema, None, None, Clock(stage.now, stage.sleep))
        for seconds, error in ends:
            begun = stage.now()
            run((lambda s=seconds: stage.pass_by(s)) if error is None else raising(error, stage, seconds))  # type: ignore[misc]
            with contextlib.suppress(Fault):
                session.query(QUICK, fresh=True)
            assert stage.now() == begun + 70
        assert session.budget().timeouts == 2
        session.close()


def test_refusals_before_the_charge_do_not_wait(session: Session, stage: Stage) -> None:
    """They know nothing of private rows."""
    session.query(QUICK, epsilon="49.95")
    for sql, price in (("SELECT nothing FROM nowhere", "0.01"), ("SELECT max(s) FROM visits", "0.01"), (QUICK, "0"), (QUICK, "0.1")):
        with pytest.raises(Error):
            session.query(sql, epsilon=price, fresh=True)
    assert outcome(session) == ["charged", "released", *["refused"] * 4]
    assert stage.slept == [5]


def test_the_engine_is_gone_and_nothing_is_written_before_the_reply_leaves(session: Session, stage: Stage) -> None:
    """How long its end takes depends on what it holds; and in the log, a failure would show when it came."""
    seen = []

    def asleep() -> None:
        seen.append((session._backend, outcome(session)))

    stage.asleep = asleep
    session.query(QUICK)
    assert seen == [(None, ["charged"])]
    session.query(QUICK, fresh=True)
    assert outcome(session) == ["charged", "released"] * 2


def test_another_thread_waits_too(session: Session, stage: Stage) -> None:
    """A session that is free again before the reply leaves would show when the engine was done."""
    waited = []

    def asleep() -> None:
        other = threading.Thread(target=session.budget, daemon=True)
        other.start()
        other.join(0.2)
        waited.append(other.is_alive())

    stage.asleep = asleep
    session.query(QUICK)
    assert waited == [True]


def test_the_grid_starts_when_the_question_is_asked(session: Session, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when its turn comes: two questions asked at once leave at points of one grid."""
    begin, begun, answers = pace.begin, threading.Event(), []

    def noted(*given: Any) -> pace.Pace:
        grid = begin(*given)
        begun.set()
        return grid

    def asleep() -> None:
        stage.asleep = lambda: None
        monkeypatch.setattr(pace, "begin", noted)
        other.start()
        assert begun.wait(10)

    stage.asleep, other = asleep, threading.Thread(target=lambda: answers.append(session.query(QUICK)), daemon=True)
    session.query(QUICK)
    other.join(60)
    assert (len(answers), stage.slept, stage.now()) == (1, [5], 1005)


def test_progress_goes_on_until_the_reply_leaves(tmp_path: Path, stage: Stage) -> None:
    """On a terminal, a line that stopped would show when the engine was done."""
    ticked = threading.Event()
    schema = made(tmp_path, ", response_quantum: 0.05")
    with people.opened(schema) as (opened,):
        session = Session(opened.schema, None, None, Clock(stage.now, stage.sleep))
        seen = []

        def asleep() -> None:
            ticked.clear()
            seen.append(ticked.wait(10))

        stage.asleep = asleep
        session.query(QUICK, progress=lambda seconds: ticked.set())
        session.close()
    assert seen == [True]


@pytest.mark.parametrize(("seconds", "settled", "timeouts"), [(4, "failed", 0), (6, "interrupted", 1)])
@pytest.mark.parametrize("where", ["in the engine", "in the wait"])
def test_an_interrupt_counts_where_having_no_reply_tells_something(
    where: str, seconds: float, settled: str, timeouts: int, session: Session, stage: Stage, run: Callable[[Before], None]
) -> None:
    """It leaves at once, in the same words whether the engine was done or not; before the first grid point no reply ever leaves."""
    if where == "in the engine":
        run(raising(KeyboardInterrupt(), stage, seconds))
    else:
        run(lambda: stage.pass_by(seconds))
        stage.asleep = raising(KeyboardInterrupt(), stage, 0)
    with pytest.raises(Fault) as told:
        session.query(QUICK)
    assert (told.value.code, stage.now(), session._backend) == ("INTERRUPTED", 1000 + seconds, None)
    assert ("counts as a time-out" in told.value.message) == bool(timeouts)
    assert outcome(session) == ["charged", settled]
    assert session.budget().timeouts == timeouts
    stage.asleep = lambda: None


def test_explain_says_when_the_reply_leaves(session: Session, tmp_path: Path) -> None:
    assert session.explain(QUICK).as_dict()["response_quantum"] == "5"
    with people.opened(made(tmp_path)) as (other,):
        assert other.explain(QUICK).as_dict()["response_quantum"] is None
