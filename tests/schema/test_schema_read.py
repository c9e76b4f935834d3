"""Schema files that are right, and what is read from them."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_samples import ANALYSTS, FILES, GOOD, LOOSE

from dpquery.errors import SchemaError
from dpquery.schema.model import Caps, FileKind, Schema, ViaUnit
from dpquery.schema.read import loads, read
from dpquery.schema.text import MAX_EXPONENT, Complaints, Leaf, parse
from dpquery.schema.units import unit_column
from dpquery.values.types import Adjacency, Kind, Type

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.yaml"))
SCHEMAS = sorted((Path(__file__).parents[2] / "schemas").glob("*.yaml"))
FILE = Path("/data/shop.yaml")


def column(text: str, more: str = "") -> Schema:
    head = f"dataset: d\nprivacy_unit: t.id\nbudget: {{epsilon: 1}}\nsource: {{path: d.duckdb}}\n{more}"
    return loads(f"{head}tables:\n  t: {{unit: id, columns: {{id: {{type: integer}}, x: {text}}}}}\n", Path("/data/d.yaml"))


def test_the_design_example() -> None:
    schema = loads(GOOD, FILE)
    assert schema.database == Path("/data/shop.duckdb")
    assert schema.default_ledger == Path("/data/shop.ledger")
    assert (schema.privacy_unit_table, schema.privacy_unit_column) == ("users", "user_id")
    assert schema.budget == Caps(epsilon=Decimal(8), delta=Decimal("1e-6"))
    assert schema.analysts == {"default": Caps(epsilon=Decimal(2), delta=Decimal("2e-7")), "alice": Caps(epsilon=Decimal(4), delta=Decimal("5e-7"))}
    assert schema.per_query.max_epsilon == 2
    assert schema.tables["users"].columns["country"].values == ("US", "DE", "NO", "JP")
    amount = schema.tables["orders"].columns["amount"]
    assert (amount.type, amount.lower, amount.upper, amount.step) == (Type(Kind.DECIMAL, 2), 0, 500, Decimal("0.01"))
    assert schema.tables["order_items"].unit == ViaUnit(via="order_id", table="orders", key="order_id")
    assert unit_column(schema.tables["order_items"], schema.tables) == (schema.tables["orders"], "user_id")
    assert schema.tables["countries"].public
    assert schema.views == {"big_orders": "SELECT * FROM orders WHERE amount > 100"}
    assert schema.limits.memory == 4 * 10**9
    assert list(schema.tables) == ["users", "orders", "order_items", "countries"]


@pytest.mark.parametrize("file", [*CASES, *SCHEMAS], ids=lambda f: f.stem)
def test_every_schema_of_the_project_loads(file: Path) -> None:
    schema = read(file)
    assert schema.file == file.absolute()
    assert schema.analysts


def test_unsafe_testing_lifts_the_limits() -> None:
    schema = loads(LOOSE, FILE)
    assert schema.unsafe_testing
    assert schema.budget == Caps(epsilon=Decimal("1e30"), delta=Decimal(1000))
    assert schema.analysts == {"default": schema.budget}
    assert schema.tables["visits_dirty"].columns == schema.tables["visits"].columns
    assert schema.tables["visits_dirty"].name == schema.tables["visits_dirty"].physical == "visits_dirty"


def test_defaults() -> None:
    schema = loads(
        "dataset: d\nprivacy_unit: t.id\nbudget: {epsilon: 1}\ntables: {t: {unit: id, path: t.parquet, columns: {id: {type: uuid}}}}", FILE
    )
    assert schema.adjacency is Adjacency.ADD_REMOVE
    assert schema.analysts == {"default": Caps(epsilon=Decimal(1), delta=Decimal(0))}
    assert (schema.per_query.epsilon, schema.per_query.delta, schema.min_units_per_group, schema.limits.threads) == (None, 0, 1, 2)
    assert (schema.groups, schema.views, schema.source, schema.database) == ({}, {}, None, None)
    assert (schema.oversubscribe, schema.share_answers, schema.unsafe_testing) == (False, False, False)


def test_numbers_are_those_of_the_text() -> None:
    assert column("{type: float, lower: -.5, upper: 1e-6}").tables["t"].columns["x"].upper == Decimal("0.000001")
    assert column("{type: float, lower: 0, upper: 0.1}").tables["t"].columns["x"].upper == Decimal("0.1")
    assert column("{type: float, lower: 0, upper: 0.1000000000000000000000000000000000000000001}").tables["t"].columns["x"].upper == Decimal(
        "0.1000000000000000000000000000000000000000001"
    )
    assert column("{type: integer, lower: +1, upper: 010}").tables["t"].columns["x"].upper == 10


def test_words_stay_words() -> None:
    values = (
        column("{type: string, values: [NO, yes, on, y, 1_000, 0x1F, 1e, '1', inf, 'null', 'TODO', 2024-01-01, ~]}").tables["t"].columns["x"].values
    )
    assert values == ("NO", "yes", "on", "y", "1_000", "0x1F", "1e", "1", "inf", "null", "TODO", "2024-01-01", None)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{type: integer, values: [1, -2, 3.0, ~]}", (1, -2, 3, None)),
        ('{type: "decimal(9,2)", values: [1, 0.25, 1.10]}', (Decimal(1), Decimal("0.25"), Decimal("1.1"))),
        ("{type: decimal, step: 0.5, values: [0.5]}", (Decimal("0.5"),)),
        ("{type: float, values: [0.1, -0.0]}", (0.1, 0.0)),
        ("{type: boolean, values: [true, false]}", (True, False)),
        ("{type: date, values: [2024-02-29]}", (datetime.date(2024, 2, 29),)),
        (
            "{type: timestamp, values: ['2024-02-29 12:30:00', 2024-01-01T00:00:00]}",
            (datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 1, 1)),
        ),
        ("{type: uuid, values: [12345678-1234-5678-1234-567812345678]}", (uuid.UUID("12345678-1234-5678-1234-567812345678"),)),
    ],
)
def test_values_have_the_type_of_their_column(text: str, values: tuple[object, ...]) -> None:
    found = column(text).tables["t"].columns["x"].values
    assert found == values
    assert [type(v) for v in found or ()] == [type(v) for v in values]
    assert str(found) == str(values) or "decimal" in text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('"decimal(10,2)"', Type(Kind.DECIMAL, 2)),
        ('"decimal ( 38 , 0 )"', Type(Kind.DECIMAL, 0)),
        ("DECIMAL, step: 0.050", Type(Kind.DECIMAL, 2)),
        ("decimal, step: 10", Type(Kind.DECIMAL, 0)),
        ("decimal, step: 1e-3", Type(Kind.DECIMAL, 3)),
        ("Integer", Type(Kind.INTEGER)),
        ("timestamp", Type(Kind.TIMESTAMP)),
    ],
)
def test_type_words(text: str, kind: Type) -> None:
    assert column(f"{{type: {text}}}").tables["t"].columns["x"].type == kind


@pytest.mark.parametrize(("text", "size"), [("500MB", 500 * 10**6), ("4GiB", 4 * 2**30), ("1.5 gb", 15 * 10**8), ("64mib", 64 * 2**20)])
def test_memory(text: str, size: int) -> None:
    assert column("{type: date}", f"limits: {{memory: {text}}}\n").limits.memory == size


def test_files() -> None:
    one = loads(FILES, FILE).tables["people"].files
    assert one is not None
    assert (one.kind, one.patterns, one.csv.delimiter, one.csv.header) == (FileKind.CSV, ("people.csv",), ";", True)
    several = loads(FILES.replace("people.csv", "[a/*.csv, b.CSV]"), FILE).tables["people"].files
    assert several is not None
    assert several.patterns == ("a/*.csv", "b.CSV")


def test_groups_and_oversubscription() -> None:
    groups = "\ngroups: {t: {epsilon: 5, delta: 5e-7, members: [alice]}}"
    schema = loads(GOOD.replace(ANALYSTS, ANALYSTS + groups), FILE)
    assert schema.groups["t"].members == ("alice",)
    over = ANALYSTS.replace("epsilon: 4", "epsilon: 8") + "\noversubscribe: true"
    assert loads(GOOD.replace(ANALYSTS, over), FILE).oversubscribe


def test_caps_that_just_fit_in_exact_arithmetic() -> None:
    tenth = "analysts: {a: {epsilon: 2.6, delta: 3e-7}, b: {epsilon: 2.7, delta: 3e-7}, c: {epsilon: 2.7, delta: 4e-7}}"
    assert "default" not in loads(GOOD.replace(ANALYSTS, tenth), FILE).analysts
    with pytest.raises(SchemaError, match="add up"):
        loads(GOOD.replace(ANALYSTS, tenth.replace("2.6", "2.60000000000000000000000000000000001")), FILE)


def test_merge_keys() -> None:
    text = GOOD.replace("  orders:\n", "  orders: &orders\n").replace("views:", "  returns: {<<: *orders, table: sent_back}\nviews:")
    schema = loads(text, FILE)
    assert schema.tables["returns"].columns == schema.tables["orders"].columns
    assert schema.tables["returns"].physical == "sent_back"


def test_the_digest_is_of_the_content_alone() -> None:
    first = loads(GOOD, FILE)
    same = loads(
        "# a comment\n" + GOOD.replace("1e-6", "0.0000010").replace("epsilon: 8", "epsilon: 8.0").replace("[US, DE", '["US", DE'),
        Path("/other/x.yaml"),
    )
    assert first.digest == same.digest
    assert len(first.digest) == 64
    changed = {
        loads(GOOD.replace(a, b), FILE).digest
        for a, b in [
            ("upper: 120", "upper: 121"),
            ("[US, DE", "[DE, US"),
            ("epsilon: 0.25", "epsilon: 0.26"),
            ("4GB", "5GB"),
            ("amount > 100", "amount > 10"),
        ]
    }
    assert len(changed) == 5
    assert first.digest not in changed
    swapped = GOOD.replace("{country: {type: string}, region: {type: string}}", "{region: {type: string}, country: {type: string}}")
    assert loads(swapped, FILE).digest != first.digest


def test_a_schema_is_frozen() -> None:
    schema = loads(GOOD, FILE)
    with pytest.raises(ValueError, match="frozen"):
        schema.budget = Caps(epsilon=Decimal(9))


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read(file).digest == loads(GOOD, FILE).digest
    file.write_bytes(GOOD.replace("lower: 0, upper: 120", "lower: x, upper: 120").replace("\n", "\r\n").encode())
    with pytest.raises(SchemaError) as caught:
        read(file)
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (17, 35)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
@settings(max_examples=200, deadline=None)
def test_any_decimal_is_read_exactly(number: Decimal) -> None:
    if number and abs(number.adjusted()) > MAX_EXPONENT:
        return
    leaf = parse(Complaints("x", f"a: {number}")).entries[0].node
    assert isinstance(leaf, Leaf)
    assert leaf.value == number


# Whatever is in the file, only SchemaError leaves.

words = st.sampled_from(
    [
        "integer",
        "US",
        "orders.order_id",
        "users.user_id",
        "1e-6",
        "-1",
        ".nan",
        "~",
        "true",
        "[",
        "]",
        "{",
        "}",
        "*visits",
        "&a",
        "<<",
        "!x",
        "'",
        '"',
        "|",
        "- ",
    ]
)


@given(st.data())
@settings(max_examples=250, deadline=None)
def test_only_schema_errors_escape_edits_of_a_good_file(data: st.DataObject) -> None:
    text = GOOD
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = start + data.draw(st.integers(0, 12))
        text = text[:start] + data.draw(st.one_of(words, st.text(max_size=5))) + text[stop:]
    _loads(text)


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_only_schema_errors_escape_any_text(text: str) -> None:
    _loads(text)


json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


@given(
    st.sampled_from(["dataset", "source", "privacy_unit", "budget", "analysts", "groups", "contribution", "tables", "views", "limits", "version"]),
    json,
)
@settings(max_examples=250, deadline=None)
def test_only_schema_errors_escape_any_value_of_a_key(key: str, value: object) -> None:
    import json as text

    lines = [line for line in GOOD.splitlines() if not line.startswith(key)]
    _loads("\n".join([*lines, f"{key}: {text.dumps(value)}"]))


def _loads(text: str) -> None:
    error: SchemaError | None = None
    try:
        loads(text, FILE, "shop.yaml")
    except SchemaError as caught:
        error = caught
    if error is not None:
        assert error.message.startswith("shop.yaml")
        assert str(error)
        if error.position is not None:
            assert 1 <= error.position.line <= text.count("\n") + 2
