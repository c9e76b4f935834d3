"""Drafts: from names and types alone, refused until the owner has decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpquery.errors import SchemaError
from dpquery.schema.draft import draft
from dpquery.schema.physical import PhysicalColumn, PhysicalKind, PhysicalTable
from dpquery.schema.read import loads
from dpquery.values.types import Kind

HERE = Path("/data")
BASE = (HERE / "my shop.duckdb").as_posix()


def table(name: str, *columns: tuple[str, str], kind: PhysicalKind = PhysicalKind.TABLE, file: str = BASE) -> PhysicalTable:
    return PhysicalTable(name, kind, f'"{name}"', tuple(PhysicalColumn(c, t, f'"{c}"') for c, t in columns), files=(file,))


USERS = table("users", ("user_id", "BIGINT"), ("illness", "ENUM"), ("born", "DATE"), ("seen", "TIMESTAMP WITH TIME ZONE"), ("no", "BOOLEAN"))
ORDERS = table(
    "Order lines", ("user_id", "BIGINT"), ("net price", "DECIMAL(10,2)"), ("x: y", "DOUBLE"), ("blob", "BLOB"), ("__row", "BIGINT"), ("id", "UBIGINT")
)


def decided(text: str, unit: str = "users.user_id") -> str:
    text = text.replace("privacy_unit: TODO", f"privacy_unit: {unit}").replace("{epsilon: TODO, delta: TODO}", "{epsilon: 4, delta: 1e-6}")
    return text.replace("unit: TODO", f"unit: {unit.partition('.')[2]}")


def test_a_draft_is_refused_until_decided() -> None:
    text = draft([USERS, ORDERS], HERE)
    for todo in ("privacy_unit", "budget.epsilon", "tables.users.unit"):
        assert "TODO" in text
        with pytest.raises(SchemaError) as caught:
            loads(text, HERE / "shop.yaml")
        assert caught.value.code == "TODO"
        assert f": {todo}: " in caught.value.message
        text = text.replace(": TODO", ": " + {"privacy_unit": "users.user_id", "budget.epsilon": "1"}.get(todo, "user_id"), 1)
        text = text.replace("delta: TODO", "delta: 0")
    schema = loads(decided(draft([USERS, ORDERS], HERE)), HERE / "shop.yaml")
    assert schema.dataset == "my shop"
    assert schema.database == HERE / "my shop.duckdb"
    assert {n: c.type.kind for n, c in schema.tables["users"].columns.items()} == {
        "user_id": Kind.INTEGER,
        "illness": Kind.STRING,
        "born": Kind.DATE,
        "no": Kind.BOOLEAN,
    }
    assert list(schema.tables["Order lines"].columns) == ["user_id", "net price", "x: y", "id"]
    assert schema.tables["Order lines"].columns["net price"].type.scale == 2
    assert all(c.lower is None and c.values is None for t in schema.tables.values() for c in t.columns.values())


def test_what_is_left_out_is_said() -> None:
    text = draft([USERS, ORDERS, table("v", ("a", "BIGINT"), kind=PhysicalKind.VIEW)], HERE)
    for name in ("seen", "blob", "__row", "v"):
        assert f"# {name} is left out" in text


def test_files_of_their_own() -> None:
    people = table("people", ("id", "VARCHAR"), ("age", "VARCHAR"), kind=PhysicalKind.CSV, file="/data/in/people.csv")
    visits = table("visits", ("id", "VARCHAR"), ("day", "DATE"), kind=PhysicalKind.PARQUET, file="/data/in/visits 2024.parquet")
    again = table("visits", ("id", "VARCHAR"), kind=PhysicalKind.PARQUET, file="/other/visits.parquet")
    schema = loads(decided(draft([people, visits, again], HERE), "people.id"), HERE / "shop.yaml")
    assert schema.source is None
    files = {name: t.files.patterns if t.files else () for name, t in schema.tables.items()}
    assert files == {"people": ("in/people.csv",), "visits": ("in/visits 2024.parquet",), "visits_2": ("/other/visits.parquet",)}


def test_odd_names() -> None:
    odd = [
        table(n, ("id", "BIGINT"))
        for n in ("noisy", "NOISY_TABLE", "a.b", "a.b.c", "__x", 'say "hi"', "null", "TODO", "x" * 200, "\u00fcber", "id\n")
    ]
    schema = loads(
        decided(draft([USERS, *odd], HERE)).replace("unit: user_id", "public: true").replace("public: true", "unit: user_id", 1), HERE / "s.yaml"
    )
    physical = [t.physical for t in schema.tables.values()]
    assert physical == ["users", "noisy", "NOISY_TABLE", "a.b", "null", "TODO", "\u00fcber"]
    assert schema.tables["noisy_table"].physical == "noisy"


def test_a_table_without_a_usable_column_is_still_to_be_decided() -> None:
    text = decided(draft([table("t", ("x", "BLOB"), ("y", "INTERVAL"))], HERE))
    with pytest.raises(SchemaError, match=r"tables\.t\.columns: still to be decided"):
        loads(text, HERE / "s.yaml")


def test_one_kind_of_source_only() -> None:
    csv = table("c", ("id", "VARCHAR"), kind=PhysicalKind.CSV, file="/data/c.csv")
    for tables in ([], [USERS, csv], [USERS, table("t", ("a", "DATE"), file="/data/other.duckdb")]):
        with pytest.raises(SchemaError) as caught:
            draft(tables, HERE)
        assert caught.value.code == "BAD_SOURCE"
