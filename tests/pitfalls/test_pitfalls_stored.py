"""Stored answers: the same question again shows what was released, to whom it was shown, for as long as the question is the same."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import people
import pytest
from people import code, one

from dpquery.engine import check, open_session, receipt, verify_ledger
from dpquery.engine.pace import Clock
from dpquery.engine.papers import verify_receipt
from dpquery.engine.session import Session
from dpquery.errors import Fault
from dpquery.release.answer import Answer

COUNT = "SELECT count(*) FROM visits"
SHARED = people.ORDINARY + "share_answers: true\n"
SPELLINGS = [
    (
        "SELECT k, s, sum(x) AS t, count(*) AS n FROM visits WHERE k IN (0, 1, 2) AND s IN ('s1', 's2') GROUP BY k, s",
        "SELECT v.s, count(*), v.k, sum(v.x) FROM visits AS v WHERE v.s IN ('s2', 's1') AND v.k IN (2, 1, 0) GROUP BY v.s, v.k ORDER BY v.k, v.s",
        (1, 3, 0, 2),
    ),
    ("SELECT country, count(DISTINCT pid) FROM people GROUP BY country", "SELECT count(DISTINCT p.pid), country FROM people p GROUP BY 2", (1, 0)),
    ("SELECT median(age), avg(age) FROM people", "SELECT avg(p.age), median(p.age) FROM people p", (1, 0)),
    (
        "SELECT (SELECT count(*) FROM visits) AS a, (SELECT sum(x) FROM visits) AS b",
        "SELECT (SELECT sum(v.x) FROM visits v), (SELECT count(*) FROM visits w)",
        (1, 0),
    ),
    (
        "SELECT count(*) FROM visits WHERE x > (SELECT avg(x) FROM visits)",
        "SELECT count(*) FROM visits v WHERE v.x > (SELECT avg(w.x) FROM visits w)",
        (0,),
    ),
    ("SELECT menu, mode(menu) FROM people GROUP BY menu", "SELECT mode(p.menu) AS m, p.menu FROM people p GROUP BY p.menu", (1, 0)),
]


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("ordinary") / "people", terms=people.ORDINARY)


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("sharing") / "people", terms=SHARED)


@pytest.fixture
def asking() -> Iterator[Callable[..., Session]]:
    """Opens sessions, and closes them."""
    with ExitStack() as stack:

        def session(schema: Path, analyst: str = "default", **how: Any) -> Session:
            made = open_session(schema, analyst) if not how else Session(open_session(schema).schema, analyst, None, **how)
            stack.callback(made.close)
            return made

        yield session


def rows(answer: Answer) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in answer.table.columns), strict=True))


def stored(answer: Answer) -> bool:
    return "stored" in answer.receipt


def test_b5_every_spelling_shows_the_same_release(ordinary: Path, tmp_path: Path, asking: Callable[..., Session]) -> None:
    """Keys, values and bars of a stored answer stand where this spelling has them; what is above the noise is computed anew."""
    session = asking(people.copied(ordinary, tmp_path / "kept"))
    for first, other, places in SPELLINGS:
        drawn, shown = (session.query(sql, epsilon="0.25", delta="1e-9") for sql in (first, other))
        assert (stored(drawn), stored(shown)) == (False, True), first
        wanted = [tuple(row[i] for i in places) for row in rows(drawn)]
        assert sorted(map(str, wanted)) == sorted(map(str, rows(shown)))
        assert [drawn.intervals[i] is None for i in places] == [bars is None for bars in shown.intervals]
        assert shown.receipt["price"]["charged_epsilon"] == drawn.receipt["price"]["charged_epsilon"]
    entries = session.budget().entries
    wide, narrow = (session.query(COUNT, epsilon="0.1", delta=0, confidence=level) for level in ("0.99", "0.5"))
    assert (rows(wide), stored(narrow)) == (rows(narrow), True)
    assert wide.intervals != narrow.intervals
    assert session.budget().entries == entries + 1


def test_b5_whether_others_ask_shows_in_no_price(ordinary: Path, tmp_path: Path, asking: Callable[..., Session]) -> None:
    """Files that look new were known again as soon as anybody had asked: what an account was told to pay told of that."""
    schema = people.copied(ordinary, tmp_path / "kept")
    bob, other = asking(schema, "bob"), asking(schema)
    bob.query(COUNT, epsilon="0.1", delta=0)
    schema.with_suffix(".duckdb").touch()
    before = bob.explain(COUNT, epsilon="0.1", delta=0).as_dict()["now"], bob.what_if(COUNT, epsilon="0.1", delta=0)
    other.query("SELECT count(DISTINCT pid) FROM visits", epsilon="0.1", delta=0)
    assert before == (bob.explain(COUNT, epsilon="0.1", delta=0).as_dict()["now"], bob.what_if(COUNT, epsilon="0.1", delta=0))
    assert stored(bob.query(COUNT, epsilon="0.1", delta=0))
    assert bob.explain(COUNT, epsilon="0.1", delta=0).as_dict()["now"]["stored"]


def test_b5_a_shared_answer_is_sold_at_exactly_its_price(sharing: Path, tmp_path: Path, asking: Callable[..., Session]) -> None:
    """Bob asks for less than Alice paid: hers would be a leak at his price, and at hers not what he agreed to. At her price he is shown hers."""
    schema = people.copied(sharing, tmp_path / "kept")
    first, bob = asking(schema), asking(schema, "bob")
    dear = first.query(COUNT, epsilon="0.5", delta=0)
    cheap = bob.query(COUNT, epsilon="0.25", delta=0)
    assert not stored(cheap)
    same = bob.query(COUNT, epsilon="0.5", delta=0)
    assert (same.receipt["stored"]["charged"], rows(same)) == (True, rows(dear))
    assert same.receipt["entry"] not in (dear.receipt["entry"], cheap.receipt["entry"])
    assert any("to another account" in said for said in same.warnings)
    assert bob.budget().spent.epsilon == Decimal("0.75")
    again = bob.query(COUNT, epsilon="0.125", delta=0)
    assert (again.receipt["stored"]["charged"], rows(again)) == (False, rows(dear)), "the most precise that he has seen"
    assert bob.budget().spent.epsilon == Decimal("0.75")
    spent = {one.account: one.spent.epsilon for one in first.ledger.balances()}
    assert spent == {"dataset": Decimal("0.75"), "default": Decimal("0.5"), "bob": Decimal("0.75")}
    assert code(bob, COUNT, epsilon="1.5", delta=0) == "OVER_BUDGET"
    paper = tmp_path / "receipt.json"
    for answer in (dear, same, again):
        paper.write_text(json.dumps(dict(answer.receipt)))
        assert verify_receipt(paper, schema=schema).findings == ()
    paper.write_text(json.dumps({**again.receipt, "data_version": 7}))
    assert verify_receipt(paper, schema=schema).findings != ()


def test_fresh_pays_again_and_the_newest_of_equals_is_shown(ordinary: Path, tmp_path: Path, asking: Callable[..., Session]) -> None:
    session = asking(people.copied(ordinary, tmp_path / "kept"))
    drawn = [session.query(COUNT, epsilon=epsilon, delta=0, fresh=fresh) for epsilon, fresh in (("0.5", False), ("0.25", True), ("0.5", True))]
    assert not any(map(stored, drawn))
    assert session.budget().spent.epsilon == Decimal("1.25")
    for epsilon in ("0.5", "0.25", "0.01"):
        assert session.query(COUNT, epsilon=epsilon, delta=0).receipt["entry"] == drawn[2].receipt["entry"]
    named = COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = GAUSSIAN)")
    free = [session.explain(sql, epsilon="0.01", delta="1e-9").as_dict()["now"]["stored"] for sql in (COUNT, named)]
    assert free == [True, False], "noise that is asked for by name is that"


def test_w9_a_stored_answer_does_not_outlive_what_it_came_from(
    ordinary: Path, tmp_path: Path, asking: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another data version (a public table's change is one), another schema, another version of the software's plans: nothing old is shown."""
    schema = people.copied(ordinary, tmp_path / "kept")
    joined = "SELECT c.name, count(*) FROM visits v JOIN codes c ON v.k = c.k GROUP BY c.name"
    session = asking(schema)
    first = session.query(joined, epsilon="0.1", delta=0)
    assert stored(session.query(joined, epsilon="0.1", delta=0))
    with monkeypatch.context() as patch:
        patch.setattr(receipt, "PLAN_VERSION", receipt.PLAN_VERSION + 1)
        assert not stored(session.query(joined, epsilon="0.1", delta=0))
    schema.write_text(schema.read_text().replace("upper: 120", "upper: 121"))
    changed = asking(schema)
    assert not stored(changed.query(joined, epsilon="0.1", delta=0))
    schema.write_text(schema.read_text().replace("upper: 121", "upper: 120") + "# a remark changes nothing\n")
    assert asking(schema).query(joined, epsilon="0.1", delta=0).receipt["entry"] == first.receipt["entry"]
    new = Path(shutil.copyfile(schema.with_suffix(".duckdb"), schema.with_suffix(".new")))
    with duckdb.connect(str(new)) as con:
        con.execute("UPDATE codes SET name = 'd' WHERE k = 9")
    new.replace(schema.with_suffix(".duckdb"))
    assert check(schema, register=True).version == 2
    assert not stored(asking(schema).query(joined, epsilon="0.1", delta=0))


