"""What a receipt says its price rests on gives that price again, for every kind of aggregate, keys, noise and cap."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dpquery
from dpquery.client import Connection
from dpquery.engine.basis import derived
from dpquery.engine.receipt import charged

ASKED = [
    ("SELECT count(*), sum(amount), avg(amount) FROM orders", {"epsilon": 0.1}),
    ("SELECT count(*), sum(amount) FROM orders", {"rho": 0.001, "delta": "1e-9"}),
    ("SELECT var_samp(amount), count(DISTINCT category) FROM orders", {"epsilon": 0.1}),
    ("SELECT median(amount) FROM orders", {"epsilon": 0.1}),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = exponential) median(amount) FROM orders", {"epsilon": 0.1}),
    ("SELECT mode(status) FROM orders", {"epsilon": 0.1}),
    ("SELECT mode(status) FROM orders", {"rho": 0.001}),
    ("SELECT category, count(*) FROM orders GROUP BY category", {"epsilon": 0.1}),
    ("SELECT user_id % 7 AS k, count(*) FROM orders GROUP BY k", {"epsilon": 0.1, "delta": "1e-9"}),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 3) count(*), avg(amount) FROM orders", {"epsilon": 0.1}),
    ("SELECT count(*) * 1.0 / (SELECT count(*) FROM users) FROM orders", {"epsilon": 0.1}),
]


@pytest.fixture(scope="module")
def alice(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with dpquery.connect(shop(tmp_path_factory.mktemp("receipts") / "demo"), analyst="alice") as connection:
        yield connection


@pytest.mark.parametrize(("sql", "price"), ASKED)
def test_a_receipt_gives_its_price_again(alice: Connection, sql: str, price: dict[str, Any]) -> None:
    receipt = json.loads(json.dumps(alice.query(sql, **price).receipt))
    again = charged(derived(receipt["basis"], receipt["adjacency"]))
    assert again == {name: receipt["price"][name] for name in again}


@pytest.mark.parametrize("wrong", [{"low": 0.5}, {"high": "1"}, {"ranked": "x"}, {"odd": 1}])
def test_a_receipt_of_another_format_gives_none(alice: Connection, wrong: dict[str, object]) -> None:
    basis = json.loads(json.dumps(alice.query(ASKED[0][0], epsilon=0.01).receipt))["basis"]
    basis[0]["cells"][0].update(wrong)
    with pytest.raises((TypeError, ValueError)):
        derived(basis, "add_remove")
