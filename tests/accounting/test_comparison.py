"""What `dpquery account` compares: the methods of a batch, the ledger's own answer, and the inverse."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from dpquery.accounting.comparison import BASIC, Batch, Kind, ledger_epsilon, methods, strongest
from dpquery.accounting.textbook.composition import adaptive_epsilon, advanced_epsilon, optimal_epsilon
from dpquery.accounting.textbook.gaussian import gaussian_epsilon
from dpquery.accounting.textbook.sampling import amplified
from dpquery.accounting.zcdp import gaussian_rho, laplace_rho_up
from dpquery.ledger.amounts import rounded_up
from dpquery.ledger.model import Amounts, Limit
from dpquery.ledger.policy import within

MILLIONTH = Fraction(1, 10**6)
TENTHS = Batch(Kind.LAPLACE, 100, Fraction(1, 10), MILLIONTH)
BATCHES = [
    TENTHS,
    Batch(Kind.PURE, 3, Fraction(1, 10), MILLIONTH),
    Batch(Kind.PURE, 100, Fraction(1, 10), Fraction(0)),
    Batch(Kind.GAUSSIAN, 40, Fraction(1, 7), MILLIONTH),
    Batch(Kind.GAUSSIAN, 1, Fraction(1, 100), Fraction(1, 2)),
    Batch(Kind.PURE, 50, Fraction(1), MILLIONTH, rate=Fraction(1, 10)),
    Batch(Kind.LAPLACE, 50, Fraction(1), MILLIONTH, rate=Fraction(1, 10)),
    Batch(Kind.GAUSSIAN, 50, Fraction(1), MILLIONTH, rate=Fraction(1, 10)),
    Batch(Kind.GAUSSIAN, 1, Fraction(1), Fraction(1, 2), rate=Fraction(1, 10)),
]


def said(batch: Batch) -> dict[str, float]:
    return {method.key: method.epsilon(batch) for method in methods(batch)}


def name(batch: Batch) -> str:
    return f"{batch.kind}-{batch.queries}-{float(batch.delta):g}-{float(batch.rate):g}"


def test_the_ledger_may_use_what_is_a_filter_here() -> None:
    for kind, allowed in ((Kind.PURE, {"basic", "zcdp", "adaptive"}), (Kind.LAPLACE, {"basic", "zcdp", "adaptive"}), (Kind.GAUSSIAN, {"zcdp"})):
        batch = Batch(kind, 10, Fraction(1, 10), MILLIONTH)
        assert {m.key for m in methods(batch) if m.ledger} == allowed
        sampled = methods(Batch(kind, 10, Fraction(1, 10), MILLIONTH, rate=Fraction(1, 2)))
        assert sampled
        assert not any(m.ledger for m in sampled)


def test_each_method_says_why_the_ledger_uses_it_or_does_not() -> None:
    fixed, filters = (False, "prices are fixed in advance"), {"basic": (True, "a filter: epsilons add up"), "zcdp": (True, "a filter: rhos add up")}
    pure = {
        **filters,
        "advanced": fixed,
        "optimal": fixed,
        "renyi": (False, "one order, fixed in advance"),
        "adaptive": (True, "a filter, above zCDP's"),
        "pld": fixed,
    }
    discrete, by_rho = (False, "the noise is discrete"), (False, "Gaussian noise goes by rho")
    batches = {kind: Batch(kind, 10, Fraction(1, 10), MILLIONTH) for kind in Kind}
    said = {kind: {m.key: (m.ledger, m.why) for m in methods(batch)} for kind, batch in batches.items()}
    assert said == {
        Kind.PURE: pure,
        Kind.LAPLACE: {**pure, "zcdp_laplace": discrete},
        Kind.GAUSSIAN: {**pure, "basic": by_rho, "adaptive": by_rho, "gdp": discrete},
    }
    for batch in batches.values():
        sampled = {m.key: (m.ledger, m.why) for m in methods(replace(batch, rate=Fraction(1, 2)))}
        assert sampled == dict.fromkeys(pure, (False, "no credit is given for sampling"))


def test_what_holds_for_continuous_noise_only_is_marked() -> None:
    marked = {batch.kind: {m.key for m in methods(batch) if m.continuous} for batch in BATCHES[:4]}
    assert marked[Kind.PURE] == set()
    assert marked[Kind.LAPLACE] == {"renyi", "zcdp_laplace", "pld"}
    assert marked[Kind.GAUSSIAN] == {"basic", "advanced", "optimal", "adaptive", "gdp", "pld"}
    assert {m.key for m in methods(BATCHES[6]) if m.continuous} == {"pld"}
    assert all(m.continuous for m in methods(BATCHES[7]))


def test_laplace_noise() -> None:
    found = {key: round(value, 4) for key, value in said(TENTHS).items()}
    assert found == {
        "basic": 10,
        "advanced": 6.3082,
        "optimal": 4.7746,
        "renyi": 4.9842,
        "zcdp": 5.2191,
        "zcdp_laplace": 5.1249,
        "adaptive": 5.7565,
        "pld": 4.6927,
    }


def test_gaussian_noise() -> None:
    found = said(Batch(Kind.GAUSSIAN, 100, Fraction(1, 20), MILLIONTH))
    assert found["gdp"] == pytest.approx(2.254084650219741, rel=1e-8)
    assert found["gdp"] <= found["pld"] < found["gdp"] * 1.001
    assert found["pld"] < found["zcdp"] <= found["renyi"] < found["zcdp"] * 1.001
    assert found["renyi"] < found["optimal"] < min(found["basic"], found["advanced"], found["adaptive"])


def test_basic_composition_is_rounded_up_by_a_bit_at_most() -> None:
    for k in range(1, 60):
        exact = Fraction(k, 7)
        found = said(Batch(Kind.PURE, k, Fraction(1, 7), MILLIONTH))["basic"]
        assert math.nextafter(found, 0) < exact <= Fraction(found)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10)])
def test_gaussian_releases_have_an_epsilon_each(rate: Fraction) -> None:
    """At their part of delta, as sampled; half of delta is for the composition, where it takes some."""
    found = said(Batch(Kind.GAUSSIAN, 50, Fraction(1, 3), MILLIONTH, rate=rate))
    whole, half = (amplified(gaussian_epsilon(1 / 3, part * 1e-6 / 50 / float(rate)), 0.0, float(rate))[0] for part in (1, 0.5))
    assert found["basic"] == pytest.approx(50 * whole)
    assert found["advanced"] == pytest.approx(advanced_epsilon(half, 50, 5e-7))
    assert found["optimal"] == pytest.approx(optimal_epsilon(half, 50, 1e-6, 1e-8), rel=1e-9)
    assert found["adaptive"] == pytest.approx(adaptive_epsilon(50 * half * half, 5e-7))


def test_a_delta_that_a_sample_alone_meets_leaves_nothing_to_lose() -> None:
    for rate in (Fraction(1, 2), Fraction(1, 10)):
        assert said(Batch(Kind.GAUSSIAN, 1, Fraction(1), Fraction(1, 2), rate=rate))["basic"] == 0


def test_the_tails_of_many_releases_cost_little_of_delta() -> None:
    found = said(Batch(Kind.GAUSSIAN, 10**4, Fraction(1, 1000), MILLIONTH))
    assert found["gdp"] <= found["pld"] < found["gdp"] * 1.001


@pytest.mark.parametrize("kind", Kind)
def test_a_sample_of_all_is_no_sample(kind: Kind) -> None:
    """Next to rate 1 each method that stays says nearly what it says there; where noise is Laplace, Renyi knows only the epsilon."""
    whole, nearly = (said(Batch(kind, 20, Fraction(1, 5), MILLIONTH, rate)) for rate in (Fraction(1), 1 - Fraction(1, 10**9)))
    for key, value in nearly.items():
        if (kind, key) not in ((Kind.LAPLACE, "renyi"), (Kind.GAUSSIAN, "zcdp")):
            assert value == pytest.approx(whole[key], rel=2e-3), key
    assert nearly["zcdp"] >= whole["zcdp"] * (1 - 1e-8)


def test_sampling_makes_cheaper_and_the_exact_methods_most() -> None:
    for kind in Kind:
        whole, part = (said(Batch(kind, 100, Fraction(1), MILLIONTH, rate)) for rate in (Fraction(1), Fraction(1, 100)))
        assert all(value < whole[key] for key, value in part.items() if key != "zcdp" or kind is not Kind.GAUSSIAN)
        assert part["pld"] == min(part.values())


def test_at_delta_0_only_epsilons_add_up() -> None:
    found = said(BATCHES[2])
    assert {key for key, value in found.items() if value < math.inf} == {"basic", "optimal"}
    assert found["basic"] == found["optimal"] == 10
    gaussian = Batch(Kind.GAUSSIAN, 5, Fraction(1), Fraction(0))
    assert set(said(gaussian).values()) == {math.inf}
    assert ledger_epsilon(gaussian) == math.inf
    assert set(said(Batch(Kind.GAUSSIAN, 5, Fraction(1), Fraction(0), Fraction(1, 2))).values()) == {math.inf}


@pytest.mark.parametrize("batch", BATCHES[:5], ids=name)
def test_the_ledger_takes_all_of_them_at_that_cap_and_at_no_lower_one(batch: Batch) -> None:
    """The ledger's own filter, with half of delta aside."""
    cap, delta = Decimal(ledger_epsilon(batch)), rounded_up(batch.delta)
    gaussian = batch.kind is Kind.GAUSSIAN
    rho = gaussian_rho(1, 1 / batch.strength**2) if gaussian else laplace_rho_up(batch.strength)
    spent = Amounts(None if gaussian else rounded_up(batch.strength), rounded_up(rho), Decimal(0)).times(batch.queries)
    assert within(Limit(cap * Decimal("1.000000001"), delta), delta / 2, spent)
    assert cap == 0 or not within(Limit(cap * Decimal("0.999999999"), delta), delta / 2, spent)


