"""The ledger as its owner reads it, and how many more queries fit into an account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import dpquery.ledger as ledgers
from dpquery.accounting.event import Price
from dpquery.accounting.zcdp import laplace_rho_up
from dpquery.engine.numeral import Amount, amount
from dpquery.errors import Refused, SchemaError
from dpquery.ledger import Amounts, Balance, Finding, Kind, Ledger, Limit
from dpquery.ledger.amounts import rounded_up
from dpquery.schema.model import Schema
from dpquery.schema.read import read as read_schema

if TYPE_CHECKING:
    from dpquery.engine.session import Session

LONGEST = 2**20  # bytes of a checkpoint or receipt that are read
PRICES = ("0.01", "0.1", "0.5", "1")


@contextmanager
def open_ledger(schema: str | Path, ledger: str | Path | None = None) -> Iterator[Ledger]:
    """The ledger of a schema, open for its owner."""
    read = read_schema(path_of(schema))
    with ledgers.open(place_of(ledger, read), read) as opened:
        yield opened


def verify_ledger(
    schema: str | Path, ledger: str | Path | None = None, checkpoint: str | Path | None = None, key: str | None = None
) -> tuple[Finding, ...]:
    """What is wrong with a ledger, one that cannot be opened too; nothing where all is well. It is held against the mark beside the data.

    `checkpoint` is a file that holds a signed one; `key` what it is signed under. SchemaError for a file that cannot be read, Refused for no key.
    """
    read = read_schema(path_of(schema))
    return ledgers.verify(
        place_of(ledger, read),
        schema=read,
        checkpoint=None if checkpoint is None else text_of(checkpoint),
        key=None if key is None else key_of(key),
    )


def restored(schema: str | Path, ledger: str | Path | None = None, *, reason: str) -> None:
    """The ledger is used again although it forgot what the mark beside the data knows of; the log keeps the reason. For the data owner."""
    read = read_schema(path_of(schema))
    ledgers.open(place_of(ledger, read), read, restored=reason).close()


def grant(
    schema: str | Path,
    ledger: str | Path | None = None,
    *,
    analyst: str | None = None,
    group: str | None = None,
    dataset: bool = False,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    reason: str,
) -> Balance:
    """The account whose cap was raised, for a reason that the log keeps. For the data owner.

    One of `analyst`, `group` and `dataset` says whose. Refused where a number is none or the account unknown; SchemaError where there is no room.
    """
    whose = [(Kind.ANALYST, analyst), (Kind.GROUP, group), (Kind.DATASET, "dataset" if dataset else None)]
    named = [(kind, name) for kind, name in whose if name is not None]
    if len(named) != 1:
        raise Refused("USAGE", "a grant is to one account", instead="--analyst NAME, --group NAME or --dataset")
    more = Limit(_exactly("epsilon", epsilon), _exactly("delta", delta))
    with open_ledger(schema, ledger) as opened:
        return opened.grant(*named[0], more, reason)


def _exactly(name: str, given: Amount | None) -> Decimal:
    """A number as a decimal. Refused where it is none, or no decimal has its value."""
    number = amount(name, given) or Fraction(0)
    written = rounded_up(number)
    if Fraction(written) != number:
        raise Refused("BAD_GRANT", f"{name} is no decimal of at most 34 digits", instead=f"give {name} as a plain decimal such as 0.5")
    return written


def text_of(file: str | Path, longest: int = LONGEST) -> str:
    """What a file of text holds, up to so many bytes. SchemaError where it cannot be read."""
    path = Path(path_of(file))
    try:
        with path.open("rb") as source:
            return source.read(longest).decode("utf-8")
    except OSError as error:
        raise SchemaError("FILE_UNREADABLE", f"{path}: {error.strerror}", instead="name a file that can be read") from None
    except UnicodeError:
        raise SchemaError("FILE_UNREADABLE", f"{path}: no UTF-8 text", instead="a file of UTF-8 text") from None


def key_of(written: str) -> ledgers.Key:
    """The key that checks checkpoints. Refused where the text is none."""
    try:
        return ledgers.read_key(written)
    except ledgers.Unsound as unsound:
        raise Refused("USAGE", str(unsound), instead="the key as `dpquery ledger key` prints it") from None


def place_of(ledger: str | Path | None, schema: Schema) -> ledgers.Place:
    """Where the ledger is: as given, as the schema says, or beside that. Refused for a URL that is none."""
    return schema.default_ledger if ledger is None else ledgers.place(path_of(ledger))


def path_of(given: str | Path) -> str | Path:
    """The path as given; SchemaError for what is none."""
    if not isinstance(given, str | Path) or "\0" in str(given):
        raise SchemaError("FILE_UNREADABLE", "a file is named by its path, a text", instead="a path such as 'schemas/shop.yaml'")
    return given


def fits(session: Session) -> Mapping[str, int]:
    """How many more statements with Laplace noise and public groups the account can pay, for some prices in epsilon and the schema's own."""
    own = session.schema.per_query.epsilon
    prices = sorted({*map(Fraction, PRICES), *(() if own is None else (Fraction(own),))})
    room = session.ledger.room(session.analyst)
    counts = {e: room.count(Amounts.of(Price(e, laplace_rho_up(e), Fraction(0)))) for e in prices}
    return {f"{float(e):g}": count for e, count in counts.items()}
