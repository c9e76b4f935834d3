"""Random data sets: a schema, data unit by unit, and their neighbours, all in one in-process engine; and the same rows in another order.

A unit's bag holds all rows that reach it, and rows that would if their parents were there. What reaches nobody (NULL units, orphans) is the same in
all neighbours. Cells are texts, as an INSERT casts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from dpquery.backends import seal
from dpquery.schema import read
from dpquery.schema.model import Schema
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type

Cell = str | None
Bag = dict[str, list[list[Cell]]]
MONEY = Type(Kind.DECIMAL, 2)
MAIN, FUZZED, SHUFFLED = "v0", "fuzzed", "shuffled"
THREADS = 3  # that read the rows in another order


@dataclass(frozen=True)
class ColumnSpec:
    """A declared column: `pool` are the texts of values that it takes (None: NULL), `extremes` those of a fuzzed data set."""

    name: str
    type: Type
    physical: str
    pool: tuple[Cell, ...]
    low: str | None = None
    high: str | None = None
    step: str | None = None
    values: tuple[Cell, ...] | None = None
    unique: bool = False

    @property
    def bounds(self) -> tuple[Fraction, Fraction] | None:
        return None if self.low is None or self.high is None else (Fraction(self.low), Fraction(self.high))

    def declared(self) -> str:
        word = f"decimal(38,{self.type.scale})" if self.type.kind is Kind.DECIMAL else str(self.type)
        parts = [f"type: '{word}'"]
        parts += [f"{key}: {value}" for key, value in (("lower", self.low), ("upper", self.high), ("step", self.step)) if value is not None]
        if self.values is not None:
            parts.append(f"values: [{', '.join('null' if v is None else quoted(v) if self.type.kind in TEXTUAL else v for v in self.values)}]")
        return f"{{{', '.join([*parts, *(['unique: true'] if self.unique else [])])}}}"


TEXTUAL = (Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.UUID)


@dataclass(frozen=True)
class TableSpec:
    """A declared table. `unit` is its own column, or (column, parent table, parent's key); None: public."""

    name: str
    columns: tuple[ColumnSpec, ...]
    unit: str | tuple[str, str, str] | None = None
    single: bool = False
    limits: tuple[int, int] | None = None  # groups and rows that a unit may contribute

    def column(self, name: str) -> ColumnSpec:
        return next(c for c in self.columns if c.name == name)

    def place(self, name: str) -> int:
        return [c.name for c in self.columns].index(name)

    def declared(self) -> str:
        match self.unit:
            case None:
                head = "public: true"
            case str(own):
                head = f"unit: {own}" + (", max_rows_per_unit: 1" if self.single else "")
            case (via, parent, key):
                head = f"unit: {{via: {via}, references: {parent}.{key}}}"
        if self.limits is not None:
            head += f", contribution: {{max_groups_contributed: {self.limits[0]}, max_rows_per_group: {self.limits[1]}}}"
        return f"  {self.name}: {{{head}, columns: {{{', '.join(f'{c.name}: {c.declared()}' for c in self.columns)}}}}}"


@dataclass
class World:
    """A data set with its neighbours: catalogue `v0` holds it, `removed` and `replaced` name those that differ from it in one unit.

    `alone` holds only the unit that is not in the first of `removed`, `shuffled` what `v0` holds, in another order and in pieces.
    """

    random: Random
    tables: dict[str, TableSpec]
    obedient: bool  # every value keeps what the schema declares
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    alone: str = ""
    joined_rows: int = 1000
    text: str = ""  # of the schema, without views
    whole: str = ""  # of the schema, with its views
    views: dict[str, Any] = field(default_factory=dict)  # by name, as the grammar knows them
    materialised: list[str] = field(default_factory=list)  # public relations that stand as tables just now
    filling: list[str] = field(default_factory=list)  # statements that fill the engine

    @cached_property
    def schema(self) -> Schema:
        """With the views, where there are some: it is read when it is first asked for."""
        return loaded(self.whole or self.text)

    @cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The engine with the data in it, filled when it is first asked: to make statements none is needed."""
        con = engine()
        for text in self.filling:
            con.execute(text)
        return con

    @property
    def variants(self) -> tuple[str, ...]:
        return (MAIN, *self.removed, *self.replaced, self.alone, SHUFFLED, FUZZED)

    def in_turn(self, salt: int) -> tuple[str, ...]:
        """Fewer of them, where many statements are looked at: of the further neighbours one, by turns."""
        further = (*self.removed[1:], *self.replaced)
        return (MAIN, self.removed[0], further[salt % len(further)], self.alone, SHUFFLED, FUZZED)

    def private(self) -> list[TableSpec]:
        return [t for t in self.tables.values() if t.unit is not None]

    def public(self) -> list[TableSpec]:
        return [t for t in self.tables.values() if t.unit is None]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# ---- columns -------------------------------------------------------------------------------------------------------------------------

LETTERS = "ENUM('a', 'b', 'c', 'Ab', 'zz')"
WORDS = ("a", "b", "c", "Ab", "ab ", "")
DAYS = ("2023-12-31", "2024-01-01", "2024-02-29", "2024-03-15")
MOMENTS = ("2023-12-31 23:59:59.999999", "2024-01-01 00:00:00", "2024-02-29 12:30:00")
HOSTILE: Mapping[str, tuple[Cell, ...]] = {
    "BOOLEAN": ("true", "false", None),
    "TINYINT": ("127", "-128", None),
    "INTEGER": ("2147483647", "-2147483648", None),
    "BIGINT": ("9223372036854775807", "-9223372036854775808", "-1", "0", None),
    "HUGEINT": ("170141183460469231731687303715884105727", "-170141183460469231731687303715884105728", "0", None),
    "DECIMAL(12,2)": ("9999999999.99", "-9999999999.99", None),
    "DECIMAL(18,0)": ("9" * 18, "-" + "9" * 18, None),
    "DECIMAL(18,4)": ("9" * 14 + ".9999", "-" + "9" * 14, None),
    "DECIMAL(18,6)": ("9" * 12 + ".999999", "-" + "9" * 12, None),
    "DECIMAL(38,2)": ("9" * 36 + ".99", "-" + "9" * 36 + ".99", "0.00", None),
    "FLOAT": ("nan", "inf", "-3e38", "1e-45", None),
    "DOUBLE": ("nan", "inf", "-inf", "-0.0", "1.7976931348623157e308", "-1e308", "5e-324", "4611686018427387904", None),
    "VARCHAR": ("", "%_\\'\"", "x" * 5000, "\u00e9\U0001f600" * 1500, "1e400", "nan", "infinity", "9223372036854775808", "0001-01-01", None),
    "DATE": ("infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", "0001-01-01", "9999-12-31", None),
    "TIMESTAMP": ("infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "9999-12-31 23:59:59.999999", None),
    "TIMESTAMP_NS": ("infinity", "-infinity", "1677-09-22 00:00:00", "2262-04-11 23:47:16.854775", None),
    "UUID": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", None),
}


def extremes(column: ColumnSpec) -> tuple[Cell, ...]:
    """What a cell of the column can hold at worst."""
    return HOSTILE.get(column.physical, column.pool)


def attribute(random: Random, name: str, obedient: bool, public: bool = False) -> ColumnSpec:
    """A column of the kind that its name stands for."""
    match name:
        case "k":
            return ColumnSpec(name, STRING, random.choice(["VARCHAR", "VARCHAR", LETTERS]), (*WORDS[:4], None))
        case "g":
            values = tuple(random.sample(WORDS, random.randint(1, 4))) + ((None,) if random.random() < 0.3 else ())
            pool = values if obedient else (*WORDS, None)
            return ColumnSpec(name, STRING, "VARCHAR", pool, values=values)
        case "n":
            return ColumnSpec(
                name,
                INTEGER,
                random.choice(["BIGINT", "INTEGER", "TINYINT", "HUGEINT"]),
                ("-1", "0", "1", "2", "3", None),
                *random.choice([("-1", "3"), (None, None)]),
            )
        case "x":
            low, high = random.choice([(-5, 20), (0, 10), (1, 5), (-50, -10), (10, 20), (0, 1), (-3, 0)])
            inside = [str(low), str(high), str((low + high) // 2), str(random.randint(low, high)), None]
            beyond = [] if obedient else [str(low - 7), str(high + 100), "-1000000"]
            return ColumnSpec(name, INTEGER, random.choice(["BIGINT", "BIGINT", "INTEGER"]), tuple(inside + beyond), str(low), str(high))
        case "y":
            low, high = random.choice([("-2.50", "7.25"), ("0", "500"), ("0.01", "0.05"), ("-9.99", "-1.00")])
            inside = [low, high, random.choice([low, high]), None]
            beyond = [] if obedient else ["-1000.01", "999999.99", "0.005"]
            physical = (
                random.choice(["DECIMAL(12,2)", "DECIMAL(38,2)", "DECIMAL(38,2)"]) if obedient else random.choice(["DECIMAL(12,2)", "DECIMAL(38,2)"])
            )
            return ColumnSpec(name, MONEY, physical, tuple(inside + beyond), low, high)
        case "p":
            scale, low, high = random.choice([(0, "-3", "12"), (4, "0.0001", "0.0500"), (4, "-100", "100")])
            inside = [low, high, "0" if scale == 0 else "0.0123", None]
            beyond = [] if obedient else ["-7777", "100000"]
            physical = random.choice([f"DECIMAL(18,{scale})", "BIGINT" if scale == 0 else "DECIMAL(18,4)", "DECIMAL(18,6)"])
            return ColumnSpec(name, Type(Kind.DECIMAL, scale), physical, tuple(inside + beyond), low, high)
        case "z":
            low, high = random.choice([("-1.5", "7.25"), ("0", "64"), ("-0.125", "0.125"), ("2", "3")])
            inside = [low, high, str((float(low) + float(high)) / 2), str(float(high) - 0.0625), None, "nan"]
            beyond = [] if obedient else ["inf", "-inf", "1e300", "-1e300", "-0.0", "0.03125"]
            return ColumnSpec(name, FLOAT, random.choice(["DOUBLE", "DOUBLE", "FLOAT"]) if obedient else "DOUBLE", tuple(inside + beyond), low, high)
        case "w":
            step = random.choice(["0.01", "0.25", "0.5"])
            inside = ["0", "0.5", "2.5", "1.5", "-1", None, *(["0.07", "1.15", "-0.29"] if step == "0.01" else [])]
            beyond = [] if obedient else ["nan", "inf", "-1e18", "3.25"]
            return ColumnSpec(name, FLOAT, "DOUBLE", tuple(inside + beyond), "-1", "2.5", step)
        case "free":
            return ColumnSpec(name, INTEGER, "BIGINT", ("-40", "0", "7", "1000", None))
        case "d":
            values = DAYS[:2] if random.random() < 0.3 else None
            return ColumnSpec(name, DATE, "DATE", DAYS if values is None or not obedient else values, values=values)
        case "seen":
            return ColumnSpec(name, TIMESTAMP, random.choice(["TIMESTAMP", "TIMESTAMP", "TIMESTAMP_NS", "DATE"]), (*MOMENTS, None))
        case "b":
            values = ("true", "false") if random.random() < 0.5 else None
            return ColumnSpec(name, BOOLEAN, "BOOLEAN", ("true", "false", None), values=values)
        case _:
            raise AssertionError(name)


PRIVATE_NAMES = ("k", "k", "g", "g", "n", "x", "x", "y", "p", "z", "w", "free", "d", "seen", "b")
UNIT_POOLS: Mapping[Kind, tuple[str, ...]] = {
    Kind.INTEGER: tuple(str(i) for i in (3, 1, 7, 12, 40, -2, 0, 99)),
    Kind.STRING: ("u3", "u1", "U1", "", "v w", "z'z", "u9", "u0"),
    Kind.UUID: tuple(f"{i:08d}-1234-5678-1234-567812345678" for i in range(8)),
}
PHYSICAL = {Kind.INTEGER: "BIGINT", Kind.STRING: "VARCHAR", Kind.UUID: "UUID"}


def _attributes(random: Random, obedient: bool, least: int, most: int) -> tuple[ColumnSpec, ...]:
    names = sorted(set(random.sample(PRIVATE_NAMES, random.randint(least, most))))
    random.shuffle(names)
    return tuple(attribute(random, name, obedient) for name in names)


def _identity(random: Random, name: str, unique: bool) -> ColumnSpec:
    kind = random.choice([INTEGER, INTEGER, STRING])
    return ColumnSpec(name, kind, PHYSICAL[kind.kind], (), unique=unique)


def _tables(random: Random, obedient: bool) -> dict[str, TableSpec]:
    kind = random.choice([INTEGER, INTEGER, INTEGER, STRING, UUID])

    def unit(name: str, unique: bool = False) -> ColumnSpec:
        return ColumnSpec(name, kind, PHYSICAL[kind.kind], UNIT_POOLS[kind.kind], unique=unique)

    single = random.random() < 0.8
    people = TableSpec("people", (unit("uid", unique=single), *_attributes(random, obedient, 2, 5)), "uid", single)
    owner, oid = random.choice(["uid", "owner"]), _identity(random, "oid", unique=True)
    orders = TableSpec("orders", (oid, unit(owner), *_attributes(random, obedient, 3, 7)), owner)
    person = random.choice(["uid", "person"])
    visits = TableSpec("visits", (*_attributes(random, obedient, 2, 6), unit(person)), person)
    iid = _identity(random, "iid", unique=True)
    decoy = (unit("uid"),) if random.random() < 0.4 else ()
    items = TableSpec("items", (replace(oid, unique=False), iid, *decoy, *_attributes(random, obedient, 2, 6)), ("oid", "orders", "oid"))
    parts = TableSpec("parts", (replace(iid, unique=False), *_attributes(random, obedient, 1, 4)), ("iid", "items", "iid"))
    found = [people, orders, visits, items, parts]
    if single:
        found.append(TableSpec("notes", (unit("uid"), *_attributes(random, obedient, 1, 4)), ("uid", "people", "uid")))
    found = [replace(t, limits=random.choice([(1, 1), (2, 3), (50, 50)])) if random.random() < 0.2 else t for t in found]
    return {t.name: t for t in (*found, *_publics(random))}


def _publics(random: Random) -> list[TableSpec]:
    region = ColumnSpec("region", STRING, "VARCHAR", ("east", "west", None))
    weight = ColumnSpec("weight", INTEGER, "BIGINT", ("0", "1", "4"), "0", "4")
    rate = ColumnSpec("rate", MONEY, "DECIMAL(12,2)", ("0.50", "2.00", None), "0", "2")
    band = ColumnSpec("band", STRING, "VARCHAR", ("low", "high"))
    key, number, day = (attribute(random, name, True, public=True) for name in ("k", "n", "d"))
    number, day = replace(number, low="-1", high="3"), replace(day, values=None, pool=DAYS)
    return [
        TableSpec("places", (key, region, weight)),
        TableSpec("marks", (replace(key, pool=WORDS[:3]), number, rate)),
        TableSpec("bands", (replace(number, pool=("-1", "0", "1", "2", "3")), band)),
        TableSpec("days", (day, ColumnSpec("open", BOOLEAN, "BOOLEAN", ("true", "false")))),
    ]


# ---- rows ----------------------------------------------------------------------------------------------------------------------------


@dataclass
class _Draw:
    """Rows of one data set; identities are never used twice."""

    random: Random
    tables: dict[str, TableSpec]
    numbers: Iterator[int] = field(default_factory=lambda: count(100))

    def identity(self, column: ColumnSpec) -> str:
        number = next(self.numbers)
        return str(number) if column.type == INTEGER else f"i{number}"

    def row(self, table: TableSpec, owner: Mapping[str, Cell], fuzz: bool = False) -> list[Cell]:
        return [self._cell(c, owner, fuzz) for c in table.columns]

    def _cell(self, column: ColumnSpec, owner: Mapping[str, Cell], fuzz: bool) -> Cell:
        if column.name in owner:
            return owner[column.name]
        if column.unique:
            return self.identity(column)
        return self.random.choice(extremes(column) if fuzz else column.pool)

    def bag(self, unit: str, most: int, fuzz: bool = False) -> Bag:
        """All rows of one unit."""
        found: Bag = {name: [] for name, table in self.tables.items() if table.unit is not None}
        for table in self.tables.values():
            match table.unit:
                case str(own):
                    rows = self.random.randint(0, 1) if table.single and most < 3 else 1 if table.single else self.random.randint(0, most)
                    found[table.name] += [self.row(table, {own: unit}, fuzz) for _ in range(rows)]
                case (via, "people", _):
                    found[table.name] += [self.row(table, {via: unit}, fuzz) for _ in range(self.random.randint(0, most))]
                case (via, parent, key):
                    known = [row[self.tables[parent].place(key)] for row in found[parent]]
                    rows = self.random.randint(0, most + 1) if known else 0
                    found[table.name] += [self.row(table, {via: self.random.choice(known)}, fuzz) for _ in range(rows)]
                case None:
                    pass
        return found

    def nobody(self) -> Bag:
        """Rows that reach no unit: NULL units and what hangs on them, keys that lead nowhere."""
        found: Bag = {name: [] for name, table in self.tables.items() if table.unit is not None}
        for table in self.tables.values():
            match table.unit:
                case str(own) if not table.single:
                    found[table.name] = [self.row(table, {own: None}) for _ in range(2)]
                case (via, parent, key):
                    known: list[Cell] = [row[self.tables[parent].place(key)] for row in found[parent]]
                    lost = self.identity(table.column(via)) if table.column(via).type.kind is not Kind.UUID else None
                    found[table.name] = [self.row(table, {via: self.random.choice([*known, lost, None])}) for _ in range(3)]
                case _:
                    pass
        return found

    def publics(self) -> Bag:
        """Public tables: `places` and `bands` with a row a key, `marks` and `days` with any number."""
        found: Bag = {}
        for table in self.tables.values():
            if table.unit is not None:
                continue
            first = table.columns[0]
            keys = [k for k in first.pool if self.random.random() < 0.8]
            if table.name in ("marks", "days"):
                keys += [k for k in first.pool if k is not None and self.random.random() < 0.5] + ([None] if table.name == "marks" else [])
            found[table.name] = [self.row(table, {first.name: k}) for k in keys]
        return found


def owners(tables: Mapping[str, TableSpec], bag: Bag, unit: str) -> dict[str, list[str | None]]:
    """Whose each row of a bag is: the unit's, or nobody's where its parent is missing."""
    found: dict[str, list[str | None]] = {}
    for name, rows in bag.items():
        match tables[name].unit:
            case (_, "people", _):
                found[name] = [unit if bag["people"] else None] * len(rows)
            case _:
                found[name] = [unit] * len(rows)
    return found


# ---- the whole -----------------------------------------------------------------------------------------------------------------------


def world(seed: int) -> World:
    """A random data set with neighbours."""
    random = Random(f"world {seed}")
    obedient = random.random() < 0.5
    tables = _tables(random, obedient)
    joined = random.choice([1000, 1000, 2])
    text = _schema_text(tables, joined)
    draw = _Draw(random, tables)
    units = list(random.sample(next(c.pool for c in tables["people"].columns if c.name == "uid"), random.randint(4, 6)))
    bags: dict[str, tuple[str, Bag]] = {f"u{i}": (str(unit), draw.bag(str(unit), 6 if i == 0 else 2)) for i, unit in enumerate(units)}
    others = {f"r{i}": (str(units[i]), draw.bag(str(units[i]), 6)) for i in (0, 1)}
    hostile = [unit for unit in extremes(tables["people"].column("uid")) if unit is not None]
    fuzzed = {f"f{i}": (unit, draw.bag(unit, 3, fuzz=True)) for i, unit in enumerate(hostile)}
    made = World(random, tables, obedient, joined_rows=joined, text=text)
    _stage(made, {**bags, **others, **fuzzed}, draw.nobody(), draw.publics())
    everyone = [*bags, "nobody"]
    _variant(made, MAIN, everyone)
    for i in (0, 1):
        _variant(made, f"less{i}", [tag for tag in everyone if tag != f"u{i}"])
        _variant(made, f"other{i}", [tag for tag in everyone if tag != f"u{i}"] + [f"r{i}"])
    _variant(made, "alone0", ["u0", "nobody"])
    _variant(made, FUZZED, [*fuzzed, "nobody"])
    _shuffled(made, everyone)
    _clean(made)
    made.removed, made.replaced, made.alone = ("less0", "less1"), ("other0", "other1"), "alone0"
    return made


@lru_cache(maxsize=256)  # the same data sets are made by many tests; to read a schema takes as long as to ask a question
def loaded(text: str) -> Schema:
    return read.loads(text, Path("/nowhere/world.yaml"))


def _schema_text(tables: Mapping[str, TableSpec], joined: int) -> str:
    lines = ["dataset: world", "source: {engine: duckdb, path: world.duckdb}", "privacy_unit: people.uid", "unsafe_testing: true"]
    lines += ["budget: {epsilon: 1e30, delta: 1000}", "per_query: {epsilon: 1e20, delta: 1, max_epsilon: 1e25}"]
    lines += [f"contribution: {{max_groups_contributed: 3, max_rows_per_group: 2, join_rows_per_unit: {joined}}}", "tables:"]
    return "\n".join([*lines, *(table.declared() for table in tables.values())]) + "\n"


def engine() -> duckdb.DuckDBPyConnection:
    con = seal.connect(seal.Allowance(2**30, 1))
    con.execute("SET preserve_insertion_order = false")
    return con


def _stage(made: World, bags: Mapping[str, tuple[str, Bag]], nobody: Bag, publics: Bag) -> None:
    """All rows of all neighbours in catalogue `stage`, each with its bag and its owner."""
    made.filling.append("ATTACH ':memory:' AS stage")
    for table in made.tables.values():
        columns = ", ".join(f'"{c.name}" {c.physical}' for c in table.columns)
        made.filling.append(f'CREATE TABLE stage.main."{table.name}" (__bag VARCHAR, __u VARCHAR, {columns})')
        rows: list[Sequence[Cell]] = [("nobody", None, *row) for row in nobody.get(table.name, publics.get(table.name, []))]
        for tag, (unit, bag) in bags.items():
            rows += [
                (tag, owner, *row) for owner, row in zip(owners(made.tables, bag, unit).get(table.name, []), bag.get(table.name, []), strict=True)
            ]
        made.random.shuffle(rows)
        if rows:
            values = ", ".join(f"({', '.join('NULL' if cell is None else quoted(cell) for cell in row)})" for row in rows)
            made.filling.append(f'INSERT INTO stage.main."{table.name}" VALUES {values}')


def _variant(made: World, catalogue: str, tags: Sequence[str]) -> None:
    made.filling.append(f"ATTACH ':memory:' AS {catalogue}")
    listed = ", ".join(quoted(tag) for tag in tags)
    for table in made.tables.values():
        where = "" if table.unit is None else f" WHERE __bag IN ({listed})"
        made.filling.append(f'CREATE TABLE {catalogue}.main."{table.name}" AS SELECT * EXCLUDE (__bag, __u) FROM stage.main."{table.name}"{where}')


def _shuffled(made: World, tags: Sequence[str]) -> None:
    """The rows of the data set in another order, each private table in pieces, so that several threads read it."""
    made.filling.append(f"ATTACH ':memory:' AS {SHUFFLED}")
    listed = ", ".join(quoted(tag) for tag in tags)
    for table in made.tables.values():
        rows = f'SELECT * EXCLUDE (__bag, __u) FROM stage.main."{table.name}"'
        if table.unit is None:
            made.filling.append(f'CREATE TABLE {SHUFFLED}.main."{table.name}" AS {rows}')
            continue
        rows += f" WHERE __bag IN ({listed})"
        for piece in range(THREADS):
            kept = f"{rows} AND hash(rowid) % {THREADS} = {piece} ORDER BY hash(rowid, 1)"
            made.filling.append(f'CREATE TABLE {SHUFFLED}.main."{table.name} {piece}" AS {kept}')
        pieces = " UNION ALL ".join(f'SELECT * FROM {SHUFFLED}.main."{table.name} {piece}"' for piece in range(THREADS))
        made.filling.append(f'CREATE VIEW {SHUFFLED}.main."{table.name}" AS {pieces}')


def _clean(made: World) -> None:
    """Catalogue `clean`: what plain SQL may be asked of. Rows that reach a unit, with that unit beside them; NaN is NULL."""
    made.filling.append("ATTACH ':memory:' AS clean")
    for table in made.tables.values():
        unit = made.tables["people"].column("uid").physical
        head = "" if table.unit is None else f"CAST(__u AS {unit}) AS __u, "
        where = "" if table.unit is None else " WHERE __u IS NOT NULL AND __bag NOT LIKE 'r%' AND __bag NOT LIKE 'f%'"
        items = ", ".join(_cleaned(c) for c in table.columns)
        made.filling.append(f'CREATE TABLE clean.main."{table.name}" AS SELECT {head}{items} FROM stage.main."{table.name}"{where}')


def _cleaned(column: ColumnSpec) -> str:
    name = f'"{column.name}"'
    match column.type.kind:
        case Kind.FLOAT:
            return f"CASE WHEN NOT isnan({name}) THEN CAST({name} AS DOUBLE) + 0.0 END AS {name}"
        case Kind.INTEGER:
            return f"CAST({name} AS BIGINT) AS {name}"
        case Kind.DECIMAL:
            return f"CAST({name} AS DECIMAL(12,{column.type.scale})) AS {name}"
        case Kind.STRING:
            return f"CAST({name} AS VARCHAR) AS {name}"
        case Kind.TIMESTAMP:
            return f"CAST({name} AS TIMESTAMP) AS {name}"
        case _:
            return name
