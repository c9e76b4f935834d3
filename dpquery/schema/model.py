"""The schema file as frozen models: what the data owner promises and allows. Nothing here touches files or data."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from os.path import realpath  # never fails, whatever lies at a path: looking at it is the business of backends
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dpquery.schema.address import Place, place
from dpquery.values.types import Adjacency, Type, Value


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Column(Model):
    """One declared column. Bounds and step are exact decimals, both or neither bound given; `values` may hold None (a NULL key)."""

    name: str
    type: Type
    lower: Decimal | None = None
    upper: Decimal | None = None
    step: Decimal | None = None
    values: tuple[Value, ...] | None = None
    unique: bool = False
    most_per_unit: Decimal | None = None
    origin: str | None = None


class ViaUnit(Model):
    """A foreign-key path: this table's column `via` references `table`.`key`, a registered unique column of a table that has a unit itself."""

    via: str
    table: str
    key: str


class Contribution(Model):
    """Contribution limits; None: not set at this level."""

    max_groups_contributed: int | None = None
    max_rows_per_group: int | None = None
    join_rows_per_unit: int | None = None
    origin: str | None = None


class CsvFormat(Model):
    """How a CSV file is written: never sniffed."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    null: str = ""
    date: str = "%Y-%m-%d"
    timestamp: str = "%Y-%m-%d %H:%M:%S"


class FileKind(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"


class Files(Model):
    """The files of one table: `pattern` as written, relative to the schema file; the list itself is fixed at registration.

    Where the schema lists several patterns, `pattern` holds one a line: read `patterns`.
    """

    kind: FileKind
    pattern: str
    csv: CsvFormat = CsvFormat()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns, each relative to the schema file."""
        return tuple(self.pattern.split("\n"))


class Table(Model):
    """A declared table. Private ones have a `unit`: the name of their own column, or a path. `physical` is its name in the database."""

    name: str
    physical: str
    public: bool = False
    unit: str | ViaUnit | None = None
    max_rows_per_unit: int | None = None
    contribution: Contribution = Contribution()
    files: Files | None = None
    columns: dict[str, Column]


class Caps(Model):
    """A budget: a cap on epsilon and one on delta; an analyst's begins anew after `period` days, where that is set."""

    epsilon: Decimal
    delta: Decimal = Decimal(0)
    period: int | None = None


class Group(Model):
    """Analysts who share a cap."""

    caps: Caps
    members: tuple[str, ...]


class PerQuery(Model):
    """The price of a statement that names none, and the largest one allowed."""

    epsilon: Decimal | None = None
    max_epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)


class Limits(Model):
    """What one statement may use: seconds, bytes, threads; how many time-outs an account has for the ledger's life; the time grid of replies."""

    timeout: Decimal = Decimal(60)
    memory: int = 4 * 2**30
    threads: int = 2
    timeouts_per_account: int = 5
    response_quantum: Decimal | None = None  # seconds


class Source(Model):
    """The database that holds the tables: a DuckDB file, relative to the schema file as written, resolved in `Schema.database`."""

    engine: str = "duckdb"
    path: str


class Schema(Model):
    """A data set: whom each row belongs to, what each column may hold, how much one unit may contribute, how much may be spent.

    `file` is the schema file (absolute); `digest` the SHA-256 of its canonical content, comments and layout left out.
    """

    file: Path
    digest: str
    dataset: str
    version: int = 1
    source: Source | None = None
    account: str | None = None
    ledger: str | None = None
    privacy_unit_table: str
    privacy_unit_column: str
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    budget: Caps
    per_query: PerQuery = PerQuery()
    min_units_per_group: int = 1
    analysts: dict[str, Caps]  # always has `default`, except where the file names analysts without it
    groups: dict[str, Group] = {}
    contribution: Contribution = Contribution()
    tables: dict[str, Table]
    views: dict[str, str] = {}
    limits: Limits = Limits()
    oversubscribe: bool = False
    share_answers: bool = False
    unsafe_testing: bool = False

    @property
    def database(self) -> Path | None:
        """The DuckDB file, absolute; None where each table has files of its own."""
        return None if self.source is None else Path(realpath(self.file.parent / self.source.path))

    @property
    def purse(self) -> str:
        """Whose budget it is that is spent: the data set's, or the account's that it shares."""
        return self.account or self.dataset

    @property
    def scope(self) -> str:
        """What tells this data set's versions from others' in a shared ledger; empty where the ledger is its own."""
        return self.dataset if self.account is not None else ""

    @property
    def default_ledger(self) -> Place:
        """Where the file says, or beside it under its name."""
        if self.ledger is None:
            return self.file.with_suffix(".ledger") if self.account is None else self.file.with_name(f"{self.account}.ledger")
        found = place(self.ledger)
        return self.file.parent / found if isinstance(found, Path) else found
