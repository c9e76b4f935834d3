"""Files that are damaged, altered, locked, full or gone: a clear Fault, and nothing charged."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from ledger_shop import Shop, laplace

from dpquery import ledger
from dpquery.errors import Fault, OverBudget
from dpquery.ledger import Ledger
from dpquery.schema.model import Schema

BOTH_STORES = (
    "test_alterations_are_found",
    "test_lines_that_changed_places_are_found",
    "test_a_long_log_is_read_from_its_last_balance_on",
    "test_the_end_of_a_long_log_is_read_when_opened",
    "test_lines_that_vanish_while_open",
    "test_threads_share_one_ledger",
)


def fault(work: Callable[[], object]) -> str:
    with pytest.raises(Fault) as caught:
        work()
    assert caught.value.exit_status == 5
    assert caught.value.__cause__ is None
    assert caught.value.instead
    return caught.value.code


def used(shop: Shop, charges: int = 5) -> Ledger:
    opened = shop.begin()
    for i in range(charges):
        opened.charge("default", laplace("0.1"), {"i": i})
    return opened


def test_a_charge_waits_for_the_disk(shop: Shop) -> None:
    """A reader keeps the log from being written back, which alone would synchronise with `synchronous = NORMAL`."""
    opened = shop.begin()
    reader = shop.connect()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    opened.charge("default", laplace("0.1"), {})
    again = shop.open(opened.schema)
    again.charge("default", laplace("0.1"), {})
    for one in (opened, again):
        writer = one._store._connected()  # type: ignore[attr-defined]
        settings = [writer.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "fullfsync", "wal_autocheckpoint")]
        assert settings == ["wal", 2, 1, 1], "2 is FULL"
    reader.close()


SYNCED = """
import os, pathlib, sys
from ledger_shop import Shop, laplace
shop = Shop(pathlib.Path(sys.argv[1]))
opened, reader = shop.begin(), shop.connect()
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM entries").fetchone()
os.write(1, b"begun")
for number in range(4):
    opened.charge("default", laplace("0.1"), {})
    os.write(1, b"charged")
