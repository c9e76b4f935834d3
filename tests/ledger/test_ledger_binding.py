from __future__ import annotations

import glob
from pathlib import Path

import pytest
from ledger_shop import Shop

from dpquery import ledger
from dpquery.errors import Fault, Refused
from dpquery.ledger import binding, creation
from dpquery.schema.model import Column, FileKind, Files, Table
from dpquery.values.types import INTEGER


def table(name: str, pattern: str, public: bool = False) -> Table:
    columns = {"user_id": Column(name="user_id", type=INTEGER)}
    return Table(
        name=name,
        physical=name,
        public=public,
        unit=None if public else "user_id",
        files=Files(kind=FileKind.PARQUET, pattern=pattern),
        columns=columns,
    )


def test_a_second_ledger_of_the_same_data_is_refused(shop: Shop) -> None:
    schema = shop.schema()
    shop.create(schema)
    with pytest.raises(Refused) as caught:
        ledger.create(schema, fingerprint="f1", identity=[])
    assert caught.value.code == "LEDGER_EXISTS"
    with pytest.raises(Refused) as caught:
        ledger.create(schema, shop.folder / "fresh.ledger", fingerprint="f1", identity=[])
    assert caught.value.code == "SOURCE_BOUND"
    renamed = schema.model_copy(update={"file": shop.folder / "renamed.yaml", "dataset": "renamed", "unsafe_testing": True})
    with pytest.raises(Refused) as caught:
        ledger.create(renamed, fingerprint="f1", identity=[])
    assert caught.value.code == "SOURCE_BOUND"
    assert sorted(p.name for p in shop.folder.iterdir()) == ["shop.duckdb", "shop.duckdb.ledger-id", "shop.ledger"]


def test_a_lost_ledger_is_not_made_anew(shop: Shop) -> None:
    schema = shop.schema()
    shop.create(schema)
    shop.path.unlink()
    with pytest.raises(Fault) as missing:
        shop.open(schema)
    assert (missing.value.code, missing.value.exit_status) == ("LEDGER_MISSING", 5)
    assert "dpquery ledger create" in (missing.value.instead or "")
    assert not shop.path.exists()
    with pytest.raises(Refused):
        shop.create(schema)


def test_left_overs_of_a_missing_ledger_are_not_built_upon(shop: Shop) -> None:
    (shop.folder / "shop.ledger-wal").write_bytes(b"charges")
    with pytest.raises(Refused) as caught:
        shop.create(shop.schema())
    assert caught.value.code == "LEDGER_EXISTS"


def test_a_ledger_of_other_data_is_foreign(shop: Shop, shops: object) -> None:
    other: Shop = shops()  # type: ignore[operator]
    schema = shop.schema()
    shop.create(schema)
    other.create(other.schema())
    with pytest.raises(Fault) as caught:
        ledger.open(other.path, schema)
    assert caught.value.code == "LEDGER_FOREIGN"
    binding.places(schema)[0].unlink()
    with pytest.raises(Fault) as caught:
        shop.open(schema)
    assert caught.value.code == "LEDGER_FOREIGN"
    binding.places(schema)[0].write_text("something\n")
    with pytest.raises(Fault) as caught:
        shop.open(schema)
    assert caught.value.code == "LEDGER_FOREIGN"


def test_files_have_one_id_file_for_each_pattern(shop: Shop) -> None:
    tables = {
        "users": table("users", "users.parquet"),
        "orders": table("orders", "data/2020/*.parquet"),
        "items": table("items", "data/*/part-[0-9].parquet"),
        "again": table("again", "users.parquet"),
        "countries": table("countries", "countries.parquet", public=True),
    }
    (shop.folder / "data" / "2020").mkdir(parents=True)
    schema = shop.schema(source=None, tables=tables)
    names = [str(p.relative_to(shop.folder.resolve())) for p in binding.places(schema)]
    assert names == ["users.parquet.ledger-id", "data/2020/._.parquet.ledger-id", "data/.__part-_0-9_.parquet.ledger-id"]
    shop.create(schema)
    assert all(p.exists() for p in binding.places(schema))
    assert glob.glob(str(shop.folder / "data" / "**"), recursive=True) == [f"{shop.folder}/data/", f"{shop.folder}/data/2020"], (
        "no pattern finds an id file"
    )
    shop.open(schema)
    binding.places(schema)[2].unlink()
    with pytest.raises(Fault):
        shop.open(schema)


