"""`dpquery ledger ...` for its owner and for an auditor: heads, keys, proofs, and what is found against them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from dpquery.engine.papers import verify_receipt
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
    assert (plain.status, "the mark beside the data saw entry" in " ".join(plain.out.split())) == (Fault.exit_status, True)
    told = command("ledger", "verify", "--schema", fresh, "--checkpoint", head, "--format", "json")
    assert told.status == Fault.exit_status
    assert any("the log was cut off" in one for one in told.json["findings"])


def test_a_restored_ledger_is_used_again_on_its_owners_word(command: Command, fresh: Path, tmp_path: Path) -> None:
    ledger, copy = fresh.with_name("shop.ledger"), tmp_path / "copy"
    command("ledger", "backup", "--schema", fresh, "--out", copy)
    told = command("ledger", "restored", "--schema", fresh, "--reason", "no need")
    assert (told.status, "NOTHING_FORGOTTEN" in told.err) == (Refused.exit_status, True)
    command("query", COUNT, "--schema", fresh, "--epsilon", "0.25")
    copy.replace(ledger)
    told = command("query", COUNT, "--schema", fresh, "--epsilon", "0.25")
    assert (told.status, "LEDGER_ROLLED_BACK" in told.err, "ledger restored" in told.err) == (Fault.exit_status, True, True)
    assert command("ledger", "restored", "--schema", fresh, "--reason", "a broken disk").status == 0
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "0.25").status == 0
    assert '"reason":"a broken disk"' in command("ledger", "export", "--schema", fresh).out
    assert command("ledger", "verify", "--schema", fresh).status == 0


def test_a_proof_holds_for_the_commitment_on_the_receipt(command: Command, fresh: Path) -> None:
    receipt = command("query", COUNT, "--schema", fresh, "--epsilon", "0.25", "--format", "json").json["receipt"]
    key = read_key(command("ledger", "key", "--schema", fresh).out)
    proof = command("ledger", "prove", receipt["entry"], "--schema", fresh).json
    assert not [*proved(proof, receipt["commitment"], key)]
    assert [*proved(proof, sha256(b"another").hexdigest(), key)]
    told = command("ledger", "prove", "0" * 32, "--schema", fresh)
    assert (told.status, "UNKNOWN_ENTRY" in told.err) == (Refused.exit_status, True)


@pytest.fixture
def answer(command: Command, fresh: Path, tmp_path: Path) -> Path:
    file = tmp_path / "answer.json"
    sql = "SELECT country, count(*) AS n, avg(amount) AS mean FROM users JOIN orders USING (user_id) GROUP BY country"
    assert command("query", sql, "--schema", fresh, "--epsilon", "0.25", "--out", file).status == 0
    return file


def changed(file: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The answer with another receipt."""
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content["receipt"])
    other = file.with_name("changed.json")
    other.write_text(json.dumps(content), encoding="utf-8")
    return other


def test_a_receipt_is_checked_without_the_data(command: Command, fresh: Path, answer: Path, tmp_path: Path) -> None:
    entry = json.loads(answer.read_text(encoding="utf-8"))["receipt"]["entry"]
    proof, key = tmp_path / "proof.json", command("ledger", "key", "--schema", fresh).out.strip()
    proof.write_text(command("ledger", "prove", entry, "--schema", fresh).out, encoding="utf-8")
    fresh.with_name("shop.duckdb").rename(tmp_path / "gone")
    for words, says in (
        (("--schema", fresh, "--proof", proof), "there is no receipt"),
        (("--receipt", answer, "--checkpoint", proof), "--checkpoint"),
    ):
        refused = command("ledger", "verify", *words)
        assert (refused.status, says in refused.err) == (2, True)
    told = command("ledger", "verify", "--receipt", answer, "--proof", proof, "--key", key)
    said = " ".join(told.out.split())
    assert (told.status, said.startswith("The receipt holds: the price of its noises under its bounds, its proof. Not checked: ")) == (0, True)
    other = changed(answer, edited("entry", "0" * 32))
    assert "the proof is of another entry" in command("ledger", "verify", "--receipt", other, "--proof", proof, "--key", key).out
    assert {"entry,", "analyst,", "time,", "spent,", "left,", "price.asked,", "rows,"} <= set(said.split())


