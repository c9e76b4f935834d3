"""OpenDP with its Polars plugin, over frames in memory."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
from lines import Ask, Cannot, Rows, serve

CANNOT = {"join": "joins with public tables only"}


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    month = pl.col("day").dt.truncate("1mo").cast(pl.String).alias("month")
    events = pl.read_parquet(folder / "events.parquet").with_columns(month).drop("day")
    users = pl.read_parquet(folder / "users.parquet")
    rows, groups = told["rows_per_group"], told["groups"]
    (low, high), (young, old) = told["amount"], told["age"]
    amount, age = pl.col("amount").fill_null(0.0).fill_nan(0.0), pl.col("age").fill_null(0)
    total, ages = amount.dp.sum((float(low), float(high))), age.dp.sum((young, old))
    categories, countries = pl.DataFrame({"category": told["categories"]}), pl.DataFrame({"country": told["countries"]})
    cells = categories.join(pl.DataFrame({"month": told["months"]}), how="cross")
    bins = [low + (high - low) * i / 1000 for i in range(1001)]

    def of(
        frame: Any, by: list[str], keys: Any, most: int, share: int | None, what: Sequence[Any], mean: bool = False, shown: slice = slice(None)
    ) -> Ask:
        def ask() -> Rows:
            found = _release(frame, by, keys, most, share, what, told)
            return [(row[: len(by)], _numbers(row[len(by) :], mean)[shown]) for row in found.iter_rows()]

        return ask

    asks = {
        "total": of(events, [], None, rows, None, [dp.len()]),
        "public": of(events, ["category"], categories, rows, groups, [dp.len(), total], mean=True),
        "private": of(events, ["key"], None, rows, groups, [dp.len(), total]),
        "months": of(events, ["category", "month"], cells, rows, groups, [dp.len(), total]),
        "users": of(users, ["country"], countries, 1, 1, [dp.len(), ages], mean=True, shown=slice(0, None, 2)),
        "distinct": of(events, ["category"], categories, 1, groups, [dp.len()]),
        "median": of(events, [], None, rows, None, [amount.dp.median(bins)]),
    }

    def asked(name: str, _: Any) -> Ask:
        if name not in asks:
            raise Cannot(CANNOT[name])
        return asks[name]

    return f"OpenDP {importlib.metadata.version('opendp')} with Polars {pl.__version__}", asked


def _numbers(values: Sequence[Any], mean: bool) -> list[Any]:
    """A mean is the sum over the count: both are released anyway."""
    return [*values, values[1] / max(values[0], 1)] if mean else list(values)


def _release(frame: Any, by: list[str], keys: Any, most: int, share: int | None, what: Sequence[Any], told: dict[str, Any]) -> Any:
    single = share == 1  # one row a user, declared: nothing to truncate
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1) if single else dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=told["epsilon"], delta=told["delta"]),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=frame.height, max_groups=frame.height)],
    )
    query = context.query()
    if not by:
        return query.truncate_per_group(most).select(*what).release().collect()
    if not single:
        query = query.truncate_per_group(most, by=by).truncate_num_groups(share, by=by, keep="first")
    query = query.group_by(by).agg(*what)
    return (query if keys is None else query.with_keys(keys.lazy())).release().collect()


if __name__ == "__main__":
    serve(opened)
