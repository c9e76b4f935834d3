"""YAML text as a tree of nodes that know their place. Numbers are exact decimals of the source text; nothing is executed, no tag is obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from dpquery.errors import Position, SchemaError

MAX_NODES: Final = 200_000  # aliases counted as often as they are used
MAX_DEPTH: Final = 40
MAX_DIGITS: Final = 100
MAX_EXPONENT: Final = 400

Plain = None | bool | int | Decimal | str

_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: Final[dict[str, Plain]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), Decimal("Infinity")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), Decimal("-Infinity")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), Decimal("NaN")),
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar: `value` as YAML 1.2 reads it, `text` as it is written, without quotes; `plain` says that there are none."""

    value: Plain
    text: str
    position: Position
    plain: bool = True
    size: int = 1
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A sequence."""

    items: tuple[Node, ...]
    position: Position
    size: int
    depth: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a mapping."""

    key: str
    position: Position
    node: Node


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping, in the order of the file, merge keys resolved. Each key is there once."""

    named: Mapping[str, Entry]
    position: Position
    size: int
    depth: int

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries in their order."""
        return tuple(self.named.values())

    def entry(self, key: str) -> Entry | None:
        """The entry of that key, if there is one."""
        return self.named.get(key)


Node = Leaf | Listing | Block


class Complaints:
    """Errors of one file: each names the file, the line and the key, and points into the text."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def error(self, code: str, message: str, position: Position | None, key: str = "", instead: str | None = None) -> SchemaError:
        """The error, ready to be raised. `key` is the dotted path of what is wrong."""
        where = self.name if position is None else f"{self.name}, line {position.line}"
        what = f"{where}: {key}: {message}" if key else f"{where}: {message}"
        return SchemaError(code, what, position=position, instead=instead, source=self.text)


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it: `tables.users.columns.age.values[2]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def parse(complaints: Complaints) -> Block:
    """The file's top mapping. SchemaError for whatever is not one plain YAML 1.2 document: bad syntax, tags, duplicate keys, bombs, cycles."""
    try:
        events: list[NodeEvent] = []
        documents = depth = 0
        for event in YAML(typ="safe", pure=True).parse(complaints.text):
            match event:
                case DocumentStartEvent(version=version):
                    documents += 1
                    if version not in (None, (1, 2)):
                        raise complaints.error("YAML_SYNTAX", "only YAML 1.2 is read", _start(event), instead="leave the %YAML line out")
                    if documents > 1:
                        raise complaints.error("YAML_SYNTAX", "one document only, not several separated by `---`", _start(event))
                case _:
                    events.append(event)
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > MAX_DEPTH + 1:  # enough for an error; to read on would take time that grows with the square of the depth
                break
            if len(events) > 4 * MAX_NODES:
                raise complaints.error("TOO_LARGE", "the file has too many entries", _start(event))
        return _Builder(complaints, events).top()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = None if mark is None else Position(mark.line + 1, mark.column + 1)
        raise complaints.error("YAML_SYNTAX", f"not YAML: {error.problem or error.context}", position) from None
    except YAMLError as error:
        before = complaints.text[: getattr(error, "position", 0)]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise complaints.error("YAML_SYNTAX", "not YAML: it holds control characters", position) from None
    except (RecursionError, ValueError):
        raise complaints.error("YAML_SYNTAX", "not YAML that can be read", None) from None


