"""N3: reserved caps count every account that ever was, and what is fixed at creation stays."""

from __future__ import annotations

from decimal import Decimal

import pytest
from ledger_shop import Clock, Shop, gaussian, laplace

from dpquery.errors import Fault, OverBudget, Refused, SchemaError
from dpquery.ledger.model import Amounts
from dpquery.values.types import Adjacency

BOTH_STORES = True


def failure(shop: Shop, **fields: object) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        shop.open(shop.schema(**fields))
    return caught.value


@pytest.mark.lemma("B3")
def test_a_removed_account_keeps_its_share(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("8", "1e-6")}).charge("alice", laplace("8"), {})
    error = failure(shop, analysts={"bob": ("8", "1e-6")})
    assert error.code == "CAPS_EXCEED_BUDGET"
    assert "`alice` 8" in error.message
    assert "epsilon 0 is left for `bob`" in (error.instead or "")
    assert failure(shop, analysts={"bob": ("1", "0")}).code == "CAPS_EXCEED_BUDGET"


def test_a_new_account_gets_what_is_left(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("6", "6e-7")})
    error = failure(shop, analysts={"alice": ("6", "6e-7"), "bob": ("2.1", "1e-7")})
    assert "epsilon 2 is left for `bob`" in (error.instead or "")
    assert "delta 0.0000004 is left" in (failure(shop, analysts={"alice": ("6", "6e-7"), "bob": ("2", "5e-7")}).instead or "")
    opened = shop.open(shop.schema(analysts={"alice": ("6", "6e-7"), "bob": ("2", "4e-7")}))
    opened.charge("bob", laplace("2"), {})


def test_a_raised_budget_makes_room(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("8", "1e-6")}).charge("alice", laplace("8"), {})
    opened = shop.open(shop.schema(budget=("10", "2e-6"), analysts={"bob": ("2", "1e-6")}))
    opened.charge("bob", laplace("2"), {})
    with pytest.raises(OverBudget):
        opened.charge("bob", laplace("0.1"), {})


def test_a_lowered_cap_stops_later_charges_only(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("8", "1e-6")}).charge("alice", laplace("5"), {})
    opened = shop.open(shop.schema(analysts={"alice": ("4", "1e-6")}))
    with pytest.raises(OverBudget):
        opened.charge("alice", laplace("0.1"), {})
    balance = opened.balance("alice")
    assert balance.spent.epsilon == 5
    assert (balance.cap.epsilon, balance.guarantee.epsilon) == (4, 8)
    assert balance.left.epsilon == 0
    assert failure(shop, analysts={"alice": ("4", "1e-6"), "bob": ("4", "0")}).code == "CAPS_EXCEED_BUDGET"


def test_a_lowered_cap_may_be_raised_to_what_it_was(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("8", "1e-6")})
    shop.open(shop.schema(analysts={"alice": ("4", "1e-6")}))
    shop.open(shop.schema(analysts={"alice": ("8", "1e-6")})).charge("alice", laplace("8"), {})
    assert failure(shop, analysts={"alice": ("8.5", "1e-6")}).code == "CAPS_EXCEED_BUDGET"


def test_budget_and_caps_may_be_lowered_together(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("8", "1e-6")}).charge("alice", laplace("5"), {})
    opened = shop.open(shop.schema(budget=("4", "1e-6"), analysts={"alice": ("4", "1e-6")}))
    with pytest.raises(OverBudget):
        opened.charge("alice", laplace("0.1"), {})


def test_delta_conv_stays_when_delta_changes(shop: Shop) -> None:
    shop.begin(analysts={"alice": ("8", "4e-7")})
    opened = shop.open(shop.schema(analysts={"alice": ("8", "1e-6")}))
    assert opened.balance("alice").delta_conv == Decimal("2e-7")
    opened.charge("alice", laplace("0.1", "8e-7"), {})
    with pytest.raises(OverBudget):
        opened.charge("alice", laplace("0.1", "1e-9"), {})


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("adjacency", Adjacency.REPLACE_ONE, "adjacency"),
        ("privacy_unit_column", "household_id", "privacy_unit"),
        ("oversubscribe", True, "oversubscribe"),
        ("unsafe_testing", True, "unsafe_testing"),
    ],
)
def test_what_creation_fixes_stays(shop: Shop, field: str, value: object, key: str) -> None:
    shop.begin()
    error = failure(shop, **{field: value})
    assert error.code == "LEDGER_MISMATCH"
    assert error.exit_status == 4
    assert key in error.message
    assert key in (error.instead or "")


