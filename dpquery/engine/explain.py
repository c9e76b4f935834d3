"""EXPLAIN: what a statement would cost, what would be measured and how far off it would be. No private row is read, nothing is charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpquery.aggregates import card
from dpquery.engine import receipt
from dpquery.engine.aim import Aim
from dpquery.engine.cost import Now
from dpquery.ledger.amounts import text
from dpquery.schema.model import Schema
from dpquery.sql.binnable import hints

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready

JSON = Any
CAP = "cap"  # lengths are in shares of a cap that is not chosen yet


@dataclass(frozen=True, slots=True)
class Explanation:
    """The machine contract of `explain`: lengths are in the released values' own units, or in what `lengths_in` says; `step` is the grid.

    `now` says what it would cost the account at this time, None where the ledger does not say what that holds.
    `aim`, where an error was named, has what was tried to meet it.
    `tables`, where a statement makes several releases, has the rule of keys and the price of each; `sql` then holds several statements.
    `plan` says of each bounded statement which way it goes, and why.
    `response_quantum` is the time grid on which the reply leaves, in seconds as a decimal string; None: it leaves at once.
    """

    price: Mapping[str, JSON]
    releases: list[JSON]
    keys: Mapping[str, JSON]
    tables: list[JSON]
    lemmas: tuple[str, ...]
    columns: tuple[str, ...]
    warnings: tuple[str, ...]
    response_quantum: str | None
    plan: tuple[str, ...]
    sql: str
    now: Now | None = None
    aim: Aim | None = None

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        return {
            "price": dict(self.price),
            "now": None if self.now is None else self.now.as_dict(),
            **({} if self.aim is None else {"aim": self.aim.as_dict()}),
            "releases": self.releases,
            "keys": dict(self.keys),
            **({"tables": self.tables} if self.tables else {}),
            "lemmas": list(self.lemmas),
            "columns": list(self.columns),
            "warnings": list(self.warnings),
            "response_quantum": self.response_quantum,
            "plan": list(self.plan),
            "sql": self.sql,
        }


def explanation(prepared: Prepared, schema: Schema, now: Now | None, said: tuple[str, ...]) -> Explanation:
    """The explanation of a prepared statement; `now` and `said` are what is to be told of the account."""
    rows = receipt.releases(prepared, schema)
    expected = [one for block in prepared.blocks for one in _expected(block, prepared.ask.confidence)]
    for row, (error, capped) in zip(rows, expected, strict=True):
        row["expected_error"] = row["scale"] if error is None else error
        if capped:
            row["lengths_in"] = CAP
    rules = receipt.key_rules(prepared)
    hinted = dict.fromkeys(hint for block in prepared.question.blocks for hint in hints(block.draft))
    return Explanation(
        price=receipt.price(prepared),
        releases=rows,
        keys=rules["keys"],
        tables=rules.get("tables", []),
        lemmas=receipt.cited(prepared),
        columns=tuple(output.name for output in prepared.question.post.outputs),
        warnings=(*prepared.question.warnings, *hinted, *receipt.plan_warnings(prepared, schema), *said),
        response_quantum=None if schema.limits.response_quantum is None else text(schema.limits.response_quantum),
        plan=tuple(block.lowered.way for block in prepared.blocks),
        sql=";\n\n".join(block.lowered.text for block in prepared.blocks),
        now=now,
        aim=prepared.aim,
    )


def _expected(block: Ready, confidence: Fraction) -> Iterator[tuple[JSON, bool]]:
    """The expected error of each aggregate, and nothing for a count that only decides which groups appear; and whether it is in units of a cap."""
    for aggregate in block.release.aggregates:
        noises = tuple(block.priced.noises[i] for i in aggregate.parts)
        yield card(aggregate).expected_error(aggregate, noises, confidence), aggregate.cap is not None
    if receipt.hidden_count(block.release) is not None:
        yield None, False
