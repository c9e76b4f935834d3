"""Decimal arithmetic here never depends on the caller's decimal context: a minus sign on a Decimal would round to it."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpquery import numbers
from dpquery.accounting.convert import delta_up, epsilon_up, rho_down
from dpquery.accounting.zcdp import laplace_epsilon_down, laplace_rho_up
from dpquery.mechanisms import Noise, half_width, tail_up, threshold
from dpquery.mechanisms.laws import law_of
from dpquery.plan.release import Mechanism

THIRD, WIDE = Fraction(1, 3), Noise(Mechanism.GAUSSIAN, Fraction(10**70))
CALLS: dict[str, Callable[[], object]] = {
    "epsilon": lambda: epsilon_up(THIRD, Fraction(1, 10**9)),
    "rho": lambda: rho_down(THIRD, Fraction(1, 10**9)),
    "delta": lambda: delta_up(THIRD, Fraction(7)),
    "laplace rho": lambda: laplace_rho_up(THIRD),
    "laplace epsilon": lambda: laplace_epsilon_down(THIRD),
    "tails": lambda: [law_of(Noise(m, v)).tail(t, 4096) for m in Mechanism for v in (Fraction(1, 7), Fraction(10**6, 7)) for t in (1, 500, 5000)],
    "wide tails": lambda: [tail_up(WIDE, t) for t in (10**35 + 7, 5 * 10**35 + 7)],
    "threshold": lambda: threshold(Noise(Mechanism.GAUSSIAN, Fraction(10**6)), Fraction(1, 10**9), 3),
    "half width": lambda: half_width(WIDE, Fraction(95, 100)),
    "exp": lambda: (numbers.exp_up(THIRD), numbers.exp_down(-THIRD), numbers.exp_fixed(THIRD, 200)),
    "log": lambda: (numbers.log_up(THIRD), numbers.log_down(THIRD)),
    "decimals": lambda: (numbers.decimal_up(THIRD, 40), numbers.decimal_down(-THIRD, 40), numbers.decimal_up(10**40 * THIRD, -3)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_callers_context_changes_nothing(call: Callable[[], object]) -> None:
    usual = call()
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_DOWN, Emin=-5, Emax=5, traps=[decimal.Inexact, decimal.Rounded])):
        assert call() == usual