def test_an_unsafe_ledger_never_becomes_an_ordinary_one(shop: Shop) -> None:
    opened = shop.begin(unsafe_testing=True, budget=("1", "0"))
    for _ in range(3):
        opened.charge("default", laplace("1e20", "1"), {})
    opened.charge("default", gaussian("1e20", "1"), {})
    assert opened.balance("default").entries == 4
    assert opened.room("default").accepts(Amounts.of(laplace("1e20")))
    assert opened.verify() == ()
    assert failure(shop).code == "LEDGER_MISMATCH"


def test_another_name_is_another_data_set(shop: Shop) -> None:
    shop.begin()
    with pytest.raises(Fault) as caught:
        shop.open(shop.schema(dataset="shop2"))
    assert caught.value.code == "LEDGER_FOREIGN"


def test_reserved_caps_hide_other_analysts(shop: Shop) -> None:
    """B3: alice's Laplace query leaves bob's Gaussian alone, though the data set's own filter would refuse it."""
    opened = shop.begin(analysts={"alice": ("4", "5e-7"), "bob": ("4", "5e-7")})
    before = opened.balance("bob")
    opened.charge("alice", laplace("4"), {})
    assert opened.balance("bob") == before
    opened.charge("bob", gaussian("0.0001"), {})
    assert opened.room("bob").count(Amounts.of(laplace("0.5"))) > 0


def test_oversubscribed_the_data_set_decides_too(shop: Shop) -> None:
    opened = shop.begin(oversubscribe=True, analysts={"alice": ("8", "1e-6"), "bob": ("8", "1e-6")})
    opened.charge("alice", laplace("7.123"), {})
    with pytest.raises(OverBudget) as caught:
        opened.charge("bob", laplace("1"), {})
    assert "7.123" not in str(caught.value)
    assert "0.877" not in str(caught.value)
    opened.charge("bob", laplace("0.877"), {})
    assert opened.balances()[0].spent.epsilon == 8


def test_unlisted_names_share_default(shop: Shop) -> None:
    opened = shop.begin(analysts={"default": ("1", "0"), "alice": ("1", "0")})
    opened.charge("bob", laplace("0.6"), {})
    with pytest.raises(OverBudget):
        opened.charge("carol", laplace("0.6"), {})
    opened.charge("default", laplace("0.4"), {})
    assert opened.balance("nobody").account == "default"
    assert opened.balance("alice").spent.epsilon == 0


def test_without_default_unlisted_names_are_refused(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("1", "0")})
    with pytest.raises(Refused) as caught:
        opened.charge("bob", laplace("0.6"), {})
    assert caught.value.code == "UNKNOWN_ANALYST"
    assert "alice" not in str(caught.value)
    opened.refused("bob", {"code": "UNKNOWN_ANALYST"})
    assert opened.verify() == ()


def test_caps_must_fit_when_the_ledger_is_made(shop: Shop) -> None:
    with pytest.raises(SchemaError) as caught:
        shop.create(shop.schema(analysts={"alice": ("6", "0"), "bob": ("3", "0")}))
    assert caught.value.code == "CAPS_EXCEED_BUDGET"
    assert not shop.path.exists()
    assert sorted(p.name for p in shop.folder.iterdir()) == ["shop.duckdb"]


def test_groups_reserve_for_their_members(shop: Shop) -> None:
    team = {"team": (("4", "4e-7"), ("alice", "bob"))}
    both = {"alice": ("2", "2e-7"), "bob": ("2", "2e-7"), "carol": ("4", "4e-7")}
    opened = shop.begin(analysts=both, groups=team)
    opened.charge("alice", laplace("2"), {})
    opened.charge("bob", gaussian("0.001"), {})
    held = {b.account: b.spent.epsilon for b in opened.balances()}
    assert held == {"dataset": None, "team": None, "alice": 2, "bob": None, "carol": 0}
    three = {"team": (("4", "4e-7"), ("alice", "bob", "dave"))}
    error = failure(shop, analysts={**both, "bob": ("1", "0"), "dave": ("1", "0")}, groups=three, budget=("9", "2e-6"))
    assert "group `team`" in error.message


@pytest.mark.parametrize("bob", ["3", "1"])
def test_who_joins_a_group_takes_the_largest_cap_from_its_room(shop: Shop, bob: str) -> None:
    """No cap grows, and the data set's budget holds; but what bob had before counts in the group that he joins."""
    both = {"alice": ("3", "0"), "bob": ("3", "0")}
    opened = shop.begin(analysts=both, groups={"team": (("4", "0"), ("alice",))})
    opened.charge("bob", laplace("3"), {})
    error = failure(shop, analysts={**both, "bob": (bob, "0")}, groups={"team": (("4", "0"), ("alice", "bob"))})
    assert error.code == "CAPS_EXCEED_BUDGET"
    assert "add up to 6, above the cap of group `team` of 4" in error.message
    shop.open(shop.schema(analysts=both, groups={"team": (("6", "0"), ("alice", "bob"))}))


