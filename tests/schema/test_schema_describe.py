"""What an analyst is told of a schema, and what editors and readers are told of its format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from schema_samples import FILES, GOOD, LOOSE

from dpquery.schema import jsonschema
from dpquery.schema.describe import tables_info
from dpquery.schema.file import Part, SchemaFile
from dpquery.schema.read import loads
from dpquery.schema.text import Complaints, parse
from dpquery.schema.where import Where, tree

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted([*(ROOT / "schemas").glob("*.yaml"), *(ROOT / "tests" / "cases").glob("*.yaml")])
document = cache(jsonschema.document)  # generating it takes longer than all that is asked of it


def test_tables_in_words() -> None:
    users, orders, items, countries, big = tables_info(loads(GOOD, Path("/data/shop.yaml")))
    assert (users.name, users.public, users.unit) == ("users", False, "user_id")
    assert users.columns == (("user_id", "integer", "", ""), ("age", "integer", "0 to 120", ""), ("country", "string", "", "US, DE, NO, JP"))
    assert orders.columns[2] == ("amount", "decimal(38,2)", "0 to 500, step 0.01", "")
    assert items.unit == "order_id -> orders.order_id"
    assert (countries.public, countries.unit) == (True, None)
    assert (big.name, big.view, big.columns) == ("big_orders", "SELECT * FROM orders WHERE amount > 100", ())
    assert big.as_dict()["view"] == big.view
    assert str(users) == "users (unit user_id): user_id integer, age integer, country string"
    assert (str(countries)[:20], str(big)[:22]) == ("countries (public): ", "big_orders: view, SELE")
    assert "declared" not in repr(users)


def test_tables_for_a_machine() -> None:
    users = tables_info(loads(GOOD, Path("/data/shop.yaml")))[0].as_dict()
    assert json.loads(json.dumps(users)) == {
        "name": "users",
        "public": False,
        "unit": "user_id",
        "max_rows_per_unit": 1,
        "columns": [
            {"name": "user_id", "type": "integer", "lower": None, "upper": None, "step": None, "values": None, "unique": False},
            {"name": "age", "type": "integer", "lower": "0", "upper": "120", "step": None, "values": None, "unique": False},
            {"name": "country", "type": "string", "lower": None, "upper": None, "step": None, "values": ["US", "DE", "NO", "JP"], "unique": False},
        ],
    }


def test_long_lists_of_keys_are_cut() -> None:
    text = GOOD.replace("[US, DE, NO, JP]", "[~, " + ", ".join(f"v{i}" for i in range(50)) + "]")
    assert tables_info(loads(text, Path("/x.yaml")))[0].columns[2].keys.endswith("v10, ... (51 in all)")


def test_the_json_schema_in_the_repository_is_the_one_generated() -> None:
    assert (ROOT / "schemas" / "dpquery.schema.json").read_text() == jsonschema.text(), "run: python -m dpquery.schema.jsonschema"


def test_the_json_schema_describes_every_key() -> None:
    whole = document()
    for part in (whole, *whole["$defs"].values()):
        assert part["additionalProperties"] is False
        assert all(key.get("description") for key in part["properties"].values()), part
    assert set(whole["required"]) == {"dataset", "privacy_unit", "budget", "tables"}


@pytest.mark.parametrize("text", [GOOD, FILES, LOOSE, *(f.read_text() for f in SCHEMAS)], ids=["good", "files", "loose", *(f.stem for f in SCHEMAS)])
def test_schemas_that_load_satisfy_the_json_schema(text: str) -> None:
    complaints = Complaints("x", text)
    root = parse(complaints)
    assert list(problems(tree(root, Where(complaints, root)), document())) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon: 8,", "epsilon: all,"),
        ("dataset: shop", "dataset: 7"),
        ("    unit: user_id", "    units: user_id"),
        ("    unit: user_id", "    unit: {via: a}"),
    ],
)
def test_the_json_schema_refuses_what_is_wrong(old: str, new: str) -> None:
    complaints = Complaints("x", GOOD.replace(old, new))
    root = parse(complaints)
    assert list(problems(tree(root, Where(complaints, root)), document()))


def problems(value: Any, rule: dict[str, Any], where: str = "") -> Iterator[str]:
    """What the few words of JSON Schema that the document uses find wrong."""
    defined = document()["$defs"]
    known = {
        "$ref",
        "$defs",
        "$schema",
        "title",
        "description",
        "default",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
    }
    known |= {"oneOf", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "minProperties"}
    assert set(rule) <= known, set(rule) - known
    if "$ref" in rule:
        yield from problems(value, defined[rule["$ref"].rpartition("/")[2]], where)
    options = rule.get("anyOf", rule.get("oneOf"))
    if options is not None and all(list(problems(value, o, where)) for o in options):
        yield f"{where}: none of the alternatives"
    if "enum" in rule and value not in rule["enum"]:
        yield f"{where}: not among {rule['enum']}"
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "number": (int, float, __import__("decimal").Decimal),
        "integer": int,
        "null": type(None),
    }
    named = rule.get("type", [])
    named = [named] if isinstance(named, str) else named
    if named and not any(isinstance(value, kinds[n]) and (n in ("boolean", "null") or not isinstance(value, bool)) for n in named):
        yield f"{where}: not {named}"
        return
    if isinstance(value, dict) and "object" in named:
        properties, others = rule.get("properties", {}), rule.get("additionalProperties", True)
        yield from (f"{where}.{key}: missing" for key in rule.get("required", ()) if key not in value)
        for key, inner in value.items():
            if key in properties:
                yield from problems(inner, properties[key], f"{where}.{key}")
            elif others is False:
                yield f"{where}.{key}: unknown"
            elif isinstance(others, dict):
                yield from problems(inner, others, f"{where}.{key}")
    if isinstance(value, list) and "items" in rule:
        for i, inner in enumerate(value):
            yield from problems(inner, rule["items"], f"{where}[{i}]")


def parts(model: type[Part] = SchemaFile) -> Iterator[type[Part]]:
    yield model
    for field in model.model_fields.values():
        for inner in models(field.annotation):
            yield from parts(inner)


def models(annotation: object) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from models(inner)


def test_the_reference_explains_every_key() -> None:
    page = (ROOT / "docs" / "schema.md").read_text()
    missing = {f"{part.__name__}.{key}" for part in parts() for key in part.model_fields if f"`{key}`" not in page}
    assert missing == set()


def test_the_examples_of_the_reference_load() -> None:
    page = (ROOT / "docs" / "schema.md").read_text()
    examples = [block.partition("\n```")[0] for block in page.split("```yaml\n")[1:]]
    whole = [text for text in examples if text.startswith("dataset:")]
    assert len(whole) >= 2
    for text in whole:
        loads(text, ROOT / "docs" / "example.yaml")
    for text in examples:
        parse(Complaints("docs/schema.md", text))
