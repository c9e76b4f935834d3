from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from fractions import Fraction

import pytest
from ledger_shop import Shop, gaussian, laplace

from dpquery.accounting.event import Price
from dpquery.errors import Fault, OverBudget, Refused
from dpquery.ledger import Ledger
from dpquery.ledger.model import Amounts

BOTH_STORES = True


def events(opened: Ledger) -> list[str]:
    return [line.event for line in opened.entries()]


def test_a_charge_is_an_entry(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("4", "1e-6")})
    entry = opened.charge("alice", Price(Fraction(1, 3), Fraction(1, 20), Fraction(1, 10**9)), {"statement": "SELECT 1", "confidence": 0.95})
    line = list(opened.entries())[-1]
    assert (line.id, line.commitment, line.time, line.event) == (entry.id, entry.commitment, entry.time, "charged")
    assert line.body["record"] == {"statement": "SELECT 1", "confidence": 0.95}
    assert line.body["analyst"] == "alice"
    epsilon = Decimal(line.body["epsilon"])
    assert Fraction(1, 3) <= Fraction(epsilon) < Fraction(1, 3) + Fraction(1, 10**30)
    assert (line.body["rho"], line.body["delta"]) == ("0.05", "0.000000001")
    assert entry.left == opened.balance("alice").left
    assert opened.balance("alice").entries == 1


def test_outcomes_are_further_entries_and_refund_nothing(shop: Shop) -> None:
    opened = shop.begin()
    entries = [opened.charge("default", laplace("1"), {}) for _ in range(4)]
    spent = opened.balance("default").spent
    for entry, outcome in zip(entries, ("released", "failed", "timeout", "interrupted"), strict=True):
        opened.settle(entry.id, outcome)  # type: ignore[arg-type]
    assert opened.balance("default").spent == spent
    assert events(opened)[-8:] == ["charged"] * 4 + ["released", "failed", "timeout", "interrupted"]
    assert opened.balance("default").timeouts == 2, "an interrupt counts as one"
    assert opened.verify() == ()


def test_a_charge_has_one_outcome(shop: Shop) -> None:
    opened = shop.begin()
    entry = opened.charge("default", laplace("1"), {})
    opened.settle(entry.id, "timeout")
    opened.settle(entry.id, "timeout")
    assert opened.balance("default").timeouts == 1
    with pytest.raises(Fault):
        opened.settle(entry.id, "released")
    with pytest.raises(Fault):
        opened.settle("0" * 32, "released")


def test_refused_and_unaffordable_questions_are_logged_at_no_cost(shop: Shop) -> None:
    opened = shop.begin(budget=("1", "0"))
    opened.refused("default", {"code": "UNKNOWN_TABLE", "statement": "SELECT"})
    with pytest.raises(OverBudget):
        opened.charge("default", laplace("2"), {"statement": "dear"})
    refused, dear = list(opened.entries())[-2:]
    assert (refused.event, refused.body["code"], refused.body["epsilon"]) == ("refused", "UNKNOWN_TABLE", "0")
    assert (dear.event, dear.body["code"], dear.body["rho"], dear.body["asked"]["epsilon"]) == ("refused", "OVER_BUDGET", "0", "2")
    assert dear.body["record"]["statement"] == "dear"
    assert opened.balance("default").entries == 0
    assert opened.balance("default").spent.epsilon == 0


@pytest.mark.parametrize(
    "price", [Price(Fraction(-1), Fraction(0), Fraction(0)), Price(None, Fraction(-1), Fraction(0)), Price(None, Fraction(1), Fraction(-1))]
)
def test_negative_prices_are_refused(shop: Shop, price: Price) -> None:
    opened = shop.begin()
    with pytest.raises(Refused):
        opened.charge("default", price, {})


@pytest.mark.parametrize("record", [{"x": float("nan")}, {"x": Decimal(1)}, {"x": {1, 2}}])
def test_records_are_json_or_nothing_is_charged(shop: Shop, record: dict[str, object]) -> None:
    opened = shop.begin()
    lines = events(opened)
    with pytest.raises((TypeError, ValueError)):
        opened.charge("default", laplace("1"), record)
    assert events(opened) == lines


def test_extreme_prices_and_odd_texts(shop: Shop) -> None:
    opened = shop.begin()
    opened.charge("default", laplace("1e-320"), {"statement": "\ud800 \x00 🎲"})
    with pytest.raises(OverBudget):
        opened.charge("default", Price(Fraction(10) ** 308, Fraction(10) ** 308, Fraction(0)), {})
    opened.charge('O\'Brien "x"; DROP TABLE entries', laplace("1"), {})
    assert Fraction(opened.balance("default").spent.epsilon or 0) == 1 + Fraction(1, 10**320)
    assert opened.verify() == ()


