"""Ledgers that forgot, by an older file in their place or by a copy that was charged: the mark beside the data knows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_shop import Shop, laplace

from dpquery import ledger
from dpquery.errors import Error, Fault, Refused
from dpquery.ledger import Ledger, binding
from dpquery.ledger import mark as marks
from dpquery.ledger.mark import NONE, Mark

BOTH_STORES = True
FILES_ALONE = ("test_an_older_ledger_copied_over_the_open_one",)


def charge(opened: Ledger, epsilon: str = "0.1") -> str:
    return opened.charge("default", laplace(epsilon), {"statement": "SELECT"}).id


def code(work: Callable[[], object]) -> str:
    with pytest.raises(Error) as caught:
        work()
    return caught.value.code


def place(shop: Shop) -> Path:
    return binding.places(shop.schema())[0]


def copied(opened: Ledger, shop: Shop) -> Path:
    opened.backup(shop.folder / "copy.ledger")
    return shop.folder / "copy.ledger"


@pytest.mark.parametrize("lines", [1, 40])
def test_an_older_ledger_copied_over_the_open_one(shop: Shop, lines: int) -> None:
    """The same file, by inode, with the content of a backup: what SQLite holds of it in memory must not hide that."""
    opened = shop.begin()
    charge(opened)
    copy = copied(opened, shop)
    for _ in range(lines):
        charge(opened)
    inode = shop.path.stat().st_ino
    shutil.copyfile(copy, shop.path)
    assert shop.path.stat().st_ino == inode
    for _ in range(2):
        assert code(lambda: charge(opened)) == "LEDGER_ROLLED_BACK"
        assert code(lambda: opened.balance("default")) == "LEDGER_ROLLED_BACK"
        assert code(lambda: shop.open(opened.schema)) == "LEDGER_ROLLED_BACK"
    assert "forgot" in str(ledger.verify(shop.path, schema=opened.schema)[-1])


def test_a_restored_ledger_is_refused_until_its_owner_says_so(shop: Shop) -> None:
    opened = shop.begin()
    copy = copied(opened, shop)
    charge(opened, "1")
    seq, link = opened.checkpoint().split("\n")[1], next(line for line in reversed([*opened.export()]))
    with pytest.raises(Fault) as forgot:
        ledger.open(copy, opened.schema)
    assert forgot.value.code == "LEDGER_ROLLED_BACK"
    assert f"entry {seq}" in forgot.value.message
    assert "dpquery ledger restored" in (forgot.value.instead or "")
    for reason in ("", " ", "x" * 1001, "a\nb"):
        assert code(lambda reason=reason: ledger.open(copy, opened.schema, restored=reason)) == "BAD_REASON"  # type: ignore[misc]
    with shop.take(ledger.open(copy, opened.schema, restored="a broken disk")) as again:
        (said,) = [line.body for line in again.entries() if line.event == "restored"]
        assert (said["reason"], said["line"]) == ("a broken disk", int(seq))
        assert said["link"] in link
        charge(again)
        assert again.verify() == ()
    assert code(lambda: charge(opened)) == "LEDGER_ROLLED_BACK", "the one that was given up is no more to be charged"
    shop.take(ledger.open(copy, opened.schema))


def test_a_ledger_that_forgot_nothing_is_not_restored(shop: Shop) -> None:
    opened = shop.begin()
    with pytest.raises(Refused) as caught:
        ledger.open(shop.place, opened.schema, restored="no need")
    assert caught.value.code == "NOTHING_FORGOTTEN"


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_copies_one_goes_on(shop: Shop, first: int) -> None:
    """Both are open: whichever is charged first is the ledger from then on, and the other is told so before its next charge."""
    opened = shop.begin()
    both = [opened, shop.take(ledger.open(copied(opened, shop), opened.schema))]
    for _ in range(2):
        charge(both[first])
    assert code(lambda: charge(both[1 - first])) == "LEDGER_ROLLED_BACK"
    charge(both[first])
    assert both[first].balance("default").entries == 3
    assert "forgot" in str(both[1 - first].verify()[-1])
    assert both[first].verify() == ()


def test_the_mark_names_the_last_line(shop: Shop) -> None:
    opened = shop.begin()
    for _ in range(3):
        charge(opened)
        seq = opened.checkpoint().split("\n")[1]
        assert re.fullmatch(rf"dpquery ledger [0-9a-f]{{32}}\nhead {int(seq):016d} [0-9a-f]{{64}}\n", place(shop).read_text())


def test_a_mark_without_a_head_gets_one(shop: Shop) -> None:
    """As its owner writes it anew, who lost it."""
    opened = shop.begin()
    whole = place(shop).read_text()
    for unmarked in (whole.splitlines(keepends=True)[0], re.sub("head .*", "head 0000000000000000 " + "00" * 32, whole)):
        place(shop).write_text(unmarked)
        shop.open(opened.schema)
        assert place(shop).read_text() == whole
    assert sorted(file.name for file in shop.folder.glob("*.ledger-id*")) == [place(shop).name]


def test_two_processes_that_find_no_head_write_one(shop: Shop) -> None:
    """Each looks before the other writes; two heads would make the file one of no ledger."""
    opened = shop.begin()
    whole = place(shop).read_text()
    bare = whole.splitlines(keepends=True)[0]
    place(shop).write_text(bare)
    for head in ((1, "ab" * 32), (2, "cd" * 32)):
        marks._renewed(place(shop), head)
        assert place(shop).read_text() == bare + marks.written(head)
    place(shop).write_text(whole)
    assert shop.open(opened.schema).verify() == ()


def test_a_slower_process_leaves_the_mark_of_a_quicker_one(tmp_path: Path) -> None:
    """Held up between its commit and the mark, it would name an older line, and a backup of in between would go unnoticed."""
    file = tmp_path / "x"
    file.write_text("dpquery ledger 00\n" + marks.written((7, "ab" * 32)))
    slow = Mark([file])
    for head, back, left in (((9, "cd" * 32), False, 9), ((8, "ef" * 32), False, 9), ((3, "ef" * 32), True, 3), ((4, "ab" * 32), False, 4)):
        slow.move(head, back)
        assert Mark([file]).head()[0] == left


def test_a_mark_that_lags_or_cannot_be_written_holds(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power failure, or in a folder that is read-only by now; then an older ledger is found as far as the mark goes."""
    opened = shop.begin()
    old = place(shop).read_text()
    charge(opened)
    place(shop).write_text(old)
    charge(opened)

    def fails(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(marks.os, "write", fails)
        charge(opened)
        with shop.open(opened.schema) as again:
            charge(again)
    assert opened.verify() == ()


def test_a_mark_read_while_it_is_written(tmp_path: Path) -> None:
    """Half of the old head and half of the new one, also of the next two, where many write: it is read again."""
    mark, file = Mark([tmp_path / "x"]), tmp_path / "x"
    file.write_text("dpquery ledger 00\n" + marks.written((7, "ab" * 32)))
    assert mark.head() == (7, "ab" * 32)
    heads = [(7, "ab" * 31 + "cd"), (8, "cd" * 31 + "ef"), (9, "ef" * 32)]
    mark.head = lambda: heads.pop(0)  # type: ignore[method-assign]
    assert mark.lost(lambda head: head == (9, "ef" * 32)) is None
    assert Mark([]).head() == Mark([tmp_path / "absent"]).head() == NONE
    Mark([]).move((1, "ab" * 32))
