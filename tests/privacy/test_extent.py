"""How many numbers a release may be made of, and how many quantiles a statement may ask for: both are refused before they are planned at length."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpquery
from dpquery.errors import Refused

FINE = ", ".join(f"{i / 100:.2f}" for i in range(101))


@pytest.fixture(scope="module")
def con(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    with dpquery.connect(shop(tmp_path_factory.mktemp("extent") / "demo")) as opened:
        yield opened


def test_many_quantiles_of_many_columns_are_refused_before_they_are_planned(con: Any) -> None:
    """Each of 101 quantiles of 200 columns was planned thrice, for minutes."""
    lists = ", ".join(f"approx_quantiles(amount + {i}, 100)" for i in range(200))
    begun = time.process_time()
    with pytest.raises(Refused) as refused:
        con.explain(f"SELECT {lists} FROM orders")
    assert refused.value.code == "TOO_COMPLEX"
    assert time.process_time() - begun < 20
    con.explain(f"SELECT quantile_cont(amount, [{FINE}]), count(*) FROM orders")


def test_scores_of_many_groups_are_refused_before_the_charge(con: Any) -> None:
    """Each choice has a score of each bin in each group: hundreds of millions were made in the memory of who asks, after the charge."""
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = exponential, epsilon = 1)"
    with pytest.raises(Refused) as refused:
        con.explain(f"SELECT {options} floor(amount * 4) AS step, quantile_cont(amount, [{FINE}]) FROM orders WHERE amount < 100 GROUP BY step")
    assert refused.value.code == "TOO_MANY_NUMBERS"
    assert str(refused.value.instead).startswith("fewer or coarser groups")
