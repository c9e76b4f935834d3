"""What a statement's answer is without noise, worked out from the generator's tree: plain SQL over clean data down to one row per unit and group,
then Python. It shares nothing with the lowering; of the plan it reads public choices only (the grid, bounds that interval arithmetic found, whether
keys are listed)."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite, sqrt
from typing import Any

from grammar import Agg, Key, Statement
from worlds import World, quoted

from dpquery.plan.rel import Group, Windowed, walk
from dpquery.plan.release import Aggregate, ListedKeys, Release, Units
from dpquery.values.types import FLOAT, INTEGER, Kind, Type

NAMES = {
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.STRING: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.UUID: "UUID",
}
WEIGHT = 2**20
SPREADS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
PAIRS = ("covar_pop", "covar_samp", "corr")
NEAR = 1e-9  # how far a root or a quotient of the same sums may lie from another
EACH = 6  # numbers of each aggregate that a cell has: rows, sums of x, x^2, y, y^2 and xy
Row = tuple[Any, ...]


def name_of(kind: Type) -> str:
    return f"DECIMAL(38,{kind.scale})" if kind.kind is Kind.DECIMAL else NAMES[kind.kind]


@dataclass(frozen=True)
class Summed:
    """How an aggregate adds up: `low` and `high` bound a row in grid units; `clamped`: plain SQL has to see to it, else the data keep them."""

    agg: Agg
    step: Fraction
    kind: Type
    low: int
    high: int
    clamped: bool
    other: Summed | None = None
    width: int = 1  # of the bins of a quantile
    by_rank: bool = False
    values: tuple[Any, ...] = ()  # of which a mode is one


@dataclass(frozen=True)
class Expected:
    """The answer's groups with their values, the values of a group without rows, and how many groups the busiest unit has."""

    rows: dict[Row, tuple[Any, ...]]
    empty: tuple[Any, ...]
    busiest: int
    fullest: int  # different values of the fullest set of a unit


def expected(
    made: World, statement: Statement, release: Release, key_types: Sequence[Type], threshold: int | None, only: set[Row] | None = None
) -> Expected | None:
    """The answer with noise off, where no cap on groups and no cap on joined rows bites; None where the plan merged unlike texts.

    `only` are the keys of bins that bounds make finite; clean data has no other keys but those with NULL.
    """
    listed, found = isinstance(release.keys, ListedKeys), matching(statement, release)
    grouped = any(isinstance(rel, Group | Windowed) for rel in walk(release.table.input))  # its results may lie beyond the bounds of what is released
    if found is None:
        return None
    sums = [summed(agg, aggregate, release, made.obedient and not grouped) for agg, aggregate in zip(statement.aggs, found, strict=True)]
    text = _cells_text(statement, sums, key_types, listed)
    cells = made.con.execute(text).fetchall()
    width = len(statement.keys)
    if only is not None:
        out = [row for row in cells if row[1 : 1 + width] not in only]
        assert not made.obedient or all(None in row[1 : 1 + width] for row in out), f"keys within bounds are not listed: {out[:3]}"
        cells = [row for row in cells if row[1 : 1 + width] in only]
    groups: Counter[Any] = Counter(row[0] for row in cells)
    weights = _weights(cells, width, statement.limits.weights)
    gathered: dict[Row, list[Row]] = defaultdict(list)
    for row in cells:
        gathered[tuple(row[1 : 1 + width])].append((row[0], *row[1 + width :]))
    if not width:
        gathered.setdefault((), [])
    least = 1 if threshold is None else threshold + statement.limits.minimum - 1
    rows = {
        key: tuple(_finished(one, j, units, statement, weights) for j, one in enumerate(sums))
        for key, units in gathered.items()
        if len(units) >= least or not width
    }
    nothing = tuple(_finished(one, j, [], statement, {}) for j, one in enumerate(sums))
    sets = [len(row[1 + width + 2 + EACH * j] or ()) for j, one in enumerate(sums) if one.agg.card == "distinct" for row in cells]
    return Expected(rows, nothing, max(groups.values(), default=0), max(sets, default=0))


def matching(statement: Statement, release: Release) -> list[Aggregate] | None:
    """The plan's aggregate of each one of the statement, which asks for equal ones once; None where it is not clear which are equal."""
    order = sorted(range(len(statement.aggs)), key=lambda j: statement.shown[len(statement.keys) + j])
    measured = [one for one in release.aggregates if not one.name.startswith("w")]  # but those whose loss is all that is told
    kinds = list(dict.fromkeys(_same(statement.aggs[j]) for j in order))
    if len(kinds) != len(measured):
        return None
    return [measured[kinds.index(_same(agg))] for agg in statement.aggs]


