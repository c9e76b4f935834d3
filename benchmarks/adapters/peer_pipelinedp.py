"""PipelineDP on its local backend, over tuples in memory."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pipeline_dp
from lines import Ask, Cannot, Rows, serve
from pipeline_dp import Metrics

Row = tuple[Any, ...]  # user, partition, value


def opened(folder: Path, told: dict[str, Any]) -> tuple[str, Callable[[str, Any], Ask]]:
    columns = "user_id, category, amount, key, strftime(day, '%Y-%m-01')"
    user, category, amount, key, month = zip(
        *duckdb.sql(f"SELECT {columns} FROM read_parquet('{folder / 'events.parquet'}')").fetchall(), strict=True
    )
    people = duckdb.sql(f"SELECT user_id, country, age FROM read_parquet('{folder / 'users.parquet'}')").fetchall()
    categories, countries, months = told["categories"], told["countries"], told["months"]
    cells = [(c, m) for c in categories for m in months]
    counted = [Metrics.COUNT, Metrics.SUM]
    loaded: dict[str, tuple[Callable[[], list[Row]], Any, Sequence[Any]]] = {
        "total": (lambda: [(u, "", 0) for u in user], [""], [Metrics.COUNT]),
        "public": (lambda: list(zip(user, category, amount, strict=True)), categories, [*counted, Metrics.MEAN]),
        "private": (lambda: list(zip(user, key, amount, strict=True)), None, counted),
        "months": (lambda: list(zip(user, zip(category, month, strict=True), amount, strict=False)), cells, counted),
        "users": (lambda: people, countries, [Metrics.COUNT, Metrics.MEAN]),
        "distinct": (lambda: list(zip(user, category, amount, strict=True)), categories, [Metrics.PRIVACY_ID_COUNT]),
        "median": (lambda: list(zip(user, [""] * len(user), amount, strict=True)), [""], [Metrics.PERCENTILE(50)]),
    }
    rows = {name: make() for name, (make, _, _) in loaded.items()}

    def answer(name: str) -> Rows:
        _, public, metrics = loaded[name]
        found = _aggregated(rows[name], public, metrics, name, told)
        return [(list(key) if isinstance(key, tuple) else [key] if key != "" else [], list(values)) for key, values in found]

    def asked(name: str, _: Any) -> Ask:
        if name not in loaded:
            raise Cannot("no joins: rows are joined before it sees them")
        return lambda: answer(name)

    return f"PipelineDP {importlib.metadata.version('pipeline-dp')}", asked


def _aggregated(rows: list[Row], public: Any, metrics: Sequence[Any], name: str, told: dict[str, Any]) -> list[tuple[Any, Any]]:
    one = name in ("total", "median")
    low, high = told["age"] if name == "users" else told["amount"]
    groups = 1 if one or name == "users" else told["groups"]
    params = pipeline_dp.AggregateParams(
        metrics=list(metrics),
        noise_kind=pipeline_dp.NoiseKind.LAPLACE if groups == 1 else pipeline_dp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=groups,
        max_contributions_per_partition=1 if name in ("users", "distinct") else told["rows_per_group"],
        min_value=float(low),
        max_value=float(high),
    )
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=told["epsilon"], total_delta=told["delta"])
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    extract = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: row[2]
    )
    result = engine.aggregate(rows, params, extract, public)
    budget.compute_budgets()
    names = {"COUNT": "count", "SUM": "sum", "MEAN": "mean", "PRIVACY_ID_COUNT": "privacy_id_count", "PERCENTILE(50)": "percentile_50"}
    return [(key, [getattr(values, names[str(metric)]) for metric in metrics]) for key, values in result]


if __name__ == "__main__":
    serve(opened)
