"""`dpquery account`: what the methods of accounting say of k queries; needs no schema and no data."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpquery.cli.options import PageFormat
from dpquery.cli.output import Page
from dpquery.errors import Refused

if TYPE_CHECKING:
    from dpquery.accounting.comparison import Batch

MOST_QUERIES, MOST_UNITS = 1_000_000, 1000
SMALLEST, STRONGEST = Fraction(1, 10**9), Fraction(100)
Queries = Annotated[str, typer.Option(help="How many queries, all alike.", metavar="K")]
Each = Annotated[str | None, typer.Option(help="The epsilon of one query.", metavar="E")]
Total = Annotated[str, typer.Option(help="The delta of all together.", metavar="D")]
Kinds = Annotated[
    str | None, typer.Option("--mechanism", help="pure (anything), laplace or gaussian.  [default: pure]", metavar="NAME", show_default=False)
]
Sigma = Annotated[str | None, typer.Option(help="Gaussian noise, in units of the sensitivity.", metavar="S")]
Rate = Annotated[str, typer.Option("--sample-rate", help="Each query sees each unit with this probability.", metavar="Q")]
Group = Annotated[str, typer.Option(help="The loss of so many units together.", metavar="N")]
Budget = Annotated[str | None, typer.Option(help="The other way round: what each query may cost within this epsilon.", metavar="B")]


def account(
    queries: Queries,
    epsilon: Each = None,
    delta: Total = "1e-6",
    mechanism: Kinds = None,
    sigma: Sigma = None,
    sample_rate: Rate = "1",
    group: Group = "1",
    budget: Budget = None,
    form: PageFormat = Page.TABLE,
) -> None:
    """Compare methods of accounting.

    What k queries cost together by each of them, and which the ledger may use. No schema is needed; nothing is charged."""
    from dpquery.accounting import comparison
    from dpquery.cli import output
    from dpquery.display import comparison as shown

    count, units, share = _whole("queries", queries, MOST_QUERIES), _whole("group", group, MOST_UNITS), _number("delta", delta)
    if share >= 1:
        raise _usage("delta is below 1", "give a small one, such as 1e-6")
    if share and share < Fraction(1, 10**100):
        raise _usage("delta is 0 or at least 1e-100", "give a small one, such as 1e-6")
    rate = _positive("sample-rate", sample_rate)
    if rate > 1 or rate < SMALLEST:
        raise _usage("sample-rate is a probability: at least 1e-9 and at most 1", "leave it out where no sample is drawn")
    if rate < 1 and units > 1:
        raise _usage("group and sample-rate do not go together", "ask for one of them")
    kind = _kind(mechanism, sigma)
    given = [value for value in (epsilon, sigma, budget) if value is not None]
    if len(given) != 1:
        raise _usage("one of --epsilon, --sigma and --budget is needed", "`--epsilon 0.1` says what one query costs, `--budget 1` what all may")
    batch = comparison.Batch(kind, count, Fraction(1), share, rate)
    if budget is not None:
        content = _inverse(batch, units, _budget(budget))
    else:
        batch, each = _strength(batch, epsilon, sigma)
        content = _forward(batch, units, each)
    output.page(form, content, shown.comparison(content))


def _forward(batch: Batch, units: int, each: Fraction | None) -> dict[str, Any]:
    """What each method says of the batch, for a group of so many units."""
    from dataclasses import replace

    from dpquery.accounting import comparison

    together = replace(batch, strength=_bounded(batch.strength * units))
    found = [_method(m, _finite(m.epsilon(together))) for m in comparison.methods(batch)]
    return _content(batch, units, each) | {"unit": "epsilon", "methods": found, "ledger": _finite(comparison.ledger_epsilon(together))}


def _inverse(batch: Batch, units: int, budget: Fraction) -> dict[str, Any]:
    """How strong each of the queries may be, by each method."""
    from dpquery.accounting import comparison

    gaussian = batch.kind is comparison.Kind.GAUSSIAN

    def value(epsilon: Any) -> float | None:
        found = comparison.strongest(epsilon, batch, budget)
        return None if found is None else float(units / found if gaussian else found / units)

    found = [_method(m, value(m.epsilon)) for m in comparison.methods(batch)]
    unit, ledger = "sigma" if gaussian else "epsilon each", value(comparison.ledger_epsilon)
    return _content(batch, units, None) | {"sigma": None, "epsilon": None, "budget": float(budget), "unit": unit, "methods": found, "ledger": ledger}


def _content(batch: Batch, units: int, each: Fraction | None) -> dict[str, Any]:
    gaussian = batch.kind.value == "gaussian"
    return {
        "queries": batch.queries,
        "mechanism": batch.kind.value,
        "epsilon": None if each is None else float(each),
        "query_delta": float(batch.delta / batch.queries) if gaussian and each is not None else 0.0,
        "sigma": float(1 / batch.strength) if gaussian else None,
        "delta": float(batch.delta),
        "sample_rate": float(batch.rate),
        "group": units,
        "budget": None,
    }


def _method(method: Any, value: float | None) -> dict[str, Any]:
    return {
        "method": method.key,
        "name": method.name,
        "value": value,
        "ledger": method.ledger,
        "reason": method.why,
        "continuous": method.continuous,
    }


def _strength(batch: Batch, epsilon: str | None, sigma: str | None) -> tuple[Batch, Fraction | None]:
    """The batch with the noise that was asked for, and the epsilon of one query where that was given."""
    from dataclasses import replace

    from dpquery.accounting.comparison import Kind
    from dpquery.accounting.textbook.gaussian import gaussian_sigma

    if sigma is not None:
        return replace(batch, strength=_bounded(1 / _positive("sigma", sigma))), None
    each = _bounded(_positive("epsilon", epsilon or ""))
    if batch.kind is not Kind.GAUSSIAN:
        return replace(batch, strength=each), each
    if not batch.delta:
        raise _usage("Gaussian noise has no epsilon at delta 0", "give a delta, or the noise itself by --sigma")
    return replace(batch, strength=_bounded(1 / Fraction(gaussian_sigma(float(each), float(batch.delta / batch.queries))))), each


def _kind(mechanism: str | None, sigma: str | None) -> Any:
    from dpquery.accounting.comparison import Kind

    name = mechanism or ("pure" if sigma is None else "gaussian")
    if name not in tuple(Kind):
        raise _usage("mechanism is none of pure, laplace and gaussian", "pure holds for every epsilon-DP mechanism")
    if sigma is not None and name != Kind.GAUSSIAN:
        raise _usage("sigma is for Gaussian noise", "give --epsilon")
    return Kind(name)


# ---- numbers -----------------------------------------------------------------------------------------------------------------------------


def _number(name: str, text: str) -> Fraction:
    """The decimal that was written. Refused where it is negative, no number, or beyond all proportion."""
    try:
        number = Decimal(text) if len(text) <= 100 and text.isascii() and "_" not in text else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number < 0 or abs(number.adjusted()) > 400:
        raise _usage(f"{name} is not a number that fits here", f"give {name} as a plain decimal, 0 or above")
    return Fraction(number)


def _positive(name: str, text: str) -> Fraction:
    number = _number(name, text)
    if number == 0:
        raise _usage(f"{name} is above 0", f"give {name} as a plain decimal")
    return number


def _whole(name: str, text: str, most: int) -> int:
    number = _number(name, text)
    if number.denominator != 1 or not 1 <= number <= most:
        raise _usage(f"{name} is a whole number from 1 to {most:,}", f"give {name} in digits")
    return int(number)


def _budget(text: str) -> Fraction:
    budget = _positive("budget", text)
    if not SMALLEST <= budget <= 10**6:
        raise _usage("budget is at least 1e-9 and at most 1,000,000", "give the epsilon of all queries together")
    return budget


def _bounded(strength: Fraction) -> Fraction:
    """The epsilon of one query, or 1 / sigma, for the whole group: refused beyond what means anything."""
    if not SMALLEST <= strength <= STRONGEST:
        raise _usage(
            "one query's epsilon (or 1/sigma), times the group, is at least 1e-9 and at most 100",
            "beyond that there is no privacy, or no loss, to account",
        )
    return strength


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _usage(message: str, instead: str) -> Refused:
    return Refused("USAGE", message, instead=instead)