def _same(agg: Agg) -> tuple[Any, ...]:
    """What equal aggregates have in common."""
    value = None if agg.value is None or (agg.card == "units" and agg.value.bare and agg.value.bare.firm) else agg.value.plain
    other = agg.other.plain if agg.other else None
    return (
        agg.card,
        value,
        other,
        agg.where.plain if agg.where else None,
        agg.per_row,
        agg.per_group,
        agg.fractions,
        agg.discrete,
        agg.upper,
        agg.listed,
    )


# ---- the grid ------------------------------------------------------------------------------------------------------------------------


def summed(agg: Agg, aggregate: Aggregate, release: Release, obedient: bool) -> Summed:
    """How the aggregate adds up. Written and declared bounds are worked out here; those of interval arithmetic are the plan's."""
    if agg.other is not None:
        both = [replace(agg, value=value, other=None) for value in (agg.value, agg.other)]
        one, other = (summed(each, _only(aggregate, i), release, obedient) for i, each in enumerate(both))
        return replace(one, agg=agg, other=other)
    if agg.card == "mode":
        return Summed(agg, Fraction(1), INTEGER, 0, 1, False, values=aggregate.values)
    row = release.table.parts[aggregate.parts[0]].row
    if not isinstance(row, Units) or agg.value is None:
        return Summed(agg, Fraction(1), INTEGER, 0, 1, False)
    kind, step = row.value.type, row.step
    spec = agg.value.bare.spec if agg.value.bare else None
    bounds = (Fraction(agg.per_row[0]), Fraction(agg.per_row[1])) if agg.per_row else spec.bounds if spec else None
    width, by_rank = aggregate.quantile.widths[-1] if aggregate.quantile else 1, aggregate.card == "quantile_by_rank"
    if bounds is None:
        return Summed(agg, step, kind, row.low, row.high, clamped=not obedient, width=width, by_rank=by_rank)
    low, high = ceil(bounds[0] / step), floor(bounds[1] / step)
    if low > high:
        low = high = floor((bounds[0] + bounds[1]) / 2 / step + Fraction(1, 2))
    assert (low, high) == (row.low, row.high), f"{agg.dp}: rows in [{row.low}, {row.high}] instead of [{low}, {high}]"
    return Summed(agg, step, kind, low, high, clamped=True, width=width, by_rank=by_rank)


def _only(aggregate: Aggregate, place: int) -> Aggregate:
    """The aggregate as if one of its parts were the first."""
    return replace(aggregate, parts=aggregate.parts[place:])


def _units_text(one: Summed) -> str:
    """A row in grid units: the nearest one, clamped."""
    assert one.agg.value is not None
    value = f"({one.agg.value.plain})"
    match one.kind.kind:
        case Kind.INTEGER:
            whole = f"CAST({value} AS HUGEINT)"
            if one.step < 1:  # of means of units
                whole = f"CASE WHEN {whole} IS NOT NULL THEN least(greatest({whole}, {-(2**62)}), {2**62}) * {one.step.denominator} END"
        case Kind.DECIMAL:
            whole = f"CAST(CAST({value} AS DECIMAL(28,{one.kind.scale})) * CAST({10**one.kind.scale} AS DECIMAL(10,0)) AS HUGEINT)"
        case _:
            p, q = one.step.numerator, one.step.denominator
            scaled = f"least(greatest(floor({value} * {float(q)!r}::DOUBLE / {float(p)!r}::DOUBLE + 0.5), -4e18), 4e18)"
            whole = f"CASE WHEN {value} IS NOT NULL AND NOT isnan(CAST({value} AS DOUBLE)) THEN CAST({scaled} AS HUGEINT) END"
    if one.kind.kind is not Kind.FLOAT:
        own = Fraction(1, 10**one.kind.scale)
        assert one.step == own or (one.agg.per_group and one.agg.card == "mean"), f"{one.agg.dp}: a step of {one.step}"
    if not one.clamped and one.kind.kind is not Kind.FLOAT:
        return whole
    if not one.clamped:  # a double may lie a rounding beyond the exact bounds
        return f"CASE WHEN ({whole}) = {one.low - 1} THEN {one.low} WHEN ({whole}) = {one.high + 1} THEN {one.high} ELSE {whole} END"
    return f"CASE WHEN ({whole}) IS NOT NULL THEN least(greatest({whole}, {one.low}), {one.high}) END"


