"""What the methods of accounting say of a batch, for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from rich.text import Text

from dpquery.display.text import Column, amount, facts, grid

if TYPE_CHECKING:
    from rich.console import RenderableType

DISCRETE = {
    "laplace": "may lose as much as any mechanism of that epsilon: see --mechanism pure",
    "gaussian": "may lose a little more",
}


def comparison(content: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The batch, a line a method, and what the ledger makes of it; `content` is the object for machines."""
    yield facts(_batch(content))
    yield Text("")
    yield _methods(content["methods"], content["unit"])
    yield Text("")
    if any(m["continuous"] for m in content["methods"]):
        yield Text(f"* holds for continuous noise. dpquery's is discrete, and {DISCRETE[content['mechanism']]}.\n")
    yield Text(_ledger(content))


def _batch(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "queries", f"{content['queries']:,}, all alike"
    yield "one query", _query(content)
    if content["sample_rate"] < 1:
        yield "sample", f"each unit with probability {amount(content['sample_rate'])}, anew for each query"
    if content["group"] > 1:
        yield "for", f"{content['group']} units together"
    yield "delta", f"{amount(content['delta'])}, of all together"
    if content["budget"] is not None:
        yield "budget", f"epsilon {amount(content['budget'])}, for all together"


def _query(content: Mapping[str, Any]) -> str:
    noise = {"pure": "any mechanism", "laplace": "Laplace noise", "gaussian": "Gaussian noise"}[content["mechanism"]]
    if content["sigma"] is not None:
        noise += f" of {_number(content['sigma'], ROUND_UP)} times the sensitivity"
    if content["epsilon"] is None:
        return noise
    also = f", delta {amount(content['query_delta'])}" if content["query_delta"] else ""
    return f"epsilon {amount(content['epsilon'])}{also}: {noise}"


def _methods(methods: Sequence[Mapping[str, Any]], unit: str) -> RenderableType:
    return grid(
        [
            Column("method", tuple(f"{m['name']} *" if m["continuous"] else m["name"] for m in methods)),
            Column(unit, tuple(_number(m["value"], ROUND_DOWN if unit == "epsilon each" else ROUND_UP) for m in methods), number=True),
            Column("ledger", tuple("yes" if m["ledger"] else "no" for m in methods)),
            Column("because", tuple(m["reason"] for m in methods)),
        ]
    )


def _ledger(content: Mapping[str, Any]) -> str:
    value, delta = content["ledger"], f"delta {amount(content['delta'])}"
    if content["budget"] is None:
        said = "no cap on epsilon" if value is None else f"a cap of epsilon {_number(value, ROUND_UP)}, {delta}"
        verb = "is enough" if value is None else "takes all of them"
        return f"In the ledger {said} {verb}: half of delta is kept for private groups, and questions may be chosen after seeing answers."
    cap = f"A cap of epsilon {amount(content['budget'])}, {delta} in the ledger"
    if value is None:
        return f"{cap} takes so many queries at no strength."
    least = (
        f"noise of {_number(value, ROUND_UP)} times the sensitivity each"
        if content["unit"] == "sigma"
        else f"epsilon {_number(value, ROUND_DOWN)} each"
    )
    return f"{cap} takes them at {least}: half of delta is kept for private groups, and questions may be chosen after seeing answers."


def _number(value: float | None, rounding: str) -> str:
    """Five digits, towards more loss; nothing where there is no number."""
    if value is None or not math.isfinite(value):
        return "none"
    rounded = Context(prec=5, rounding=rounding).create_decimal(Decimal(repr(value)))
    return f"{rounded.normalize():f}" if -5 < rounded.adjusted() < 9 else f"{rounded.normalize():e}"
