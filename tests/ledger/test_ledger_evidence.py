"""Checkpoints and proofs of a real ledger: what was edited, moved or cut off is found by whoever kept an old head."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from hashlib import sha256

import pytest
from ledger_shop import Shop, laplace

from dpquery import ledger
from dpquery.errors import Fault, Refused
from dpquery.ledger import Ledger, proved, read_key, tree

BOTH_STORES = True
FILES_ALONE = ("test_an_older_copy_is_found_by_its_checkpoint_alone",)


def asked(shop: Shop, times: int = 5) -> Ledger:
    opened = shop.begin()
    for _ in range(times):
        opened.settle(opened.charge("default", laplace("0.1"), {"statement": "SELECT"}).id, "released")
    return opened


def test_a_checkpoint_is_the_root_of_what_is_exported(shop: Shop) -> None:
    opened = asked(shop)
    lines = [json.loads(line) for line in opened.export()]
    leaves = [sha256(b"\0" + bytes.fromhex(line["commitment"])).digest() for line in lines]
    _, size, root, *_ = opened.checkpoint().split("\n")
    assert int(size) == len(lines)
    assert root == b64encode(tree.root(leaves)).decode()


def test_a_log_that_grew_still_holds_its_old_heads(shop: Shop) -> None:
    opened, heads = shop.begin(), []
    for _ in range(4):
        heads.append(opened.checkpoint())
        opened.charge("default", laplace("0.1"), {})
    key = read_key(opened.key().written())
    for head in heads:
        assert opened.verify(head) == ()
        assert ledger.verify(shop.place, checkpoint=head, key=key) == ()


def test_an_older_copy_is_found_by_its_checkpoint_alone(shop: Shop) -> None:
    """A restored backup is a ledger in good order: nothing inside it tells that charges are missing. The mark beside the data does."""
    opened = asked(shop)
    opened.close()
    copy = shop.folder / "backup"
    shutil.copy(shop.path, copy)
    again = shop.open(opened.schema)
    again.charge("default", laplace("1"), {})
    head = again.checkpoint()
    again.close()
    shutil.copy(copy, shop.path)
    assert ledger.verify(shop.place) == ()
    assert "the mark beside the data saw entry 16" in str(ledger.verify(shop.place, schema=opened.schema)[0])
    assert "the log was cut off" in str(ledger.verify(shop.place, checkpoint=head)[0])


def test_a_backup_is_a_ledger_and_what_it_forgot_is_found(shop: Shop) -> None:
    opened = asked(shop)
    copy = shop.folder / "backups" / "monday.ledger"
    copy.parent.mkdir()
    opened.backup(copy)
    opened.charge("default", laplace("1"), {})
    head, spent = opened.checkpoint(), opened.balance("default").spent
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in copy.parent.iterdir()] == ["monday.ledger"]
    opened.close()
    shop.remove()
    assert ledger.verify(copy) == ()
    assert "the checkpoint has 16 entries, the log 15" in str(ledger.verify(copy, checkpoint=head)[0])
    with pytest.raises(Fault) as forgot:
        ledger.open(copy, opened.schema)
    assert forgot.value.code == "LEDGER_ROLLED_BACK"
    restored = shop.take(ledger.open(copy, opened.schema, restored="the disk broke"))
    assert restored.verify() == ()
    assert restored.balance("default").spent != spent
    assert "not those that the checkpoint stands for" in str(restored.verify(head)[0])


def test_a_backup_replaces_nothing(shop: Shop) -> None:
    opened = asked(shop, 1)
    with pytest.raises(Refused, match="already"):
        opened.backup(shop.data)
    assert opened.verify() == ()


def test_a_backup_that_cannot_be_written_is_a_fault(shop: Shop) -> None:
    with pytest.raises(Fault, match="No such file"):
        asked(shop, 1).backup(shop.folder / "none" / "copy")


def test_a_log_written_anew_is_found_by_its_checkpoint(shop: Shop) -> None:
    """Whoever has the file can make chain and sums fit again; not the root that was kept elsewhere."""
    opened = asked(shop)
    head, key = opened.checkpoint(), opened.key()
    opened.close()
    shop.remove()
    for beside in shop.folder.glob("*.ledger-id"):
        beside.unlink()
    forged = asked(shop)
    assert forged.verify() == ()
    assert "no signature of this key" in str(forged.verify(head)[0])
    assert "not those that the checkpoint stands for" in str(forged.verify(head, key)[0])


def test_an_edited_line_is_found_with_and_without(shop: Shop) -> None:
    opened = asked(shop)
    head = opened.checkpoint()
    opened.close()
    shop.edit("UPDATE entries SET body = replace(body, '0.1', '0.01') WHERE event = 'charged'")
    assert ledger.verify(shop.place)
    found = [str(one) for one in ledger.verify(shop.place, checkpoint=head)]
    assert any("were changed" in one or "was changed" in one for one in found)


@pytest.mark.parametrize("note", ["", "x", "a\n1\nAAAA\n\n\u2014 a AAAA\n"])
def test_a_checkpoint_that_is_none_is_said_to_be_none(shop: Shop, note: str) -> None:
    (found,) = asked(shop, 1).verify(note)
    assert str(found).startswith("the checkpoint does not hold")


def test_a_proof_shows_one_entry_without_the_ledger(shop: Shop) -> None:
    opened = asked(shop)
    key = opened.key()
    for line in list(opened.entries()):
        shown = json.loads(json.dumps(opened.proof(line.id).as_dict()))
        assert shown["commitment"] == line.commitment
        assert not [*proved(shown, line.commitment, key)]
        assert [*proved(shown, "00" * 32, key)]
        assert [*proved({**shown, "commitment": "00" * 32}, "00" * 32, key)]
        assert [*proved({**shown, "index": shown["index"] + 1}, line.commitment, key)]
        assert [*proved({**shown, "hashes": shown["hashes"][1:]}, line.commitment, key)]


def test_a_proof_shows_nothing_of_what_others_asked(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("4", "0"), "bob": ("4", "0")})
    opened.charge("bob", laplace("0.25"), {"statement": "SELECT secret_plan"})
    entry = opened.charge("alice", laplace("0.1"), {}).id
    told = json.dumps(opened.proof(entry).as_dict())
    assert not any(word in told for word in ("bob", "secret_plan", "0.25"))


@pytest.mark.parametrize(
    "wrong", [{}, {"hashes": 1}, {"hashes": ["x"]}, {"index": "x"}, {"index": -1}, {"checkpoint": 5}, {"checkpoint": "x"}, {"commitment": None}]
)
def test_a_proof_that_is_none(shop: Shop, wrong: dict[str, object]) -> None:
    opened = asked(shop, 1)
    line = list(opened.entries())[-1]
    shown = opened.proof(line.id).as_dict()
    assert [*proved({} if not wrong else {**shown, **wrong}, line.commitment, opened.key())]


def test_an_entry_that_is_not_there(shop: Shop) -> None:
    with pytest.raises(Refused, match="no entry"):
        asked(shop, 1).proof("00")
