"""The schema file's own format, key by key: what may be written, in which type, and what it means. One value is looked at here at a time;
what several keys must agree on is for `columns`, `tables`, `units` and `budgets`. Editors complete from the JSON Schema made of these models.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

MAX_COUNT: Final = 10**9
MAX_TEXT: Final = 1024
MAX_SQL: Final = 65_536

_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_PERIOD = re.compile(r"([1-9][0-9]{0,3})d", re.ASCII)

Scalar = bool | int | Decimal | str | None


def _wrong(code: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(code, message)


def shown(value: object) -> str:
    """A value as an error names it: the kind for a block, the text for a word, cut where it is long."""
    match value:
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"`{value[:60]}`" + ("..." if len(value) > 60 else "")
        case _:
            return str(value)[:60]


def _number(value: object) -> Decimal:
    match value:
        case bool():
            pass
        case int():
            return Decimal(value)
        case Decimal() if value.is_finite():
            return value
        case Decimal():
            raise _wrong("NOT_FINITE", "must be a finite number")
        case str() if value.strip("+-").lower() in ("inf", "infinity", "nan", "infinite"):
            raise _wrong("NOT_FINITE", "must be a finite number")
        case str() if _looks_numeric(value):
            raise _wrong("WRONG_TYPE", f"must be a number, not text: write {value[:60]} without quotes")
    raise _wrong("WRONG_TYPE", f"must be a number, not {shown(value)}")


def _looks_numeric(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except ArithmeticError:
        return False


def _count(value: object) -> int:
    number = _number(value)
    if number != int(number):
        raise _wrong("WRONG_TYPE", f"must be a whole number, not {shown(value)}")
    if not 1 <= number <= MAX_COUNT:
        raise _wrong("OUT_OF_RANGE", f"must be between 1 and {MAX_COUNT:,}, not {shown(value)}")
    return int(number)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong("WRONG_TYPE", f"must be true or false, not {shown(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        hint = "" if isinstance(value, dict | list | None) else ": put it in quotes"
        raise _wrong("WRONG_TYPE", f"must be text, not {shown(value)}{hint}")
    return value


def _line(value: object) -> str:
    text = _text(value)
    if not text or text != text.strip() or len(text) > MAX_TEXT or not text.isprintable():
        raise _wrong("BAD_NAME", f"must be 1 to {MAX_TEXT} printable characters, without spaces at the ends")
    return text


def _sql(value: object) -> str:
    text = _text(value)
    if not text.strip() or len(text) > MAX_SQL:
        raise _wrong("BAD_VIEW", f"must be a SELECT of 1 to {MAX_SQL:,} characters")
    return text


def _period(value: object) -> int:
    """Days."""
    match = _PERIOD.fullmatch(_text(value))
    if match is None:
        raise _wrong("BAD_PERIOD", f"must be a number of whole days, 1d to 9999d, not {shown(value)}: write 30d")
    return int(match[1])


def _account(value: object) -> str:
    """A name that is that of a file too."""
    text = _text(value)
    if not _ACCOUNT.fullmatch(text):
        raise _wrong("BAD_NAME", "must be 1 to 64 letters, digits, - and _, a letter or digit first")
    return text


def _paths(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise _wrong("BAD_SOURCE", "must name at least one file")
    return tuple(_line(item) for item in items)


def _scalar(value: object) -> Scalar:
    match value:
        case None | bool() | int() | Decimal() | str():
            return value
        case _:
            raise _wrong("WRONG_TYPE", f"must be one value, not {shown(value)}")


def _unit_kind(value: object) -> str:
    match value:
        case dict():
            return "a path"
        case _:
            return "a column"


def _unit_column(value: object) -> str:
    if isinstance(value, list):
        raise _wrong("BAD_UNIT", "a row has one unit: name one column, not a list")
    return _line(value)


Number = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
Count = Annotated[int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_COUNT})]
Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string"})]
Line = Annotated[str, BeforeValidator(_line), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_TEXT})]
Sql = Annotated[str, BeforeValidator(_sql), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_SQL})]
Item = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]
TypeWord = Annotated[
    str,
    BeforeValidator(_line),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["integer", "decimal", "float", "string", "boolean", "date", "timestamp", "uuid"]},
                {"type": "string", "pattern": r"^decimal *\( *[0-9]+ *, *[0-9]+ *\)$"},
            ]
        }
    ),
]
Period = Annotated[int, BeforeValidator(_period), WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,3}d$"})]
AccountName = Annotated[str, BeforeValidator(_account), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"})]
Paths = Annotated[
    tuple[str, ...],
    BeforeValidator(_paths),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}]}),
]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class ColumnPart(Part):
    """One column: its type, and what its values are promised or clamped to be."""

    type: TypeWord = Field(description="integer, decimal, decimal(p,s), float, string, boolean, date, timestamp or uuid.")
    lower: Number | None = Field(default=None, description="Least value of a number; smaller ones are clamped to it. Needs `upper`.")
    upper: Number | None = Field(default=None, description="Greatest value of a number; greater ones are clamped to it. Needs `lower`.")
    step: Number | None = Field(default=None, description="The grid that values of a number are rounded to, such as 0.01.")
    values: list[Item] | None = Field(default=None, description="All values the column may have: public group keys. With null, NULL is one.")
    most_per_unit: Number | None = Field(
        default=None, description="What one unit's values add up to in a group is clamped to it, either way: a sum needs no limit on rows then."
    )
    origin: Line | None = Field(default=None, description="Where the bounds come from, in words: `dpquery profile` writes its release here.")
    unique: Flag = Field(default=False, description="No two rows have the same value and none is NULL; checked when the data is registered.")


class PathPart(Part):
    """A foreign-key path to the unit: this table's column `via` equals a unique column of another table, whose unit is the row's unit."""

    via: Line = Field(description="The column of this table.")
    references: Line = Field(description="The unique column that it refers to, as `table.column`.")


UnitColumn = Annotated[str, BeforeValidator(_unit_column), WithJsonSchema({"type": "string", "minLength": 1})]
Unit = Annotated[Annotated[UnitColumn, Tag("a column")] | Annotated[PathPart, Tag("a path")], Discriminator(_unit_kind)]


class ContributionPart(Part):
    """How much one unit may contribute to an answer. What is over the limit is left out."""

    max_groups_contributed: Count | None = Field(default=None, description="The most groups of a GROUP BY that one unit may be in.")
    max_rows_per_group: Count | None = Field(default=None, description="The most rows of one unit that count in one group.")
    join_rows_per_unit: Count | None = Field(default=None, description="The most rows of one unit on a side of a private-private join (1,000).")
    origin: Line | None = Field(default=None, description="Where the limits come from, in words: `dpquery profile` writes its release here.")


class CsvPart(Part):
    """How a CSV file is written; nothing is guessed from its content."""

    delimiter: Text = Field(default=",", description="What stands between fields: one character.")
    quote: Text = Field(default='"', description="What stands around a field: one character, or nothing.")
    escape: Text = Field(default='"', description="What stands before a quote within a quoted field: one character, or nothing.")
    header: Flag = Field(default=True, description="The first line names the columns; without it columns are taken in the order declared.")
    null: Text = Field(default="", description="How NULL is written.")
    date: Line = Field(default="%Y-%m-%d", description="How dates are written, in strptime's letters.")
    timestamp: Line = Field(default="%Y-%m-%d %H:%M:%S", description="How timestamps are written, in strptime's letters.")


class TablePart(Part):
    """One table: private, with the unit that each row belongs to, or public."""

    table: Line | None = Field(default=None, description="The table's name in the database, where it differs.")
    public: Flag = Field(default=False, description="Nobody's data: it may be read without noise or price.")
    unit: Unit | None = Field(default=None, description="Whom a row belongs to: a column of this table, or a path {via, references}.")
    max_rows_per_unit: Count | None = Field(default=None, description="The most rows that one unit has; 1 is checked when the data is registered.")
    contribution: ContributionPart = Field(default=ContributionPart(), description="Contribution limits of this table, before the data set's.")
    path: Paths | None = Field(
        None, description="Parquet or CSV files, a pattern or a list of them, relative to this file; where there is no `source`."
    )
    csv: CsvPart | None = Field(default=None, description="How the table's CSV files are written.")
    columns: dict[str, ColumnPart] = Field(description="The columns that may be asked of. Others stay invisible.", min_length=1)


class CapsPart(Part):
    """A cap on what may be spent."""

    epsilon: Number = Field(description="The cap on epsilon.")
    delta: Number = Field(default=Decimal(0), description="The cap on delta; 0 allows pure queries only.")


class AnalystPart(CapsPart):
    """An analyst's cap, for good or for each period."""

    period: Period | None = Field(default=None, description="The cap begins anew after so many days, `30d`; absent: it is for good.")