@pytest.mark.parametrize("batch", BATCHES, ids=name)
def test_the_strongest_that_fits_fits_and_hardly_more_would(batch: Batch) -> None:
    budget = Fraction(3, 4)
    for method in methods(batch):
        found = strongest(method.epsilon, batch, budget)
        if found is None:
            assert not batch.delta or batch.kind is Kind.GAUSSIAN
            continue
        at, beyond = (method.epsilon(Batch(batch.kind, batch.queries, x, batch.delta, batch.rate)) for x in (found, found * Fraction(10001, 10000)))
        assert at <= float(budget) * (1 + 1e-12) < beyond or found == 100, method.key


def test_the_strongest_is_a_short_number_where_one_is_as_good() -> None:
    assert strongest(BASIC.epsilon, TENTHS, Fraction(263, 10)) == Fraction(263, 1000)


SHAPES: dict[str, tuple[Callable[[float], float], float, int]] = {
    "straight": (lambda x: 3 * x, 1 / 3, 8),
    "bent up": (lambda x: x + math.expm1(min(x, 700)), 0.44285440, 14),
    "bent down": (lambda x: math.sqrt(x) + x * x, 0.52488859, 14),
    "nothing at first": (lambda x: 0.0 if x < 0.01 else x, 1, 11),
    "nothing, then too much": (lambda x: 0.0 if x < 0.37 else 5.0, 0.37, 31),
    "in the end infinite": (lambda x: x if x < 0.4 else math.inf, 0.4, 31),
}


