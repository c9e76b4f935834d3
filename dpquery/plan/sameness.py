"""When two statements ask the same: one hash for all spellings of what is released.

Names are replaced by lineage (which relation, which of its columns); what has no order loses the one it was written in: conjuncts, disjuncts, the
sides of a comparison, the list of IN, keys, aggregates, joins none of which reads what another brings, the releases of a statement. Every other field
of the plan enters the hash, a new one too. What stands above the noise does not: it is computed anew from what was released.
"""

from __future__ import annotations

import datetime
import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, assert_never

from dpquery.plan.draft import Draft, Feed, Opened
from dpquery.plan.leading import led
from dpquery.plan.rel import CapRows, Compute, Group, Keep, Lookup, Match, Private, Public, Scan, Semi, Stack, Windowed, inputs, output
from dpquery.plan.release import Aggregate, Key, Keys, KeySource, ListedKeys, NoKeys, PrivateKeys, Release, ReleasedKeys
from dpquery.plan.scalar import Call, Column, Scalar, columns, conjuncts

Joined = Lookup | Match | Semi

NESTED: Final = ("and", "or")  # any number of arguments, in any order, each once
TWO_SIDED: Final = ("eq", "ne", "distinct")
MIRRORED: Final = {"gt": "lt", "ge": "le"}  # the same with its sides exchanged

# What is for people, or is said elsewhere in the plan. Whatever is not named here is part of the question.
LEFT_OUT: Final[dict[type, frozenset[str]]] = {
    Column: frozenset({"id", "name", "public"}),  # lineage says which column it is
    Public: frozenset({"name"}),  # its place says which relation it is
    Key: frozenset({"name"}),
    ListedKeys: frozenset({"origin"}),
    ReleasedKeys: frozenset({"origin"}),
    KeySource: frozenset({"origin"}),
    Aggregate: frozenset({"label", "share", "notes", "cuts"}),  # shares show in the noise
    Release: frozenset({"warnings"}),
    Feed: frozenset({"label"}),
    Opened: frozenset({"position"}),
}


