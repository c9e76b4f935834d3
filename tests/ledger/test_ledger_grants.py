"""Caps that an entry of the log raises, with a reason."""

from __future__ import annotations

from decimal import Decimal

import pytest
from ledger_shop import Clock, Shop, gaussian, laplace

from dpquery.errors import OverBudget, Refused, SchemaError
from dpquery.ledger import Kind, Ledger, Limit

BOTH_STORES = True


def limit(epsilon: str, delta: str = "0") -> Limit:
    return Limit(Decimal(epsilon), Decimal(delta))


def refused(opened: Ledger, *whose: object, more: Limit | None = None, reason: str = "a paper is due") -> str:
    with pytest.raises((Refused, SchemaError)) as caught:
        opened.grant(*whose, more or limit("1"), reason)  # type: ignore[arg-type]
    assert caught.value.instead
    return f"{caught.value.code}: {caught.value.message}; {caught.value.instead}"


def test_a_grant_raises_the_cap_and_says_why(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("2", "1e-7"), "bob": ("1", "0")})
    opened.charge("alice", laplace("2"), {})
    with pytest.raises(OverBudget):
        opened.charge("alice", laplace("0.1"), {})
    lines = list(opened.entries())
    granted = opened.grant(Kind.ANALYST, "alice", limit("0.5", "1e-8"), "a paper is due")
    assert (granted.cap, granted.granted, granted.guarantee) == (limit("2.5", "1.1e-7"), limit("0.5", "1e-8"), limit("2.5", "1.1e-7"))
    assert list(opened.entries())[:-2] == lines[:-1], "what was there stays"
    body = list(opened.entries())[-1].body
    assert (body["event"], body["account"], body["epsilon"], body["reason"]) == ("granted", "analyst:alice", "0.5", "a paper is due")
    opened.charge("alice", laplace("0.5"), {})
    with pytest.raises(OverBudget):
        opened.charge("alice", laplace("1e-9"), {})
    assert opened.verify() == ()


def test_grants_stay_when_the_schema_changes(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("2", "0")})
    opened.grant(Kind.ANALYST, "alice", limit("0.5"), "first")
    opened.grant(Kind.ANALYST, "alice", limit("0.25"), "second")
    again = shop.open(shop.schema(analysts={"alice": ("1", "0")}))
    assert (again.balance("alice").cap, again.balance("alice").guarantee) == (limit("1.75"), limit("2.75"))
    lines = sum(1 for _ in again.entries())
    assert sum(1 for _ in shop.open(shop.schema(analysts={"alice": ("1", "0")})).entries()) == lines
    assert again.verify() == ()


@pytest.mark.lemma("B3")
def test_a_grant_fits_into_what_the_data_set_and_the_group_have_left(shop: Shop) -> None:
    team = {"team": (("4", "0"), ("alice", "bob"))}
    opened = shop.begin(analysts={"alice": ("2", "0"), "bob": ("1", "0"), "carol": ("3", "0")}, groups=team)
    assert "group `team`" in refused(opened, Kind.ANALYST, "alice", more=limit("1.1"))
    opened.grant(Kind.ANALYST, "alice", limit("1"), "what the group has left")
    assert "epsilon 4 is left for `carol`" in refused(opened, Kind.ANALYST, "carol", more=limit("2"))
    opened.grant(Kind.GROUP, "team", limit("1"), "what the data set has left")
    assert "epsilon 5 is left for group `team`" in refused(opened, Kind.GROUP, "team", more=limit("0.1"))
    opened.grant(Kind.DATASET, "dataset", limit("1"), "a new agreement")
    opened.grant(Kind.ANALYST, "carol", limit("1"), "and its use")
    opened.charge("carol", laplace("4"), {})
    opened.charge("alice", laplace("3"), {})
    assert opened.balances()[0].cap == limit("9", "1e-6")
    assert opened.verify() == ()


