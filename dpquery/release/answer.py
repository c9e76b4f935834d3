"""The answer: noisy integers finished into values, run through the statement's upper part, with an error bar on every cell that has one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any

from dpquery.aggregates import card, mode
from dpquery.backends.scalar import literal
from dpquery.errors import Fault
from dpquery.mechanisms import Noise
from dpquery.plan.draft import FIRST, Affine, Feed, Output, Post
from dpquery.plan.release import Aggregate, ListedKeys, NoKeys, PrivateKeys, Release
from dpquery.privacy.cost import Priced
from dpquery.release import post
from dpquery.release.bars import Bars, Tables, shown_from
from dpquery.release.bars import Released as Released
from dpquery.release.bars import intervals as intervals
from dpquery.release.levers import advice
from dpquery.schema.model import Limits
from dpquery.values.noisy import Noisy
from dpquery.values.types import FLOAT, INTEGER, STRING, Shown, Type, Value

if TYPE_CHECKING:
    import pyarrow as pa

TYPE_NAMES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "string_view": "VARCHAR",
    "date32[day]": "DATE",
    "null": "NULL",
}
NoisyColumn = tuple[str, Type, Sequence[Shown]]
NO_ENDS: Mapping[str, Sequence[Bars]] = {}
Given = Mapping[str, Sequence[NoisyColumn]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A released table: `types` are SQL names, `intervals` error bars, both parallel to its columns; a bar is (low, high) or None, one a row, of
    a list one for each of its values.
    """

    table: pa.Table
    types: tuple[str, ...]
    intervals: tuple[tuple[Bars, ...] | None, ...]
    confidence: Fraction
    warnings: tuple[str, ...]
    receipt: Mapping[str, Any]


def columns(noisy: Noisy, release: Release, ends: Mapping[str, Sequence[Bars]] = NO_ENDS, noises: Sequence[Noise] | None = None) -> list[NoisyColumn]:
    """The table `noisy`, column by column: keys k0.., aggregates under their names, `__row`; l0.. and h0.. are ends of error bars that are read.

    `noises` are those of the parts; None: the integers are exact, or none.
    """
    keys = [(f"k{i}", key.type, [row[i] for row in noisy.keys]) for i, key in enumerate(release.table.keys)]
    values = [(a.name, a.type, _shown(a, noisy, noises)) for a in release.aggregates]
    bars = [
        (f"{side}{name[1:]}", FLOAT, [float(bar[end]) if isinstance(bar, tuple) else None for bar in ends[name]])
        for name in sorted(ends)
        for end, side in enumerate("lh")
    ]
    return [*keys, *values, ("__row", INTEGER, list(range(len(noisy.keys)))), *bars]


def _shown(aggregate: Aggregate, noisy: Noisy, noises: Sequence[Noise] | None) -> Sequence[Shown]:
    own, sums = card(aggregate), _sums(aggregate, noisy)
    if own.settle is None or noises is None:
        return own.finish(aggregate, sums)
    return own.settle(aggregate, sums, tuple(noises[part] for part in aggregate.parts))


def known_columns(release: Release, ends: Collection[str] = ()) -> list[NoisyColumn]:
    """The same table as far as it is known before anything is charged: its keys where they are listed, else no rows; NULL for what is measured."""
    keys = release.keys.rows if isinstance(release.keys, ListedKeys) else ((),) if isinstance(release.keys, NoKeys) else ()
    known = {f"k{i}": [row[i] for row in keys] for i in range(len(release.table.keys))} | {"__row": list(range(len(keys)))}
    empty = columns(Noisy((), tuple(() for _ in release.table.parts)), release, dict.fromkeys(ends, ()))
    return [(name, kind, known.get(name, [None] * len(keys))) for name, kind, _ in empty]


def bars_read(noisy: Noisy, release: Release, priced: Priced, ends: Collection[str], confidence: Fraction) -> dict[str, Sequence[Bars]]:
    """The error bars of these aggregates, row by row: of what was released, and of its noise, a function that costs nothing."""
    found = [a for a in release.aggregates if a.name in ends]
    return {
        a.name: card(a).interval(a, _sums(a, noisy), [priced.noises[part] for part in a.parts], confidence, shown_from(release, priced, a.parts))
        for a in found
    }


def finished(
    how: Post, given: Mapping[str, Sequence[NoisyColumn]], releases: Mapping[str, Release], limits: Limits
) -> tuple[Post, pa.Table, tuple[str, ...]]:
    """The statement's upper part run over the noisy tables. Should it break, these themselves: what was paid for is never lost."""
    try:
        return how, _finite(post.run(how, given, limits), how.outputs), ()
    except Fault:
        raw = _all_cells(given, releases) if len(releases) > 1 else _alone(given[FIRST], releases[FIRST])
        said = "What the statement does with the released values failed; here are the released values themselves."
        return raw, post.run(raw, given, limits), (said,)


def _names(release: Release) -> list[str]:
    return [key.name for key in release.table.keys] + [a.label for a in release.aggregates]


def _alone(given: Sequence[NoisyColumn], release: Release) -> Post:
    """The only noisy table, as it is."""
    kept = tuple(
        Output(name, Affine(column[0]) if column[0].startswith("a") else None, column[0].startswith("a"))
        for name, column in zip(_names(release), given, strict=False)
    )
    return Post(f"SELECT {', '.join(column[0] for column in given)} FROM {FIRST} ORDER BY __row", kept)


