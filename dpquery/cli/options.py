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
