"""How many numbers a release may be made of, and how many quantiles a statement may ask for: both are refused before they are planned at length."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import random_plans as rp

import dpquery
from dpquery.errors import Refused
from dpquery.plan import functions
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.extent import numbers
from dpquery.plan.rel import Filling
from dpquery.plan.release import Key
from dpquery.plan.scalar import Literal
from dpquery.privacy import Facts, bound
from dpquery.values.types import INTEGER

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


def test_as_many_numbers_as_are_allowed_are_allowed() -> None:
    """2^24: of 8,192 groups eight choices among 256 values each."""
    orders = rp.World(Random(0)).scan("orders")
    value, key = orders.columns[3].column, Key("k0", orders.columns[0].column, INTEGER)
    modes = tuple(
        AggregateAsk(f"a{i}", "m", "mode", value, functions.call("lt", value, Literal(i, INTEGER)), values=tuple(range(256))) for i in range(8)
    )
    facts = Facts({}, tuple((i,) for i in range(8192)), "a list")
    plan = Draft(orders, (key,), (), modes, Contributions(1, 1, 1000))
    assert numbers(bound(plan, facts), 1) == 2**24
    with pytest.raises(Refused) as refused:
        bound(replace(plan, asks=(*modes, AggregateAsk("a8", "n", "count", None, None))), facts)
    assert (refused.value.code, refused.value.message) == (
        "TOO_MANY_NUMBERS",
        "the answer is made of 16,785,408 noisy numbers, more than 16,777,216",
    )
    later = replace(plan, asks=(replace(modes[0], values=(1, 2)),), listed=rp.World(Random(0)).released(Filling.KEYS, INTEGER, INTEGER))
    bound(later, Facts({}, beside=2**23))
    with pytest.raises(Refused):
        bound(later, Facts({}, beside=2**23 + 1))
