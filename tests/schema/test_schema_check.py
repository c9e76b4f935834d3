"""The schema held against real tables: what is found, and what is never said."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dpquery.schema.check import Report, Severity, check
from dpquery.schema.fit import fit, suggested
from dpquery.schema.model import Schema
from dpquery.schema.physical import PhysicalColumn, PhysicalKind, PhysicalTable
from dpquery.schema.read import loads
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type

SCHEMA = """\
dataset: shop
source: {path: shop.duckdb}
privacy_unit: users.user_id
budget: {epsilon: 8, delta: 1e-6}
contribution: {max_rows_per_group: 20}
tables:
  users:
    unit: user_id
    max_rows_per_unit: 1
    columns: {user_id: {type: integer}, age: {type: integer, lower: 0, upper: 120}, country: {type: string, values: [US, DE]}}
  orders:
    unit: user_id
    columns: {order_id: {type: integer, unique: true}, user_id: {type: integer}, amount: {type: "decimal(10,2)"}}
  items:
    unit: {via: order_id, references: orders.order_id}
    columns: {item_id: {type: integer, unique: true}, order_id: {type: integer}, product: {type: string}}
  notes:
    unit: {via: item_id, references: items.item_id}
    columns: {item_id: {type: integer}, text: {type: string}}
  countries: {public: true, columns: {country: {type: string}}}
