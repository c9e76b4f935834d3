"""The argument: what is bounded, how far one unit moves it, what that costs. Reads the plan alone; one lemma, one function, its proof beside it.

locality.py       L  whose rows are whose
contribution.py   C  how far one unit moves the exact sums
resolve.py        R  a draft becomes a bounded release
cost.py           P  noise and price
"""

from dpquery.privacy.contribution import Sensitivity, enforced, sensitivities
from dpquery.privacy.cost import Priced, calibrate, reprice
from dpquery.privacy.resolve import Facts, bound, lemmas, warnings

__all__ = ["Facts", "Priced", "Sensitivity", "bound", "calibrate", "enforced", "lemmas", "reprice", "sensitivities", "warnings"]
