"""GROUP BY: which expressions are keys, and where public lists of them come from.

A key list is the declared values of a column, an unmodified column of a joined public table, the literals of a top-level `k IN (..)` in WHERE, or
the literal branches of CASE. One key without a source makes all keys private.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from sqlglot import exp

from dpquery.plan.beside import Near
from dpquery.plan.functions import call
from dpquery.plan.rel import Join, Lookup, Public, walk
from dpquery.plan.release import Key, KeySource
from dpquery.plan.scalar import Column, Literal, Scalar, columns, replaced
from dpquery.sql import edges
from dpquery.sql.above import Keyed, unit_as_output
from dpquery.sql.aggregates import unit_columns
from dpquery.sql.bins import MOST, STAND_IN, bins
from dpquery.sql.fields import take
from dpquery.sql.listed import alternatives, results
from dpquery.sql.names import Scope, Statement, column_name, fold, meant
from dpquery.sql.narrowed import Conditions, conditions
from dpquery.sql.rowwise import expression
from dpquery.sql.sides import Bound, equality, facts, firm
from dpquery.sql.titles import title
from dpquery.sql.unanswered import called, is_aggregate
from dpquery.values.types import BOOLEAN, Kind, Value

MOST_KEYS = 32
SETS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Cube: ("CUBE", "CUBE"),
    exp.Rollup: ("ROLLUP", "ROLLUP"),
    exp.GroupingSets: ("GROUPING_SETS", "GROUPING SETS"),
}


def keyed(statement: Statement, nodes: Sequence[tuple[str, exp.Expr]], scope: Scope, side: Bound) -> tuple[Keyed, ...]:
    """The keys that these named expressions spell, each once."""
    found: list[Keyed] = []
    units = unit_columns(side.rel)
    for name, node in nodes:
        value = expression(node, scope, "GROUP BY")
        if isinstance(value, Column) and value.id in units:
            raise unit_as_output(statement, node, value.name)
        if value.type.kind in (Kind.INTERVAL, Kind.NULL):
            raise statement.refuse("KEY_TYPE", f"a key cannot be of type {value.type}", node, "a CAST to another type")
        best = _as_public(side, value)
        same = next((i for i, known in enumerate(found) if best in known.values), None)
        if same is None:
            found.append(Keyed(Key(name, best, best.type), tuple({value: None, best: None}), (bare(node),)))
        else:
            known = found[same]
            found[same] = replace(known, values=tuple({**dict.fromkeys(known.values), value: None}), nodes=(*known.nodes, bare(node)))
    if len(found) > MOST_KEYS:
        raise statement.refuse("TOO_COMPLEX", f"at most {MOST_KEYS} keys", nodes[MOST_KEYS][1])
    return tuple(found)


def alone(statement: Statement, keys: Sequence[Keyed], side: Bound) -> list[str]:
    """A word on keys that stand for one unit each: their groups never pass a threshold."""
    steady = firm(side.rel)
    for one in keys:
        value = one.key.value
        if isinstance(value, Column) and value.id in steady and value.id in statement.origins and statement.origins[value.id].fixes:
            return [f"each group of {one.key.name} is one person's: the threshold is there to leave all of them out"]
    return []


def bare(node: exp.Expr) -> exp.Expr:
    """The node without its parentheses."""
    while isinstance(node, exp.Paren):
        (node,) = take(node, "this")
    return node


def grouped(statement: Statement, group: exp.Group, items: Sequence[tuple[str, exp.Expr]], scope: Scope) -> tuple[tuple[str, exp.Expr], ...]:
    """The expressions of GROUP BY with their names: columns first, then aliases, then ordinals, as the engine reads them."""
    names, everything = take(group, "expressions", "all")
    if everything and names:
        raise statement.refuse("GROUP_BY_ALL", "GROUP BY ALL beside other keys is not supported", group, "GROUP BY ALL, or the keys by name")
    if everything:
        return items_without_aggregates(items, scope)
    found: list[tuple[str, exp.Expr]] = []
    for node in _flat(names or ()):
        found.append(resolved(statement, node, items, scope))
    return tuple(found)


def items_without_aggregates(items: Sequence[tuple[str, exp.Expr]], scope: Scope) -> tuple[tuple[str, exp.Expr], ...]:
    """What GROUP BY ALL means: every item of SELECT that holds no aggregate and no window, nor the name of one that does, but is no literal."""
    found, names = list[tuple[str, exp.Expr]](), set[str]()
    for name, node in items:
        if _above(node) or any(_names(one, names, scope) for one in node.find_all(exp.Column)):
            names.add(fold(name))
        elif not isinstance(bare(node), exp.Literal):
            found.append((name, node))
    return tuple(found)


def _names(node: exp.Column, names: set[str], scope: Scope) -> bool:
    """Whether it is one of these aliases, and no column."""
    return not node.table and fold(node.name) in names and not scope.frame.find(node.name)


def _above(node: exp.Expr) -> bool:
    """Whether it stands above the noise: it holds an aggregate or a window, or reads nothing of a row beside values of subqueries."""
    parts_ = list(node.walk(prune=lambda one: isinstance(one, exp.Query)))
    if any(isinstance(one, exp.Subquery) for one in parts_) and not any(isinstance(one, exp.Column | exp.Exists) for one in parts_):
        return True
    return any(is_aggregate(below) or isinstance(below, exp.Window) or called(below) in edges.NAMES for below in parts_)


def _flat(nodes: Iterable[exp.Expr]) -> Iterable[exp.Expr]:
    """GROUP BY (a, b) is GROUP BY a, b."""
    for node in nodes:
        if isinstance(node, exp.Tuple):
            yield from _flat(take(node, "expressions")[0] or ())
        else:
            yield node


def resolved(statement: Statement, node: exp.Expr, items: Sequence[tuple[str, exp.Expr]], scope: Scope) -> tuple[str, exp.Expr]:
    """One expression of GROUP BY with its name: an alias or an ordinal as the item of SELECT that it stands for."""
    inner = bare(node)
    if type(inner) in SETS:
        code, words = SETS[type(inner)]
        raise statement.refuse(code, f"{words} is not supported", inner, "one statement for each set of keys")
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return _ordinal(statement, inner, items)
    if isinstance(inner, exp.Column):
        name, table = column_name(inner, statement.source)
        if scope.find(inner) is None and table is None:
            for alias, item in items:
                if fold(alias) == fold(name):
                    meant(statement, inner, {fold(name): item})
                    return alias, item
        return title(inner), inner
    return title(node), node


def _ordinal(statement: Statement, node: exp.Literal, items: Sequence[tuple[str, exp.Expr]]) -> tuple[str, exp.Expr]:
    text = node.name
    if not text.isdigit() or not 1 <= int(text[:9]) <= len(items):
        raise statement.refuse("ORDINAL", f"GROUP BY {text[:20]}: SELECT has {len(items)} columns", node, "the key by name")
    return items[int(text) - 1]


def _as_public(side: Bound, value: Scalar) -> Scalar:
    """The public column that equals the key in every row, where an inner join says so: then its rows are the key list."""
    if not isinstance(value, Column) or value.public is not None:
        return value
    for fact in facts(side.rel, side.kept):
        pair = equality(fact)
        if pair is not None and value in pair:
            other = pair[1] if pair[0] == value else pair[0]
            if other.public is not None and other.id in firm(side.rel):
                return other
    return value


# ---- sources -------------------------------------------------------------------------------------------------------------------------


def sources(keys: Sequence[Keyed], side: Bound) -> tuple[KeySource, ...]:
    """Where a list of all keys comes from; empty if any key has no source."""
    steady, near = firm(side.rel), conditions(side)
    declared = tuple(fact for one in keys for fact in _declared(one))
    near = replace(near, spelled=near.spelled + declared, facts=near.facts + declared)
    publics = {below.public.name: below.public for below in walk(side.rel) if isinstance(below, Lookup) and below.join is Join.INNER}
    found, covered = list[KeySource](), set[int]()
    for name, places in _by_table(keys, publics, steady).items():
        if covered.isdisjoint(places):
            found.append(_table_source(keys, publics[name], near, covered))
            covered |= set(found[-1].positions)
    for place, keyed_one in enumerate(keys):
        if place not in covered:
            source = _literal_source(place, keyed_one.key, near, steady) or _binned(place, keyed_one.key, near, steady - unit_columns(side.rel))
            if source is None:
                return ()
            found.append(source)
    many = prod(len(source.literals) for source in found if source.public is None) > MOST
    return () if many and any(source.image is not None for source in found) else tuple(found)


def late(keys: Sequence[Keyed], side: Bound) -> bool:
    """Whether WHERE compares the keys, or what stands beside them in a public table, with released values: then it does not narrow their list."""
    near, read = conditions(side), {c for one in keys for c in columns(one.key.value)}
    names = {c.public for c in read if c.public is not None}
    tables = (c.id for below in walk(side.rel) if isinstance(below, Lookup) and below.public.name in names for c in below.public.columns)
    return near.late(frozenset(tables) | {c.id for c in read})


def _table_source(keys: Sequence[Keyed], public: Public, near: Conditions, covered: set[int]) -> KeySource:
    """The rows of a public table, with those of others that conditions tie to it: all keys that are columns of these."""
    base = frozenset(c.id for c in public.columns)
    found = near.narrowed(base, {})
    joined = () if public.filled is not None else (one.public for one in found.beside if one.how is Near.JOINED)
    ids = base | frozenset(c.id for one in joined for c in one.columns)
    places = tuple(i for i, one in enumerate(keys) if i not in covered and isinstance(one.key.value, Column) and one.key.value.id in ids)
    read = tuple(_column(keys[i]).id for i in places)
    return KeySource(places, _origin(keys, places, public), public=public, columns=read, prune=found.prune, beside=found.beside)


def _declared(one: Keyed) -> tuple[Scalar, ...]:
    """That a public column is a key in place of a private one that it equals: so far as it has values that are declared of that."""
    others = (value for value in one.values if value != one.key.value and isinstance(value, Column) and value.values is not None)
    return tuple(call("in", one.key.value, *(Literal(value, other.type) for value in other.values or () if value is not None)) for other in others)


def _by_table(keys: Sequence[Keyed], publics: Mapping[str, Public], steady: frozenset[int]) -> dict[str, tuple[int, ...]]:
    """The places of the keys that are columns of a public relation, by its name."""
    found: dict[str, tuple[int, ...]] = {}
    for place, one in enumerate(keys):
        value = one.key.value
        if isinstance(value, Column) and value.public in publics and value.id in steady:
            found[str(value.public)] = (*found.get(str(value.public), ()), place)
    return found


def _column(one: Keyed) -> Column:
    if not isinstance(one.key.value, Column):
        raise AssertionError("a key from a public table is a column")
    return one.key.value


def _origin(keys: Sequence[Keyed], places: Sequence[int], public: Public) -> str:
    what = "rows of the public table: " if public.filled is None else "what was released before: "
    return what + ", ".join(_column(keys[i]).name for i in places)


def _literal_source(place: int, key: Key, near: Conditions, steady: frozenset[int]) -> KeySource | None:
    """A list from declared values, from a condition on the very key, or from the branches of CASE."""
    value = key.value

    def source(origin: str, values: Iterable[Value], whole: bool) -> KeySource:
        stand = Column(STAND_IN, "", value.type)
        found = near.narrowed(frozenset({stand.id}), {value: stand} if columns(value) else {})
        return KeySource((place,), origin, literals=_set(values), prune=found.prune, whole=whole, beside=found.beside)

    if isinstance(value, Column) and value.values is not None and value.id in steady:
        return source(f"declared values of {value.name}", value.values, False)
    for fact in near.spelled:
        listed = alternatives(fact, value, key.type)
        if listed is not None:
            return source(f"the list in WHERE for {key.name}", listed, True)
    branches = results(value, key.type)
    return None if branches is None else source(f"the branches of {key.name}", branches, True)


def _binned(place: int, key: Key, near: Conditions, steady: frozenset[int]) -> KeySource | None:
    """A list of bins. Keys that read the unit, or what an outer join may set to NULL, have none."""
    if not columns(key.value) or not {column.id for column in columns(key.value)} <= steady:
        return None
    found = bins(key.value, near.spelled)
    if found is None:
        return None
    stand: dict[Scalar, Scalar] = {found.instead: found.stand_in}
    known = near.narrowed(frozenset({found.stand_in.id}), stand)
    prune = tuple(replaced(fact, stand) for fact in known.prune)
    beside = tuple(replace(one, on=tuple(replaced(part, stand) for part in one.on)) for one in known.beside)
    origin = "true and false" if key.value.type == BOOLEAN else f"the bins of {key.name} within bounds"
    return KeySource((place,), origin, literals=_set(found.values), prune=prune, image=(found.stand_in, found.key), beside=beside)


def _set(values: Iterable[Value]) -> tuple[tuple[Value, ...], ...]:
    """Each value once, in order. True and 1, 1 and 1.0 never meet: all have the key's type."""
    return tuple((value,) for value in dict.fromkeys(values))
