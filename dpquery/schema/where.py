"""Places in a schema file: the dotted key of whatever is wrong becomes a file, a line and a column."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpquery.errors import Position, SchemaError
from dpquery.schema.file import Part, SchemaFile, shown
from dpquery.schema.text import Block, Complaints, Leaf, Listing, Node, Plain, dotted

Step = str | int
Tree = Plain | list["Tree"] | dict[str, "Tree"]


class Where:
    """The file's tree, to point into: errors carry the position of the key that they name."""

    def __init__(self, complaints: Complaints, root: Block) -> None:
        self.complaints = complaints
        self.root = root

    def error(self, code: str, message: str, *path: Step, instead: str | None = None) -> SchemaError:
        """The error about the value at `path`, or about the nearest block that holds it."""
        return self.complaints.error(code, message, self.position(path), dotted(path), instead)

    def unknown(self, path: tuple[Step, ...], known: Iterable[str]) -> SchemaError:
        """The error about a key that the format does not have, with the one that may be meant."""
        names = sorted(known)
        close = near(str(path[-1]), names)
        instead = f"did you mean `{close}`?" if close else f"known here: {', '.join(names)}"
        return self.complaints.error("UNKNOWN_KEY", "unknown key", self.position(path, key=True), dotted(path), instead)

    def position(self, path: Iterable[Step], key: bool = False) -> Position:
        """Where the value at `path` starts (its key, where asked for or where it is a block); as deep as the path leads."""
        node: Node = self.root
        position = node.position
        for step in path:
            if isinstance(node, Block) and isinstance(step, str) and (entry := node.entry(step)) is not None:
                node = entry.node
                position = node.position if isinstance(node, Leaf) and not key else entry.position
            elif isinstance(node, Listing) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                position = node.position
        return position

    def first(self, failure: ValidationError) -> SchemaError:
        """The first failure of the format's models, unknown keys before others: a missing key is often a misspelt one."""
        found = [(self.path(e["loc"]), e) for e in failure.errors(include_url=False, include_context=True)]
        found.sort(key=lambda pair: (pair[1]["type"] != "extra_forbidden", self._order(pair[0])))
        path, error = found[0]
        return self._translated(path, error)

    def _order(self, path: tuple[Step, ...]) -> tuple[int, int]:
        position = self.position(path)
        return position.line, position.column

    def path(self, loc: tuple[Step, ...]) -> tuple[Step, ...]:
        """A model's location as keys of the file: without the tags of unions, which the file does not have."""
        path: list[Step] = []
        node: Node | None = self.root
        for i, step in enumerate(loc):
            match node:
                case Block() if isinstance(step, str):
                    entry = node.entry(step)
                    if entry is None and i < len(loc) - 1:
                        continue
                    path.append(step)
                    node = None if entry is None else entry.node
                case Listing() if isinstance(step, int):
                    path.append(step)
                    node = node.items[step] if step < len(node.items) else None
                case _:
                    continue
        return tuple(path)

    def _translated(self, path: tuple[Step, ...], error: ErrorDetails) -> SchemaError:
        match error["type"]:
            case "extra_forbidden":
                return self.unknown(path, fields(path[:-1]))
            case "missing":
                return self.error("MISSING_KEY", f"`{path[-1]}` is missing", *path)
            case "too_short":
                return self.error("EMPTY_VALUE", "must not be empty", *path)
            case "literal_error":
                return self.error("WRONG_TYPE", f"must be {error['ctx']['expected'].replace(chr(39), '`')}, not {shown(error['input'])}", *path)
            case "model_type" | "dict_type":
                return self.error("WRONG_TYPE", f"must be a mapping of keys to values, not {shown(error['input'])}", *path)
            case "list_type" | "tuple_type":
                return self.error("WRONG_TYPE", f"must be a list, not {shown(error['input'])}", *path)
            case code if code.isupper():
                return self.error(code, error["msg"], *path)
            case _:
                return self.error("WRONG_TYPE", "is not what this format expects here", *path)


def near(name: str, names: Iterable[str]) -> str | None:
    """The known name that is meant most likely, if one is close."""
    known = {n.casefold(): n for n in names}
    close = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.6)
    return known[close[0]] if close else None


def fields(path: Iterable[Step]) -> tuple[str, ...]:
    """The keys that the format knows in the block at `path`."""
    model: type[BaseModel] | None = SchemaFile
    named = False  # inside a dict of names: the next step is a name
    for step in path:
        if named:
            named = False
            continue
        if model is None or not isinstance(step, str) or step not in model.model_fields:
            return ()
        annotation = model.model_fields[step].annotation
        named = "dict" in str(annotation)
        model = next((m for m in _models(annotation)), None)
    return tuple(model.model_fields) if model is not None else ()


def _models(annotation: object) -> Iterable[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def tree(node: Node, where: Where, *path: Step) -> Tree:
    """The node as plain values. SchemaError for a key without a value, and for what is still to be decided."""
    match node:
        case Leaf(value=value, plain=plain):
            if plain and value == "TODO":
                raise where.error("TODO", "still to be decided", *path, instead="write what you decide ('TODO' in quotes if that is meant)")
            return value
        case Listing(items=items):
            return [tree(item, where, *path, i) for i, item in enumerate(items)]
        case Block(entries=entries):
            for entry in entries:
                if isinstance(entry.node, Leaf) and entry.node.value is None:
                    torn = re.fullmatch(r"[0-9]+ *\)", entry.key)  # {type: decimal(10,2)}: the comma ends the value
                    instead = 'within braces put it in quotes: type: "decimal(10,2)"' if torn else "write a value, or leave the key out"
                    raise where.complaints.error("EMPTY_VALUE", "has no value", entry.position, dotted((*path, entry.key)), instead)
            return {entry.key: tree(entry.node, where, *path, entry.key) for entry in entries}
