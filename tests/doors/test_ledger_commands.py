"""`dpquery ledger ...` for its owner and for an auditor: heads, keys, proofs, and what is found against them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from command_line import Command

from dpquery.errors import Fault, Refused, SchemaError
from dpquery.ledger import proved, read_key

COUNT = "SELECT count(*) AS n FROM orders"


@pytest.fixture
def fresh(shop: Callable[[Path], Path], tmp_path: Path) -> Path:
    return shop(tmp_path / "demo")


def test_an_older_copy_is_found_against_a_checkpoint(command: Command, fresh: Path, tmp_path: Path) -> None:
    ledger, copy, head = fresh.with_name("shop.ledger"), tmp_path / "copy", tmp_path / "head.txt"
    shutil.copy(ledger, copy)
    command("query", COUNT, "--schema", fresh, "--epsilon", "0.25")
    head.write_text(command("ledger", "checkpoint", "--schema", fresh).out, encoding="utf-8")
    key = command("ledger", "key", "--schema", fresh).out.strip()
    for words in ((), ("--key", key)):
        told = command("ledger", "verify", "--schema", fresh, "--checkpoint", head, *words)
        assert (told.status, "all that the checkpoint stands for" in " ".join(told.out.split())) == (0, True)
    shutil.copy(copy, ledger)
    plain = command("ledger", "verify", "--schema", fresh)
    assert (plain.status, "only against a checkpoint" in " ".join(plain.out.split())) == (0, True)
    told = command("ledger", "verify", "--schema", fresh, "--checkpoint", head, "--format", "json")
    assert told.status == Fault.exit_status
    assert "the log was cut off" in told.json["findings"][0]


def test_a_proof_holds_for_the_commitment_on_the_receipt(command: Command, fresh: Path) -> None:
    receipt = command("query", COUNT, "--schema", fresh, "--epsilon", "0.25", "--format", "json").json["receipt"]
    key = read_key(command("ledger", "key", "--schema", fresh).out)
    proof = command("ledger", "prove", receipt["entry"], "--schema", fresh).json
    assert not [*proved(proof, receipt["commitment"], key)]
    assert [*proved(proof, sha256(b"another").hexdigest(), key)]
    told = command("ledger", "prove", "0" * 32, "--schema", fresh)
    assert (told.status, "UNKNOWN_ENTRY" in told.err) == (Refused.exit_status, True)


def test_backup_prints_the_head_of_what_it_copied(command: Command, fresh: Path, tmp_path: Path) -> None:
    copy, head = tmp_path / "copy.ledger", tmp_path / "head"
    head.write_text(command("ledger", "backup", "--schema", fresh, "--out", copy).out, encoding="utf-8")
    assert command("ledger", "verify", "--schema", fresh, "--ledger", copy, "--checkpoint", head).status == 0
    again = command("ledger", "backup", "--schema", fresh, "--out", copy)
    assert (again.status, "FILE_EXISTS" in again.err) == (Refused.exit_status, True)


def test_wrong_files_and_keys(command: Command, fresh: Path, tmp_path: Path) -> None:
    missing = command("ledger", "verify", "--schema", fresh, "--checkpoint", tmp_path / "none")
    assert (missing.status, "FILE_UNREADABLE" in missing.err) == (SchemaError.exit_status, True)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    assert command("ledger", "verify", "--schema", fresh, "--checkpoint", binary).status == SchemaError.exit_status
    head = tmp_path / "head"
    head.write_text("no checkpoint", encoding="utf-8")
    assert command("ledger", "verify", "--schema", fresh, "--checkpoint", head).status == Fault.exit_status
    told = command("ledger", "verify", "--schema", fresh, "--checkpoint", head, "--key", "a+b+c")
    assert (told.status, "USAGE" in told.err) == (Refused.exit_status, True)


def test_the_log_can_be_checked_with_a_hash_function_alone(command: Command, fresh: Path) -> None:
    command("query", COUNT, "--schema", fresh, "--epsilon", "0.25")
    link = bytes(32)
    for line in map(json.loads, command("ledger", "export", "--schema", fresh).out.splitlines()):
        body = json.dumps(line["body"], sort_keys=True, separators=(",", ":")).encode()
        assert sha256(body).hexdigest() == line["commitment"]
        link = sha256(link + sha256(body).digest()).digest()
        assert link.hex() == line["link"]