def test_an_exported_log_and_a_proof_are_checked_without_dpquery(command: Command, fresh: Path, answer: Path, tmp_path: Path) -> None:
    """By a script that knows hashlib alone; -S and -I leave it no other package."""
    script = Path(__file__).parents[2] / "docs/examples/check_log.py"
    entry = json.loads(answer.read_text(encoding="utf-8"))["receipt"]["entry"]
    log, proof = tmp_path / "log.jsonl", tmp_path / "proof.json"
    proof.write_text(command("ledger", "prove", entry, "--schema", fresh).out, encoding="utf-8")
    command("query", COUNT, "--schema", fresh, "--epsilon", "0.25")
    log.write_text(command("ledger", "export", "--schema", fresh).out, encoding="utf-8")

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-S", "-I", script, log, proof], capture_output=True, text=True, timeout=60)

    done = run()
    assert (done.returncode, f"entry {entry} is in it" in done.stdout) == (0, True), done.stderr
    root = command("ledger", "checkpoint", "--schema", fresh).out.split("\n")[2]
    assert f"root {root}" in done.stdout
    whole, shown = log.read_text(encoding="utf-8"), json.loads(proof.read_text(encoding="utf-8"))
    for wrong in (whole.replace('"epsilon":"0.25"', '"epsilon":"0.2"', 1), whole.split("\n", 1)[1]):
        log.write_text(wrong, encoding="utf-8")
        assert "does not follow" in run().stderr
    log.write_text(whole, encoding="utf-8")
    proof.write_text(json.dumps({**shown, "index": shown["index"] - 1}), encoding="utf-8")
    assert "does not lead to the root" in run().stderr
    proof.write_text(json.dumps({**shown, "entry": "0" * 32}), encoding="utf-8")
    assert "the proof is of another entry" in run().stderr


def test_a_receipt_is_held_against_its_entry(command: Command, fresh: Path, answer: Path) -> None:
    told = command("ledger", "verify", "--schema", fresh, "--receipt", answer)
    assert (told.status, "its entry in the ledger" in " ".join(told.out.split())) == (0, True)
    told = command("ledger", "verify", "--schema", fresh, "--receipt", answer, "--format", "json")
    whole = json.loads(answer.read_text(encoding="utf-8"))
    assert told.json["not_checked"] == [name for name in whole if name != "receipt"], "each once"
    assert "warnings" not in whole["receipt"]
    assert "rows" in told.json["not_checked"]


def _cheaper(receipt: dict[str, Any]) -> None:
    receipt["price"]["charged_epsilon"] = "0.2"


def _louder(receipt: dict[str, Any]) -> None:
    receipt["basis"][0]["noises"][0]["parameter"] = "1000000"


def _wider(receipt: dict[str, Any]) -> None:
    receipt["basis"][0]["bounding"]["groups"] += 1


def _odd(receipt: dict[str, Any]) -> None:
    receipt["basis"] = [{"bounding": {"rows": True}}]