def _all_cells(given: Mapping[str, Sequence[NoisyColumn]], releases: Mapping[str, Release]) -> Post:
    """Every cell of every noisy table, one a row, as text."""
    cells = [
        f"SELECT {i} AS a, __row AS b, {j} AS c, '{name}' AS d, {literal(called, STRING)} AS e, CAST({column[0]} AS VARCHAR) AS f FROM {name}"
        for i, (name, release) in enumerate(releases.items())
        for j, (called, column) in enumerate(zip(_names(release), given[name], strict=False))
    ]
    outputs = (Output("table"), Output("row"), Output("column"), Output("value", noisy=True))
    return Post(f"SELECT d, b, e, f FROM ({' UNION ALL '.join(cells)}) ORDER BY a, b, c", outputs, rows=())


def _finite(table: pa.Table, outputs: Sequence[Output]) -> pa.Table:
    """The table with NULL where arithmetic has no number: 0/0 is NaN to the engine, 1/0 an infinity. Keys stay as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, output in enumerate(outputs):
        field, column = table.schema.field(place), table.column(place)
        if output.noisy and pa.types.is_floating(field.type):
            table = table.set_column(place, field, pc.if_else(pc.is_finite(column), column, pa.scalar(None, field.type)))
    return table


def told_apart(table: pa.Table) -> pa.Table:
    """The answer with a name of its own for each column, by which its error bars are found: a second `n` is `n_1`, as in the engine's tables."""
    given, taken = set(table.column_names), dict[str, None]()
    for name in table.column_names:
        others = (f"{name}_{i}" for i in count(1))
        taken[name if name not in taken else next(one for one in others if one not in given and one not in taken)] = None
    return table.rename_columns([*taken])


def type_names(table: pa.Table) -> tuple[str, ...]:
    """The SQL names of an answer's column types."""
    return tuple(_type_name(field.type) for field in table.schema)


def _type_name(arrow: Any) -> str:
    text = str(arrow)
    if text.startswith("list<"):
        return f"{_type_name(arrow.value_type)}[]"
    if text.startswith("decimal128"):
        return text.replace("decimal128", "DECIMAL").replace(" ", "")
    return TYPE_NAMES.get(text, "TIMESTAMP" if text.startswith("timestamp") else text.upper())


def _sums(aggregate: Aggregate, noisy: Noisy) -> tuple[Sequence[int], ...]:
    return tuple(noisy.sums[part] for part in aggregate.parts)


def warnings(
    outputs: Sequence[Output], table: pa.Table, bars: Sequence[tuple[Bars, ...] | None], releases: Sequence[tuple[Release, Noisy]]
) -> tuple[str, ...]:
    """What the released tables themselves give reason to say."""
    said = []
    selected = [len(noisy.keys) for release, noisy in releases if isinstance(release.keys, PrivateKeys)]
    if selected:
        if 0 in selected:
            said.append(
                "No group passed the threshold: there may be none with enough people, or the price is too small. Ask for larger groups or pay more."
            )
        else:
            said.append(
                "Groups with few people are left out. Error bars allow for that: those of counts near the threshold reach down to one person."
            )
    barless = [output.name for output, column in zip(outputs, bars, strict=True) if output.noisy and column is None and not output.chosen]
    if barless:
        said.append(f"No error bar for {', '.join(barless)}: as noisy as what it is computed from.")
    for place, output in enumerate(outputs):
        column = bars[place]
        if column is None or output.edge is not None:
            continue
        wide = sum(1 for value, bar in zip(table.column(place).to_pylist(), column, strict=True) if _too_wide(value, bar))
        if wide:
            ways = advice([release for release, _ in releases], grouped=len(column) > 1)
            said.append(f"{output.name}: the error bar is wider than the value itself in {wide} of {len(column)} rows. {ways}")
    return tuple(said)


def unfed(fed: Mapping[Feed, Sequence[tuple[Value, ...]]]) -> tuple[str, ...]:
    """A word on each released value that a later release read and that is none."""
    why = "nothing was released for it, or what computes it overflowed, divided by zero or failed otherwise"
    return tuple(f"{feed.label} below the noise was NULL: {why}." for feed, rows in fed.items() if feed.label and [*rows] == [(None,)])


def valueless(outputs: Sequence[Output], table: pa.Table, tables: Tables) -> tuple[str, ...]:
    """A word on each column that is NULL where no key is: arithmetic above the noise that has no value is NULL, never an error."""
    if not tables:
        return ()
    whole = [all(known) for known in zip(*(_whole(one) for one in tables.values()), strict=True)]
    said = []
    for place, output in enumerate(outputs):
        if output.edge is not None or output.bare:
            continue
        missing = sum(1 for value, known in zip(table.column(place).to_pylist(), whole, strict=True) if value is None and known)
        if missing:
            why = output.missing or "what overflows or divides by zero above the noise has no value"
            said.append(f"{output.name}: NULL in {missing} of {len(whole)} rows: {why}.")
    return tuple(said)


def doubtful(tables: Tables, confidence: Fraction) -> tuple[str, ...]:
    """A word on each mode that does not lead by as much as the noise may have moved it."""
    said = []
    for released in tables.values():
        for one in released.release.aggregates:
            if one.values:
                close = mode.close(one, _sums(one, released.noisy), [released.priced.noises[i] for i in one.parts], confidence)
                rows = [close[row] for row in released.rows if row is not None]
                if any(rows):
                    said.append(f"{one.label}: in {sum(rows)} of {len(rows)} rows another value may be as frequent: it leads by less than the noise.")
    return tuple(said)


def _whole(released: Released) -> list[bool]:
    """For each row of the answer whether it has a row of this table, without NULL in its key."""
    return [row is not None and all(value is not None for value in released.noisy.keys[row]) for row in released.rows]


def _too_wide(value: Any, bar: Bars) -> bool:
    if isinstance(bar, list):
        return value is not None and any(map(_too_wide, value, bar))
    if isinstance(value, date):  # nothing says how wide is wide
        return False
    return bar is not None and value is not None and float(bar[1]) - float(bar[0]) > abs(float(value))
