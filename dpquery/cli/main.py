"""The commands. Each imports the engine when it runs, so that --help costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpquery.cli import failure, stream
from dpquery.cli.account import account
from dpquery.cli.books import ledgers
from dpquery.cli.budget import budgets
from dpquery.cli.options import (
    Analyst,
    Bounds,
    Confidence,
    Delta,
    Dialect,
    Epsilon,
    ErrorGoal,
    LedgerPlace,
    Noise,
    PageFormat,
    Param,
    Rho,
    SchemaFile,
)
from dpquery.cli.output import Format, Page
from dpquery.cli.params import given, wanted
from dpquery.cli.statement import statement
from dpquery.errors import SchemaError

if TYPE_CHECKING:
    from dpquery.engine import Session

app = typer.Typer(
    name="dpquery",
    help="SQL on personal data, answered with noise that protects each person and charged to a privacy budget.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
FORMAT = "table for people; csv, json or parquet for machines.  [default: as the name after --out ends, else table]"
Statement = Annotated[str | None, typer.Argument(metavar="SQL", help="The statement, or - for standard input.", show_default=False)]
StatementFile = Annotated[Path | None, typer.Option("--file", "-f", help="A file with the statement.", metavar="FILE")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Draw new noise and pay again, where the answer is stored.")]
Tidy = Annotated[bool, typer.Option("--tidy", help="Show tidied values beside released ones: counts not below 0, quantiles in order.")]


def run(arguments: list[str] | None = None) -> int:
    """The exit status of one command line."""
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    stream.prepare()
    return failure.status(lambda: app(words, prog_name="dpquery", standalone_mode=False), words)


def _version(asked: bool) -> None:
    if asked:
        import dpquery

        stream.write(f"dpquery {dpquery.__version__}\n")
        raise typer.Exit


@app.callback()
def root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False) -> None:
    """SQL on personal data, answered with noise that protects each person and charged to a privacy budget."""


@app.command()
def demo(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder, made if it is not there.")]) -> None:
    """Make the sample shop: data, schema and ledger."""
    from dpquery.cli.demo import make

    make(folder)


@app.command()
def tables(schema: SchemaFile, form: PageFormat = Page.TABLE) -> None:
    """List the tables and columns to ask of.

    With their types, bounds and public keys, as the schema declares them."""
    from dpquery.cli import output
    from dpquery.display import pages
    from dpquery.engine import open_session

    found = open_session(schema).tables()
    output.page(form, [table.as_dict() for table in found], pages.tables(found))


@app.command()
def init(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="A DuckDB file, or Parquet and CSV files.")]) -> None:
    """Draft a schema from physical types.

    No value is read. The draft is for the data owner, to review and complete."""
    from dpquery.engine import draft_schema

    stream.write(draft_schema(files))


@app.command(name="import-policy")
def import_policy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="BigQuery's privacy_policy JSON, or the DDL.")],
) -> None:
    """Draft a schema from another system's privacy policy.

    BigQuery's privacy_policy, Snowflake's privacy policies and domains. The draft is for the data owner, to review and complete."""
    from dpquery import engine

    stream.write(engine.import_policy(file))


@app.command()
def query(
    schema: SchemaFile,
    sql: Statement = None,
    file: StatementFile = None,
    ledger: LedgerPlace = None,
    analyst: Analyst = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    confidence: Confidence = None,
    noise: Noise = None,
    error: ErrorGoal = None,
    bounds: Bounds = None,
    dialect: Dialect = "duckdb",
    param: Param = None,
    fresh: Fresh = False,
    tidy: Tidy = False,
    form: Annotated[Format | None, typer.Option("--format", help=FORMAT, show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="Write the answer to a file.", metavar="FILE")] = None,
) -> None:
    """Answer a statement, and charge its price."""
    from dpquery.cli import output, progress

    text, params = statement(sql, file), given(param)
    price = wanted(epsilon, delta, rho, confidence, noise, error, bounds, tidy)
    with _session(schema, analyst, ledger) as session, output.opened(form or output.form_of(out), out, session.keeps) as written:
        with progress.line() as line:
            answer = session.query(text, dialect=dialect, params=params, fresh=fresh, progress=line, notice=_before, **price)
        written.write(answer)


@app.command()
def explain(
    schema: SchemaFile,
    sql: Statement = None,
    file: StatementFile = None,
    ledger: LedgerPlace = None,
    analyst: Analyst = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    confidence: Confidence = None,
    noise: Noise = None,
    error: ErrorGoal = None,
    bounds: Bounds = None,
    dialect: Dialect = "duckdb",
    param: Param = None,
    form: PageFormat = Page.TABLE,
) -> None:
    """Show what a statement would cost.

    Price, sensitivity, noise and expected error. No private row is read, nothing is charged."""
    from dpquery.cli import output
    from dpquery.display import pages

    text, params = statement(sql, file), given(param)
    price = wanted(epsilon, delta, rho, confidence, noise, error, bounds)
    with _session(schema, analyst, ledger) as session:
        found = session.explain(text, dialect=dialect, params=params, **price)
    output.page(form, found.as_dict(), pages.explanation(found))


@app.command()
def profile(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A private table.")],
    schema: SchemaFile,
    ledger: LedgerPlace = None,
    analyst: Analyst = None,
    epsilon: Epsilon = None,
    dry: Annotated[bool, typer.Option("--print", help="Leave the schema as it is; charged all the same.")] = False,
    form: PageFormat = Page.TABLE,
) -> None:
    """Choose caps and bounds of a table, and charge their price.

    From noisy histograms, once; written into the schema with their origin."""
    from dpquery.cli import output
    from dpquery.display import profiled
    from dpquery.engine import profile as profiling

    with _session(schema, analyst, ledger) as session:
        found = profiling.profile(session, table, epsilon)
    if not dry:
        profiling.write(schema, found)
    output.page(form, found.as_dict(), profiled.page(found, written=not dry))


@app.command()
def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema file.")],
    register: Annotated[bool, typer.Option("--register", help="Admit the data as it is now.")] = False,
    ledger: LedgerPlace = None,
    form: PageFormat = Page.TABLE,
) -> int:
    """Hold the schema against the data.

    With --register this data version is admitted. The output is for the data owner only."""
    from dpquery import engine
    from dpquery.cli import output
    from dpquery.display import pages

    found = engine.check(schema, register, ledger)
    output.page(form, found.as_dict(), pages.report(found))
    return failure.ANSWERED if found.ok else SchemaError.exit_status


@app.command()
def proofs(
    lemma: Annotated[str | None, typer.Argument(metavar="ID", help="One lemma, with its proof.", show_default=False)] = None,
    form: PageFormat = Page.TABLE,
) -> None:
    """List the lemmas of the privacy argument.

    EXPLAIN and receipts name what they use of them by the same ids."""
    from dpquery.cli import output
    from dpquery.display import proofs as pages
    from dpquery.engine import proofs as argument

    if lemma is None:
        found = argument.proofs()
        output.page(form, [one.as_dict() for one in found], pages.listed(found))
    else:
        one = argument.proof(lemma)
        output.page(form, one.as_dict(), pages.whole(one))


app.command()(account)
app.add_typer(budgets, name="budget")
app.add_typer(ledgers, name="ledger")


@contextmanager
def _session(schema: Path, analyst: str | None, ledger: str | None) -> Iterator[Session]:
    from dpquery.engine import open_session

    session = open_session(schema, analyst, ledger)
    try:
        yield session
    finally:
        session.close()


def _before(notice: str) -> None:
    """Told before anything is charged."""
    stream.tell([f"Note, before this is paid: {notice}"])
