"""Who is charged what, and what one analyst sees of another."""

from __future__ import annotations

import hashlib
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import people
import pytest
from people import code

import dpquery
from dpquery.accounting.convert import epsilon_up
from dpquery.backends.lower import lower
from dpquery.backends.port import BoundedSQL
from dpquery.engine import asking as asking_for
from dpquery.engine import open_session
from dpquery.engine.session import Session
from dpquery.errors import Fault, OverBudget
from dpquery.ledger import open as open_ledger
from dpquery.ledger.chain import canonical
from dpquery.plan.release import GroupCap, Release
from dpquery.schema.read import read

COUNT = "SELECT count(*) FROM visits"


@pytest.fixture(scope="module")
def unspent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("unspent"), terms=people.ORDINARY)


@pytest.fixture
def schema(unspent: Path, tmp_path: Path) -> Path:
    return people.copied(unspent, tmp_path / "kept")


@pytest.fixture
def asking(schema: Path) -> Iterator[Callable[[str], Session]]:
    """Opens sessions for analysts, and closes them."""
    made: list[Session] = []

    def session(analyst: str) -> Session:
        made.append(open_session(schema, analyst))
        return made[-1]

    yield session
    for one in made:
        one.close()


def test_b2_one_query_with_private_keys_leaves_room_for_others(asking: Callable[[str], Session]) -> None:
    """Laplace noise with a threshold spends epsilon and a selection delta: its account still counts epsilons."""
    session = asking("bob")
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = LAPLACE, epsilon = 1, delta = 1e-9)"
    session.query(f"SELECT {clause} country, count(DISTINCT pid) FROM people GROUP BY country")
    balance = session.budget()
    assert balance.spent.epsilon == 1
    assert balance.left.epsilon == 1


def test_b3_b4_an_analyst_sees_the_own_account_only(asking: Callable[[str], Session]) -> None:
    """Another analyst's whole budget changes no answer, refusal, receipt or balance here but for ids and times.

    Laplace noise there and Gaussian noise here: together they have no epsilon, and their rho has no room in the data set's budget.
    """
    gaussian = COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = GAUSSIAN)")
    bob, other = asking("bob"), asking("default")
    receipt = bob.query(gaussian, epsilon="0.5").receipt
    held = bob.budget().as_dict()
    spent = other.query("SELECT k, count(*) FROM visits WHERE k IN (1, 2) GROUP BY k", epsilon=2, delta=0)
    assert spent.receipt["price"]["charged_epsilon"] == "2"
    with pytest.raises(OverBudget):
        other.query(COUNT, epsilon=2)
    assert bob.budget().as_dict() == held
    again = bob.query(gaussian, epsilon="0.5", fresh=True).receipt
    assert again["price"]["charged_epsilon"] == "infinite"
    assert (epsilon_up(Fraction(spent.receipt["price"]["rho"]), Fraction("5e-7")) or 0) > 4, "more than the data set's budget, were it tested"
    own = ("entry", "commitment", "time", "spent", "left", "warnings")
    assert {k: v for k, v in receipt.items() if k not in own} == {k: v for k, v in again.items() if k not in own}
    first, second = ([said for said in one["warnings"] if "error bar" not in said] for one in (receipt, again))  # which hang on the noise
    assert first == second
    assert bob.budget().entries == 2
    for rho in ("0.035", "0.03"):
        assert bob.query(gaussian, rho=rho, fresh=True).table.num_rows == 1, "a reserved cap can be spent"
    with pytest.raises(OverBudget) as refused:
        bob.query(gaussian, rho="0.03", fresh=True)
    assert "default" not in f"{refused.value} {refused.value.as_dict()} {bob.budget().as_dict()}"


def test_b5_n12_a_stored_answer_serves_the_account_that_was_shown_it(asking: Callable[[str], Session]) -> None:
    """Unless the schema shares answers, another account's asking is charged and drawn as if nobody had asked; a cheaper repeat is nobody else's."""
    sql = "SELECT k, sum(x), count(*) FROM visits WHERE k IN (0, 1, 2, 3) GROUP BY k"
    bob, other = asking("bob"), asking("default")
    first = bob.query(sql, epsilon="0.5", delta=0)
    held = other.explain(sql, epsilon="0.25", delta=0).as_dict(), other.budget().as_dict()
    for cheaper in ("0.5", "0.25", "0.001"):
        again = bob.query(sql, epsilon=cheaper, delta=0)
        assert (again.table, again.receipt["entry"]) == (first.table, first.receipt["entry"])
    assert bob.budget().spent.epsilon == Decimal("0.5")
    assert held == (other.explain(sql, epsilon="0.25", delta=0).as_dict(), other.budget().as_dict())
    theirs = other.query(sql, epsilon="0.25", delta=0)
    assert "stored" not in theirs.receipt
    assert theirs.table != first.table
    assert other.budget().spent.epsilon == Decimal("0.25")


