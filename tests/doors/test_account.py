"""`dpquery account`: the table, the object, the inverse, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from dpquery.cli.main import run

Told = tuple[int, str, str]


@pytest.fixture
def account(capfd: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    def call(*words: object) -> Told:
        capfd.readouterr()
        status = run(["account", *map(str, words)])
        told = capfd.readouterr()
        assert "Traceback" not in told.out + told.err
        return status, told.out, told.err

    return call


@pytest.fixture
def content(account: Callable[..., Told]) -> Callable[..., Any]:
    def call(*words: object) -> Any:
        status, out, _ = account(*words, "--format", "json")
        assert status == 0
        return json.loads(out)

    return call


def values(found: Any) -> dict[str, float | None]:
    return {method["method"]: method["value"] for method in found["methods"]}


@pytest.mark.parametrize(
    "words",
    [
        "--queries 100 --epsilon 0.1",
        "--queries 100 --epsilon 0.1 --mechanism laplace",
        "--queries 1000000 --epsilon 99.999 --mechanism laplace --delta 1e-100",
        "--queries 999999 --epsilon 1.23456e-6 --mechanism gaussian --delta 1.23456e-9",
        "--queries 10 --sigma 12345.678 --group 999",
        "--queries 10 --epsilon 1 --sample-rate 0.000123456 --mechanism gaussian",
        "--queries 1000 --budget 0.123456 --mechanism laplace",
        "--queries 1000 --budget 0.123456 --mechanism gaussian",
        "--queries 100 --budget 1 --sample-rate 0.1",
        "--queries 3 --sigma 2 --delta 0",
        "--queries 3 --budget 1 --delta 0 --mechanism gaussian",
    ],
)
def test_the_table_fits_a_terminal(account: Callable[..., Told], words: str) -> None:
    status, out, err = account(*words.split())
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"^zCDP filter[ *]+\S+ +(yes|no) {2,}\S", out, re.MULTILINE)


def test_the_table_is_rounded_towards_more_loss(account: Callable[..., Told]) -> None:
    out = account("--queries", 100, "--epsilon", "0.1", "--mechanism", "laplace")[1]
    found = dict(re.findall(r"^(\S.*?)(?: \*)? {2,}([\d.]+) +(?:yes|no) ", out, re.MULTILINE))
    assert found == {
        "basic": "10",
        "advanced (DRV 2010)": "6.3083",
        "optimal (KOV 2015)": "4.7746",
        "Renyi, best order": "4.9842",
        "zCDP filter": "5.2191",
        "zCDP of Laplace noise": "5.1249",
        "adaptive (WRRW 2023)": "5.7566",
        "loss distribution (PLD)": "4.6927",
    }
    assert "dpquery's is discrete" in out
    assert "a cap of epsilon 5.3584, delta 1e-6 takes all of them" in out
    assert "discrete" not in account("--queries", 100, "--epsilon", "0.1")[1]


def test_the_object(content: Callable[..., Any]) -> None:
    found = content("--queries", "1e2", "--epsilon", "0.1", "--delta", "1e-6")
    methods = found.pop("methods")
    assert found.pop("ledger") == pytest.approx(5.3583, abs=1e-4)
    assert found == {
        "queries": 100,
        "mechanism": "pure",
        "epsilon": 0.1,
        "query_delta": 0.0,
        "sigma": None,
        "delta": 1e-6,
        "sample_rate": 1.0,
        "group": 1,
        "budget": None,
        "unit": "epsilon",
    }
    assert methods[0] == {
        "method": "basic",
        "name": "basic",
        "value": 10.0,
        "ledger": True,
        "reason": "a filter: epsilons add up",
        "continuous": False,
    }
    assert [m["method"] for m in methods] == ["basic", "advanced", "optimal", "renyi", "zcdp", "adaptive", "pld"]


def test_gaussian_noise_by_epsilon_is_that_of_a_share_of_delta(content: Callable[..., Any]) -> None:
    found = content("--queries", 10, "--epsilon", "0.5", "--mechanism", "gaussian", "--delta", "1e-5")
    assert found["query_delta"] == pytest.approx(1e-6)
    assert found["sigma"] == pytest.approx(8.0576, abs=1e-4)
    assert values(found)["basic"] == pytest.approx(5)
    again = content("--queries", 10, "--sigma", repr(found["sigma"]), "--delta", "1e-5")
    assert values(again)["pld"] == pytest.approx(values(found)["pld"])
    assert again["epsilon"] is None


def test_a_group_moves_each_query_as_many_times_as_far(content: Callable[..., Any]) -> None:
    assert values(content("--queries", 20, "--epsilon", "0.1", "--group", 4)) == values(content("--queries", 20, "--epsilon", "0.4"))
    assert values(content("--queries", 20, "--sigma", 20, "--group", 4)) == values(content("--queries", 20, "--sigma", 5))
    inverse, single = (content("--queries", 20, "--budget", 1, "--group", n) for n in (4, 1))
    assert inverse["ledger"] == pytest.approx(single["ledger"] / 4)


@pytest.mark.parametrize("mechanism", ["pure", "laplace", "gaussian"])
def test_the_inverse(content: Callable[..., Any], mechanism: str) -> None:
    """What each method allows costs the budget by that method."""
    found = content("--queries", 50, "--budget", 2, "--mechanism", mechanism)
    option = "--sigma" if mechanism == "gaussian" else "--epsilon"
    assert found["unit"] == ("sigma" if mechanism == "gaussian" else "epsilon each")
    for key, value in values(found).items():
        priced = content("--queries", 50, option, repr(value), "--mechanism", mechanism)
        assert values(priced)[key] == pytest.approx(2, rel=1e-5)
    assert content("--queries", 50, option, repr(found["ledger"]), "--mechanism", mechanism)["ledger"] == pytest.approx(2, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "queries"),
        ("--queries 10", "--epsilon"),
        ("--queries 10 --epsilon 1 --budget 1", "one of"),
        ("--queries 10 --epsilon 1 --sigma 1", "sigma"),
        *((f"--queries {x} --epsilon 1", "queries") for x in ("0", "-1", "1.5", "nan", "inf", "1e7", "1e400", "1e99999999", "ten", "", "1_0", "９")),
        *((f"--queries 9 --epsilon {x}", "epsilon") for x in ("0", "-1", "nan", "inf", "-inf", "sNaN", "1e-10", "101", "1e999999", "x" * 200)),
        *((f"--queries 9 --epsilon 1 --delta {x}", "delta") for x in ("1", "2", "-1e-6", "nan", "1e-101", "inf")),
        *((f"--queries 9 --epsilon 1 --sample-rate {x}", "sample-rate") for x in ("0", "1.1", "nan", "1e-10", "-0.5")),
        *((f"--queries 9 --epsilon 1 --group {x}", "group") for x in ("0", "1001", "1.5", "nan")),
        *((f"--queries 9 --budget {x}", "budget") for x in ("0", "nan", "1e-10", "1e7", "-1")),
        *((f"--queries 9 --sigma {x}", "sigma") for x in ("0", "nan", "0.001", "1e10", "-1")),
        ("--queries 9 --epsilon 1 --mechanism exponential", "mechanism"),
        ("--queries 9 --epsilon 1 --group 101", "group"),
        ("--queries 9 --epsilon 1 --group 2 --sample-rate 0.5", "group"),
        ("--queries 9 --epsilon 1 --mechanism gaussian --delta 0", "delta"),
        ("--queries 9 --sigma 1 --mechanism laplace", "sigma"),
        ("--queries 9 --epsilon 1 --format csv", "format"),
    ],
)
def test_bad_input_is_refused(account: Callable[..., Told], words: str, said: str) -> None:
    status, out, err = account(*words.split(" ")) if words else account()
    assert (status, out) == (2, "")
    assert "USAGE" in err
    assert said in err.lower()


def test_a_refusal_for_machines(account: Callable[..., Told]) -> None:
    status, out, _ = account("--queries", 0, "--epsilon", 1, "--format", "json")
    assert status == 2
    assert json.loads(out)["error"]["code"] == "USAGE"
