"""Non-interference: what an analyst hears of a question, but for released values, is the same on neighbouring data and equal ledgers.

2,000 questions, right and wrong ones, through the engine's own corridor, half of them in audits: price, refusal, error and its place, columns and
types, public keys and their order, warnings of the plan, what the ledger keeps and what is spent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import nodes
import pytest
from asked import Door, Heard, Listener, charged, files, ordinary, told
from broken import CALLS, broken
from checked import prepared
from inside import Inside
from led import led
from relations import views
from sought import LEAVES, bounded_nodes
from statements import statement
from worlds import FUZZED, MAIN, World, loaded, world

from dpquery.engine import create_ledger, open_session, recall, receipt, session
from dpquery.engine.capping import TOO_LOW, UNKNOWN
from dpquery.engine.session import Session
from dpquery.errors import Error, Refused
from dpquery.ledger import sqlite
from dpquery.values.noisy import Noisy

CASES, WORLDS, EACH = 1_920, 24, 80  # questions through the corridor, over so many data sets
REAL, FILES = 80, 4  # questions through worker processes and files
SALT = 4_711


class Question:
    """A random question: its text and what the caller says beside it. `right`: it is a statement of the grammar, as it was made."""

    def __init__(self, made: World, seed: str) -> None:
        random = Random(f"question {seed}")
        self.statement = statement(made, seed)
        price = random.choice(["0.1", "0.3", "0.5", "1", "2", "2.5"])
        prices = {
            "epsilon = 1e20": f"epsilon = {price}",
            "delta = 1": "delta = 1e-7",
            "rho = 1e20": "rho = 0.01",
            "= 1e19": "= 0.03",
            "> 1e18": "> 0.01",
        }
        self.text = re.sub(rf"({'|'.join(prices)})\b", lambda m: prices[m[1]], self.statement.dp)
        self.call: Mapping[str, Any] = random.choice(CALLS) if random.random() < 0.15 else {}
        self.right = random.random() < 0.5
        if not self.right:
            self.text = broken(random, self.text)
        self.twice, self.explained = random.random() < 0.1, random.random() < 0.1

    @property
    def whole(self) -> bool:
        """Whether nothing above the noise leaves rows out or orders them."""
        one = self.statement
        return self.right and not (one.having or one.sort or one.qualify or one.limit is not None)


class Choice(Question):
    """A question that compares the groups of a release, of which one is chosen."""

    def __init__(self, text: str) -> None:
        self.text, self.call, self.right, self.twice, self.explained = text, {"epsilon": "0.1"}, False, True, True

    @property
    def whole(self) -> bool:
        """Its keys are not shown."""
        return False


def same(here: Listener, there: Listener, question: Question) -> str:
    """How the question ended, on both; an AssertionError where something differs."""
    both = (here, there)
    ours, theirs = ([one.hear(question.text, question.call) for _ in range(1 + question.twice)] for one in both)
    for one, other in zip(ours, theirs, strict=True):
        assert one.reply == other.reply, "the replies differ"
        assert one.log == other.log, "the logs differ"
        assert one.plan == other.plan, "the plans differ"
        if one.answer is not None and other.answer is not None:
            assert told_of_plan(here, one) == told_of_plan(there, other), "the warnings of the plan differ"
            _same_rows(question, one, other)
    _stored(ours)
    if question.explained:
        first, second = (explained(one.session, question) for one in both)
        assert first == second, "EXPLAIN differs"
        assert here.session.budget() == there.session.budget(), "what is spent differs"
    return ours[0].ended


def explained(one: Session, question: Question) -> Any:
    try:
        return one.explain(question.text, **question.call).as_dict()
    except Error as error:
        return told(error)


OF_RELEASED = re.compile(
    r"^This is a stored answer\. |below the noise was NULL: |^A list of released values has more than "
    r"|^The groups are more than "
    r"|^What the statement does with the released values failed; |: NULL in \d+ of \d+ rows: |: in \d+ of \d+ rows another value may be as frequent: "
    r"|^No group passed the threshold: |^Groups with few people are left out; |^No error bar for |: the error bar is wider than the value itself in "
    r"|: what one unit brings is capped at |: no cap assures anything above 0; |cuts off about \S+ % of |that cuts off is not known at this price\.$"
)
"""All that an answer says besides: functions of what was released and of the plan. Another one is looked at before it joins these."""


def told_of_plan(one: Listener, heard: Heard) -> tuple[str, ...]:
    """The warnings that do not tell of released values; they come first, but for those of caps that are not to be relied on."""
    assert heard.plan is not None
    assert heard.answer is not None
    known = (*heard.plan.question.warnings, *receipt.plan_warnings(heard.plan, one.session.schema))
    loud = [said for said in heard.answer.warnings if said.startswith((UNKNOWN, TOO_LOW))]
    assert [*heard.answer.warnings[: len(loud) + len(known)]] == [*loud, *known]
    assert all(": what one unit brings is capped at " in said for said in loud)
    assert [said for said in heard.answer.warnings[len(loud) + len(known) :] if not OF_RELEASED.search(said)] == [], "a warning of its own"
    return known


def _same_rows(question: Question, one: Heard, other: Heard) -> None:
    """A public key list is shown whole and in the same order; without keys there is one row."""
    if not question.whole:
        return
    if one.reply["keys"]["rule"] == "listed":
        places = question.statement.shown[: len(question.statement.keys)]
        first, second = ([tuple(row[i] for i in places) for row in heard.rows] for heard in (one, other))
        assert first == second, "the public keys differ"
        assert len(first) == one.reply["keys"]["count"]
    if one.reply["keys"]["rule"] == "none":
        assert len(one.rows) == len(other.rows) == 1


def _stored(heard: list[Heard]) -> None:
    """The same question again is answered from the store, with the same rows and for nothing; or refused again."""
    first, *more = heard
    assert len([*charged(first.log)]) == (first.answer is not None and "stored" not in first.reply)
    for one in more:
        assert (one.answer is None) == (first.answer is None), "asked twice, answered once"
        assert not [*charged(one.log)], "asked twice, charged twice"
        if one.answer is not None and first.answer is not None:
            assert "stored" in one.reply, "asked twice, drawn twice"
            assert one.answer.table.equals(first.answer.table), "asked twice, not the same answer"


class Noon:
    """A clock that stands: both are asked at the same time."""

    @staticmethod
    def now(zone: Any) -> datetime:
        return datetime(2024, 3, 15, 12, tzinfo=zone)


@pytest.fixture(autouse=True)
def _equal_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The salt, which is drawn for each statement, and the time are the same for both; ledgers do not wait for the disk."""
    lowered, connected = session.lower, sqlite._connect

    def quick(path: Path) -> Any:
        connection = connected(path)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(session, "lower", lambda release, _: lowered(release, SALT))
    monkeypatch.setattr(session, "datetime", Noon)
    monkeypatch.setattr(sqlite, "_connect", quick)


