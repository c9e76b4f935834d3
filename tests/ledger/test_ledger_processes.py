"""Races and deaths. Attacks 20 and 21: exactly what fits is granted, and nothing that was granted is ever forgotten."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_shop import Shop, laplace

from dpquery.errors import OverBudget

BOTH_STORES = True
FILES_ALONE = ("test_a_charge_outlives_its_process_and_its_write_ahead_log",)

CREW = Path(__file__).with_name("ledger_crew.py")


def crew(task: str, shop: Shop, *rest: object) -> object:
    done = subprocess.run(
        [sys.executable, str(CREW), task, str(shop.folder), *map(str, rest)], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_processes_race_for_the_last_share(shop: Shop) -> None:
    shop.begin(budget=("1", "0")).charge("default", laplace("0.5"), {})
    shop.close()
    granted = crew("race", shop, 2, 1, "0.5")
    assert sorted(granted, key=str) == [0, 1]  # type: ignore[call-overload]
    opened = shop.open(shop.schema(budget=("1", "0")))
    assert opened.balance("default").spent.epsilon == 1
    assert opened.verify() == ()


@pytest.mark.lemma("B1")
def test_fifty_processes_at_a_tenth_of_the_cap(shop: Shop) -> None:
    opened = shop.begin(budget=("1", "0"))
    granted = crew("race", shop, 50, 1, "0.1")
    assert sorted(granted, key=str) == [0] * 40 + [1] * 10  # type: ignore[call-overload]
    assert opened.balance("default").spent.epsilon == 1
    assert opened.verify() == ()
    assert [line.event for line in opened.entries()].count("refused") == 40


def test_four_processes_write_one_chain(shop: Shop) -> None:
    opened = shop.begin(budget=("1", "0"))
    granted = crew("race", shop, 4, 25, "0.01")
    assert granted == [25] * 4
    assert opened.balance("default").spent.epsilon == 1
    assert opened.verify() == ()
    with pytest.raises(OverBudget):
        opened.charge("default", laplace("1e-9"), {})


@pytest.mark.slow
def test_eight_processes_share_a_ledger_fairly(shop: Shop) -> None:
    shop.begin(budget=("1", "0"))
    shop.close()
    granted = crew("share", shop, 8, 5, 80)
    assert isinstance(granted, list)
    assert min(granted) >= sum(granted) / 8 / 4, "none gets less than a quarter of its share"
    assert sum(granted) >= 80
    left = ["shop.duckdb", "shop.duckdb.ledger-id", *(["shop.ledger"] if shop.place == shop.path else [])]
    assert sorted(p.name for p in shop.folder.iterdir()) == left


def test_death_before_any_statement_of_a_charge(shop: Shop) -> None:
    shop.begin(budget=("1", "0"))
    shop.close()
    deaths = crew("kill", shop)
    assert isinstance(deaths, int)
    assert deaths >= 5, "BEGIN, reads, INSERT, UPDATE, COMMIT"
    opened = shop.open(shop.schema(budget=("1", "0")))
    assert opened.verify() == ()
    steps = [line.body["record"]["step"] for line in opened.entries() if line.event == "charged"]
    assert steps == [deaths + 1], "a charge that was never committed charged nothing and blocks nothing"
    assert str(opened.balance("default").spent.epsilon) == "0.01"


def killed(shop: Shop, times: int) -> None:
    shop.begin(budget=("1", "0"))
    shop.close()
    answered, wrong = crew("kills", shop, times)  # type: ignore[misc]
    assert answered >= times
    assert wrong == [], "an answer without its entry, a sum that shrank, a log that does not hold"


def test_processes_killed_at_any_time_forget_nothing(shop: Shop) -> None:
    killed(shop, 4)


@pytest.mark.slow
def test_a_hundred_processes_killed_at_any_time_forget_nothing(shop: Shop) -> None:
    killed(shop, 100)


def test_a_charge_outlives_its_process_and_its_write_ahead_log(shop: Shop) -> None:
    shop.begin(budget=("1", "0"))
    shop.close()
    assert crew("die", shop) == -9
    log = shop.folder / "shop.ledger-wal"
    assert log.exists()
    log.unlink()
    (shop.folder / "shop.ledger-shm").unlink()
    opened = shop.open(shop.schema(budget=("1", "0")))
    assert str(opened.balance("default").spent.epsilon) == "0.5"
    assert [line.event for line in opened.entries()][-1] == "charged"
    assert opened.verify() == ()


def test_a_ledger_may_be_open_across_a_fork(shop: Shop) -> None:
    shop.begin(budget=("1", "0"))
    shop.close()
    children, spent, findings = crew("fork", shop)  # type: ignore[misc]
    assert all(len(entry) == 32 for entry in children)
    assert (spent, findings) == ("0.8", [])