class _Builder:
    """Turns events into nodes, refusing what a schema has no use for. `path` leads to the node at hand."""

    def __init__(self, complaints: Complaints, events: list[NodeEvent]) -> None:
        self.complaints = complaints
        self.events: Iterator[NodeEvent] = iter(events)
        self.anchors: dict[str, Node | None] = {}  # None: not finished yet
        self.path: list[str | int] = []

    def top(self) -> Block:
        next(self.events)  # the stream's start
        first = next(self.events)
        if isinstance(first, StreamEndEvent):
            raise self.complaints.error("MISSING_KEY", "the file is empty", None, instead="start with `dpquery init`, or with an example schema")
        node = self.node(first)
        if not isinstance(node, Block):
            raise self.error("WRONG_TYPE", "a schema is a mapping of keys to values", node.position)
        return node

    def error(self, code: str, message: str, position: Position, instead: str | None = None) -> SchemaError:
        return self.complaints.error(code, message, position, dotted(self.path), instead)

    def node(self, event: NodeEvent) -> Node:
        if isinstance(event, AliasEvent):
            return self.alias(event)
        if getattr(event, "tag", None) is not None:
            raise self.error("YAML_TAG", "tags (`!...`) are not read", _start(event), "leave the tag out; quote text that looks like a number")
        if len(self.path) > MAX_DEPTH:
            raise self.error("TOO_LARGE", f"nested more than {MAX_DEPTH} levels deep", _start(event))
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = self.fresh(event)
        if node.size > MAX_NODES:
            raise self.error("TOO_LARGE", "too many entries, once its aliases are written out", _start(event))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def alias(self, event: AliasEvent) -> Node:
        if event.anchor not in self.anchors:
            raise self.error("YAML_ALIAS", f"`*{event.anchor}` refers to no `&{event.anchor}` above it", _start(event))
        node = self.anchors[event.anchor]
        if node is None:
            raise self.error("YAML_ALIAS", f"`*{event.anchor}` lies inside what it refers to", _start(event))
        if len(self.path) + node.depth > MAX_DEPTH:
            raise self.error("TOO_LARGE", f"nested more than {MAX_DEPTH} levels deep, once its aliases are written out", _start(event))
        return node

    def fresh(self, event: NodeEvent) -> Node:
        match event:
            case ScalarEvent(value=text, implicit=implicit):
                value = _resolve(text) if implicit[0] else text
                if isinstance(value, str) and implicit[0] and _NUMBER.fullmatch(text):
                    raise self.error("OUT_OF_RANGE", f"a number of more than {MAX_DIGITS} digits, or beyond 1e{MAX_EXPONENT}", _start(event))
                return Leaf(value, text, _start(event), implicit[0])
            case SequenceStartEvent():
                items = tuple(self.inside(i, e) for i, e in enumerate(self.until_end()))
                return Listing(items, _start(event), 1 + sum(n.size for n in items), _deeper(items))
            case MappingStartEvent():
                return self.mapping(event)
        raise self.error("YAML_SYNTAX", "not YAML that can be read", _start(event))

    def inside(self, step: str | int, event: NodeEvent) -> Node:
        """The node one step further down."""
        self.path.append(step)
        node = self.node(event)
        self.path.pop()
        return node

    def until_end(self) -> Iterator[NodeEvent]:
        for event in self.events:
            if not isinstance(event, NodeEvent):
                return
            yield event

    def mapping(self, start: MappingStartEvent) -> Block:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for event in self.until_end():
            key = self.node(event)
            if not isinstance(key, Leaf) or key.text == "":
                raise self.error("WRONG_TYPE", "a key is a word", key.position)
            if key.text in own:
                self.path.append(key.text)
                raise self.error("DUPLICATE_KEY", f"is there twice, first at {own[key.text].position}", key.position)
            value = self.inside(key.text, next(self.events))
            if key.text == "<<" and key.plain:
                for entry in self.merge(value):
                    merged.setdefault(entry.key, entry)
            else:
                own[key.text] = Entry(key.text, key.position, value)
        named = own | {key: entry for key, entry in merged.items() if key not in own}
        nodes = [entry.node for entry in named.values()]
        return Block(named, _start(start), 1 + sum(1 + node.size for node in nodes), _deeper(nodes))

    def merge(self, value: Node) -> Iterator[Entry]:
        for node in value.items if isinstance(value, Listing) else (value,):
            if not isinstance(node, Block):
                raise self.error("YAML_ALIAS", "`<<` merges mappings only", node.position)
            yield from node.entries


def _deeper(nodes: Iterable[Node]) -> int:
    """How many levels lie below what holds these nodes."""
    return 1 + max((node.depth for node in nodes), default=0)


def _start(event: Event) -> Position:
    start, end = event.start_mark, event.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return Position(start.line + 1, start.column + 1, max(1, length))


def _resolve(text: str) -> Plain:
    """A plain scalar by the core schema of YAML 1.2: `1e-6` is a number, `NO` a word. A number too long to be meant comes back as text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > MAX_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        try:
            number = Decimal(text)
        except ArithmeticError:
            return text
        if not number:
            return Decimal(0)
        return number if abs(number.adjusted()) <= MAX_EXPONENT else text
    return text