def test_altered_bytes_of_a_stored_answer_are_found(ordinary: Path, tmp_path: Path, asking: Callable[..., Session]) -> None:
    schema = people.copied(ordinary, tmp_path / "kept")
    session = asking(schema)
    session.query(COUNT, epsilon="0.1", delta=0)
    with sqlite3.connect(schema.with_suffix(".ledger")) as connection:
        connection.execute("UPDATE stored SET content = x'00'")
    connection.close()
    with pytest.raises(Fault) as failed:
        session.query(COUNT, epsilon="0.1", delta=0)
    assert failed.value.code == "LEDGER_CORRUPT"
    assert [str(found) for found in verify_ledger(schema)] == ["line 10 of the log: the answer that it stored was changed"]


def test_nothing_is_stored_without_limits(tmp_path: Path, asking: Callable[..., Session]) -> None:
    session = asking(people.made(tmp_path / "people"))
    answers = [session.query(COUNT) for _ in range(2)]
    assert not any(map(stored, answers))
    assert session.budget().entries == 2


def test_a_stored_answer_leaves_on_the_grid(ordinary: Path, tmp_path: Path, asking: Callable[..., Session]) -> None:
    """Attack 4: a miss and a hit leave at the same point of it."""
    schema = people.copied(ordinary, tmp_path / "kept")
    schema.write_text(schema.read_text() + "limits: {response_quantum: 1000}\n")
    time = [0.0]

    def sleep(seconds: float) -> None:
        time[0] += seconds

    session = asking(schema, clock=Clock(lambda: time[0], sleep))
    left = []
    for _ in range(3):
        session.query(COUNT, epsilon="0.1", delta=0)
        left.append(time[0])
    assert left == [1000, 2000, 3000]
    assert session.budget().entries == 1


def test_what_failed_is_not_stored(ordinary: Path, tmp_path: Path, asking: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge without an answer leaves nothing to show; asked again it is drawn, and charged."""
    session = asking(people.copied(ordinary, tmp_path / "kept"))
    with monkeypatch.context() as patch:
        patch.setattr("dpquery.release.noise.add", lambda *_: 1 / 0)
        with pytest.raises(Fault):
            session.query(COUNT, epsilon="0.1", delta=0)
    answer = session.query(COUNT, epsilon="0.1", delta=0)
    assert not stored(answer)
    assert session.budget().spent.epsilon == Decimal("0.2")
    assert isinstance(one(session, COUNT, epsilon="0.1", delta=0), int)