"""

DATA = """\
CREATE TABLE users(user_id INTEGER, age INTEGER, country VARCHAR);
INSERT INTO users VALUES (1, 900, 'US'), (2, NULL, 'DE'), (NULL, 1, 'US'), (NULL, 2, 'US');
CREATE TABLE orders(order_id INTEGER, user_id INTEGER, amount DECIMAL(10,2));
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 99, 7), (13, NULL, 8);
CREATE TABLE items(item_id INTEGER, order_id INTEGER, product VARCHAR);
INSERT INTO items VALUES (100, 10, 'a'), (101, 12, 'b'), (102, NULL, 'c'), (103, 77, 'd');
CREATE TABLE notes(item_id INTEGER, text VARCHAR);
INSERT INTO notes VALUES (100, 'x');
CREATE TABLE countries(country VARCHAR);
INSERT INTO countries VALUES ('US'), ('US');
"""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def looked_at(con: duckdb.DuckDBPyConnection) -> dict[str, PhysicalTable]:
    """What the catalogue says of each table and view."""
    kinds = dict.fromkeys((n for (n,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()), PhysicalKind.TABLE)
    kinds |= dict.fromkeys((n for (n,) in con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()), PhysicalKind.VIEW)
    rows = con.execute("SELECT table_name, column_name, data_type, is_nullable, is_generated FROM duckdb_columns() WHERE NOT internal").fetchall()
    keys = con.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
    ).fetchall()
    texts = dict(con.execute("SELECT table_name, sql FROM duckdb_tables()").fetchall())
    found = {}
    for name, kind in kinds.items():
        columns = tuple(
            PhysicalColumn(c, re.sub(r"ENUM\(.*\)", "ENUM", t), quoted(c), not nullable, generated, _collation(texts.get(name, ""), c))
            for table, c, t, nullable, generated in rows
            if table == name
        )
        unique = frozenset(k[0] for table, k in keys if table == name and len(k) == 1)
        found[name] = PhysicalTable(name, kind, quoted(name), columns, unique, ("/data/shop.duckdb",))
    return found


def _collation(sql: str, column: str) -> str | None:
    match = re.search(rf"\b{column} VARCHAR COLLATE (\w+)", sql)
    return match[1] if match else None


def report(data: str = DATA, schema: str = SCHEMA, change: Callable[[dict[str, PhysicalTable]], object] | None = None) -> Report:
    with duckdb.connect() as con:
        con.execute(data)
        tables = looked_at(con)
        if change is not None:
            change(tables)
        return check(parsed(schema), tables, lambda sql: con.execute(sql).fetchall())


def parsed(schema: str = SCHEMA) -> Schema:
    return loads(schema, Path("/data/shop.yaml"))


def test_data_that_fits() -> None:
    found = report()
    assert found.findings == ()
    assert found.ok
    assert found.as_dict() == {"dataset": "shop", "ok": True, "version": None, "findings": []}
    assert found.registered(3).as_dict()["version"] == 3


INTEGER_USERS = "CREATE TABLE users(user_id INTEGER"
MISFITS = [
    # data to replace, by what, the code, table, column, a part of the message
    (
        "CREATE TABLE users(user_id INTEGER, age INTEGER",
        "CREATE TABLE users(user_id INTEGER, age VARCHAR",
        "TYPE_MISMATCH",
        "users",
        "age",
        "declare it as `string`",
    ),
    (
        "CREATE TABLE users(user_id INTEGER, age INTEGER",
        "CREATE TABLE users(user_id INTEGER, ages INTEGER",
        "COLUMN_MISSING",
        "users",
        "age",
        "did you mean `ages`",
    ),
    ("CREATE TABLE countries(", "CREATE TABLE lands(", "TABLE_MISSING", "countries", None, "not in the data"),
    (
        "CREATE TABLE countries(country VARCHAR",
        "CREATE TABLE countries(country VARCHAR COLLATE NOCASE",
        "COLLATION",
        "countries",
        "country",
        "collation",
    ),
    ("country VARCHAR);\nINSERT INTO users", "country VARCHAR COLLATE NOCASE);\nINSERT INTO users", "COLLATION", "users", "country", "collation"),
    ("CREATE TABLE users(user_id INTEGER,", "CREATE TABLE users(user_id BIGINT,", "UNIT_TYPE", "orders", "user_id", "elsewhere BIGINT"),
    ("order_id INTEGER, product", "order_id SMALLINT, product", "PATH_TYPE", "items", "order_id", "SMALLINT"),
    ("text VARCHAR", "text STRUCT(a INTEGER)", "TYPE_MISMATCH", "notes", "text", "leave the column out"),
    ("(11, 1, 6)", "(10, 1, 6)", "NOT_UNIQUE", "orders", "order_id", "several rows"),
    ("(11, 1, 6)", "(NULL, 1, 6)", "NOT_UNIQUE", "orders", "order_id", "NULL"),
    ("(2, NULL, 'DE')", "(1, NULL, 'DE')", "ROWS_PER_UNIT", "users", None, "several rows"),
]


@pytest.mark.parametrize(("old", "new", "code", "table", "column", "part"), MISFITS)
def test_what_does_not_fit(old: str, new: str, code: str, table: str, column: str | None, part: str) -> None:
    assert old in DATA
    data = DATA.replace(old, new)
    if code == "TABLE_MISSING":
        data = data.replace("INTO countries", "INTO lands")
    if "STRUCT" in new:
        data = data.replace("(100, 'x')", "(100, {'a': 1})")
    found = report(data)
    assert not found.ok
    first = found.findings[0]
    assert (first.severity, first.code, first.table, first.column) == (Severity.ERROR, code, table, column)
    assert table in first.message
    assert part in first.message + (first.instead or "")


def test_no_finding_holds_a_value_or_a_count() -> None:
    data = DATA.replace("(11, 1, 6)", "(10, 1, 6)").replace("(2, NULL, 'DE')", "(1, NULL, 'DE')").replace("(101, 12, 'b')", "(100, 12, 'b')")
    found = report(data)
    assert [f.code for f in found.findings] == ["ROWS_PER_UNIT", "NOT_UNIQUE", "NOT_UNIQUE"]
    text = str(found.as_dict()).replace("max_rows_per_unit: 1", "")
    assert not re.search(r"[0-9]", text)
    more = report(data + "INSERT INTO orders SELECT 10, i, 0 FROM range(100) t(i); INSERT INTO users SELECT 1, i, 'US' FROM range(100) t(i);")
    assert more == found


def test_values_outside_bounds_are_not_reported() -> None:
    assert report(DATA + "INSERT INTO users VALUES (3, -5, 'DE')").findings == ()


WEIGHED = [
    ("INSERT INTO users VALUES (3, 5, 'Z''Z')", SCHEMA, "UNLISTED_VALUES", "has values that"),
    ("INSERT INTO users VALUES (3, 5, NULL)", SCHEMA, "UNLISTED_VALUES", "is NULL in some rows"),
    ("INSERT INTO users SELECT i, 5, 'US' FROM range(3, 10003) t(i)", SCHEMA.replace("1e-6", "1e-5"), "LARGE_DELTA", "number of units"),
    ("", SCHEMA.replace("contribution: {max_rows_per_group: 20}\n", ""), "NO_CONTRIBUTION", "refused unless"),
]


@pytest.mark.parametrize(("more", "schema", "code", "part"), WEIGHED, ids=[one[3] for one in WEIGHED])
def test_what_fits_but_is_likely_not_meant_is_warned_of_without_a_value(more: str, schema: str, code: str, part: str) -> None:
    found = report(DATA + more, schema)
    assert found.ok
    (one,) = found.findings
    assert (one.severity, one.code, one.table) == (Severity.WARNING, code, "users")
    assert part in one.message
    assert "Z" not in one.message
    assert report(schema=SCHEMA.replace("[US, DE]", "[US, DE, null, 'Z''Z']")).findings == ()


def test_rows_per_unit_follow_the_path() -> None:
    schema = SCHEMA.replace("    unit: {via: item_id", "    max_rows_per_unit: 1\n    unit: {via: item_id")
    assert report(schema=schema).ok
    assert report(DATA + "INSERT INTO notes VALUES (102, 'no unit'), (102, 'no unit'), (555, 'orphan'), (555, 'orphan')", schema).ok
    found = report(DATA + "INSERT INTO items VALUES (104, 11, 'e'); INSERT INTO notes VALUES (104, 'same unit by another order')", schema)
    assert [(f.code, f.table) for f in found.findings] == [("ROWS_PER_UNIT", "notes")]


def test_views_and_generated_columns() -> None:
    view = (
        DATA.replace("CREATE TABLE users(", "CREATE TABLE people(").replace("INTO users", "INTO people")
        + "CREATE VIEW users AS SELECT * FROM people;"
    )
    assert [(f.code, f.table) for f in report(view).findings] == [("NOT_A_TABLE", "users")]
    public = (
        DATA.replace("CREATE TABLE countries(", "CREATE TABLE lands(").replace("INTO countries", "INTO lands")
        + "CREATE VIEW countries AS SELECT * FROM lands;"
    )
    assert [(f.code, f.table) for f in report(public).findings] == [("NOT_A_TABLE", "countries")]
    generated = DATA.replace("INTEGER, age INTEGER,", "INTEGER, age INTEGER GENERATED ALWAYS AS (7),").replace(
        "INSERT INTO users VALUES (1, 900, 'US'), (2, NULL, 'DE'), (NULL, 1, 'US'), (NULL, 2, 'US')",
        "INSERT INTO users(user_id, country) VALUES (1, 'US')",
    )
    assert [(f.code, f.column) for f in report(generated).findings] == [("GENERATED_COLUMN", "age")]
    macro = report(change=lambda tables: tables.update(users=replace(tables["users"], kind=PhysicalKind.OTHER)))
    assert macro.findings[0].code == "NOT_A_TABLE"


def test_names_are_found_whatever_their_case() -> None:
    assert report(DATA.replace("(user_id INTEGER, age", "(USER_ID INTEGER, Age")).ok


def test_enforced_constraints_need_no_query() -> None:
    schema = parsed(
        "\n".join(
            line
            for line in SCHEMA.splitlines()
            if "notes" not in line and "item_id: {type: integer}, text" not in line and "via: item_id" not in line
        )
    )
    data = (
        DATA.replace("CREATE TABLE users(user_id INTEGER", "CREATE TABLE users(user_id INTEGER UNIQUE")
        .replace("orders(order_id INTEGER", "orders(order_id INTEGER PRIMARY KEY")
        .replace("items(item_id INTEGER", "items(item_id INTEGER UNIQUE")
    )
    asked: list[str] = []
    with duckdb.connect() as con:
        con.execute(data)
        found = check(schema, looked_at(con), lambda sql: asked.append(sql) or con.execute(sql).fetchall())
    assert found.ok
    weighed = [
        'SELECT count(DISTINCT ("user_id")) FROM "users"',
        """SELECT 1 FROM "users" WHERE ("country") NOT IN (CAST('US' AS VARCHAR), CAST('DE' AS VARCHAR)) LIMIT 1""",
        'SELECT 1 FROM "users" WHERE ("country") IS NULL LIMIT 1',
    ]
    assert asked == ['SELECT 1 FROM "items" WHERE ("item_id") IS NULL LIMIT 1', *weighed]  # UNIQUE admits NULLs


def test_unit_types_that_have_to_be_cast() -> None:
    for kind in ("HUGEINT", "UBIGINT"):
        data = re.sub(r"user_id INTEGER", f"user_id {kind}", DATA)
        found = report(data)
        assert {f.code for f in found.findings if f.severity is Severity.ERROR} == {"UNIT_TYPE"}
    enum = "CREATE TYPE who AS ENUM ('Ann', 'Bob'); CREATE TABLE countries(country VARCHAR);"
    enum += "CREATE TABLE users(user_id who, age INTEGER, country VARCHAR);"
    schema = SCHEMA[: SCHEMA.index("  orders:")] + SCHEMA[SCHEMA.index("  countries") :]
    found = report(enum, schema.replace("user_id: {type: integer}", "user_id: {type: string}"))
    assert [f.code for f in found.findings] == ["UNIT_TYPE"]
    assert "Ann" not in str(found.as_dict())


def test_csv_columns_are_text_until_they_are_cast() -> None:
    """Unique keys are looked up in the values that the scan reads: `1` and `01` are one integer."""
    schema = parsed(
        "dataset: d\nprivacy_unit: t.id\nbudget: {epsilon: 1}\ncontribution: {max_rows_per_group: 9}\n"
        "tables: {t: {unit: id, path: t.csv, max_rows_per_unit: 1,"
        " columns: {id: {type: integer}, k: {type: integer, unique: true}, d: {type: date}}}}"
    )
    with duckdb.connect() as con:
        con.execute("CREATE TABLE raw(id VARCHAR, k VARCHAR, d VARCHAR)")
        columns = tuple(PhysicalColumn(c, "VARCHAR", f'TRY_CAST("{c}" AS {t})') for c, t in (("id", "BIGINT"), ("k", "BIGINT"), ("d", "DATE")))
        tables = {"t": PhysicalTable("t", PhysicalKind.CSV, "raw", columns, files=("/data/t.csv",))}

        def codes() -> list[str]:
            return [f.code for f in check(schema, tables, lambda sql: con.execute(sql).fetchall()).findings]

        con.execute("INSERT INTO raw VALUES ('1', '1', 'x'), ('2', '2', 'y')")
        assert codes() == []
        con.execute("INSERT INTO raw VALUES ('3', '02', 'z')")
        assert codes() == ["NOT_UNIQUE"]
        con.execute("DELETE FROM raw WHERE id = '3'")
        con.execute("INSERT INTO raw VALUES ('01', 'three', 'z')")
        assert codes() == ["NOT_UNIQUE", "ROWS_PER_UNIT"]


def test_csv_texts_that_are_not_what_is_declared_are_told() -> None:
    """A column of which nothing can be read keeps the data out; one with some such texts is warned of."""
    schema = parsed(
        "dataset: d\nprivacy_unit: t.id\nbudget: {epsilon: 1}\n"
        "tables: {t: {unit: id, path: t.csv, columns: {id: {type: integer}, k: {type: integer}, d: {type: date}}}}"
    )
    columns = tuple(PhysicalColumn(c, "VARCHAR", f'"{c}"') for c in "ikd")
    columns = (PhysicalColumn("id", "VARCHAR", '"id"'), *columns[1:])
    tables = {"t": PhysicalTable("t", PhysicalKind.CSV, "raw", columns, files=("/data/t.csv",), misread="SELECT 1")}
    report = check(schema, tables, lambda _: [(False, False, False, True, True, True)])
    assert [(str(f.severity), f.column, f.code) for f in report.findings] == [("warning", "k", "MISREAD"), ("error", "d", "MISREAD")]
    assert "csv: {date:" in str(report.findings[1].instead)
    assert not report.ok


def test_a_file_is_not_private_and_public_at_once() -> None:
    schema = parsed(
        "dataset: d\nprivacy_unit: t.id\nbudget: {epsilon: 1}\n"
        "tables:\n  t: {unit: id, path: data/*.parquet, columns: {id: {type: integer}}}\n"
        "  p: {public: true, path: data/a.parquet, columns: {id: {type: integer}}}\n"
    )
    columns = (PhysicalColumn("id", "BIGINT", '"id"'),)
    tables = {
        "t": PhysicalTable("t", PhysicalKind.PARQUET, "x", columns, files=("/data/a.parquet", "/data/b.parquet")),
        "p": PhysicalTable("p", PhysicalKind.PARQUET, "y", columns, files=("/data/a.parquet",)),
    }
    found = check(schema, tables, lambda sql: [])
    assert [(f.code, f.table) for f in found.findings] == [("SHARED_FILE", "p")]


DECIMAL = Type(Kind.DECIMAL, 2)


@pytest.mark.parametrize(
    ("declared", "exact", "lossy", "never"),
    [
        (INTEGER, ["TINYINT", "BIGINT", "UINTEGER"], ["HUGEINT", "UBIGINT"], ["DOUBLE", "DECIMAL(10,0)", "VARCHAR", "BOOLEAN"]),
        (DECIMAL, ["DECIMAL(10,2)", "DECIMAL(38,0)", "INTEGER"], ["DECIMAL(10,4)", "DOUBLE"], ["VARCHAR"]),
        (FLOAT, ["FLOAT", "DOUBLE", "DECIMAL(10,2)", "BIGINT"], [], ["VARCHAR", "BOOLEAN"]),
        (STRING, ["VARCHAR", "ENUM"], [], ["JSON", "UUID", "INTEGER", "BLOB", "VARCHAR[]"]),
        (BOOLEAN, ["BOOLEAN"], [], ["INTEGER"]),
        (DATE, ["DATE"], [], ["TIMESTAMP", "VARCHAR"]),
        (TIMESTAMP, ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"], ["TIMESTAMP_NS"], ["TIMESTAMP WITH TIME ZONE", "TIME", "INTERVAL"]),
        (UUID, ["UUID"], [], ["VARCHAR"]),
    ],
)
def test_which_types_fit(declared: Type, exact: list[str], lossy: list[str], never: list[str]) -> None:
    assert all(fit(declared, t).ok and fit(declared, t).loss is None for t in exact)
    assert all(fit(declared, t).ok and fit(declared, t).loss is not None for t in lossy)
    assert not any(fit(declared, t).ok for t in never)


@pytest.mark.parametrize(
    "physical", ["BIGINT", "DECIMAL(10,2)", "DOUBLE", "VARCHAR", "ENUM", "BOOLEAN", "DATE", "TIMESTAMP", "UUID", "BLOB", "INTERVAL", "INTEGER[]"]
)
def test_what_is_suggested_fits(physical: str) -> None:
    word = suggested(physical)
    if word is not None:
        text = "dataset: d\nprivacy_unit: t.id\nbudget: {epsilon: 1}\nsource: {path: d}\n"
        text += f'tables: {{t: {{unit: id, columns: {{id: {{type: integer}}, x: {{type: "{word}"}}}}}}}}'
        how = fit(loads(text, Path("/d.yaml")).tables["t"].columns["x"].type, physical)
        assert (how.ok, how.loss) == (True, None)
