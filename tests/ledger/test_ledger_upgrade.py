"""A ledger that an older dpquery made goes on: a real file of format 1, upgraded where it is first opened."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest
from ledger_shop import Shop, laplace

from dpquery import ledger
from dpquery.errors import Fault
from dpquery.ledger import Ledger, formats
from dpquery.ledger import sqlite as sqlite_store

FORMAT_1 = Path(__file__).with_name("format1.ledger.gz")  # 20 lines, a balance among them; a group, a time-out, two refusals, a lowered cap
BOUND = "dpquery ledger 2f26bb8bbaab6b3479305db3b3c0cec8\n"
CAPS = {"default": ("1", "0"), "alice": ("1.5", "2e-7"), "bob": ("2", "3e-7")}
TEAM = {"team": (("4", "5e-7"), ("alice", "bob"))}


def old(shop: Shop) -> None:
    shop.path.write_bytes(gzip.decompress(FORMAT_1.read_bytes()))
    shop.data.with_name("shop.duckdb.ledger-id").write_text(BOUND)


def opened(shop: Shop) -> Ledger:
    return shop.open(shop.schema(analysts=CAPS, groups=TEAM))


def version(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.close()
    return found


def test_a_ledger_of_format_1_goes_on(shop: Shop) -> None:
    old(shop)
    assert version(shop.path) == 1
    before = opened(shop)
    assert version(shop.path) == 2
    assert [line.event for line in before.entries()][16:] == ["balanced", "charged", "charged", "failed", "upgraded"]
    spent = {b.account: (str(b.spent.epsilon), b.entries, b.timeouts, str(b.cap.epsilon), str(b.guarantee.epsilon)) for b in before.balances()}
    assert spent == {
        "dataset": ("None", 4, 0, "8", "8"),
        "alice": ("0.5", 2, 0, "1.5", "2"),
        "bob": ("None", 1, 1, "2", "2"),
        "default": ("0.25", 1, 0, "1", "1"),
        "team": ("None", 3, 0, "4", "4"),
    }
    assert before.verify() == ()
    before.charge("alice", laplace("0.1"), {})
    again = opened(shop)
    assert str(again.balance("alice").spent.epsilon) == "0.6"
    assert [line.event for line in again.entries()].count("upgraded") == 1
    assert again.verify() == ()


def test_verify_reads_a_ledger_of_format_1(shop: Shop) -> None:
    old(shop)
    assert ledger.verify(shop.path) == ()


def test_an_upgrade_that_fails_changes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    old(shop)
    held = shop.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(formats, "UPGRADED", "INSERT INTO nowhere VALUES (1)")
        with pytest.raises(Fault):
            opened(shop)
    assert version(shop.path) == 1
    with sqlite3.connect(shop.path) as one:
        assert [sql for (sql,) in one.execute("SELECT event FROM entries")].count("upgraded") == 0
    one.close()
    assert opened(shop).verify() == ()
    assert len(held) > 0


def test_of_two_processes_that_upgrade_one_does(shop: Shop) -> None:
    """Both found the old format; the one that comes second leaves what the first did."""
    old(shop)
    for connection in [sqlite_store._plain(shop.path) for _ in range(2)]:
        sqlite_store._upgrade(connection)
        connection.close()
    assert version(shop.path) == 2
    again = opened(shop)
    assert [line.event for line in again.entries()].count("upgraded") == 1
    assert again.verify() == ()


def test_a_ledger_of_format_1_with_other_tables_is_left_alone(shop: Shop) -> None:
    old(shop)
    with sqlite3.connect(shop.path) as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")
    connection.close()
    with pytest.raises(Fault) as caught:
        opened(shop)
    assert caught.value.code == "LEDGER_CORRUPT"
    assert version(shop.path) == 1


def test_an_edited_ledger_of_format_1_is_found_out_after_the_upgrade(shop: Shop) -> None:
    old(shop)
    with sqlite3.connect(shop.path) as connection:
        connection.execute("UPDATE accounts SET epsilon = '0' WHERE name = 'alice'")
    connection.close()
    assert "stored sums of account analyst:alice differ" in "; ".join(map(str, ledger.verify(shop.path)))
    with pytest.raises(Fault) as caught:
        opened(shop)
    assert caught.value.code == "LEDGER_CORRUPT"