@pytest.mark.parametrize(("epsilon", "fits", "most"), SHAPES.values(), ids=SHAPES)
def test_the_strongest_is_found_soon(epsilon: Callable[[float], float], fits: float, most: int) -> None:
    """In about half as many steps as bisection takes, where an epsilon is smooth; else in as many."""
    asked: list[Fraction] = []

    def at(batch: Batch) -> float:
        asked.append(batch.strength)
        assert len(asked) <= most
        return epsilon(float(batch.strength))

    found = strongest(at, TENTHS, Fraction(1))
    assert found is not None
    assert epsilon(float(found)) <= 1
    assert float(found) == pytest.approx(fits, rel=1.1e-7)


def test_what_always_or_never_fits() -> None:
    assert strongest(BASIC.epsilon, TENTHS, Fraction(10**6)) == 100
    assert strongest(BASIC.epsilon, TENTHS, Fraction(1, 10**8)) is None


def test_strengths_at_the_ends_count() -> None:
    """A hundred at 10^-9 or at 100 each; a little less does not fit."""
    assert strongest(BASIC.epsilon, TENTHS, Fraction(1, 10**7)) == Fraction(1, 10**9)
    assert strongest(BASIC.epsilon, TENTHS, Fraction(1, 2 * 10**7)) is None
    assert strongest(BASIC.epsilon, TENTHS, Fraction(10**4)) == 100
    assert strongest(BASIC.epsilon, TENTHS, Fraction(9000)) == 90