# ---- plain SQL -----------------------------------------------------------------------------------------------------------------------


def _cells_text(statement: Statement, sums: Sequence[Summed], key_types: Sequence[Type], listed: bool) -> str:
    """One row per unit and group: the unit, the keys, the number of rows, then of each aggregate how many rows count and what they add up to."""
    keys = [_key_text(key, kind) for key, kind in zip(statement.keys, key_types, strict=True)]
    items = [
        f"{statement.rel.unit} AS u",
        *(f"{text} AS k{i}" for i, text in enumerate(keys)),
        *(f"{_row_text(s)} AS x{j}" for j, s in enumerate(sums)),
        *(f"{_row_text(s.other)} AS y{j}" for j, s in enumerate(sums) if s.other),
    ]
    where = [f"({e.plain})" for e in statement.where] + [f"({statement.rel.unit}) IS NOT NULL"]
    rows = f"SELECT {', '.join(items)} FROM {statement.rel.plain} WHERE {' AND '.join(where)}"
    kept = [text for i, key in enumerate(statement.keys) if listed and (text := _in_list(key, f"k{i}")) is not None]
    only = f" WHERE {' AND '.join(kept)}" if kept else ""
    by = ", ".join(["u", *(f"k{i}" for i in range(len(keys)))])
    gathered = ", ".join(["count(*)", *(_gathered(s, j) for j, s in enumerate(sums))])
    ctes = ", ".join([*statement.ctes, f"rows_ AS ({rows})"])
    return f"WITH {ctes} SELECT {by}, {gathered} FROM rows_{only} GROUP BY {by}"


def _gathered(one: Summed, j: int) -> str:
    """How many rows count, and sums of their values and products; only where both values are known."""
    x, y = f"x{j}::HUGEINT", f"y{j}::HUGEINT"
    if one.agg.card in PAIRS:
        terms = [f"{x} + 0 * {y}", f"{x} * {x} + 0 * {y}", f"{y} + 0 * {x}", f"{y} * {y} + 0 * {x}", f"{x} * {y}"]
        return ", ".join([f"count(x{j} + y{j})", *(f"coalesce(sum({term}), 0)" for term in terms)])
    if one.agg.card == "distinct":
        return f"count(x{j}), list(DISTINCT x{j}) FILTER (WHERE x{j} IS NOT NULL), 0, 0, 0, 0"
    if one.agg.card in ("quantile", "mode"):
        return f"count(x{j}), list(x{j}) FILTER (WHERE x{j} IS NOT NULL), 0, 0, 0, 0"
    squares = f"coalesce(sum({x} * {x}), 0)" if one.agg.card in SPREADS else "0"
    return f"count(x{j}), coalesce(sum(x{j}), 0), {squares}, 0, 0, 0"


def _key_text(key: Key, kind: Type) -> str:
    text = f"CAST({key.value.plain} AS {name_of(kind)})"
    return f"nullif({text} + 0.0, 'nan'::DOUBLE)" if kind == FLOAT else text


def _row_text(one: Summed) -> str:
    agg = one.agg
    if agg.card == "distinct" and agg.value is not None:
        text = f"nullif({agg.value.plain} + 0.0, 'nan'::DOUBLE)" if agg.value.type == FLOAT else agg.value.plain
    elif agg.card == "mode" and agg.value is not None:
        text = f"({agg.value.plain})"
    elif agg.card in ("total", "race_total", "mean", "quantile", *SPREADS, *PAIRS):
        text = _units_text(one)
    else:
        text = "1" if agg.value is None else f"CASE WHEN ({agg.value.plain}) IS NOT NULL THEN 1 END"
    return text if agg.where is None else f"CASE WHEN {agg.where.plain} THEN {text} END"


def _in_list(key: Key, name: str) -> str | None:
    """Rows that a list of keys leaves out although the statement does not: values that are not declared, NULLs of public columns."""
    col = key.value.bare
    if col is None or not col.firm:
        return None
    if not col.private:
        return f"{name} IS NOT NULL"
    if col.spec is None or col.spec.values is None:
        return None
    values = ", ".join(quoted(v) for v in col.spec.values if v is not None) or "NULL"
    return f"({name} IN ({values}){f' OR {name} IS NULL' if None in col.spec.values else ''})"


