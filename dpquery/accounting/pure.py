"""Prices in pure differential privacy."""

from __future__ import annotations

from fractions import Fraction


def laplace_epsilon(l1: int, scale: Fraction) -> Fraction:
    """Z0. The epsilon of discrete Laplace noise: l1 / scale, exactly.

    Given   a vector of integers that one unit moves by at most l1 in L1, and independent discrete Laplace noise of scale b on each.
    Claim   the noisy vector is (l1 / b)-DP.
    Proof   P(z) is proportional to exp(-|z| / b), so a shift d of one coordinate changes the probability of each outcome by a factor of at most
            exp(|d| / b); the coordinates are independent and the factors multiply.
    Tight   test_laplace_epsilon_is_reached_by_outcomes_beyond_both_vectors
    Source  Ghosh, Roughgarden and Sundararajan 2009; Dwork et al. 2006.
    """
    return Fraction(l1) / scale


def choice_epsilon(spread: int, scale: Fraction) -> Fraction:
    """Z4. The epsilon of choices by scores (M7): spread / scale, exactly.

    Given   scores of several groups, which one unit moves by d_i each; in each group the largest d_i less the smallest is at most r, and these r add
            up to at most `spread`. In each group one score is chosen by M7, of scale s, permute and flip or exponential.
    Claim   the choices together are (spread / s)-DP.
    Proof   One group. Permute and flip chooses i where Z_i >= t, t being the largest q_j + Z_j of the others less q_i: given these, with probability
            min(1, exp(-t / s)). On the neighbour t is larger by at most max d - min d <= r (the largest of sums moves by max d at most, q_i by
            min d at least), so that the probability is at least exp(-r / s) times as much; so it is on average over the others' Z.
            Exponential: exp(q_i / s) changes by exp(d_i / s), and the sum of all by at most exp(max d / s): their ratio by exp(r / s) at most.
            Groups' choices are independent, and the factors multiply. Where all scores move one way, by D at most (counts, under add/remove), r
            is D; else 2 D, the factor 2 of the textbook.
    Tight   test_choice_epsilon_is_reached
    Source  McKenna and Sheldon 2020; Ding et al. 2021; McSherry and Talwar 2007; Durfee and Rogers 2019 (monotone scores).
    """
    return Fraction(spread) / scale
