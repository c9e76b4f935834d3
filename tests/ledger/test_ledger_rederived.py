"""Everything that a ledger's tables hold is derived again from its log, and the log from what may follow what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ledger_shop import Clock, Shop, laplace

from dpquery import ledger
from dpquery.errors import Error
from dpquery.ledger import Kept, Ledger, audit, chain

BOTH_STORES = ("test_no_table_is_beyond_the_log",)
GROUPED = {"budget": ("4", "0"), "analysts": {"alice": ("2", "0"), "bob": ("1", "0")}, "groups": {"lab": (("3", "0"), ("alice", "bob"))}}
Body = dict[str, Any]


def used(shop: Shop) -> Ledger:
    """Two data versions, each found behind files of its own; a charge, and an answer that is stored."""
    opened = shop.begin(**GROUPED)
    opened.register("f2", ["second"])
    opened.settle(opened.charge("alice", laplace("0.5"), {"dataset": "shop", "data_version": 2}).id, "released", Kept("question", b"answer"))
    opened.charge("bob", laplace("0.5"), {"dataset": "shop", "data_version": 1})
    assert opened.verify() == ()
    return opened


KEY = "{bytes}"
ALTERED = {
    "another version": ("UPDATE seen SET line = (SELECT max(line) FROM seen)", "which data version"),
    "no version": ("DELETE FROM seen", "which data version"),
    "a version more": ("INSERT INTO seen SELECT 'x', min(line) FROM seen", "which data version"),
    "a group's sums": ("UPDATE accounts SET epsilon = '0.5' WHERE kind = 'group'", "account group:lab"),
    "a grant": ("UPDATE accounts SET granted_epsilon = '1' WHERE name = 'alice'", "account analyst:alice"),
    "a group left": ("UPDATE accounts SET member_of = NULL WHERE name = 'bob'", "account analyst:bob"),
    "a period": (
        'UPDATE accounts SET periods = \'{"days":1,"lapsed":false,"number":0,"reserved":{"delta":"0","epsilon":"0"},"since":0,"spent":'
        '{"delta":"0","epsilon":"0","rho":"0"}}\' WHERE name = \'bob\'',
        "account analyst:bob",
    ),
    "an answer shown": ("DELETE FROM shown", "the tables do not know it"),
    "the owner's key": (f"UPDATE secret SET value = {KEY}", "the owner's key is another one"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_no_table_is_beyond_the_log(shop: Shop, what: str) -> None:
    opened = used(shop)
    statement, said = ALTERED[what]
    shop.edit(statement.replace(KEY, f"'\\x{'01' * 32}'" if isinstance(shop.place, str) else f"x'{'01' * 32}'"))
    assert said in " ".join(map(str, ledger.verify(shop.place)))
    if what in ("a group's sums", "a grant", "a group left", "a period", "the owner's key"):
        with pytest.raises(Error) as caught:
            shop.open(opened.schema)
        assert caught.value.code == "LEDGER_CORRUPT"


def test_another_files_version_is_not_believed(shop: Shop) -> None:
    """An old version's number would show an old stored answer, and log what was not so."""
    opened = used(shop)
    assert opened.looked_at(["second"]) == 2
    shop.edit(
        "UPDATE seen SET line = (SELECT id FROM entries WHERE event = 'looked' AND seq = (SELECT min(seq) FROM entries WHERE event = 'looked'))"
    )
    with pytest.raises(Error) as caught:
        opened.version_of(["second"], lambda: "f1")
    assert caught.value.code == "LEDGER_CORRUPT"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE seen SET line = 'nowhere'",
        """UPDATE entries SET body = replace(body, '"version":2', '"version":1') WHERE event = 'looked'""",
    ],
)
def test_a_line_that_is_none_or_was_changed_says_nothing(shop: Shop, statement: str) -> None:
    """Also where it says of the files what was asked, and only the version is another."""
    opened = used(shop)
    assert opened.looked_at(["second"]) == 2
    shop.edit(statement)
    with pytest.raises(Error) as caught:
        opened.version_of(["second"], lambda: "f1")
    assert caught.value.code == "LEDGER_CORRUPT"