@dataclass(frozen=True, slots=True)
class Form:
    """A release in the spelling that all its spellings share: the places of its keys and of its parts, in that spelling's order."""

    digest: str
    keys: tuple[int, ...]
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A release of a statement, as it is bounded, beside what the bounding does not show: whence a list of released keys comes, and what it reads."""

    name: str
    release: Release
    draft: Draft
    feeds: tuple[Feed, ...] = ()


@dataclass(frozen=True, slots=True)
class Same:
    """What a statement releases, as one hash; the places of its releases in the common order, and the form of each of these, in that order."""

    digest: str
    order: tuple[int, ...]
    forms: tuple[Form, ...]


def same(blocks: Sequence[Measured], opened: Sequence[Opened] = ()) -> Same:
    """The hash of what a statement releases: equal for spellings of one question only.

    Where a release reads what others released, text is run between them that calls keys and aggregates by their places: these keep their order.
    """
    if any(block.feeds for block in blocks):
        return _in_order(blocks, opened)
    forms = [form(block.release) for block in blocks]
    order = tuple(sorted(range(len(forms)), key=lambda i: forms[i].digest))
    return Same(_hashed("releases", *(forms[i].digest for i in order)), order, tuple(forms[i] for i in order))


def form(release: Release) -> Form:
    """One release by itself."""
    spelling = _Spelling()
    table = release.table
    source = spelling.relation(table.input, "")
    keys = [spelling.of(key) for key in table.keys]
    chosen, ranked = {*release.modal}, {*release.ranked}
    ways = {i: [str(leading.most)] for i, leading in led(release).items()}
    parts = [_hashed(spelling.of(part), str(i in chosen), str(i in ranked), *ways.get(i, ())) for i, part in enumerate(table.parts)]
    of_keys, of_parts = _sorted(keys), _sorted(parts)
    shown = _rule(release.keys, of_keys, parts, spelling)
    written = (spelling.of(table.bounding), *(keys[i] for i in of_keys), "parts", *(parts[i] for i in of_parts))
    return Form(_hashed("release", source, shown, *written), of_keys, of_parts)


def _in_order(blocks: Sequence[Measured], opened: Sequence[Opened]) -> Same:
    spelling = _Spelling(named=True)
    found = []
    for block in blocks:
        release, table = block.release, block.release.table
        source = spelling.relation(table.input, block.name)
        sources = tuple(spelling.of(one) for one in (block.draft.sources, block.draft.listed))
        own = (table.keys, table.parts, table.bounding, release.keys, release.aggregates, block.feeds)
        found.append(_hashed(block.name, source, *sources, *map(spelling.of, own)))
    forms = tuple(Form(one, _as_is(b.release.table.keys), _as_is(b.release.table.parts)) for one, b in zip(found, blocks, strict=True))
    return Same(_hashed("fed", *found, spelling.of(tuple(opened))), _as_is(blocks), forms)


def _as_is(things: Sequence[object]) -> tuple[int, ...]:
    return tuple(range(len(things)))


def _sorted(digests: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(range(len(digests)), key=digests.__getitem__))


def _rule(keys: Keys, order: Sequence[int], parts: Sequence[str], spelling: _Spelling) -> str:
    """Which groups appear."""
    match keys:
        case NoKeys():
            return _hashed("no keys")
        case ListedKeys(rows=rows):
            return _hashed("listed", *sorted(_hashed(*(spelling.of(row[i]) for i in order)) for row in rows))
        case PrivateKeys(count=count, minimum=minimum):
            return _hashed("private", parts[count], str(minimum))
        case ReleasedKeys():
            raise AssertionError("a list of released keys is fed")
        case _:
            assert_never(keys)


def _hashed(*parts: str) -> str:
    whole = hashlib.sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass")
        whole.update(len(content).to_bytes(8, "big") + content)
    return whole.hexdigest()


class _Spelling:
    """Hashes the nodes of one plan. Relations give their columns names as they are passed, so that expressions above find them.

    `named`: public relations keep their own names, by which they are fed.
    """

    def __init__(self, named: bool = False, sides: dict[int, tuple[object, str]] | None = None) -> None:
        self._named = named
        self._sides: dict[int, tuple[object, str]] = {} if sides is None else sides
        self._columns: dict[int, str] = {}
        self._nodes: dict[int, tuple[object, str]] = {}  # the node is kept, so that its address stays its own

    def of(self, value: Any) -> str:
        """The hash of a node, or the value itself with its type."""
        match value:
            case None | bool() | int() | Fraction() | Decimal() | datetime.date() | uuid.UUID():
                return f"{type(value).__name__} {value}"
            case Enum():
                return f"{type(value).__name__} {value.value}"
            case str():
                return f"str {value}"
            case float():
                return f"float {value.hex()}"
            case tuple():
                return _hashed("tuple", *map(self.of, value))
            case _:
                return self._node(value)

    def _node(self, node: Any) -> str:
        known = self._nodes.get(id(node))
        if known is None:
            known = self._nodes[id(node)] = node, self._hash(node)
        return known[1]

    def _hash(self, node: Any) -> str:
        match node:
            case Call(function=function, args=args) if function in NESTED:
                return _hashed("Call", function, *sorted({self.of(one) for one in _flat(function, args)}), self.of(node.type))
            case Call(function="in", args=(value, *listed)):
                return _hashed("Call", "in", self.of(value), *sorted({self.of(one) for one in listed}), self.of(node.type))
            case Call(function=function, args=args) if function in TWO_SIDED:
                return _hashed("Call", function, *sorted(map(self.of, args)), self.of(node.type))
            case Call(function=function, args=args) if function in MIRRORED:
                return self._hash(Call(MIRRORED[function], args[::-1], node.type))
            case Column(id=identity):
                return self._fields(node, self._column(identity))
            case Public(name=name):
                self._name(node.columns, name if self._named else "public")
                return self._fields(node, name if self._named else "")
            case KeySource(columns=ids, public=public, beside=beside):
                source = _hashed(self.of(public), *(self.of(one.public) for one in beside))  # which names the columns
                return self._fields(node, source, *map(self._column, ids), without={"columns", "public"})
            case _:
                return self._fields(node)

    def _fields(self, node: Any, *said: str, without: Iterable[str] = ()) -> str:
        """The node's class, what is said of it, and all its fields but those that are left out."""
        if not is_dataclass(node):
            raise TypeError(type(node).__name__)
        out = LEFT_OUT.get(type(node), frozenset()) | {*without}
        return _hashed(type(node).__name__, *said, *(f"{f.name} {self.of(getattr(node, f.name))}" for f in fields(node) if f.name not in out))

    # ---- relations -------------------------------------------------------------------------------------------------------------

    def relation(self, rel: Private, at: str) -> str:
        """The hash of a relation; its columns have names from here on. `at` is the way to it from the top, filters left out."""
        match rel:
            case Scan():
                self._name([one.column for one in rel.columns], at)
                ids = (sorted(map(self._column, one)) for one in (rel.unique, rel.unit_columns))
                return self._fields(rel, *(_hashed(*one) for one in ids), without={"unique", "unit_columns"})
            case Keep():
                return self._kept(rel, at)
            case CapRows(input=below):
                return _hashed("CapRows", self.relation(below, at + "r"), str(rel.rows))
            case Compute(input=below, items=items):
                source = self.relation(below, at + "c")
                made = [(column, self.of(value)) for column, value in items]
                return _hashed("Compute", source, *self._made(made, at))
            case Lookup() | Match() | Semi():
                return self._joined(rel, at)
            case Stack(left=left, right=right):
                both = self.relation(left, at + "0"), self.relation(right, at + "1")
                values = self.of(rel.ours), self.of(rel.theirs)
                self._name(rel.columns, at)
                return self._fields(rel, *both, *values, without={"left", "right", "ours", "theirs"})
            case Group(input=below, keys=keys, items=items):
                source = self.relation(below, at + "g")
                made = [(column, self.of(item)) for column, item in items]
                return _hashed("Group", source, *sorted(map(self.of, keys)), "items", *self._made(made, at))
            case Windowed(input=below, column=column, partition=partition):
                source = self.relation(below, at + "w")
                what = self._fields(rel, *sorted(map(self.of, partition)), without={"input", "column", "partition"})
                return _hashed("Windowed", source, *self._made([(column, what)], at))
            case _:
                assert_never(rel)

    def _joined(self, rel: Joined, at: str) -> str:
        """Joins of one relation with others, in any order: of those that are written next to each other none reads what another brings."""
        joins: list[Joined] = []
        below: Private = rel
        read = set[int]()
        while isinstance(below, Joined) and not read & _brought(below):
            joins.append(below)
            read |= {column.id for one in conjuncts(below.on) for column in columns(one)}
            below = inputs(below)[0]
        source = self.relation(below, at + "j")
        seen = Counter[str]()
        written = []
        for join in reversed(joins):
            other = _other(join)
            alone = self._alone(other)
            seen[alone] += 1
            digest = self._side(other, f"{at}{alone} {seen[alone]}")
            written.append(self._fields(join, digest, self._all_of(join.on), without={"input", "left", "right", "on"}))
        return _hashed("joined", source, *sorted(written))

    def _alone(self, rel: Private | Public) -> str:
        """The hash of what is joined, wherever that is."""
        known = self._sides.get(id(rel))
        if known is None:
            known = self._sides[id(rel)] = rel, _Spelling(self._named, self._sides)._side(rel, "")
        return known[1]

    def _side(self, rel: Private | Public, at: str) -> str:
        if not isinstance(rel, Public):
            return self.relation(rel, at)
        self._name(rel.columns, at)
        return self.of(rel)

    def _kept(self, rel: Keep, at: str) -> str:
        """Filters one upon another: the rows for which all of them are true."""
        below: Private = rel
        conditions: list[Scalar] = []
        while isinstance(below, Keep):
            conditions += conjuncts(below.predicate)
            below = below.input
        source = self.relation(below, at)
        return _hashed("Keep", source, *sorted({self.of(one) for one in conditions}))

    def _all_of(self, on: Scalar | None) -> str:
        return _hashed("all", *sorted({self.of(one) for one in conjuncts(on)}))

    def _made(self, items: Sequence[tuple[Column, str]], at: str) -> list[str]:
        """The hashes of computed columns, in any order: each is called by what it is computed from."""
        for column, digest in items:
            self._columns.setdefault(column.id, f"{at} {digest}")
        return sorted(_hashed(self.of(column), digest) for column, digest in items)

    def _name(self, columns: Sequence[Column], at: str) -> None:
        for place, column in enumerate(columns):
            self._columns.setdefault(column.id, f"{at}:{place}")

    def _column(self, identity: int) -> str:
        """Which column it is; one of no relation that was passed by the order in which such are met."""
        return self._columns.setdefault(identity, f"other {len(self._columns)}")


def _other(join: Joined) -> Private | Public:
    """What is joined to the left side."""
    return join.public if isinstance(join, Lookup) else join.right


def _brought(join: Joined) -> set[int]:
    """The columns that it adds to those of the left side."""
    other = _other(join)
    return set() if isinstance(join, Semi) else {column.id for column in (other.columns if isinstance(other, Public) else output(other))}


def _flat(function: str, args: Iterable[Scalar]) -> Iterable[Scalar]:
    for arg in args:
        if isinstance(arg, Call) and arg.function == function:
            yield from _flat(function, arg.args)
        else:
            yield arg