def test_who_has_spent_leaves_no_group(shop: Shop) -> None:
    """The one put in its place would spend the group's cap once more, with nothing to see in the log."""
    both = {"alice": ("1", "0"), "bob": ("1", "0")}
    opened = shop.begin(analysts=both, groups={"team": (("1", "0"), ("alice",))})
    shop.open(shop.schema(analysts=both, groups={"team": (("1", "0"), ("bob",))}))
    shop.open(shop.schema(analysts=both, groups={"team": (("1", "0"), ("alice",))}))
    opened.charge("alice", laplace("0.01"), {})
    for groups in ({"team": (("1", "0"), ("bob",))}, {"team": (("1", "0"), ())}, {}):
        error = failure(shop, analysts=both, groups=groups)
        assert error.code == "MEMBER_LEAVES"
        assert "`alice` has spent from the cap of group `team`" in error.message
    error = failure(shop, analysts={"bob": ("1", "0")}, groups={"team": (("1", "0"), ("bob",))})
    assert error.code == "CAPS_EXCEED_BUDGET"


SET_ASIDE = {"a": ("1", "0", 30), "l": ("5", "0")}
G = {"g": (("3", "0"), ("a",))}


@pytest.mark.lemma("B3")
def test_a_schema_cannot_take_what_is_set_aside_for_a_group(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a new account, though the sum of all analysts would fit; nor where the schema lists the group no more, as another's of the account does."""
    clock = Clock(monkeypatch)
    opened = shop.begin(analysts=SET_ASIDE, groups=G)
    opened.charge("l", laplace("5"), {})
    for fields in ({"analysts": {"a": ("1", "0", 30), "m": ("2", "0")}, "groups": G}, {"analysts": {"l": ("5", "0"), "m": ("2", "0")}}):
        error = failure(shop, **fields)
        assert error.code == "CAPS_EXCEED_BUDGET"
        assert "add up to 10, above the data set's budget of 8" in error.message
        assert "(`l` 5, group `g` 3)" in error.message
        assert "epsilon 0 is left for `m`" in (error.instead or "")
    for day in (0, 30, 60):
        clock.day = day
        opened.charge("a", laplace("1"), {})
    assert opened.verify() == ()


@pytest.mark.lemma("B3")
def test_a_groups_cap_grows_into_what_is_left_only(shop: Shop) -> None:
    shop.begin(analysts=SET_ASIDE, groups=G).charge("l", laplace("5"), {})
    alone = {"a": SET_ASIDE["a"]}
    for analysts, groups in ((alone, {"g": (("4", "0"), ("a",))}), ({**alone, "b": ("0.5", "0")}, {**G, "h": (("1", "0"), ("b",))})):
        error = failure(shop, analysts=analysts, groups=groups)
        assert "add up to 9, above the data set's budget of 8" in error.message
    error = failure(shop, analysts={"a": ("4", "0", 30), "l": ("5", "0")}, groups=G)
    assert "add up to 4, above the cap of group `g` of 3" in error.message, "its own sum, though the data set's is above too"
    freed = {"g": (("2", "0"), ("a",))}
    shop.open(shop.schema(analysts=SET_ASIDE, groups=freed))
    opened = shop.open(shop.schema(analysts={**SET_ASIDE, "m": ("1", "0")}, groups=freed))
    opened.charge("m", laplace("1"), {})
    assert failure(shop, analysts={**SET_ASIDE, "m": ("1", "0")}, groups=G).code == "CAPS_EXCEED_BUDGET"


def test_oversubscribed_groups_bind_their_members_together(shop: Shop) -> None:
    opened = shop.begin(oversubscribe=True, analysts={"alice": ("3", "0"), "bob": ("3", "0")}, groups={"team": (("4", "0"), ("alice", "bob"))})
    opened.charge("alice", laplace("3"), {})
    with pytest.raises(OverBudget) as caught:
        opened.charge("bob", laplace("2"), {})
    assert "group" in caught.value.message
    opened.charge("bob", laplace("1"), {})


def test_caps_that_did_not_change_write_nothing(shop: Shop) -> None:
    opened = shop.begin(analysts={"alice": ("4.0", "1e-6")})
    lines = sum(1 for _ in opened.entries())
    again = shop.open(shop.schema(analysts={"alice": ("4", "0.000001")}))
    assert sum(1 for _ in again.entries()) == lines
