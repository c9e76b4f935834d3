"""What no statement can enforce is looked up when data is registered. It has to be what the schema says now, of the files that are there now."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_lab import SCHEMA, UNSAFE, code, made, opened

from dpquery.engine import check, door
from dpquery.errors import Error

PROMISES = {
    "one row a unit": ("  orders:\n    unit: pid\n", "  orders:\n    unit: pid\n    max_rows_per_unit: 1\n"),
    "a unique column": ("qty: {type: integer,", "qty: {type: integer, unique: true,"),
    "another unit": ("  orders:\n    unit: pid\n", "  orders:\n    unit: qty\n"),
    "another path": ("weight: {type: integer,", "weight: {type: integer, unique: true,"),
    "nobody's": ("  people:\n", "  others: {table: items, unit: {via: oid, references: orders.oid}, columns: {oid: {type: integer}}}\n  people:\n"),
    "another type": ("note: {type: string}", "note: {type: integer}"),
    "another table": ("  orders:\n    unit: pid\n", "  orders:\n    table: people\n    unit: pid\n"),
}
WISHES = {
    "bounds": ("upper: 120", "upper: 90"),
    "values": ("note: {type: string}", "note: {type: string, values: [a, b]}"),
    "limits": ("max_rows_per_group: 1000", "max_rows_per_group: 3"),
    "a comment": ("dataset: lab", "dataset: lab  # ours"),
    "the order": ("columns: {country: {type: string}, region: {type: string}}", "columns: {region: {type: string}, country: {type: string}}"),
}


@pytest.mark.parametrize("change", PROMISES.values(), ids=PROMISES)
def test_a_promise_made_after_registration_is_not_believed(change: tuple[str, str], tmp_path: Path) -> None:
    """With `max_rows_per_unit: 1` written after registration, a person with three orders in three groups moved three counts under a claim of one."""
    assert change[0] in SCHEMA
    file = made(tmp_path)
    file.write_text(file.read_text().replace(*change))
    with opened(file) as session:
        assert code(session, "SELECT note, count(*) FROM orders GROUP BY note") == "DATA_NOT_REGISTERED"


def test_registering_again_looks_it_up(tmp_path: Path) -> None:
    file = made(tmp_path)
    file.write_text(file.read_text().replace(*PROMISES["one row a unit"]))
    with pytest.raises(Error) as caught:
        check(file, register=True)
    assert caught.value.code == "DATA_UNFIT"
    file.write_text(SCHEMA.replace("{more}", UNSAFE).replace("qty: {type: integer,", "extra: {type: string}\n      qty: {type: integer,"))
    with pytest.raises(Error) as caught:
        check(file, register=True)
    assert caught.value.code == "DATA_UNFIT"


@pytest.mark.parametrize("change", WISHES.values(), ids=WISHES)
def test_what_statements_enforce_may_change(change: tuple[str, str], tmp_path: Path) -> None:
    assert change[0] in SCHEMA
    file = made(tmp_path)
    file.write_text(file.read_text().replace(*change))
    with opened(file) as session:
        assert code(session, "SELECT note, count(*) FROM orders GROUP BY note") == "answered"


@pytest.mark.parametrize("create", [True, False])
def test_data_that_changes_while_it_is_checked_is_not_registered(create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passed on one file, and the fingerprint of another one was admitted."""
    file, other = made(tmp_path / "a", ledger=not create), made(tmp_path / "b", ledger=False)
    look = door._checked

    def and_swap(schema: object) -> object:
        report = look(schema)  # type: ignore[arg-type]
        other.with_name("lab.duckdb").replace(file.with_name("lab.duckdb"))
        return report

    monkeypatch.setattr(door, "_checked", and_swap)
    with pytest.raises(Error) as caught:
        door.create_ledger(file) if create else check(file, register=True)
    assert caught.value.code == "DATA_CHANGED"
