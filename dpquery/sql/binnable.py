"""Private keys that would be public as bins: whole numbers within bounds, which EXPLAIN tells of."""

from __future__ import annotations

from collections.abc import Iterator

from dpquery.plan.draft import Draft
from dpquery.plan.functions import call
from dpquery.plan.scalar import Column
from dpquery.sql.aggregates import unit_columns
from dpquery.sql.bins import bins
from dpquery.sql.quoting import written
from dpquery.sql.sides import facts, firm
from dpquery.values.types import INTEGER


def hints(draft: Draft) -> Iterator[str]:
    """A word on each such key: it stays private unless it is written as bins, since a list shows every value that bounds leave."""
    if draft.sources:
        return
    known, steady = facts(draft.input), firm(draft.input) - unit_columns(draft.input)
    for key in draft.keys:
        value = key.value
        if isinstance(value, Column) and value.type == INTEGER and value.id in steady and bins(call("floor", value), known) is not None:
            name = written(value.name)
            yield f"With floor({name}) in place of {name} the key is public; where all keys are, every group appears, and none takes delta."
