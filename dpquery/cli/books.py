"""`dpquery ledger ...`: the ledger, for its owner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpquery.cli import failure, stream
from dpquery.cli.options import LedgerPlace, PageFormat, SchemaFile
from dpquery.cli.output import Page
from dpquery.errors import Fault, Refused

ledgers = typer.Typer(help="The ledger that remembers what was spent.", rich_markup_mode=None)


@ledgers.command()
def create(schema: SchemaFile, ledger: LedgerPlace = None) -> None:
    """Make the ledger.

    Once in the life of a data set; the data as it is becomes its first version. A data set that shares an account with others joins their ledger."""
    from dpquery.engine import create_ledger

    stream.write(f"made {create_ledger(schema, ledger)}\n")


@ledgers.command(name="list")
def entries(
    schema: SchemaFile,
    ledger: LedgerPlace = None,
    analyst: Annotated[str | None, typer.Option(help="Only what this analyst asked.", metavar="NAME")] = None,
    form: PageFormat = Page.TABLE,
) -> None:
    """List accounts and entries."""
    from dpquery.cli import output
    from dpquery.display import accounts as pages
    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        logged, accounts = list(opened.entries(analyst)), opened.balances()
    output.page(form, pages.log_as_json(accounts, logged), pages.log(accounts, logged))


@ledgers.command()
def verify(
    schema: Annotated[Path | None, typer.Option(help="The schema file; without it a receipt is checked by itself.", metavar="FILE")] = None,
    ledger: LedgerPlace = None,
    checkpoint: Annotated[Path | None, typer.Option(help="A signed checkpoint that was kept elsewhere.", metavar="FILE")] = None,
    receipt: Annotated[Path | None, typer.Option(help="A receipt, or an answer's JSON: only this is checked.", metavar="FILE")] = None,
    proof: Annotated[Path | None, typer.Option(help="The proof of the receipt's entry, as `ledger prove` prints it.", metavar="FILE")] = None,
    key: Annotated[str | None, typer.Option(help="What is signed under, as `ledger key` prints it; without it the ledger's own.")] = None,
    form: PageFormat = Page.TABLE,
) -> int:
    """Test the whole log: chain, order and sums; or one receipt.

    A log that was cut off at its end, or exchanged for an older copy, is found only against a checkpoint that was kept elsewhere. A receipt's price
    is derived again from the bounds and noises on it, and it is held against its entry and its proof; what of it is held against nothing is named.
    No data is read."""
    from dpquery.cli import output
    from dpquery.display import pages
    from dpquery.engine import books, papers

    if receipt is None and proof is not None:
        raise Refused("USAGE", "a proof is that of a receipt's entry, and there is no receipt", instead="--receipt FILE beside it")
    if receipt is not None and checkpoint is not None:
        raise Refused("USAGE", "a checkpoint is that of the whole log, and a receipt is checked alone", instead="one of --receipt and --checkpoint")
    if receipt is not None:
        checked = papers.verify_receipt(receipt, schema=schema, ledger=ledger, proof=proof, key=None if key is None else books.key_of(key))
        found, more = checked.findings, {"not_checked": list(checked.unchecked)}
        lines = pages.verified_receipt(found, schema is not None, proof is not None, checked.unchecked)
    elif schema is None:
        raise Refused("USAGE", "there is neither a schema nor a receipt to check", instead="--schema FILE, or --receipt FILE")
    else:
        found, more = books.verify_ledger(schema, ledger, checkpoint, key), {}
        lines = pages.verified(found, checkpoint is not None)
    output.page(form, {"ok": not found, "findings": [str(finding) for finding in found], **more}, lines)
    return Fault.exit_status if found else failure.ANSWERED


@ledgers.command()
def checkpoint(schema: SchemaFile, ledger: LedgerPlace = None) -> None:
    """Print the signed head of the log.

    To be kept where whoever could change the ledger cannot: `ledger verify --checkpoint` then finds what was cut off since."""
    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        stream.write(opened.checkpoint())


@ledgers.command()
def key(schema: SchemaFile, ledger: LedgerPlace = None) -> None:
    """Print the public key of the ledger's checkpoints."""
    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        stream.write(opened.key().written() + "\n")


@ledgers.command()
def prove(
    schema: SchemaFile, entry: Annotated[str, typer.Argument(metavar="ENTRY", help="The id on a receipt.")], ledger: LedgerPlace = None
) -> None:
    """Print the proof, as JSON, that an entry is in the log.

    It shows nothing of other entries but how many there are."""
    import json

    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        stream.write(json.dumps(opened.proof(entry).as_dict(), indent=2) + "\n")


@ledgers.command()
def backup(schema: SchemaFile, out: Annotated[Path, typer.Option(help="The file to make.", metavar="FILE")], ledger: LedgerPlace = None) -> None:
    """Copy the ledger, while it is in use too, and print its signed head.

    A ledger restored from the copy has forgotten what was charged since: the head, kept apart from it, shows that."""
    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        stream.write(opened.backup(out))


@ledgers.command()
def restored(schema: SchemaFile, reason: Annotated[str, typer.Option(help="Why, for the log.", metavar="TEXT")], ledger: LedgerPlace = None) -> None:
    """Use a ledger that forgot.

    One that was restored from a backup lacks what was charged since, and is refused. After this it is used again, and its log says so; what it
    forgot was spent all the same: lower the caps by what that may be."""
    from dpquery.engine import books

    books.restored(schema, ledger, reason=reason)
    stream.write("the ledger is used again; what it forgot was spent all the same: lower the caps by what that may be\n")


@ledgers.command()
def export(schema: SchemaFile, ledger: LedgerPlace = None) -> None:
    """Print the log as JSON Lines.

    Each line carries its hash, so that anyone can test the chain again."""
    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        for line in opened.export():
            stream.write(line + "\n")


@ledgers.command()
def unlock(schema: SchemaFile, analyst: Annotated[str, typer.Option(help="Whose account.", metavar="NAME")], ledger: LedgerPlace = None) -> None:
    """Unlock an account.

    It was locked after too many statements that ran out of time or memory, or were interrupted; its count starts anew."""
    from dpquery.display.text import safe
    from dpquery.engine import open_ledger

    with open_ledger(schema, ledger) as opened:
        account = opened.unlock(analyst)
    listed = "" if account == analyst else f", the shared account: the schema lists no {safe(analyst)}"
    stream.write(f"unlocked {safe(account)}{listed}\n")