def test_files_that_another_pattern_bound_are_not_free(shop: Shop) -> None:
    """Whether they are named one by one or by a pattern; an id file that names no file of theirs, or cannot be read, binds none of them."""
    data = shop.folder / "data"
    data.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (data / name).write_bytes(b"rows")
    shop.create(shop.schema(source=None, tables={"users": table("users", "data/*.parquet")}))
    for pattern in ("data/a.parquet", "data/[ab].parquet"):
        with pytest.raises(Refused) as caught:
            binding.free(shop.schema(source=None, tables={"users": table("users", pattern)}))
        assert caught.value.code == "SOURCE_BOUND"
    (shop.folder / "other.parquet").write_bytes(b"rows")
    (shop.folder / ".unread.ledger-id").mkdir()
    binding.free(shop.schema(source=None, tables={"users": table("users", "other.parquet")}))


def test_an_id_file_that_cannot_be_read_names_no_ledger(shop: Shop) -> None:
    schema = shop.schema()
    shop.create(schema)
    place = binding.places(schema)[0]
    place.unlink()
    place.mkdir()
    with pytest.raises(Fault) as caught:
        shop.open(schema)
    assert caught.value.code == "LEDGER_FOREIGN"
    assert "names `nothing`" in caught.value.message


def test_the_files_of_a_ledger(shop: Shop) -> None:
    """Its own, those that are beside it while it is in use, and those that bind the data."""
    names = [path.name for path in creation.files(shop.schema(), shop.path)]
    assert names == ["shop.ledger", "shop.ledger-wal", "shop.ledger-shm", "shop.ledger-journal", "shop.ledger-queue", "shop.duckdb.ledger-id"]


def test_creation_is_all_or_nothing(shop: Shop) -> None:
    tables = {"users": table("users", "users.parquet"), "orders": table("orders", "absent/orders.parquet")}
    with pytest.raises(Fault) as caught:
        shop.create(shop.schema(source=None, tables=tables))
    assert caught.value.code == "LEDGER_FAILED"
    assert [p.name for p in shop.folder.iterdir()] == ["shop.duckdb"]


def test_a_ledger_is_its_owners_only(shop: Shop) -> None:
    path: Path = shop.create(shop.schema())
    assert path == shop.path
    assert path.stat().st_mode & 0o077 == 0


def test_data_versions(shop: Shop) -> None:
    opened = shop.begin()
    calls: list[str] = []

    def fingerprint(value: str) -> str:
        calls.append(value)
        return value

    assert opened.version_of(["shop.duckdb", 4, 1], lambda: fingerprint("f1")) == 1
    assert calls == [], "files that were seen are not read again"
    assert opened.version_of(["shop.duckdb", 5, 2], lambda: fingerprint("f2")) is None
    assert opened.version_of(["shop.duckdb", 5, 2], lambda: fingerprint("f2")) is None
    assert calls == ["f2", "f2"], "what is not admitted is not remembered"
    assert opened.register("f2", ["shop.duckdb", 5, 2]) == 2
    assert opened.register("f2", ["shop.duckdb", 5, 2]) == 2
    assert opened.version_of(["shop.duckdb", 5, 2], lambda: fingerprint("f2")) == 2
    assert opened.version_of(["copied back", 4, 9], lambda: fingerprint("f1")) == 1
    assert opened.version_of(["copied back", 4, 9], lambda: fingerprint("f1")) == 1
    assert calls == ["f2", "f2", "f1"]
    assert (opened.admitted("f1"), opened.admitted("f2"), opened.admitted("f3")) == (1, 2, None)
    assert [line.body["version"] for line in opened.entries() if line.event == "registered"] == [1, 2]
    assert opened.verify() == ()


def test_commitments_to_data_are_under_the_owners_key(shops: object) -> None:
    """A10: whoever knows all but one unit could hash both candidates; without the key that tells nothing."""
    made = [shops(), shops()]  # type: ignore[operator]
    seen = [next(line.body["commitment"] for line in shop.begin().entries() if line.event == "registered") for shop in made]
    assert seen[0] != seen[1]