class GroupPart(CapsPart):
    """Analysts who share a cap: their own caps add up to at most the group's."""

    members: list[Line] = Field(description="Names listed under `analysts`.", min_length=1)


class PerQueryPart(Part):
    """The price of a statement that names none, and the largest one allowed."""

    epsilon: Number | None = Field(default=None, description="The epsilon of a statement that names none.")
    max_epsilon: Number | None = Field(default=None, description="The largest epsilon of one statement.")
    delta: Number = Field(default=Decimal(0), description="The delta of a statement that names none.")


class LimitsPart(Part):
    """What one statement may use."""

    timeout: Number = Field(default=Decimal(60), description="Seconds that a statement may run.")
    memory: Line = Field(default="4GB", description="Memory that a statement may use, such as 500MB or 4GB.")
    threads: Count = Field(default=2, description="Threads that a statement may use.")
    timeouts_per_account: Count = Field(default=5, description="Time-outs after which an account is locked, for the ledger's life.")
    response_quantum: Number | None = Field(default=None, description="Replies leave at whole multiples of so many seconds; absent: at once.")


class SourcePart(Part):
    """The database that holds the tables."""

    engine: Line = Field(default="duckdb", description="duckdb.", json_schema_extra={"enum": ["duckdb"]})
    path: Line = Field(description="The database file, relative to this file.")


