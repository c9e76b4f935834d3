"""`dpquery budget`: what an account has spent and has left; and `budget grant`, by which its owner raises a cap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpquery.cli import output, stream
from dpquery.cli.options import Analyst, Confidence, Delta, Dialect, Epsilon, ErrorGoal, LedgerPlace, Noise, PageFormat, Rho, SchemaFile
from dpquery.cli.output import Page
from dpquery.cli.params import wanted
from dpquery.cli.statement import statement
from dpquery.errors import Refused

if TYPE_CHECKING:
    from dpquery.engine import Wanted

budgets = typer.Typer(help="Show what an account has spent and has left.", rich_markup_mode=None, invoke_without_command=True)
Units = Annotated[int | None, typer.Option(help="Show what is promised to so many people together.", metavar="K", min=1, max=10_000)]
WhatIf = Annotated[Path | None, typer.Option(help="Price the statements of a file, or of standard input (-).", metavar="FILE")]
Mine = Annotated[Path | None, typer.Option("--schema", help="The schema file.", metavar="FILE", readable=False)]


@budgets.callback()
def budget(
    context: typer.Context,
    schema: Mine = None,
    ledger: LedgerPlace = None,
    analyst: Analyst = None,
    units: Units = None,
    what_if: WhatIf = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    confidence: Confidence = None,
    noise: Noise = None,
    error: ErrorGoal = None,
    dialect: Dialect = "duckdb",
    form: PageFormat = Page.TABLE,
) -> None:
    """Show what an account has spent and has left.

    Raw sums, the cap, which is what is promised, and losses that were fixed in advance. The owner sees all accounts by `dpquery ledger list`.
    With --what-if FILE what the statements in it would cost, in order, and which of them fit; a price is that of each. Nothing is charged."""
    price = wanted(epsilon, delta, rho, confidence, noise, error)
    named = any(value not in (None, False) for value in price.values())  # what is not tidied is no price
    if context.invoked_subcommand is not None:
        if schema or ledger or analyst or units or what_if or named or form is not Page.TABLE:
            raise Refused("USAGE", "options of `budget` come after its command", instead="`dpquery budget grant --schema FILE ..`")
        return
    if schema is None:
        raise Refused("USAGE", "Missing option '--schema'.", instead="`dpquery budget --help` shows what there is")
    if what_if is not None:
        if units is not None:
            raise Refused("USAGE", "--units is of the whole budget, not of a workload", instead="one of --units and --what-if")
        _workload(schema, ledger, analyst, what_if, dialect, price, form)
        return
    if named:
        raise Refused("USAGE", "a price is for statements, and there are none", instead="--what-if FILE, with the statements in the file")
    from dpquery.display import accounts
    from dpquery.display.together import together
    from dpquery.engine import fits, open_session

    session = open_session(schema, analyst, ledger)
    try:
        found, counts = session.budget(), fits(session)
    finally:
        session.close()
    several = None if units is None else together(found, units)
    content = {**found.as_dict(), "fits": counts}
    output.page(form, content if several is None else {**content, "together": several}, accounts.budget(found, counts, several))


def _workload(schema: Path, ledger: str | None, analyst: str | None, file: Path, dialect: str, price: Wanted, form: Page) -> None:
    from dpquery.display import workload
    from dpquery.engine import open_session

    text = statement("-", None) if str(file) == "-" else statement(None, file)
    session = open_session(schema, analyst, ledger)
    try:
        found = session.what_if(text, dialect=dialect, **price)
    finally:
        session.close()
    output.page(form, found.as_dict(), workload.workload(found))


@budgets.command()
def grant(
    schema: SchemaFile,
    reason: Annotated[str, typer.Option(help="Why, for the log.", metavar="TEXT")],
    ledger: LedgerPlace = None,
    analyst: Annotated[str | None, typer.Option(help="The analyst whose cap is raised.", metavar="NAME")] = None,
    group: Annotated[str | None, typer.Option(help="The group whose cap is raised.", metavar="NAME")] = None,
    dataset: Annotated[bool, typer.Option("--dataset", help="The data set's own budget is raised.")] = False,
    epsilon: Annotated[str | None, typer.Option(help="How much more epsilon.", metavar="E")] = None,
    delta: Annotated[str | None, typer.Option(help="How much more delta.", metavar="D")] = None,
    form: PageFormat = Page.TABLE,
) -> None:
    """Raise a cap, with a reason.

    The log keeps both; nothing in it is edited. The cap is then the schema's and all grants; of a cap that renews, until its period ends."""
    from dpquery.display.text import safe
    from dpquery.engine import grant as granted

    found = granted(schema, ledger, analyst=analyst, group=group, dataset=dataset, epsilon=epsilon, delta=delta, reason=reason)
    if form is Page.JSON:
        output.page(form, found.as_dict(), iter(()))
    else:
        cap = found.as_dict()["cap"]
        stream.write(f"granted; the cap of {safe(found.account)} is now epsilon {cap['epsilon']}, delta {cap['delta']}\n")
