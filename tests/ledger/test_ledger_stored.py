"""Stored answers in the ledger: who is shown which, at what price, and that bytes and rights are those that the log binds."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from ledger_shop import Shop, laplace
from test_ledger_processes import crew

from dpquery.errors import Fault, OverBudget
from dpquery.ledger import Kept, Ledger
from dpquery.ledger.tables import Tables

BOTH_STORES = True
FILES_ALONE = (
    "test_a_backup_holds_what_is_stored",  # a database is copied by its own means
    "test_an_interrupt_while_a_shared_answer_is_charged_leaves_it_shown",  # how stores take interrupts: test_ledger_group
)
THREE = {"alice": ("2", "0"), "bob": ("1", "0"), "default": ("5", "1e-7")}
GROUPED = {"team": (("3", "0"), ("alice", "bob"))}
ANSWER = Kept("question", b"answer")


def released(ledger: Ledger, analyst: str = "alice", epsilon: str = "0.5", answer: Kept = ANSWER) -> str:
    entry = ledger.charge(analyst, laplace(epsilon), {}).id
    ledger.settle(entry, "released", answer)
    return entry


def spent(ledger: Ledger) -> dict[str, Decimal | None]:
    return {one.account: one.spent.epsilon for one in ledger.balances()}


def code(asked: Callable[[], object]) -> str:
    with pytest.raises(Fault) as failed:
        asked()
    return failed.value.code


def test_an_answer_is_stored_for_who_paid(shop: Shop) -> None:
    ledger = shop.begin(analysts=THREE)
    entry = released(ledger)
    (own,), (other,) = ledger.stored("alice", "question"), ledger.stored("bob", "question")
    assert own.seen is not None
    assert (own.charge, own.seen.id, own.amounts.epsilon) == (entry, entry, Decimal("0.5"))
    assert other.seen is None
    assert ledger.content(own) == b"answer"
    assert ledger.stored("alice", "another question") == ()
    ledger.close()
    again = shop.open(shop.schema(analysts=THREE))
    assert again.stored("alice", "question") == (own,)
    assert again.verify() == ()


def test_the_dearest_comes_first_then_the_latest_then_others(shop: Shop) -> None:
    ledger = shop.begin(analysts=THREE)
    theirs = released(ledger, "bob", "1")
    asked = [released(ledger, "alice", epsilon) for epsilon in ("0.25", "0.5", "0.5", "0.125")]
    assert [one.charge for one in ledger.stored("alice", "question")] == [asked[2], asked[1], asked[0], asked[3], theirs]


@pytest.mark.lemma("B8")
def test_a_shared_answer_costs_its_whole_price(shop: Shop) -> None:
    """On the account and its group, once; the data set pays nothing more."""
    ledger = shop.begin(analysts=THREE, groups=GROUPED)
    entry = released(ledger)
    assert spent(ledger) == {"dataset": Decimal("0.5"), "team": Decimal("0.5"), "alice": Decimal("0.5"), "bob": 0, "default": 0}
    shown = [ledger.charge("bob", laplace("0.5"), {"asked": "again"}, of=entry) for _ in range(3)]
    assert len({one.id for one in shown}) == 1
    assert spent(ledger) == {"dataset": Decimal("0.5"), "team": 1, "alice": Decimal("0.5"), "bob": Decimal("0.5"), "default": 0}
    (seen,) = ledger.stored("bob", "question")
    assert seen.seen is not None
    assert (seen.seen.id, seen.charge) == (shown[0].id, entry)
    ledger.charge("bob", laplace("0.5"), {})
    (line,) = [one for one in ledger.entries() if one.event == "shown"]
    assert (line.body["of"], line.body["accounts"]) == (entry, ["analyst:bob", "group:team"])
    ledger.close()
    again = shop.open(shop.schema(analysts=THREE, groups=GROUPED))
    assert again.balance("bob").spent.epsilon == 1
    assert again.verify() == ()


def test_who_has_no_room_is_not_shown_a_shared_answer(shop: Shop) -> None:
    ledger = shop.begin(analysts=THREE)
    entry = released(ledger, "alice", "1.5")
    with pytest.raises(OverBudget):
        ledger.charge("bob", laplace("1.5"), {}, of=entry)
    assert [one.seen for one in ledger.stored("bob", "question")] == [None]
    assert ledger.balance("bob").spent.epsilon == 0
    assert [one.event for one in ledger.entries("bob")] == ["refused"]


def test_an_interrupt_while_a_shared_answer_is_charged_leaves_it_shown(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after the commit: the charge stands and is named, and asking again costs nothing. It has no outcome: it was that of a release."""
    ledger = shop.begin(analysts=THREE)
    entry = released(ledger)
    kind = type(ledger._store)
    commit = kind.commit

    def interrupted(store: Any) -> None:
        monkeypatch.setattr(kind, "commit", commit)
        commit(store)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "commit", interrupted)
    with pytest.raises(Fault) as failed:
        ledger.charge("bob", laplace("0.5"), {}, of=entry)
    assert failed.value.code == "INTERRUPTED"
    assert [(one.id, one.event) for one in ledger.entries("bob")] == [(failed.value.entry, "shown")]
    assert ledger.charge("bob", laplace("0.5"), {}, of=entry).id == failed.value.entry
    assert ledger.balance("bob").spent.epsilon == Decimal("0.5")
    assert ledger.verify() == ()


