"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpquery.cli.output import Page

SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema file.", metavar="FILE", readable=False)]
LedgerPlace = Annotated[
    str | None, typer.Option("--ledger", help="The ledger, a file or a URL; without it the schema's, or the one beside it.", metavar="FILE|URL")
]
Analyst = Annotated[str | None, typer.Option(help="The account to charge; without it the shared one, `default`.", metavar="NAME")]
PageFormat = Annotated[Page, typer.Option("--format", help="table for people, json for machines.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", help="The value of $NAME; without a name that of the next `?`. NAME:TYPE=VALUE says its type.", metavar="NAME=VALUE"),
]
Epsilon = Annotated[str | None, typer.Option(help="The price of the whole statement, as a decimal.", metavar="E")]
Delta = Annotated[str | None, typer.Option(help="The delta of the whole statement.", metavar="D")]
Rho = Annotated[str | None, typer.Option(help="The price in zCDP instead of epsilon.", metavar="R")]
Confidence = Annotated[str | None, typer.Option(help="The confidence level of the error bars.  [default: 0.95]", metavar="C", show_default=False)]
Noise = Annotated[str | None, typer.Option(help="laplace or gaussian.  [default: the one that errs least]", metavar="NAME", show_default=False)]
Bounds = Annotated[str | None, typer.Option(help="auto: chosen from the data where the statement writes none.", metavar="auto", show_default=False)]
ERROR = "Instead of a price, how far off the answer may be: 50, '5% of 20000', '5% of orders.amount'; with NAME= one column of it."
ErrorGoal = Annotated[list[str] | None, typer.Option("--error", help=ERROR, metavar="ERROR")]
Dialect = Annotated[str, typer.Option(help="duckdb, bigquery, snowflake, postgres, spark or trino.", metavar="NAME")]