def test_files_are_looked_at_once(shop: Shop) -> None:
    """The log grows by a line for each state of the files, not for each question; found to be another version, by one more."""
    opened = used(shop)
    for _ in range(3):
        opened.remember(["second"], 2)
        assert opened.register("f2", ["second"]) == 2
    assert [line.event for line in opened.entries()].count("looked") == 2
    opened.remember(["second"], 1)
    assert opened.looked_at(["second"]) == 1
    assert opened.verify() == ()


def said(shop: Shop, change: Callable[[list[Body]], None]) -> str:
    """What is found in a log whose chain holds, after a change of what it says."""
    bodies = [json.loads(line)["body"] for line in _export(shop)]
    change(bodies)
    head, rows = (0, chain.START), []
    for body in bodies:
        rows.append(chain.row(head, body))
        head = (rows[-1].seq, rows[-1].link)
    found = [str(one) for one in audit.findings(rows, {}, audit.Reader())]
    return "; ".join(one for one in found if "stored sums" not in one)


def _export(shop: Shop) -> list[str]:
    (opened,) = shop._open
    return [*opened.export()]


def of(bodies: list[Body], event: str) -> Body:
    return next(body for body in bodies if body["event"] == event)


def nothing(_: list[Body]) -> None:
    pass


def unpaid(bodies: list[Body]) -> None:
    of(bodies, "charged")["accounts"].pop()


def ungrouped(bodies: list[Body]) -> None:
    of(bodies, "charged")["accounts"].pop(1)


def of_a_group(bodies: list[Body]) -> None:
    of(bodies, "charged")["accounts"].pop(0)


def unknown(bodies: list[Body]) -> None:
    of(bodies, "charged")["record"]["data_version"] = 3


def found_before(bodies: list[Body]) -> None:
    of(bodies, "looked")["version"] = 2


def large(bodies: list[Body]) -> None:
    next(body for body in bodies if body.get("name") == "bob")["epsilon"] = "1.5"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (nothing, ""),
        (unpaid, "charged to other accounts"),
        (ungrouped, "charged to other accounts"),
        (of_a_group, "charged to other accounts"),
        (unknown, "about a data version that was never admitted"),
        (found_before, "a data version is found that was never admitted"),
        (large, "the members of group lab"),
    ],
)
def test_what_cannot_follow_is_found(shop: Shop, change: Callable[[list[Body]], None], expected: str) -> None:
    used(shop)
    found = said(shop, change)
    assert expected in found
    assert bool(found) == bool(expected)


def test_a_period_that_begins_too_soon_is_found(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    opened = shop.begin(budget=("8", "0"), analysts={"alice": ("1", "0", 10)})
    clock.day = 10.5
    opened.charge("alice", laplace("1"), {})
    assert opened.verify() == ()

    def soon(bodies: list[Body]) -> None:
        of(bodies, "renewed")["time"] = "2024-01-05T00:00:00.000000Z"

    assert said(shop, nothing) == ""
    assert "a period begins before its time" in said(shop, soon)


def test_a_charge_goes_to_the_group_that_the_log_names(shop: Shop) -> None:
    """Also of a session that was opened before the schema made the analyst a member."""
    ungrouped = shop.begin(budget=("4", "0"), analysts={"alice": ("1", "0")})
    grouped = shop.open(shop.schema(budget=("4", "0"), analysts={"alice": ("1", "0")}, groups={"lab": (("1", "0"), ("alice",))}))
    ungrouped.charge("alice", laplace("0.5"), {})
    assert {one.account: str(one.spent.epsilon) for one in grouped.balances()} == {"dataset": "0.5", "alice": "0.5", "lab": "0.5"}
    assert grouped.verify() == ()
