"""The schema file, read: text -> tree with positions -> the format's models -> what is promised.

Every error is a SchemaError that names file, line and key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from dpquery.errors import Refused, SchemaError
from dpquery.schema import budgets, tables, units
from dpquery.schema.address import holds_password, place
from dpquery.schema.digest import digest
from dpquery.schema.file import SchemaFile
from dpquery.schema.model import Schema
from dpquery.schema.text import Complaints, parse
from dpquery.schema.where import Where, tree
from dpquery.values.types import Adjacency

MAX_BYTES: Final = 1_000_000
VERSION: Final = 1


def read(path: str | Path) -> Schema:
    """The schema of a file; SchemaError where it is not there, not readable, or wrong."""
    name, file = str(path), Path(path)
    try:
        if file.is_dir():
            raise SchemaError("FILE_UNREADABLE", f"{name}: is a directory, not a schema file")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SchemaError("FILE_MISSING", f"{name}: there is no such file", instead="`dpquery init` drafts one from data files") from None
    except (OSError, ValueError):
        raise SchemaError("FILE_UNREADABLE", f"{name}: cannot be read") from None
    if len(data) > MAX_BYTES:
        raise SchemaError("TOO_LARGE", f"{name}: larger than {MAX_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SchemaError("NOT_UTF8", f"{name}, line {line}: is not UTF-8 text", instead="save it as UTF-8") from None
    return loads(text, file.absolute(), name)


def loads(text: str, file: Path, name: str | None = None) -> Schema:
    """The schema of a text. `file` (absolute) is where its relative paths start; `name` what errors call it."""
    complaints = Complaints(name or str(file), text)
    root = parse(complaints)
    where = Where(complaints, root)
    plain = tree(root, where)
    try:
        part = SchemaFile.model_validate(plain)
    except ValidationError as failure:
        raise where.first(failure) from None
    return _promised(part, file, where)


def _promised(part: SchemaFile, file: Path, where: Where) -> Schema:
    if part.version != VERSION:
        raise where.error("UNSUPPORTED_VERSION", f"must be {VERSION}, not {part.version}: this dpquery reads no other format", "version")
    source = tables.source(part.source, where)
    found = tables.tables(part, where)
    views = tables.views(part, where)
    units.owned(found, where)
    unit_table, unit_column = units.privacy_unit(part.privacy_unit, found, where)
    units.check(found, found[unit_table].columns[unit_column].type, where)
    budget = budgets.caps(part.budget, part.unsafe_testing, where, "budget")
    analysts, groups = budgets.accounts(part, budget, where)
    schema = Schema(
        file=file,
        digest="",
        dataset=part.dataset,
        version=VERSION,
        source=source,
        account=part.account,
        ledger=_ledger(part.ledger, file),
        privacy_unit_table=unit_table,
        privacy_unit_column=unit_column,
        adjacency=Adjacency(part.adjacency),
        budget=budget,
        per_query=budgets.per_query(part, where),
        min_units_per_group=part.min_units_per_group,
        analysts=analysts,
        groups=groups,
        contribution=tables.contribution(part.contribution),
        tables=found,
        views=views,
        limits=budgets.limits(part.limits, where),
        oversubscribe=part.oversubscribe,
        share_answers=part.share_answers,
        unsafe_testing=part.unsafe_testing,
    )
    return schema.model_copy(update={"digest": digest(schema)})


def _ledger(given: str | None, file: Path) -> str | None:
    """The ledger's place. The line is not shown where it is wrong: it may hold a password."""
    if given is None:
        return None
    try:
        if isinstance(place(given), Path) or not holds_password(given):
            return given
        message, instead = "a schema file is read by many, and a password is for none of them", "leave it out: PGPASSFILE or PGPASSWORD has it"
    except Refused as refused:
        message, instead = refused.message, str(refused.instead)
    raise SchemaError("BAD_PATH", f"{file.name}: ledger: {message}", instead=instead)
