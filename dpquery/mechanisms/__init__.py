"""Noise on integers and choices among them: exact laws, exact draws, and what the laws promise (tails, thresholds, widths)."""

from dpquery.mechanisms.bits import BitSource, SystemBits
from dpquery.mechanisms.card import Noise, Randomness
from dpquery.mechanisms.choice import choose, shortfall
from dpquery.mechanisms.sampler import sample
from dpquery.mechanisms.tails import beyond_up, deviation, half_width, selection_delta_up, tail_up, threshold

__all__ = [
    "BitSource",
    "Noise",
    "Randomness",
    "SystemBits",
    "beyond_up",
    "choose",
    "deviation",
    "half_width",
    "sample",
    "selection_delta_up",
    "shortfall",
    "tail_up",
    "threshold",
]
