"""One account for several data sets of the same people: what is spent on one is gone for the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_shop import Shop, laplace

from dpquery import ledger
from dpquery.errors import Fault, OverBudget, Refused, SchemaError
from dpquery.ledger import Ledger, Place, joining
from dpquery.schema.address import place
from dpquery.schema.model import Schema, Source
from dpquery.values.types import Adjacency

BOTH_STORES = True
FILES_ALONE = ("test_without_an_account_each_has_its_own",)
BUDGET = ("1", "0")


def shops(shop: Shop, **other: object) -> Schema:
    return shop.schema(budget=BUDGET, account="people", **other)


def visits(shop: Shop, **other: object) -> Schema:
    """Another data set of the same people, in the same folder."""
    (shop.folder / "visits.duckdb").write_bytes(b"other rows")
    given = {"file": shop.folder / "visits.yaml", "dataset": "visits", "source": Source(path="visits.duckdb"), **other}
    return shops(shop, **given)


def created(shop: Shop) -> Place:
    """The account's ledger: a file named after it, or the shop's database."""
    return ledger.create(shops(shop), None if isinstance(shop.place, Path) else home(shop), fingerprint="f1", identity=["shop.duckdb", 4, 1])


def home(shop: Shop) -> Place:
    return shop.folder / "people.ledger" if isinstance(shop.place, Path) else place(shop.place)


def begun(shop: Shop) -> tuple[Ledger, Ledger]:
    """Both data sets' doors to the one ledger."""
    one, two = shops(shop), visits(shop)
    where = created(shop)
    assert not isinstance(shop.place, Path) or where == shop.folder / "people.ledger" == two.default_ledger
    assert ledger.joins(two, where)
    ledger.join(two, where, fingerprint="v1", identity=["visits.duckdb", 9, 1])
    return shop.take(ledger.open(where, one)), shop.take(ledger.open(where, two))


def test_both_spend_the_same_budget(shop: Shop) -> None:
    one, two = begun(shop)
    one.charge("default", laplace("0.6"), {"dataset": "shop"})
    with pytest.raises(OverBudget):
        two.charge("default", laplace("0.6"), {"dataset": "visits"})
    two.charge("default", laplace("0.4"), {"dataset": "visits"})
    assert one.balance("default").spent.epsilon == two.balance("default").spent.epsilon == 1
    assert one.balance("default").dataset == "people"
    assert [line.event for line in one.entries()] == [
        "created",
        "account",
        "account",
        "registered",
        "looked",
        "joined",
        "registered",
        "looked",
        "charged",
        "refused",
        "charged",
    ]
    assert one.verify() == two.verify() == ()


def test_versions_are_each_data_sets_own(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = begun(shop)
    assert (one.admitted("f1"), one.admitted("v1"), two.admitted("v1"), two.admitted("f1")) == (1, None, 1, None)
    assert two.version_of(["shop.duckdb", 4, 1], lambda: "f1") is None, "the other's files are none of its own"
    assert (one.register("f2", ["shop.duckdb", 5, 2]), two.register("v2", ["visits.duckdb", 5, 2])) == (2, 2)
    monkeypatch.setattr("dpquery.ledger.upkeep.BALANCE_EVERY", 3)
    again = shop.take(ledger.open(home(shop), one.schema))
    assert next(line for line in again.entries() if line.event == "balanced").body["versions"] == {"shop": 2, "visits": 2}
    after = shop.take(ledger.open(home(shop), two.schema))
    assert (after.register("v3", ["visits.duckdb", 6, 2]), after.admitted("v2")) == (3, 2)
    assert after.verify() == ()


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"privacy_unit_table": "guests"}, "LEDGER_MISMATCH"),
        ({"adjacency": Adjacency.REPLACE_ONE}, "LEDGER_MISMATCH"),
        ({"oversubscribe": True}, "LEDGER_MISMATCH"),
        ({"unsafe_testing": True}, "LEDGER_MISMATCH"),
        ({"analysts": {"alice": ("1", "0")}}, "CAPS_EXCEED_BUDGET"),
    ],
)
def test_who_joins_is_of_the_same_people_and_terms(shop: Shop, other: dict[str, object], code: str) -> None:
    where = created(shop)
    with pytest.raises(SchemaError) as caught:
        ledger.join(visits(shop, **other), where, fingerprint="v1", identity=[])
    assert caught.value.code == code
    assert not (shop.folder / "visits.duckdb.ledger-id").exists(), "nothing is left of the attempt"


def test_data_that_has_a_ledger_joins_no_other(shop: Shop) -> None:
    where = created(shop)
    alone = visits(shop).model_copy(update={"account": None})
    ledger.create(alone, fingerprint="v1", identity=[])
    with pytest.raises(Refused) as caught:
        ledger.join(visits(shop), where, fingerprint="v1", identity=[])
    assert caught.value.code == "SOURCE_BOUND"
    with pytest.raises(Fault) as foreign:
        ledger.open(where, visits(shop))
    assert foreign.value.code == "LEDGER_FOREIGN"


def test_another_accounts_ledger_is_foreign(shop: Shop) -> None:
    where = created(shop)
    for schema in (visits(shop).model_copy(update={"account": "others"}), visits(shop).model_copy(update={"account": None})):
        with pytest.raises(Fault) as caught:
            joining.join(schema, where, fingerprint="v1", identity=[])
        assert caught.value.code == "LEDGER_FOREIGN"


def test_a_data_set_that_is_not_bound_cannot_open_it(shop: Shop) -> None:
    where = created(shop)
    with pytest.raises(Fault) as caught:
        ledger.open(where, visits(shop))
    assert caught.value.code == "LEDGER_FOREIGN"


def test_a_renamed_data_set_of_the_account_is_another_with_the_same_budget(shop: Shop) -> None:
    """It is bound by its files; its versions are admitted anew, and what was spent stays."""
    one, _ = begun(shop)
    one.charge("default", laplace("1"), {})
    renamed = shop.take(ledger.open(home(shop), shops(shop, dataset="shop again")))
    assert renamed.admitted("f1") is None
    with pytest.raises(OverBudget):
        renamed.charge("default", laplace("0.1"), {})


def test_without_an_account_each_has_its_own(shops: Callable[[], Shop]) -> None:
    made = shops()
    assert not ledger.joins(made.schema(), made.path)
    made.create(made.schema())
    assert not ledger.joins(made.schema(), made.path)
    assert isinstance(made.place, Path)