# ---- cells in Python -----------------------------------------------------------------------------------------------------------------


def _weights(cells: Sequence[Row], width: int, most: int | None) -> Mapping[Any, int]:
    """What each row of a unit weighs, in units of 2^-20."""
    if most is None:
        return {}
    rows: Counter[Any] = Counter()
    for row in cells:
        rows[row[0]] += row[1 + width]
    return {unit: min(most, n) * WEIGHT // n for unit, n in rows.items()}


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def _finished(one: Summed, place: int, cells: Sequence[Row], statement: Statement, weights: Mapping[Any, int]) -> Any:
    """The released value of a group from its units' rows: (unit, rows, then count and sum of each aggregate)."""
    if one.agg.card == "distinct":
        return len({value for row in cells for value in row[3 + EACH * place] or ()})
    if one.agg.card == "quantile":
        return _quantiles(one, [[int(x) for x in row[3 + EACH * place] or ()] for row in cells], statement.limits.rows)
    if one.agg.card == "mode":
        return _mode(one, [row[3 + EACH * place] or () for row in cells], statement.limits.rows)
    numbers = [(weights.get(row[0], 1), *map(int, row[2 + EACH * place : 2 + EACH * (place + 1)])) for row in cells]
    pairs = [row[:3] for row in numbers]
    weighted, most = statement.limits.weights is not None, statement.limits.rows
    one_row = WEIGHT if weighted else 1
    match one.agg.card:
        case "units":
            return sum(min(n, 1) for _, n, _ in pairs)
        case "count" | "race_count":
            low, high = one.agg.per_group or ("0", str(most))
            counts = [w * n if weighted else _clamp(n, int(low), int(high)) for w, n, _ in pairs if n]
            return floor(Fraction(sum(counts), one_row) + Fraction(1, 2))
        case "total" | "race_total":
            low_, high_ = _cell_bounds(one, most)
            return _released(sum(w * s if weighted else _clamp(s, low_, high_) for w, n, s in pairs if n) * one.step / one_row, one.kind)
        case "mean":
            return _mean(one, pairs, most, weighted)
        case _:
            return _moment(one, _moments(one, numbers, most, weighted))


def _cell_bounds(one: Summed, most: int) -> tuple[int, int]:
    if one.agg.per_group is not None:
        return ceil(Fraction(one.agg.per_group[0]) / one.step), floor(Fraction(one.agg.per_group[1]) / one.step)
    return min(one.low, one.low * most), max(one.high, one.high * most)


def _mean(one: Summed, pairs: Sequence[tuple[int, int, int]], most: int, weighted: bool) -> float:
    """The mean over rows; of a unit with more rows than may count, its own mean counts as so many rows."""
    if one.agg.per_group is not None:
        return _mean_of_units(one, [(n, s) for _, n, s in pairs if n])
    top = bottom = Fraction(0)
    for w, n, s in pairs:
        twice = 2 * s - (one.low + one.high) * n
        top += w * twice if weighted else int(Fraction(twice * most, max(n, most)))
        bottom += w * n if weighted else min(n, most)
    middle = (one.low + one.high) * one.step / 2
    return float(middle if bottom <= 0 else middle + one.step / 2 * top / bottom)


def _mean_of_units(one: Summed, pairs: Sequence[tuple[int, int]]) -> float:
    """The mean over units of their means, each truncated in half units and clamped."""
    low, high = _cell_bounds(one, 1)
    middle = (low + high) * one.step / 2
    top = sum(_clamp(int(Fraction(2 * s, n)), 2 * low, 2 * high) - (low + high) for n, s in pairs)
    return float(middle + one.step / 2 * Fraction(top, len(pairs)) if pairs else middle)


def _mode(one: Summed, units: Sequence[Sequence[Any]], most: int) -> Any:
    """The first of the values whose rows weigh most, those of a unit as much as so many at most."""
    found: dict[Any, int] = dict.fromkeys(one.values, 0)
    for own in ([x for x in rows if x in found] for rows in units):
        for x in own:
            found[x] += min(most, len(own)) * WEIGHT // len(own)
    return max(found, key=found.__getitem__)


class Near(float):
    """A quantile: about where it lies, and between what ends."""

    low: float
    high: float
    unit: int = 1  # of a released moment: as how many of its days or microseconds one counts


def counted(value: Any, unit: int) -> float:
    """A released number; of a date its day, of a timestamp its microseconds, in such units."""
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=unit)
    return float((value - datetime.date(1970, 1, 1)).days if isinstance(value, datetime.date) else value)