def test_time_outs_lock_an_account_until_it_is_unlocked(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("4", "0"), "bob": ("4", "0")})
    for _ in range(3):
        assert not opened.balance("alice").locked
        opened.settle(opened.charge("alice", laplace("0.1"), {}).id, "timeout")
    assert opened.balance("alice").locked
    with pytest.raises(OverBudget) as caught:
        opened.charge("alice", laplace("0.1"), {})
    assert caught.value.code == "ACCOUNT_LOCKED"
    assert not opened.room("alice").accepts(Amounts.of(laplace("0.1")))
    opened.charge("bob", laplace("0.1"), {})
    again = shop.open(opened.schema)
    assert again.balance("alice").locked
    assert again.unlock("alice") == "alice"
    opened.charge("alice", laplace("0.1"), {})
    assert (opened.balance("alice").timeouts, opened.balance("alice").locked) == (3, False)
    assert events(opened)[-2] == "unlocked"
    assert opened.verify() == ()


def test_an_analyst_sees_the_own_lines(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("4", "0"), "bob": ("4", "0")})
    opened.charge("alice", laplace("0.1"), {})
    opened.charge("bob", laplace("0.1"), {})
    assert [line.body["analyst"] for line in opened.entries("bob")] == ["bob"]


def test_an_analyst_sees_no_lines_of_the_shared_account(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("4", "0"), "default": ("4", "0")})
    for name in ("alice", "default", "unlisted", "other"):
        opened.charge(name, laplace("0.1"), {})
    for name in ("alice", "default", "unlisted"):
        assert [line.body["analyst"] for line in opened.entries(name)] == [name]


def test_balance_is_the_contract_of_the_doors(shop: Shop) -> None:
    opened = shop.begin(budget=("4", "1e-6"))
    opened.charge("default", gaussian("0.01"), {})
    said = opened.balance("default").as_dict()
    assert said["cap"] == {"epsilon": "4", "delta": "0.000001"}
    assert said["spent"] == {"epsilon": "infinite", "rho": "0.01", "delta": "0"}
    assert said["entries"] == 1
    assert {"rho", "epsilon", "delta", "holds"} == set(said["ladder"][0])
    json.dumps(said, allow_nan=False)


def test_export_can_be_checked_without_dpquery(shop: Shop) -> None:
    opened = shop.begin()
    opened.settle(opened.charge("default", laplace("0.1"), {"statement": "é"}).id, "released")
    opened.refused("default", {"code": "X"})
    link, seen = bytes(32), 0
    for seen, line in enumerate(opened.export(), 1):
        read = json.loads(line)
        body = json.dumps(read["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        commitment = hashlib.sha256(body.encode()).digest()
        link = hashlib.sha256(link + commitment).digest()
        assert (read["seq"], read["commitment"], read["link"]) == (seen, commitment.hex(), link.hex())
    assert seen == 8


def test_every_entry_has_its_own_id_and_nonce(shop: Shop) -> None:
    opened = shop.begin()
    entries = [opened.charge("default", laplace("0.1"), {"statement": "same"}) for _ in range(5)]
    lines = [json.loads(line)["body"] for line in opened.export()]
    assert len({line["nonce"] for line in lines}) == len({line["id"] for line in lines}) == len(lines)
    assert all(len(line["nonce"]) == 32 for line in lines)
    assert len({entry.commitment for entry in entries}) == 5


def test_secrets_and_fingerprints_are_not_exported(shop: Shop) -> None:
    schema = shop.schema()
    from dpquery import ledger

    ledger.create(schema, shop.place, fingerprint="fingerprint-of-the-rows", identity={"size": 123456789})
    opened = shop.open(schema)
    assert opened.register("another-fingerprint", {"size": 987654321}) == 2
    key = opened._store.read(lambda tx: tx.secret())
    text = "\n".join(opened.export())
    for secret in ("fingerprint-of-the-rows", "another-fingerprint", "123456789", "987654321", key.hex()):
        assert secret not in text
    for content in ("fingerprint-of-the-rows", "another-fingerprint"):
        assert hashlib.sha256(content.encode()).hexdigest() not in text


def test_a_clock_set_back_is_harmless(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.begin(budget=("1", "0"))
    opened.charge("default", laplace("0.6"), {})
    monkeypatch.setattr("dpquery.ledger.log._now", lambda: "1970-01-01T00:00:00.000000Z")
    with pytest.raises(OverBudget):
        opened.charge("default", laplace("0.6"), {})
    opened.charge("default", laplace("0.4"), {})
    assert opened.verify() == ()
    assert shop.open(opened.schema).balance("default").spent.epsilon == 1