def test_n12_a_receipt_commits_to_its_own_entry_alone(asking: Callable[[str], Session], schema: Path) -> None:
    """Neither a link of the chain, which hangs on what others asked, nor another entry's commitment, nor a nonce is in it."""
    asking("default").query(COUNT)
    receipt = asking("bob").query(COUNT).receipt
    with open_ledger(schema.with_suffix(".ledger"), read(schema)) as ledger:
        log = [json.loads(line) for line in ledger.export()]
    (own,) = [line for line in log if line["body"]["id"] == receipt["entry"]]
    assert receipt["commitment"] == own["commitment"] == hashlib.sha256(canonical(own["body"]).encode()).hexdigest()
    others = [line["commitment"] for line in log if line is not own]
    secret = [*others, *(line["link"] for line in log), *(line["body"]["nonce"] for line in log)]
    assert len(secret) == 3 * len(log) - 1
    assert not [each for each in secret if each in str(receipt)]
    assert len(receipt["entry"]) == 32


def test_b6_unlisted_names_share_one_account(asking: Callable[[str], Session]) -> None:
    for name in ("ann", "zoe", "default"):
        asking(name).query(COUNT, epsilon="0.5", fresh=True)
    assert asking("somebody else").budget().spent.epsilon == Decimal("1.5")
    assert asking("somebody else").query(COUNT, epsilon="0.5", fresh=True).receipt["analyst"] == "default"
    assert code(asking("anybody"), COUNT, epsilon="0.5", fresh=True) == "OVER_BUDGET"
    assert "stored" in asking("nobody").query(COUNT, epsilon="0.5").receipt, "whoever draws on the account has seen what it was shown"


def test_b9_spent_amounts_are_shown_as_sums_cap_and_ladder(asking: Callable[[str], Session]) -> None:
    shown = asking("bob").budget().as_dict()
    assert set(shown["spent"]) == {"epsilon", "rho", "delta"}
    assert shown["guarantee"] == {"epsilon": "2", "delta": "0.0000005"}
    assert [rung["rho"] for rung in shown["ladder"]][:2] == ["0.001953125", "0.00390625"]