def _quantiles(one: Summed, units: Sequence[Sequence[int]], most: int) -> Near | list[Near]:
    """The quantile, a list of them, or one value of that."""
    found = [_quantile(one, Fraction(at), units, most) for at in one.agg.fractions]
    for near in found:
        near.unit = one.agg.unit
    return found[one.agg.place or 0] if one.agg.place is not None or not one.agg.listed else found


def _quantile(one: Summed, q: Fraction, units: Sequence[Sequence[int]], most: int) -> Near:
    """The values at the quantile's places, of rows of which those of a unit weigh as much as so many at most; and the width of a bin."""
    step, tiny = one.step, Fraction(1, 10**9)
    rows = sorted((x, Fraction(min(most, len(own)) * WEIGHT // len(own), WEIGHT)) for own in units for x in own)
    number = sum((w for _, w in rows), Fraction(0))
    if one.by_rank:
        return _by_rank(one, rows, q * number, number)
    rank = max(ceil(q * number - tiny), 1) - 1 if one.agg.discrete else q * (number - 1)
    rank = min(Fraction(floor(q * number + tiny)), number - 1) if one.agg.upper else rank
    places = [floor(rank) + Fraction(1, 2), floor(rank) + Fraction(1 if one.agg.discrete else 3, 2)] if number >= 1 else [q * number]
    tie = Fraction(1, 10**6) + sum(min(most, len(own)) for own in units) - number  # with all that weights lose where they are whole
    ends = [_value_at(rows, places[0] - tie), _value_at(rows, places[-1] + tie)] if rows else [one.low + q * (one.high - one.low)] * 2
    if not rows and one.agg.discrete:  # in whole units of its type
        ends = [Fraction(floor(end + Fraction(1, 2))) for end in ends]
    found = Near(ends[0] * step)
    found.low, found.high = float((ends[0] - one.width + 1) * step), float((ends[1] + one.width - 1) * step)
    return found


def _by_rank(one: Summed, rows: Sequence[tuple[int, Fraction]], place: Fraction, number: Fraction) -> Near:
    """The bins on whose ranks the place lies: those of the rows around it, and the empty ones between; beyond the last row, up to the bounds."""
    tie = Fraction(1, 10**9)
    low = _value_at(rows, place - tie) if rows and place > tie else one.low
    high = _value_at(rows, place + tie) if rows and place < number - tie else one.high
    found = Near(low * one.step)
    found.low, found.high = float((low - one.width + 1) * one.step), float((high + one.width - 1) * one.step)
    return found


def _value_at(rows: Sequence[tuple[int, Fraction]], place: Fraction) -> int:
    """The value of the row at which the weights so far pass a place."""
    for x, weight in rows:
        place -= weight
        if place < 0:
            return x
    return rows[-1][0]


def _moments(one: Summed, numbers: Sequence[tuple[int, ...]], most: int, weighted: bool) -> tuple[Fraction, ...]:
    """The number of rows, and the means of x', y', x'^2, y'^2 and x'y' in half units around the middle of bounds; of heavy units as in a mean."""
    cx, cy = one.low + one.high, one.other.low + one.other.high if one.other else 0
    hx, hy = ((s.high - s.low) ** 2 // 2 if s else 0 for s in (one, one.other))
    total = [Fraction(0)] * 6
    for w, n, x, xx, y, yy, xy in numbers:
        squares = 4 * xx - 4 * cx * x + (cx**2 - hx) * n, 4 * yy - 4 * cy * y + (cy**2 - hy) * n
        own = (2 * x - cx * n, 2 * y - cy * n, *squares, 4 * xy - 2 * cy * x - 2 * cx * y + cx * cy * n)
        for i, value in enumerate(own, 1):
            total[i] += w * value if weighted else int(Fraction(value * most, max(n, most)))
        total[0] += w * n if weighted else min(n, most)
    if total[0] <= 0:
        return (Fraction(0),) * 6
    n, x, y, xx, yy, xy = (total[0], *(value / total[0] for value in total[1:]))
    return n / (WEIGHT if weighted else 1), x, y, xx + hx, yy + hy, xy


def _moment(one: Summed, found: tuple[Fraction, ...]) -> float:
    """The variance, its root, the covariance or the correlation of these means."""
    n, x, y, xx, yy, xy = found
    card, half = one.agg.card, one.step / 2
    sample = card.endswith("samp")
    factor = n / (n - 1) if sample and n >= 2 else Fraction(2 if sample else 1)
    width = Fraction(one.high - one.low)
    if card in SPREADS:
        variance = width**2 * factor / 2 if n <= (1 if sample else 0) else max(Fraction(0), min(width**2, xx - x * x)) * factor
        return float(half) * sqrt(variance) if card.startswith("stddev") else float(variance * half**2)
    assert one.other is not None
    wide, other = width * (one.other.high - one.other.low), one.other.step / 2
    if card != "corr":
        return 0.0 if n <= (1 if sample else 0) else float(max(-wide, min(wide, xy - x * y)) * factor * half * other)
    product = max(Fraction(0), xx - x * x) * max(Fraction(0), yy - y * y)
    return 0.0 if n <= 0 or not product else max(-1.0, min(1.0, float(xy - x * y) / sqrt(product)))


def _released(value: Fraction, kind: Type) -> Any:
    match kind.kind:
        case Kind.INTEGER:
            return floor(value + Fraction(1, 2))
        case Kind.DECIMAL:
            return Decimal(floor(value * 10**kind.scale + Fraction(1, 2))).scaleb(-kind.scale)
        case _:
            return float(value)


# ---- order ---------------------------------------------------------------------------------------------------------------------------


def upper(made: World, statement: Statement, rows: Mapping[Row, Row], types: Sequence[Type], order: Sequence[int]) -> dict[Row, Row]:
    """HAVING, QUALIFY, ORDER BY, LIMIT and OFFSET: the keys that are left, in order, each with the further columns. `order` is that of GROUP BY."""
    left = [key for key, values in rows.items() if statement.having is None or _kept(values[statement.having[0]], *statement.having[1:])]
    left.sort(key=lambda key: tuple((key[i] is None, _sortable(key[i])) for i in order))
    further = _further(made, statement, [(key, rows[key]) for key in left], types, order)
    left = [key for key in left if further[key][-1] is True]
    if statement.sort is not None:
        place, down = statement.sort
        left.sort(key=lambda key: -rows[key][place] if down else rows[key][place])
    last = None if statement.limit is None else statement.offset + statement.limit
    return {key: further[key][:-1] for key in left[statement.offset : last]}


def _further(made: World, statement: Statement, rows: Sequence[tuple[Row, Row]], types: Sequence[Type], order: Sequence[int]) -> dict[Row, Row]:
    """The further columns of each row, then whether QUALIFY keeps it, by plain SQL over the answer without noise."""
    if not rows or not (statement.more or statement.qualify):
        return {key: (True,) for key, _ in rows}
    names = ", ".join(["i", *(f"k{i}" for i in range(len(types))), *(f"a{j}" for j in range(len(statement.aggs)))])
    listed = ", ".join(f"({i}, {', '.join([*map(_typed, key, types), *map(_valued, values)])})" for i, (key, values) in enumerate(rows))
    ties = "".join(f", k{i} NULLS LAST" for i in order)
    texts = [one.plain.replace("{k}", ties) for one in (*statement.more, *([statement.qualify] if statement.qualify else []))]
    asked = f"SELECT {', '.join(texts)}{'' if statement.qualify else ', TRUE'} FROM (VALUES {listed}) AS t({names}) ORDER BY i"
    return {key: tuple(map(_finite, found)) for (key, _), found in zip(rows, made.con.execute(asked).fetchall(), strict=True)}


def _typed(value: Any, kind: Type) -> str:
    return f"CAST({'NULL' if value is None else quoted(str(value))} AS {name_of(kind)})"


def _valued(value: Any) -> str:
    """A released number in its type; a mode, from which nothing is computed, as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return quoted(str(value))
    kind = f"DECIMAL(38,{-int(value.as_tuple().exponent)})" if isinstance(value, Decimal) else "DOUBLE" if isinstance(value, float) else "BIGINT"
    return f"CAST('{value}' AS {kind})"


def _finite(value: Any) -> Any:
    """Arithmetic above the noise that has no number is NULL."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _kept(value: Any, sign: str, limit: int) -> bool:
    return {">": value > limit, "<=": value <= limit, "<>": value != limit}[sign]


def _sortable(value: Any) -> Any:
    return "" if value is None else str(value) if not isinstance(value, int | float | Decimal | str | datetime.date) else value