@pytest.mark.parametrize("change", [_cheaper, _louder, _wider, _odd])
def test_a_receipt_whose_price_is_not_its_noises(command: Command, answer: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told = command("ledger", "verify", "--receipt", changed(answer, change))
    assert (told.status, "does not hold" in told.out) == (Fault.exit_status, True)


EDITS: dict[str, object] = {
    "entry": "00" * 16,
    "commitment": "00" * 32,
    "dataset": "another",
    "analyst": "alice",
    "data_version": 2,
    "time": "2024-01-01T00:00:00.000000Z",
    "plan": "x",
    "parameters": {"1": "2"},
    "adjacency": "replace_one",
    "releases": [],
    "basis": [],
    "keys": {},
    "public_tables": ["t"],
    "stored": {"time": "2024-01-01T00:00:00.000000Z", "charged": False},
    "lemmas": [],
    "software": "dpquery 0",
    "unsafe_testing": True,
    "spent": {"epsilon": "0", "rho": "0", "delta": "0"},
    "left": {"epsilon": "9", "rho": "9", "delta": "0"},
    "period": {"days": 1},
    "price.epsilon": "0.125",
    "price.delta": "0.5",
    "price.rho": "1",
    "price.charged_epsilon": "0.125",
    "price.charged_delta": "0.5",
    "price.asked": "0.125",
    "price.asked_in": "rho",
}


def edited(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(receipt: dict[str, Any]) -> None:
        first, _, rest = name.partition(".")
        if rest:
            receipt[first][rest] = value
        else:
            receipt[first] = value

    return change


def test_a_receipt_that_is_not_its_entry(fresh: Path, answer: Path) -> None:
    """Every field of a receipt but its warnings is held against the log."""
    receipt = json.loads(answer.read_text(encoding="utf-8"))["receipt"]
    assert {*receipt} - {"price", "warnings"} <= {*EDITS}
    assert {f"price.{name}" for name in receipt["price"]} <= {*EDITS}
    assert verify_receipt(answer, schema=fresh).findings == ()
    unnoticed = [name for name, value in EDITS.items() if not verify_receipt(changed(answer, edited(name, value)), schema=fresh).findings]
    assert unnoticed == []


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_guarantee_that_the_noises_do_not_keep(command: Command, fresh: Path, tmp_path: Path, noise: str) -> None:
    """Known without the ledger, too: what the noises under the bounds keep is derived; of Gaussian noise, at whatever delta the receipt says."""
    file = tmp_path / "answer.json"
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "0.25", "--noise", noise, "--out", file).status == 0
    assert verify_receipt(file).findings == ()
    assert [name for name in verify_receipt(file).unchecked if name.startswith("price.e")] == (["price.epsilon"] if noise == "gaussian" else [])
    for name, value in (("price.epsilon", "0.125"), ("price.epsilon", "x")):
        assert verify_receipt(changed(file, edited(name, value))).findings


def test_a_receipt_holds_after_others_of_its_account(command: Command, fresh: Path, answer: Path, tmp_path: Path) -> None:
    """What was spent and left is that of the moment of the answer, which the log still knows."""
    later = tmp_path / "later.json"
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "0.5", "--out", later).status == 0
    again = tmp_path / "again.json"
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "0.25", "--out", again).status == 0
    assert json.loads(again.read_text(encoding="utf-8"))["receipt"]["stored"]["charged"] is False
    assert [verify_receipt(one, schema=fresh).findings for one in (answer, later, again)] == [(), (), ()]
    unchecked = verify_receipt(again, schema=fresh).unchecked
    assert {"plan", "price.asked", "warnings"} <= {*unchecked}
    assert len(unchecked) == len({*unchecked}), "each once, though warnings stand on the receipt and beside it"
    for name, value in (("listed", 7), ("bounding", {"groups": 5, "idle": None}), ("keyed", None)):
        assert verify_receipt(changed(again, lambda receipt, n=name, v=value: receipt["basis"][0].update({n: v})), schema=fresh).findings
    spent = json.loads(answer.read_text(encoding="utf-8"))["receipt"]["spent"]
    assert verify_receipt(changed(later, edited("spent", spent)), schema=fresh).findings


def test_another_wording_of_a_stored_answer_holds(command: Command, fresh: Path, tmp_path: Path) -> None:
    """Its parts stand in another order than those of the entry, which are the same."""
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    asked = "SELECT {} FROM orders"
    for items, file in (("count(*), sum(amount), avg(amount)", first), ("avg(amount), sum(amount), count(*)", again)):
        assert command("query", asked.format(items), "--schema", fresh, "--epsilon", "0.5", "--out", file).status == 0
    one, other = (json.loads(file.read_text(encoding="utf-8"))["receipt"] for file in (first, again))
    assert other["stored"]["charged"] is False
    assert one["basis"] != other["basis"]
    assert verify_receipt(again, schema=fresh).findings == ()


def test_what_is_no_receipt(command: Command, fresh: Path, tmp_path: Path) -> None:
    for text in ("{}", "[]", "x", '{"receipt": 5}', "[" * 100_000):
        file = tmp_path / "none.json"
        file.write_text(text, encoding="utf-8")
        told = command("ledger", "verify", "--receipt", file)
        assert (told.status, "NO_RECEIPT" in told.err) == (Refused.exit_status, True)
    assert command("ledger", "verify").status == Refused.exit_status
    assert command("ledger", "verify", "--receipt", tmp_path / "gone").status == SchemaError.exit_status


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