def test_b10_refusals_cost_nothing_and_failures_after_the_charge_are_not_refunded(
    asking: Callable[[str], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = asking("bob")
    assert code(session, "SELECT max(x) FROM visits") == "MIN_MAX"
    assert session.budget().spent.epsilon == 0

    def broken(lowered: BoundedSQL, key_types: object, parts: int) -> object:
        raise ValueError("Conversion Error: could not convert 'SECRET-VALUE'")

    monkeypatch.setattr(session.backend, "run", broken)
    with pytest.raises(Fault) as failed:
        session.query(COUNT, epsilon="0.5")
    assert failed.value.code == "INTERNAL"
    assert "SECRET" not in str(failed.value) + repr(failed.value.__context__) * (not failed.value.__suppress_context__)
    assert failed.value.entry
    balance = session.budget()
    assert (balance.spent.epsilon, balance.timeouts) == (Decimal("0.5"), 1), "a failure may tell of a row: it counts as a time-out does"


def test_b10_the_price_of_what_runs_is_that_of_what_was_charged(asking: Callable[[str], Session], monkeypatch: pytest.MonkeyPatch) -> None:
    from dpquery.accounting.event import Price

    session = asking("bob")
    monkeypatch.setattr("dpquery.engine.session.price", lambda bounds, billed, adjacency: Price(None, billed.price.rho, billed.price.delta))
    with pytest.raises(Fault) as failed:
        session.query(COUNT, epsilon="0.5")
    assert failed.value.code == "PRICE_DIFFERS"
    assert session.budget().spent.epsilon == Decimal("0.5")


@pytest.mark.parametrize("wider", ["cell", "cap", "cell of the second"])
def test_b10_a_statement_that_enforces_less_than_the_plan_is_not_answered(
    asking: Callable[[str], Session], monkeypatch: pytest.MonkeyPatch, wider: str
) -> None:
    """The price is derived again from what the lowered statement enforces: nothing that was computed before the charge stands in for it."""

    def lowered(release: Release, salt: int) -> BoundedSQL:
        found = lower(release, salt)
        seen.append(release)
        if wider == "cell of the second" and len(seen) == 1:
            return found
        cells = tuple(replace(cell, high=2 * cell.high + 1) for cell in found.enforced.cells)
        bounds = replace(found.enforced, keyed=True, bounding=GroupCap(2)) if wider == "cap" else replace(found.enforced, cells=cells)
        return replace(found, enforced=bounds)

    session, seen = asking("bob"), list[Release]()
    monkeypatch.setattr("dpquery.engine.session.lower", lowered)
    with pytest.raises(Fault) as failed:
        session.query(f"SELECT ({COUNT}) AS n, count(*) AS m FROM visits" if wider == "cell of the second" else COUNT, epsilon="0.5")
    assert failed.value.code == "PRICE_DIFFERS"
    assert session.budget().spent.epsilon == Decimal("0.5")


def test_b10_a_ledger_that_fails_after_the_charge_does_not_say_that_nothing_was_charged(
    asking: Callable[[str], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = asking("bob")
    ledger = session.ledger

    def locked(*given: object) -> None:
        raise Fault("LEDGER_LOCKED", "the ledger is in use by another process; nothing was charged", instead="try again")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", locked)
        assert session.query(COUNT, epsilon="0.25").table.num_rows == 1, "the charge is on the disk; its outcome is not what the answer waits for"
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "balance", locked)
        with pytest.raises(Fault) as failed:
            session.query(COUNT, epsilon="0.25")
    assert failed.value.code == "LEDGER_LOCKED"
    assert "nothing was charged" not in str(failed.value)
    assert "stays charged" in str(failed.value)
    assert failed.value.entry
    assert session.budget().spent.epsilon == Decimal("0.5")


def test_refused_and_failed_questions_are_logged(asking: Callable[[str], Session], schema: Path) -> None:
    session = asking("bob")
    for statement in ("SELECT max(x) FROM visits", "SELECT count(*) FROM visits LIMIT 1 PERCENT"):
        code(session, statement)
    hidden = schema.with_suffix(".hidden")
    schema.with_suffix(".duckdb").rename(hidden)
    assert code(session, COUNT) == "DATA_MISSING"
    hidden.rename(schema.with_suffix(".duckdb"))
    logged = [line.body for line in session.ledger.entries("bob")]
    refused = [body["code"] for body in logged if body["event"] == "refused"]
    assert refused[:2] == ["MIN_MAX", "LIMIT_PERCENT"]
    assert refused[-1] == "DATA_MISSING"
    assert all(body["epsilon"] == "0" for body in logged if body["event"] == "refused")


def test_e_four_threads_get_no_more_than_the_budget(asking: Callable[[str], Session]) -> None:
    """Check and debit are one transaction: of four threads with a price of the whole, one is answered."""
    sessions = [asking("bob") for _ in range(4)]
    for session in sessions:
        session.explain(COUNT)
    outcomes: list[str] = []
    barrier = threading.Barrier(4)

    def ask(session: Session) -> None:
        barrier.wait()
        try:
            session.query(COUNT, epsilon=2, fresh=True)
            outcomes.append("answered")
        except OverBudget as refused:
            outcomes.append(refused.code)

    threads = [threading.Thread(target=ask, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["OVER_BUDGET"] * 3 + ["answered"]
    assert sessions[0].budget().spent.epsilon == 2


def test_e_no_argument_skips_the_noise_or_the_charge() -> None:
    """There is no raw reader, no seed, no flag that turns post-processing, noise or accounting off. `params` are literals of the statement."""
    taken = set(inspect.signature(Session.query).parameters)
    assert taken == {"self", "sql", "dialect", "params", "fresh", "progress", "notice", "price"}
    assert {*asking_for.Wanted.__annotations__} == {"epsilon", "delta", "rho", "confidence", "noise", "error", "bounds", "tidy"}
    assert set(inspect.signature(dpquery.connect).parameters) == {"schema", "analyst", "ledger"}
    methods = {name for name, _ in inspect.getmembers(Session, inspect.isfunction) if not name.startswith("_")}
    assert methods >= {"query", "explain", "budget", "tables", "close"}
    assert not methods & {"execute", "exact", "raw", "rows", "run", "sql"}