def test_a_full_data_set_shows_what_it_paid_for(shop: Shop) -> None:
    ledger = shop.begin(budget=("1", "0"), analysts={"alice": ("1", "0"), "bob": ("1", "0")}, oversubscribe=True)
    entry = released(ledger, "alice", "1")
    with pytest.raises(OverBudget):
        ledger.charge("bob", laplace("0.1"), {})
    ledger.charge("bob", laplace("1"), {}, of=entry)
    assert spent(ledger) == {"dataset": 1, "alice": 1, "bob": 1}


@pytest.mark.parametrize("price", ["0.4", "0.6"])
def test_a_stored_answer_is_sold_at_its_price_alone(shop: Shop, price: str) -> None:
    ledger = shop.begin(analysts=THREE)
    entry = released(ledger)
    assert code(lambda: ledger.charge("bob", laplace(price), {}, of=entry)) == "LEDGER_CORRUPT"
    assert ledger.balance("bob").spent.epsilon == 0


def test_what_was_not_released_is_not_shown(shop: Shop) -> None:
    ledger = shop.begin(analysts=THREE)
    entry = ledger.charge("alice", laplace("0.5"), {}).id
    assert ledger.stored("alice", "question") == ()
    assert code(lambda: ledger.charge("bob", laplace("0.5"), {}, of=entry)) == "LEDGER_CORRUPT"
    ledger.settle(entry, "timeout")
    assert ledger.stored("alice", "question") == ()


ALTERED = {
    "bytes": ("UPDATE stored SET content = {bytes}", "was changed"),
    "an answer taken out": ("DELETE FROM stored", "is gone"),
    "a question": ("UPDATE stored SET question = 'another'", "another question"),
    "a right": ("INSERT INTO shown SELECT entry, 'analyst:bob', line FROM shown", "without a line"),
    "a right that another line is to give": (
        "INSERT INTO shown SELECT s.entry, 'analyst:bob', e.id FROM shown s, entries e WHERE e.seq = 1",
        "without a line",
    ),
    "a right taken away": ("DELETE FROM shown", "the tables do not know it"),
    "an answer brought in": ("INSERT INTO stored SELECT id, 'question', {bytes} FROM entries WHERE seq = 1", "does not know"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_alterations_of_what_is_stored_are_found(shop: Shop, what: str) -> None:
    ledger = shop.begin(analysts=THREE)
    released(ledger)
    statement, said = ALTERED[what]
    with shop.connect() as connection:
        connection.execute(statement.format(bytes="'\\x00'" if isinstance(shop.place, str) else "x'00'"))
    connection.close()
    assert any(said in str(finding) for finding in ledger.verify())
    asked = "another" if what == "a question" else "question"
    if what in ("an answer taken out", "a right taken away"):
        assert ledger.stored("alice", asked) == ()
    elif what == "bytes":
        assert code(lambda: ledger.content(ledger.stored("alice", asked)[0])) == "LEDGER_CORRUPT"
    elif what != "an answer brought in":
        assert code(lambda: ledger.stored("bob", asked)) == "LEDGER_CORRUPT"


def test_outcome_and_answer_are_written_together_or_not_at_all(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = shop.begin(analysts=THREE)
    entry = ledger.charge("alice", laplace("0.5"), {}).id

    def broken(*_: object) -> None:
        raise ValueError

    for name in ("keep", "show"):
        with monkeypatch.context() as patch:
            patch.setattr(Tables, name, broken)
            assert code(lambda: ledger.settle(entry, "released", ANSWER)) == "LEDGER_CORRUPT"
        assert not [one for one in ledger.entries() if one.event == "released"]
        assert ledger.stored("alice", "question") == ()
    ledger.settle(entry, "released", ANSWER)
    ledger.settle(entry, "released", Kept("question", b"another"))
    assert [ledger.content(one) for one in ledger.stored("alice", "question")] == [b"answer"]
    assert ledger.verify() == ()


def test_death_before_any_statement_of_storing_an_answer(shop: Shop) -> None:
    """Attack 21: the outcome and the answer are there, or neither is, and the charge is in any case."""
    shop.begin(budget=("1", "0"))
    shop.close()
    found = crew("keep", shop)
    assert isinstance(found, list)
    assert len(found) >= 6
    assert {(settled, answers) for settled, answers in found} == {(False, 0), (True, 1)}
    opened = shop.open(shop.schema(budget=("1", "0")))
    assert (str(opened.balance("default").spent.epsilon), opened.verify()) == ("0.01", ())


def test_a_backup_holds_what_is_stored(shop: Shop) -> None:
    ledger = shop.begin(analysts=THREE)
    entry = released(ledger)
    ledger.backup(shop.folder / "copy")
    ledger.close()
    shop.path.write_bytes((shop.folder / "copy").read_bytes())
    (one,) = shop.open(shop.schema(analysts=THREE)).stored("alice", "question")
    assert one.charge == entry
