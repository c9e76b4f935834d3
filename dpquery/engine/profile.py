"""Caps and bounds that nobody guesses: chosen once from noisy histograms, paid for once, written into the schema with their origin."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpquery.engine.numeral import Amount, amount
from dpquery.errors import Refused, SchemaError
from dpquery.numbers import decimal_up
from dpquery.release.caps import OCTAVE, chosen
from dpquery.schema.model import Column, Schema, Table
from dpquery.values.types import Kind

if TYPE_CHECKING:
    from dpquery.engine.session import Session

LOWEST, HIGHEST = -20, 40  # octaves
BINS = (HIGHEST - LOWEST) * OCTAVE + 1
CEILING = 2**HIGHEST
LATER = Fraction(1)  # the epsilon that caps are chosen for where the schema names none for a statement
DIGITS = 3  # that are kept of a cap


@dataclass(frozen=True, slots=True)
class Wanted:
    """One histogram: what is chosen, of which column, from which number of each unit."""

    key: str
    column: str | None
    size: str


@dataclass(frozen=True, slots=True)
class Found:
    """One choice: where it goes in the schema, and the share of the total that it is expected to cut off; None: not known."""

    key: str
    column: str | None
    value: Decimal
    lost: float | None

    @property
    def lower(self) -> Decimal | None:
        """The bound that is written beside an upper one: the histogram is of magnitudes."""
        return -self.value if self.key == "upper" else None


@dataclass(frozen=True, slots=True)
class Profile:
    """What was chosen for a table, from which release. What numbers `unsummed` add up to for each unit is not, as they had no bounds yet."""

    table: str
    found: tuple[Found, ...]
    origin: str
    receipt: Mapping[str, Any]
    unsummed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        rows = [_row(one) for one in self.found]
        return {"table": self.table, "chosen": rows, "unsummed": list(self.unsummed), "origin": self.origin, "receipt": dict(self.receipt)}


def _row(one: Found) -> dict[str, Any]:
    lower = {} if one.lower is None else {"lower": str(one.lower)}
    return {"key": one.key, "column": one.column, "value": str(one.value), **lower, "lost": one.lost}


def profile(session: Session, name: str, epsilon: Amount | None = None, target: Amount | None = None) -> Profile:
    """The caps of a table for statements of epsilon `target`: a statement like any other, charged before private rows are read, and stored."""
    table = _table(session.schema, name)
    wanted = tuple(_wanted(table))
    answer = session.query(_text(table, wanted), epsilon=epsilon, noise="laplace")
    own = session.schema.per_query.epsilon
    later = amount("target", target) or (LATER if own is None else Fraction(own))
    counts: dict[str, list[int]] = {str(place): [0] * BINS for place in range(len(wanted))}
    for what, bin, units in zip(*(column.to_pylist() for column in answer.table.columns), strict=True):
        counts[what][bin] = units
    noise = max(float(one["scale"]) for one in answer.receipt["releases"])
    found = tuple(_found(one, table, counts[str(place)], noise, float(1 / later)) for place, one in enumerate(wanted))
    origin = f"profile, epsilon {answer.receipt['price']['epsilon']}, entry {answer.receipt['entry']}"
    unsummed = tuple(one.column or "" for one in found if one.key == "upper" and table.max_rows_per_unit != 1)
    return Profile(table.name, found, origin, answer.receipt, unsummed)


def _table(schema: Schema, name: str) -> Table:
    table = next((one for called, one in schema.tables.items() if called.casefold() == name.casefold()), None)
    if table is None:
        raise Refused("UNKNOWN_TABLE", f"no table {name[:100]!r}", instead=f"one of {', '.join(schema.tables)}")
    if table.public or not isinstance(table.unit, str):
        message = f"{table.name} has no column of its own that says whose its rows are"
        raise Refused("PROFILE_TABLE", message, instead="a private table whose `unit` is one of its columns")
    return table


def _wanted(table: Table) -> Iterator[Wanted]:
    """Rows of a unit, groups of a unit by declared keys, and of each number what it is at most, where the schema does not say, and adds up to."""
    if table.max_rows_per_unit != 1:
        yield Wanted("max_rows_per_group", None, "CAST(count(*) AS DOUBLE)")
        for column in table.columns.values():
            if column.values is not None and column.type.kind is Kind.STRING:
                yield Wanted("max_groups_contributed", column.name, f"CAST(count(DISTINCT {_quoted(column.name)}) AS DOUBLE)")
    for column in table.columns.values():
        if not column.type.numeric or column.unique or column.values is not None or column.name == table.unit:
            continue
        low, high = (-CEILING, CEILING) if column.lower is None or column.upper is None else (column.lower, column.upper)
        value = f"least(greatest(CAST({_quoted(column.name)} AS DOUBLE), {low}.0), {high}.0)".replace(".0.0", ".0")
        if column.lower is None:
            yield Wanted("upper", column.name, f"max(abs({value}))")
        elif table.max_rows_per_unit != 1:
            yield Wanted("most_per_unit", column.name, f"abs(sum({value}))")


def _text(table: Table, wanted: tuple[Wanted, ...]) -> str:
    """One statement of as many histograms: how many units there are by the logarithm of each one's number, in bins that are listed."""
    if not wanted:
        raise Refused("PROFILE_TABLE", f"{table.name} has one row of each unit, and no numbers without bounds: nothing is left to choose")
    listed = ", ".join(map(str, range(BINS)))
    unit, name = _quoted(str(table.unit)), _quoted(table.name)
    place = f"CAST(least(greatest(ceil((log2(x) + {-LOWEST}) * {OCTAVE}), 0), {BINS - 1}) AS INTEGER)"
    return " UNION ALL ".join(
        f"SELECT '{i}' AS what, bin, count(*) AS units FROM (SELECT {unit}, {place} AS bin "
        f"FROM (SELECT {unit}, {one.size} AS x FROM {name} GROUP BY {unit})) WHERE bin IN ({listed}) GROUP BY bin"
        for i, one in enumerate(wanted)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _found(wanted: Wanted, table: Table, counts: list[int], noise: float, worth: float) -> Found:
    made = chosen(counts, noise, worth)
    end = 2.0 ** (LOWEST + made.bin / OCTAVE)
    lost = None if wanted.key in ("upper", "max_groups_contributed") else made.lost
    whole = wanted.key.startswith("max_")
    column = None if wanted.column is None else table.columns[wanted.column]
    most = len(column.values) if wanted.key == "max_groups_contributed" and column is not None and column.values is not None else None
    value = Decimal(max(1, min(int(end), most or int(end)))) if whole else _short(end, column)
    return Found(wanted.key, wanted.column, value, lost)


def _short(end: float, column: Column | None) -> Decimal:
    """The cap, rounded up to a few digits, on the column's own grid."""
    kept = max(0, DIGITS - 1 - Decimal(end).adjusted())
    scale = kept if column is None or column.type.kind is Kind.FLOAT else min(kept, column.type.scale)
    return decimal_up(Fraction(end), scale)


def write(path: Path, found: Profile) -> None:
    """The schema file with what was chosen, and its comments as they are. What it said before of these keys is replaced."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    try:
        tree = yaml.load(path.read_text())
        part = tree["tables"][found.table]
        for one in found.found:
            if one.column is None or one.key.startswith("max_"):
                place = part.setdefault("contribution", {})
                place[one.key] = max(int(one.value), place.get(one.key, 0) if place.get("origin") == found.origin else 0)
            else:
                place = part["columns"][one.column]
                place[one.key] = float(one.value) if one.value % 1 else int(one.value)
                if one.key == "upper":
                    place["lower"] = -place["upper"]
            place["origin"] = found.origin
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w") as file:
            yaml.dump(tree, file)
        os.replace(beside, path)
    except (OSError, KeyError, TypeError):
        raise SchemaError("FILE_UNREADABLE", f"{path} cannot be written", instead="the values that were chosen, written into it by hand") from None