def run(seed: int, folder: Path) -> Counter[str]:
    """How a data set's questions ended."""
    made = world(seed)
    views(made)
    others = [made.removed[seed % 2], made.replaced[seed % 2], FUZZED]
    ended: Counter[str] = Counter()
    name = others[seed % 3]
    schema = loaded(ordinary(made.whole, 2 if seed % 3 == 0 else 16))
    doors = [Door(made, schema, catalogue, folder / catalogue) for catalogue in (MAIN, name)]
    with closing(doors[0]) as one, closing(doors[1]) as other:
        here, there = Listener(one), Listener(other)
        for i in range(EACH):
            question = Question(made, f"{seed}/{i}")
            ended[_told(f"data set {seed}, question {i}, {name}", here, there, question)] += 1
    made.con.close()
    return ended


def _told(where: str, here: Listener, there: Listener, question: Question) -> str:
    try:
        return same(here, there, question)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}\n{question.text}\n{question.call}") from error


@pytest.mark.parametrize("start", [start if start < WORLDS // 8 else pytest.param(start, marks=pytest.mark.audit) for start in range(0, WORLDS, 3)])
def test_nothing_but_released_values_depends_on_the_data(start: int, tmp_path: Path) -> None:
    ended = sum((run(seed, _folder(tmp_path, seed)) for seed in range(start, start + 3)), Counter[str]())
    assert WORLDS * EACH == CASES
    assert CASES + REAL >= 2_000
    assert ended.total() == 3 * EACH == CASES // (WORLDS // 3)
    assert ended["answered"] >= 0.2 * ended.total(), ended
    assert len(ended) >= 25, ended  # codes of refusal
    assert ended["OVER_BUDGET"] >= 6, ended


@pytest.mark.parametrize("seed", range(3))
def test_choices_of_a_group_depend_on_the_data_by_what_is_chosen_alone(seed: int, tmp_path: Path) -> None:
    made = world(seed)
    views(made)
    schema, name = loaded(ordinary(made.whole, 16)), [made.removed[0], made.replaced[0], FUZZED][seed]
    with closing(Door(made, schema, MAIN, tmp_path / MAIN)) as one, closing(Door(made, schema, name, tmp_path / name)) as other:
        here, there = Listener(one), Listener(other)
        ended = Counter(_told(name, here, there, Choice(text)) for text, _ in led(made, Random(f"choice {seed}")))
    made.con.close()
    assert ended["answered"] >= 2, ended


@pytest.mark.audit
def test_the_questions_have_every_node() -> None:
    """Every node, part, cell and source of keys that a plan can have; choices of groups, and lists of released values, have tests of their own."""
    missing = bounded_nodes()
    for seed in range(WORLDS):
        made = world(seed)
        views(made)
        for i in range(EACH):
            question = Question(made, f"{seed}/{i}")
            if question.right and missing:
                with suppress(Refused):
                    missing -= {*nodes.shown(prepared(made, Inside(made), question.statement.dp, SALT).release, LEAVES)}
        made.con.close()
        if not missing:
            return
    raise AssertionError(f"no question has {sorted(missing)}")


def _folder(tmp_path: Path, seed: int) -> Path:
    folder = tmp_path / str(seed)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("seed", range(100, 100 + FILES))
def test_nothing_depends_on_the_data_through_files_and_workers(seed: int, tmp_path: Path) -> None:
    made = world(seed)
    views(made)
    names = [MAIN, [made.removed[0], made.replaced[0], FUZZED][seed % 3]]
    schemas = [files(made, name, tmp_path / name) for name in names]
    for schema in schemas:
        create_ledger(schema)
    ended: Counter[str] = Counter()
    with closing(open_session(schemas[0])) as one, closing(open_session(schemas[1])) as other:
        here, there = Listener(one), Listener(other)
        for i in range(REAL // FILES):
            question = Question(made, f"{seed}/{i}")
            ended[_told(f"data set {seed}, question {i}, {names[1]}", here, there, question)] += 1
    made.con.close()
    assert ended.total() == REAL // FILES
    assert ended["answered"] >= 3, ended
    assert len(ended) >= 5, ended


# ---- the check can fail --------------------------------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def _leaking(room: Any, name: str, change: Callable[[Any, int], Any]) -> Callable[[Patch], None]:
    """A function of the corridor whose result is changed by a number that only the data of its own session knows."""

    def leak(patch: Patch) -> None:
        known, prepare, real = [0], Inside.prepare, getattr(room, name)

        def prepared(self: Inside, publics: Any) -> None:
            tables = " + ".join(f"(SELECT count(*) FROM {self.catalogue}.main.{table.name})" for table in self.made.private())
            known[0] = int(self.con.execute(f"SELECT {tables}").fetchall()[0][0])
            prepare(self, publics)

        patch.setattr(Inside, "prepare", prepared)
        patch.setattr(room, name, lambda *given: change(real(*given), known[0]))

    return leak


def _refused(result: Any, number: int) -> Any:
    if number % 2:
        raise Refused("TOO_FEW", "too few rows")
    return result


def _drawn_again(patch: Patch) -> None:
    """Nothing is found in the store."""
    patch.setattr(recall, "again", lambda *_: None)


def _first(noisy: Noisy, groups: int) -> Noisy:
    """The first groups alone, each with all of its integers: of a quantile a group has several."""
    return replace(
        noisy,
        keys=noisy.keys[:groups],
        sums=tuple(part[: min(groups, len(noisy.keys)) * len(part) // max(1, len(noisy.keys))] for part in noisy.sums),
    )


LEAKS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "a refusal": (_leaking(session, "facts", _refused), "the replies differ"),
    "the plan": (_leaking(session, "settled", lambda release, n: replace(release, warnings=(str(n),))), "the replies differ"),
    "the statement": (_leaking(session, "lower", lambda low, n: replace(low, text=f"{low.text} -- {n}")), "the plans differ"),
    "the log": (_leaking(receipt, "record", lambda record, n: {**record, "rows": n}), "the logs differ"),
    "the public keys": (_leaking(session.noise, "add", lambda noisy, n: _first(noisy, n % 3)), "the public keys differ|=="),
    "the column types": (_leaking(session.answers, "type_names", lambda types, n: (*types, str(n))), "the replies differ"),
    "the account": (_drawn_again, "asked twice, charged twice|asked twice, answered once"),
    "the store": (_leaking(recall, "again", lambda found, n: None if n % 2 else found), "the replies differ|charged twice"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_depends_on_the_data_is_heard(name: str, monkeypatch: Patch, tmp_path: Path) -> None:
    leak, said = LEAKS[name]
    leak(monkeypatch)
    with pytest.raises(AssertionError, match=said):
        sum((run(seed, _folder(tmp_path, seed)) for seed in range(4)), Counter[str]())
