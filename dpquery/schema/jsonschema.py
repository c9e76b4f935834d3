"""The JSON Schema of schema files, for completion in editors. `python -m dpquery.schema.jsonschema` prints it."""

from __future__ import annotations

import json
import sys
from typing import Any

from dpquery.schema.file import SchemaFile


def document() -> dict[str, Any]:
    """The JSON Schema, made from the models that read the file."""
    made = SchemaFile.model_json_schema(mode="validation")
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_tidied(made)}
    return {**made, "title": "dpquery schema file"}


def text() -> str:
    """The JSON Schema as it stands in `schemas/dpquery.schema.json`."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _tidied(node: Any) -> Any:
    """Without what says nothing: titles of single keys, nulls (a key without a value is refused), defaults that are blocks."""
    match node:
        case dict():
            kept = {key: _tidied(value) for key, value in node.items() if not _idle(key, value)}
            if kept.get("type") == "number" and "default" in kept:
                kept["default"] = int(kept["default"])  # exact decimals are printed as text
            options = [o for o in kept.get("anyOf", ()) if o != {"type": "null"}]
            if len(options) == 1:
                kept = {**{k: v for k, v in kept.items() if k != "anyOf"}, **options[0]}
            elif options:
                kept["anyOf"] = options
            return kept
        case list():
            return [_tidied(item) for item in node]
        case _:
            return node


def _idle(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and (value is None or isinstance(value, dict)))


if __name__ == "__main__":
    sys.stdout.write(text())