@pytest.mark.lemma("B3", "B4")
def test_a_grant_cannot_take_what_is_set_aside_for_a_group(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    opened = shop.begin(analysts={"a": ("1", "0", 30), "l": ("5", "0")}, groups={"g": (("3", "0"), ("a",))})
    said = refused(opened, Kind.ANALYST, "l", more=limit("2"))
    assert "add up to 10, above the data set's budget of 8" in said
    assert "(group `g` 3); epsilon 5 is left for `l`" in said
    said = refused(opened, Kind.ANALYST, "a", more=limit("2.5"))
    assert "add up to 3.5, above the cap of group `g` of 3" in said, "the group's sum and not the data set's, which fits"
    for day in (0, 31, 61):
        clock.day = day
        opened.charge("a", laplace("1"), {})
    assert opened.verify() == ()


@pytest.mark.lemma("B3")
def test_a_member_is_granted_what_the_group_has_though_others_ask_first(shop: Shop) -> None:
    caps = {"a": ("2", "0"), "b": ("0.5", "0"), "l": ("4", "0"), "m": ("1", "0")}
    opened = shop.begin(analysts=caps, groups={"g": (("3", "0"), ("a", "b"))})
    assert "epsilon 1 is left for `m`" in refused(opened, Kind.ANALYST, "m", more=limit("0.5"))
    opened.grant(Kind.ANALYST, "b", limit("0.5"), "its own")
    opened.charge("b", laplace("1"), {})
    said = refused(opened, Kind.ANALYST, "b", more=limit("0.1"))
    assert "add up to 3.1, above the cap of group `g` of 3" in said, "the group's, though the data set's sum is above its budget too"
    assert "(`a` 2); epsilon 1 is left for `b`" in said


def test_a_grant_below_the_largest_cap_needs_no_room(shop: Shop) -> None:
    opened = shop.begin(budget=("2", "0"), analysts={"alice": ("2", "0")})
    opened.close()
    opened = shop.open(shop.schema(budget=("2", "0"), analysts={"alice": ("1", "0")}))
    opened.grant(Kind.ANALYST, "alice", limit("1"), "back to what it was")
    assert "CAPS_EXCEED_BUDGET" in refused(opened, Kind.ANALYST, "alice", more=limit("0.1"))


@pytest.mark.parametrize(
    ("more", "reason", "code"),
    [
        (limit("0"), "why", "BAD_GRANT"),
        (limit("-1"), "why", "BAD_GRANT"),
        (limit("1", "-1e-9"), "why", "BAD_GRANT"),
        (limit("1000001"), "why", "BAD_GRANT"),
        (limit("1", "1"), "why", "BAD_BUDGET"),
        (limit("1"), "", "BAD_GRANT"),
        (limit("1"), "  ", "BAD_GRANT"),
        (limit("1"), "two\nlines", "BAD_GRANT"),
        (limit("1"), "x" * 1001, "BAD_GRANT"),
    ],
)
def test_what_is_no_grant_is_refused_and_leaves_no_line(shop: Shop, more: Limit, reason: str, code: str) -> None:
    opened = shop.begin(analysts={"alice": ("2", "0")})
    lines = list(opened.entries())
    assert refused(opened, Kind.ANALYST, "alice", more=more, reason=reason).startswith(code)
    assert list(opened.entries()) == lines


def test_a_grant_is_to_an_account_of_the_schema(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("2", "0"), "default": ("1", "0")})
    for whose in ((Kind.ANALYST, "bob"), (Kind.GROUP, "team"), (Kind.GROUP, "alice")):
        assert refused(opened, *whose).startswith("UNKNOWN_ACCOUNT")
    opened.grant(Kind.ANALYST, "default", limit("1"), "for all others")
    opened.charge("bob", laplace("2"), {})
    again = shop.open(shop.schema(analysts={"default": ("1", "0")}))
    assert refused(again, Kind.ANALYST, "alice").startswith("UNKNOWN_ACCOUNT"), "the schema lists it no more"


def test_oversubscribed_a_grant_needs_no_room_but_the_data_set_decides(shop: Shop) -> None:
    opened = shop.begin(budget=("3", "0"), analysts={"alice": ("3", "0")}, oversubscribe=True)
    opened.grant(Kind.ANALYST, "alice", limit("3"), "more than there is")
    opened.charge("alice", laplace("3"), {})
    with pytest.raises(OverBudget) as caught:
        opened.charge("alice", laplace("1"), {})
    assert "the data set's budget" in caught.value.message


def test_delta_conv_stays_when_delta_is_granted(shop: Shop) -> None:
    """B1: what converts rho was fixed when the account was made; a grant of delta is for private groups."""
    opened = shop.begin(analysts={"alice": ("4", "2e-7")})
    before = opened.balance("alice")
    opened.grant(Kind.ANALYST, "alice", limit("0", "4e-7"), "more groups")
    after = opened.balance("alice")
    assert after.delta_conv == before.delta_conv == Decimal("1e-7")
    assert after.left.rho == before.left.rho
    opened.charge("alice", gaussian("0.01", "5e-7"), {})
    with pytest.raises(OverBudget):
        opened.charge("alice", gaussian("0.01", "1e-12"), {})


def test_what_an_analyst_sees_of_others_grants_is_nothing(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("2", "0"), "bob": ("1", "0")})
    before = opened.balance("bob")
    opened.grant(Kind.ANALYST, "alice", limit("1"), "a secret of hers")
    assert opened.balance("bob") == before
    assert [line.event for line in opened.entries("bob")] == []
