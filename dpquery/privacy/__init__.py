"""The argument: what is bounded, how far one unit moves it, what that costs. Reads the plan alone; one lemma, one function, its proof beside it.

locality.py       L  whose rows are whose
rows.py           L  how many rows a unit has
later.py          L  relations that are filled between releases
raced.py          C  the best of several caps
early.py          L  which cells may be made before a join
contribution.py   C  how far one unit moves the exact sums
resolve.py        R  a draft becomes a bounded release
nearer.py         R  which way quantiles are found
allocation.py     P  how a price is split over parts
cost.py           P  noise and price
together.py       P  several releases of one statement
"""

from dpquery.privacy.contribution import Sensitivity, enforced, groups_of_a_unit, sensitivities
from dpquery.privacy.cost import Priced, calibrate, kept, reprice
from dpquery.privacy.nearer import settled
from dpquery.privacy.resolve import Facts, bound, lemmas, warnings
from dpquery.privacy.together import Bill, bill, price

__all__ = [
    "Bill",
    "Facts",
    "Priced",
    "Sensitivity",
    "bill",
    "bound",
    "calibrate",
    "enforced",
    "groups_of_a_unit",
    "kept",
    "lemmas",
    "price",
    "reprice",
    "sensitivities",
    "settled",
    "warnings",
]
