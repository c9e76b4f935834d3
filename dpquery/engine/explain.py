"""EXPLAIN: what a statement would cost, what would be measured and how far off it would be. No private row is read, nothing is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpquery.aggregates import CARDS
from dpquery.engine import receipt
from dpquery.ledger.amounts import text
from dpquery.privacy import lemmas
from dpquery.schema.model import Schema

if TYPE_CHECKING:
    from dpquery.engine.session import Prepared

JSON = Any


@dataclass(frozen=True, slots=True)
class Explanation:
    """The machine contract of `explain`: lengths are in the released values' own units, `step` is the grid.

    `response_quantum` is the time grid on which the reply leaves, in seconds as a decimal string; None: it leaves at once.
    """

    price: Mapping[str, JSON]
    releases: list[JSON]
    keys: Mapping[str, JSON]
    lemmas: tuple[str, ...]
    columns: tuple[str, ...]
    warnings: tuple[str, ...]
    response_quantum: str | None
    sql: str

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        return {
            "price": dict(self.price),
            "releases": self.releases,
            "keys": dict(self.keys),
            "lemmas": list(self.lemmas),
            "columns": list(self.columns),
            "warnings": list(self.warnings),
            "response_quantum": self.response_quantum,
            "sql": self.sql,
        }


def explanation(prepared: Prepared, schema: Schema) -> Explanation:
    """The explanation of a prepared statement."""
    release, priced = prepared.release, prepared.priced
    rows = receipt.releases(prepared, schema)
    for row, aggregate in zip(rows, release.aggregates, strict=False):
        noises = tuple(priced.noises[i] for i in aggregate.parts)
        row["expected_error"] = CARDS[aggregate.card].expected_error(aggregate, noises, prepared.ask.confidence)
    for row in rows[len(release.aggregates) :]:
        row["expected_error"] = row["scale"]
    return Explanation(
        price=receipt.price(prepared),
        releases=rows,
        keys=receipt.keys(prepared),
        lemmas=tuple(lemmas(release)),
        columns=tuple(output.name for output in prepared.question.post.outputs),
        warnings=(*prepared.question.warnings, *receipt.plan_warnings(prepared, schema)),
        response_quantum=None if schema.limits.response_quantum is None else text(schema.limits.response_quantum),
        sql=prepared.lowered.text,
    )