"""


@pytest.mark.slow  # a process is traced; the cheap one stands above
@pytest.mark.skipif(shutil.which("strace") is None, reason="it counts what the system is asked for")
def test_each_charge_synchronises_before_it_returns(shop: Shop) -> None:
    trace = shop.folder / "trace"
    traced = ["strace", "-f", "-e", "trace=fsync,fdatasync,write", "-o", str(trace), sys.executable, "-c", SYNCED, str(shop.folder / "traced")]
    subprocess.run(traced, check=True, capture_output=True, cwd=Path(__file__).parent)
    between = trace.read_text().split('"begun"')[1].split('"charged"')[:4]
    assert ["sync(" in calls for calls in between] == [True] * 4


@pytest.mark.parametrize("content", [b"", b"not a ledger", b"\0" * 8192, b"SQLite format 3\0" + b"\0" * 5000])
def test_other_files_are_corrupt(shop: Shop, content: bytes) -> None:
    schema = shop.schema()
    shop.create(schema)
    shop.path.write_bytes(content)
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"
    assert shop.path.read_bytes() == content
    assert len(ledger.verify(shop.path)) == 1


def test_other_databases_are_corrupt(shop: Shop) -> None:
    schema = shop.schema()
    shop.create(schema)
    shop.path.unlink()
    with sqlite3.connect(shop.path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"


@pytest.mark.parametrize("keep", [0.1, 0.4, 0.6, 0.9])
def test_a_truncated_file_is_corrupt(shop: Shop, keep: float) -> None:
    schema = used(shop, 20).schema
    shop.close()
    content = shop.path.read_bytes()
    shop.path.write_bytes(content[: int(len(content) * keep)])
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"
    assert ledger.verify(shop.path)


def test_flipped_bytes_never_give_budget_back(shop: Shop) -> None:
    schema = used(shop, 20).schema
    spent = shop.open(schema).balance("default").spent
    shop.close()
    content, found = shop.path.read_bytes(), list[str]()
    for position in range(50, len(content), len(content) // 160):
        shop.path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        try:
            still = shop.open(schema).balance("default").spent
        except Fault as broken:
            found += [broken.code]
        else:
            assert still == spent
        shop.close()
    assert set(found) == {"LEDGER_CORRUPT"}
    assert len(found) > 10


ALTERATIONS = {
    "a sum": "UPDATE accounts SET epsilon = '0' WHERE key = 'analyst:default'",
    "the data set's sum": "UPDATE accounts SET epsilon = '0' WHERE key = 'dataset'",
    "a cap": "UPDATE accounts SET cap_epsilon = '80' WHERE key = 'analyst:default'",
    "a largest cap": "UPDATE accounts SET largest_epsilon = '1' WHERE key = 'analyst:default'",
    "delta_conv": "UPDATE accounts SET delta_conv = '0.1' WHERE key = 'analyst:default'",
    "a grant": "UPDATE accounts SET granted_epsilon = '1' WHERE key = 'analyst:default'",
    "a period": 'UPDATE accounts SET periods = \'{"days":1,"lapsed":false,"number":0,"reserved":{"delta":"0","epsilon":"0"},"since":0,'
    '"spent":{"delta":"0","epsilon":"0","rho":"0"}}\' WHERE key = \'analyst:default\'',
    "periods beyond reading": "UPDATE accounts SET periods = '{}' WHERE key = 'analyst:default'",
    "a sum beyond reading": "UPDATE accounts SET epsilon = 'nan' WHERE key = 'analyst:default'",
    "an account taken out": "DELETE FROM accounts WHERE key = 'dataset'",
    "an amount": 'UPDATE entries SET body = replace(body, \'"epsilon":"0.1"\', \'"epsilon":"0.01"\') WHERE event = \'charged\' AND seq % 2 = 0',
    "a record": "UPDATE entries SET body = replace(body, '\"i\":3', '\"i\":4') WHERE event = 'charged'",
    "a time": 'UPDATE entries SET body = replace(body, \'"time":"2\', \'"time":"3\') WHERE seq = 6',
    "a line taken out": "DELETE FROM entries WHERE seq = 6",
    "the last line taken out": "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)",
    "the first line taken out": "DELETE FROM entries WHERE seq = 1",
    "all lines taken out": "DELETE FROM entries",
    "a link": "UPDATE entries SET link = 'zz' WHERE seq = 5",
    "an event's column": "UPDATE entries SET event = 'refused' WHERE event = 'charged'",
    "terms": "UPDATE entries SET body = replace(body, 'add_remove', 'replace_one') WHERE seq = 1",
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_alterations_are_found(shop: Shop, what: str) -> None:
    schema = used(shop).schema
    shop.close()
    shop.edit(ALTERATIONS[what])
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"
    assert ledger.verify(shop.place)


def test_lines_that_changed_places_are_found(shop: Shop) -> None:
    schema = used(shop).schema
    shop.close()
    shop.edit(
        "UPDATE entries SET seq = 100 WHERE seq = 6",
        "UPDATE entries SET seq = 6 WHERE seq = 7",
        "UPDATE entries SET seq = 7 WHERE seq = 100",
    )
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"
    assert "line 6" in str(ledger.verify(shop.place)[0])


@pytest.mark.parametrize(
    "statement", ["DROP TRIGGER entries_stay", "CREATE TRIGGER t AFTER INSERT ON entries BEGIN UPDATE accounts SET epsilon = '0'; END"]
)
def test_changed_tables_are_found(shop: Shop, statement: str) -> None:
    schema = used(shop).schema
    shop.close()
    with sqlite3.connect(shop.path) as connection:
        connection.execute(statement)
    connection.close()
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"


@pytest.mark.parametrize("statement", ["UPDATE entries SET body = ''", "DELETE FROM entries", "DELETE FROM accounts"])
def test_the_log_only_grows(shop: Shop, statement: str) -> None:
    used(shop)
    with sqlite3.connect(shop.path) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()


def long(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Schema:
    """The schema of a ledger whose log holds two balances."""
    monkeypatch.setattr("dpquery.ledger.upkeep.BALANCE_EVERY", 10)
    schema = used(shop, 15).schema
    for _ in range(2):
        opened = shop.open(schema)
        for _ in range(12):
            opened.settle(opened.charge("default", laplace("0.1"), {}).id, "released")
        opened.settle(opened.charge("default", laplace("0.1"), {}).id, "timeout")
    assert [line.event for line in opened.entries()].count("balanced") == 2
    assert opened.verify() == ()
    shop.close()
    return schema


def test_a_long_log_is_read_from_its_last_balance_on(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = long(shop, monkeypatch)
    shop.edit("UPDATE entries SET body = replace(body, '0.1', '0.2') WHERE seq = 6")
    assert shop.open(schema).balance("default").entries == 41
    assert any("line 6 " in str(finding) for finding in ledger.verify(shop.place))


@pytest.mark.parametrize("event", ["balanced", "charged", "timeout"])
def test_the_end_of_a_long_log_is_read_when_opened(shop: Shop, monkeypatch: pytest.MonkeyPatch, event: str) -> None:
    schema = long(shop, monkeypatch)
    shop.edit(f"UPDATE entries SET body = replace(body, '1', '2') WHERE seq = (SELECT max(seq) FROM entries WHERE event = '{event}')")
    assert fault(lambda: shop.open(schema)) == "LEDGER_CORRUPT"
    assert ledger.verify(shop.place)


def test_another_process_holds_the_ledger(shop: Shop) -> None:
    schema = used(shop).schema
    opened = shop.open(schema, wait=0.1)
    other = sqlite3.connect(shop.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert fault(lambda: opened.charge("default", laplace("0.1"), {})) == "LEDGER_LOCKED"
    assert opened.balance("default").entries == 5
    assert shop.open(schema).balance("default").entries == 5
    other.execute("ROLLBACK")
    other.close()
    opened.charge("default", laplace("0.1"), {})
    assert opened.balance("default").entries == 6


def test_a_full_disk(shop: Shop) -> None:
    opened = used(shop)
    connection = opened._store._connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA max_page_count = 1")
    assert fault(lambda: opened.charge("default", laplace("0.1"), {"filling": "x" * 100_000})) == "LEDGER_FAILED"
    assert opened.balance("default").entries == 5
    connection.execute("PRAGMA max_page_count = 100000")
    opened.charge("default", laplace("0.1"), {})
    assert opened.verify() == ()


def test_a_file_that_cannot_be_written(shop: Shop) -> None:
    opened = used(shop)
    opened._store._connection.execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]
    assert fault(lambda: opened.charge("default", laplace("0.1"), {})) == "LEDGER_FAILED"
    assert shop.open(opened.schema).balance("default").entries == 5


def test_a_folder_in_its_place(shop: Shop) -> None:
    schema = shop.schema()
    shop.create(schema)
    shop.path.unlink()
    shop.path.mkdir()
    assert fault(lambda: shop.open(schema)) == "LEDGER_FAILED"


def test_a_ledger_taken_away_while_open(shop: Shop) -> None:
    opened = used(shop)
    shop.path.rename(shop.folder / "elsewhere")
    assert fault(lambda: opened.charge("default", laplace("0.1"), {})) == "LEDGER_MISSING"


def test_an_older_copy_put_in_its_place_while_open(shop: Shop) -> None:
    opened = used(shop)
    shutil.copy(shop.path, shop.folder / "copy")
    opened.charge("default", laplace("0.1"), {})
    (shop.folder / "copy").rename(shop.path)
    assert fault(lambda: opened.charge("default", laplace("0.1"), {})) == "LEDGER_CORRUPT"


def test_lines_that_vanish_while_open(shop: Shop) -> None:
    opened = used(shop)
    last = "seq = (SELECT max(seq) FROM entries)"
    shop.edit(f"DELETE FROM entries WHERE {last}", "UPDATE accounts SET epsilon = '0.4', entries = 4")
    assert fault(lambda: opened.charge("default", laplace("0.1"), {})) == "LEDGER_ROLLED_BACK"


def test_threads_share_one_ledger(shop: Shop) -> None:
    opened = shop.begin(budget=("1", "0"))
    granted: list[str] = []

    def work() -> None:
        for _ in range(2):
            with suppress(OverBudget):
                granted.append(opened.charge("default", laplace("0.1"), {}).id)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(granted)) == len(granted) == 10
    assert opened.balance("default").spent.epsilon == 1
    assert opened.verify() == ()


def test_a_closed_ledger_may_be_opened_again(shop: Shop) -> None:
    opened = used(shop)
    opened.close()
    opened.close()
    with shop.open(opened.schema) as again:
        assert again.balance("default").entries == 5
    assert sorted(p.name for p in shop.folder.iterdir()) == ["shop.duckdb", "shop.duckdb.ledger-id", "shop.ledger"]