class SchemaFile(Part):
    """A data set: whom each row belongs to, what each column may hold, how much one unit may contribute, how much privacy may be spent."""

    dataset: Line = Field(description="The data set's name.")
    version: Number = Field(default=Decimal(1), description="The version of this format: 1.", json_schema_extra={"enum": [1]})
    source: SourcePart | None = Field(default=None, description="The database; left out where each table has a `path`.")
    account: AccountName | None = Field(
        None, description="An account that several data sets of the same people share; its ledger lies at NAME.ledger."
    )
    ledger: Line | None = Field(
        None, description="The ledger: a file, relative to this one, or postgresql://HOST/DATABASE; left out where it is beside this file."
    )
    privacy_unit: Line = Field(description="Whose privacy is protected: `table.column`, the key of a private table.")
    adjacency: Literal["add_remove", "replace_one"] = Field(
        "add_remove", description="What neighbouring data sets differ in: one unit added or removed, or replaced."
    )
    budget: CapsPart = Field(description="What may be spent in all.")
    per_query: PerQueryPart = Field(default=PerQueryPart(), description="The price of one statement.")
    min_units_per_group: Count = Field(default=1, description="The least number of units for which a private group is meant to appear.")
    analysts: dict[str, AnalystPart] | None = Field(
        None, description="Each analyst's cap; `default` is one account shared by all other names.", min_length=1
    )
    groups: dict[str, GroupPart] = Field(default={}, description="Groups of analysts, each with a cap.")
    contribution: ContributionPart = Field(default=ContributionPart(), description="Contribution limits; tables and statements may set others.")
    tables: dict[str, TablePart] = Field(description="The tables that may be asked of. Others stay invisible.", min_length=1)
    views: dict[str, Sql] = Field(default={}, description="Named SELECT statements that stand for tables.")
    limits: LimitsPart = Field(default=LimitsPart(), description="Time, memory and threads of one statement.")
    oversubscribe: Flag = Field(default=False, description="Caps may add up to more than the budget; then only the data set's guarantee is promised.")
    share_answers: Flag = Field(default=False, description="Stored answers serve all analysts, at their full price to who has not seen them.")
    unsafe_testing: Flag = Field(default=False, description="For tests only: lifts the limits on epsilon, delta and budget; protects nothing.")
