"""What is looked up in public tables before anything is charged: how often a private row can meet public ones, and which keys there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import assert_never

from dpquery.backends import names
from dpquery.backends.canonical import canonical
from dpquery.backends.lists import numbered
from dpquery.backends.port import Backend
from dpquery.backends.scalar import literal, scan, sql
from dpquery.backends.values import handed
from dpquery.errors import Refused
from dpquery.plan.beside import Near
from dpquery.plan.draft import Draft, Opened, Product
from dpquery.plan.rel import Lookup, Public, Semi, publics, walk
from dpquery.plan.release import Key, KeySource
from dpquery.plan.scalar import Call, Column, Scalar, columns, conjuncts, replaced
from dpquery.privacy.resolve import LARGEST_FANOUT, Facts
from dpquery.values.types import INTEGER, Type, Value

MAX_KEYS = 10_000
MAX_OPENED = 100_000  # rows of a public relation above the noise
Row = tuple[Value, ...]


def facts(drafts: Sequence[Draft], backend: Backend) -> tuple[Facts, ...]:
    """The public facts of a statement's releases. Refused where one has more than 10,000 keys."""
    backend.prepare(standing(drafts))
    return tuple(_facts(draft, backend) for draft in drafts)


def check_products(products: Sequence[Product], backend: Backend) -> None:
    """Refused where a join of public tables without an equality has too many pairs of rows, before any is made."""
    if products:
        backend.prepare(())
    for one in products:
        left, right = (int(str(backend.public_rows(f"SELECT count(*) FROM ({side}) AS q", [INTEGER])[0][0])) for side in one.sides)
        check_pairs(one, left * right)


def check_pairs(one: Product, pairs: int) -> None:
    """Refused where a join without an equality has so many pairs of rows that they are too many."""
    if pairs > one.most:
        message = f"public tables joined without an equality have more than {one.most:,} pairs of rows ({', '.join(one.tables)[:100]})"
        instead = "JOIN .. ON a.x = b.y, or subqueries of the rows that are needed, (SELECT .. FROM t WHERE ..)"
        raise Refused("PUBLIC_TOO_LARGE", message, position=one.position, instead=instead)


def standing(drafts: Sequence[Draft]) -> list[Public]:
    """The public relations that a statement's releases read."""
    given = [public for draft in drafts for public in publics(draft.input)]
    given += [source.public for draft in drafts for source in draft.sources if source.public is not None]
    given += [draft.listed for draft in drafts if draft.listed is not None]
    return list({public.name: public for public in given}.values())


def handed_over(opened: Sequence[Opened], drafts: Sequence[Draft], backend: Backend) -> dict[str, list[tuple[str, Type, Sequence[Value]]]]:
    """The public relations that are read above the noise, column by column. Refused where one is too large, or has more than the row it may have."""
    if opened:
        backend.prepare([*standing(drafts), *(one.public for one in opened)])
    return {one.public.name: _columns(one, backend) for one in opened}


def _columns(one: Opened, backend: Backend) -> list[tuple[str, Type, Sequence[Value]]]:
    most, types = 1 if one.single else MAX_OPENED, [c.type for c in one.public.columns]
    values = ", ".join(handed(f"c{i}", kind) for i, kind in enumerate(types))
    rows = backend.public_rows(f"SELECT {values} FROM {names.public(one.public.name)} LIMIT {most + 1}", types)
    if len(rows) > most and one.single:
        message = "a subquery that is a value has several rows"
        raise Refused("SCALAR_SUBQUERY", message, position=one.position, instead="a condition that one row meets, or an aggregate such as MAX(x)")
    if len(rows) > most:
        message = f"a public table beside released values has more than {MAX_OPENED:,} rows ({', '.join(one.tables)})"
        instead = "a subquery of the rows that are needed, (SELECT .. FROM t WHERE ..); or the join inside the SELECT that aggregates"
        raise Refused("PUBLIC_TOO_LARGE", message, position=one.position, instead=instead)
    return [(f"c{i}", kind, [row[i] for row in rows]) for i, kind in enumerate(types)]


def filled(public: Public, rows: Sequence[Row]) -> Public:
    """The public relation, holding these rows."""
    values = ", ".join(f"v{i}" for i in range(len(public.columns)))
    return replace(public, sql=f"SELECT {values} FROM ({numbered(rows, [c.type for c in public.columns])}) AS l")


def _facts(draft: Draft, backend: Backend) -> Facts:
    _check_partners(draft, backend)
    fanouts: dict[str, int] = {}
    for lookup in (rel for rel in walk(draft.input) if isinstance(rel, Lookup)):
        once = lookup.public.filled is not None  # whatever it will hold (L25)
        fanouts[lookup.public.name] = max(1 if once else fanout(lookup, backend), fanouts.get(lookup.public.name, 0))
    if not draft.sources:
        return Facts(fanouts, None, "")
    if draft.listed is not None:
        partial = [one for one in draft.sources if _partial(one, draft.keys, backend)]
        return Facts(fanouts, None, _origins(draft.sources), _origins(partial), _beside(draft, backend))
    partial = [source for source in draft.sources if _partial(source, draft.keys, backend)]
    return Facts(fanouts, key_list(draft, backend), _origins(draft.sources), _origins(partial))


def _origins(sources: Sequence[KeySource]) -> str:
    return ", ".join(dict.fromkeys(source.origin for source in sources))


def _partial(source: KeySource, keys: Sequence[Key], backend: Backend) -> bool:
    """Whether a row may have a key that the source does not list: beside a public table's columns only NULL, where there is one."""
    if source.public is None:
        return not source.whole
    if source.public.filled is not None:
        return False  # NULL is in no list that is joined
    return any(_has_null(source, public, keys, backend) for public in (source.public, *(one.public for one in source.beside)))


def _has_null(source: KeySource, public: Public, keys: Sequence[Key], backend: Backend) -> bool:
    """Whether a key of the source that is a column of this public relation is NULL in it."""
    given, places = {c.id: f"c{i}" for i, c in enumerate(public.columns)}, zip(source.columns, source.positions, strict=True)
    missing = " OR ".join(f"({scan(given[i], keys[place].type)}) IS NULL" for i, place in places if i in given)
    return bool(missing and backend.public_rows(f"SELECT 1 FROM {names.public(public.name)} WHERE {missing} LIMIT 1", [INTEGER]))


# ---- fan-out -------------------------------------------------------------------------------------------------------------------------


def fanout(lookup: Lookup, backend: Backend) -> int:
    """The most public rows that one private row can meet, at least 1: the commonest key's where the join asks for equal keys, else all rows."""
    return _met(lookup.public, lookup.on, backend)


def _met(public: Public, on: Scalar | None, backend: Backend) -> int:
    table, keys = names.public(public.name), [key for part in conjuncts(on) if (key := _join_key(public, part)) is not None]
    if not keys:
        text = f"SELECT count(*) FROM {table}"
    else:
        present = " AND ".join(f"({key}) IS NOT NULL" for key in keys)
        text = f"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM {table} WHERE {present} GROUP BY {', '.join(keys)})"
    found = backend.public_rows(text, [INTEGER])[0][0]
    return max(1, int(str(found)))


def _join_key(public: Public, part: Scalar) -> str | None:
    """What stands on the public side of an equality that the join asks for. Types must agree, lest unlike values count as equal."""
    given = {c.id: f"c{i}" for i, c in enumerate(public.columns)}
    match part:
        case Call(function="eq", args=(left, right)) if left.type == right.type:
            for ours, theirs in ((left, right), (right, left)):
                read, other = {c.id for c in columns(ours)}, {c.id for c in columns(theirs)}
                if read and read <= given.keys() and not other & given.keys():
                    return sql(ours, given)
        case _:
            pass
    return None


def _check_partners(draft: Draft, backend: Backend) -> None:
    """Refused where partners are looked for among too many public rows by a condition that is no equality: the engine may try each of them."""
    semis = [(rel.right, rel.on) for rel in walk(draft.input) if isinstance(rel, Semi) and isinstance(rel.right, Public)]
    for public, on in semis:
        if public.filled is None and _tries(public, on) and _met(public, on, backend) > LARGEST_FANOUT:
            message = f"each private row would be compared, by no equality, with more than {LARGEST_FANOUT:,} rows of a public table"
            raise Refused("FANOUT", message, instead="an equality with a column of the public table, or a subquery of fewer of its rows")


def _tries(public: Public, on: Scalar | None) -> bool:
    """Whether a condition of both sides is no equality."""
    given = {c.id for c in public.columns}
    sides = [(part, {c.id in given for c in columns(part)}) for part in conjuncts(on)]
    return any(len(read) == 2 and _join_key(public, part) is None for part, read in sides)


# ---- key lists -----------------------------------------------------------------------------------------------------------------------


def key_list(draft: Draft, backend: Backend) -> tuple[Row, ...]:
    """All keys, sorted, NULL last: the cross product of the sources, each a set of canonical tuples."""
    return _crossed(draft, [_source(source, draft.keys, backend) for source in draft.sources])


def released_list(draft: Draft, backend: Backend, most: int) -> tuple[tuple[Row, ...], bool]:
    """All keys, once the released ones are known, and whether these give more than `most` or 10,000: the first in their order are taken."""
    room = min(MAX_KEYS, most) // _beside(draft, backend)
    lists = [sorted(_source(source, draft.keys, backend)) if _later(source) else _source(source, draft.keys, backend) for source in draft.sources]
    cut = any(_later(source) and len(rows) > room for source, rows in zip(draft.sources, lists, strict=True))
    return _crossed(draft, [rows[:room] if _later(source) else rows for source, rows in zip(draft.sources, lists, strict=True)]), cut


def _later(source: KeySource) -> bool:
    return source.public is not None and source.public.filled is not None


def _beside(draft: Draft, backend: Backend) -> int:
    """How many groups each released key has by the other sources, at least 1. Refused where these alone are too many."""
    others = prod(len(_source(source, draft.keys, backend)) for source in draft.sources if not _later(source))
    if others > MAX_KEYS:
        raise _too_many()
    return max(1, others)


def _crossed(draft: Draft, lists: Sequence[Sequence[Row]]) -> tuple[Row, ...]:
    places = [position for source in draft.sources for position in source.positions]
    if sorted(places) != list(range(len(draft.keys))):
        raise ValueError("the sources of a key list cover each key once")
    if prod(len(rows) for rows in lists) > MAX_KEYS or any(len(rows) > MAX_KEYS for rows in lists):
        raise _too_many()
    order = sorted(range(len(places)), key=places.__getitem__)
    rows = {tuple(flat[i] for i in order) for flat in (tuple(v for part in parts for v in part) for parts in product(*lists))}
    return tuple(sorted(rows, key=lambda row: tuple((value is None, value) for value in row)))


def _too_many() -> Refused:
    return Refused(
        "TOO_MANY_KEYS",
        f"the statement has more than {MAX_KEYS:,} public keys",
        instead="group by fewer or coarser columns, or narrow the keys with WHERE key IN (...)",
    )


def _source(source: KeySource, keys: Sequence[Key], backend: Backend) -> list[Row]:
    """The distinct tuples of one source. One more than the limit is enough to know that there are too many."""
    types = [keys[position].type for position in source.positions]
    if source.public is not None:
        return _from_table(source, source.public, keys, types, backend)
    if source.image is not None:
        return _imaged(source, *source.image, types[0], backend)
    fitting = list(dict.fromkeys(row for row in (canonical(literals, types) for literals in source.literals) if row is not None))
    return _pruned(source, fitting, keys, types, backend) if (source.prune or source.beside) and fitting else fitting


def _imaged(source: KeySource, column: Column, key: Scalar, kind: Type, backend: Backend) -> list[Row]:
    """The distinct values of an expression of the listed ones, where the conditions on these are true; NULL too, where one has it for its key.

    NULL itself is as good as listed where it has a key of its own: COALESCE(.., -1), CASE WHEN x IS NULL THEN 'unknown' END.
    """
    given = {column.id: "l.v"}
    values = ", ".join(f"({literal(value, column.type)})" for value in (*(value for (value,) in source.literals), None))
    inner = f"SELECT l.v AS v, {handed(sql(key, given), kind)} AS k FROM (VALUES {values}) AS l(v){_narrowed(source, given, {})}"
    return backend.public_rows(f"SELECT DISTINCT k FROM ({inner}) WHERE v IS NOT NULL OR k IS NOT NULL LIMIT {MAX_KEYS + 1}", [kind])


def _from_table(source: KeySource, public: Public, keys: Sequence[Key], types: Sequence[Type], backend: Backend) -> list[Row]:
    given = {c.id: f"l.c{i}" for i, c in enumerate(public.columns)}
    whole = given | _joined(source)
    values = [handed(scan(whole[identity], kind), kind) for identity, kind in zip(source.columns, types, strict=True)]
    pairs = list(zip(source.positions, source.columns, strict=True))
    stand_ins: dict[Scalar, Scalar] = {keys[position].value: Column(identity, "", types[i]) for i, (position, identity) in enumerate(pairs)}
    listed = ", ".join(f"v{i}" for i in range(len(types)))
    inner = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    present = " AND ".join(f"v{i} IS NOT NULL" for i in range(len(types)))  # NULL is a key only where a list names it
    rows = f"SELECT {inner} FROM {names.public(public.name)} AS l{_narrowed(source, given, stand_ins)}"
    return backend.public_rows(f"SELECT DISTINCT {listed} FROM ({rows}) WHERE {present} LIMIT {MAX_KEYS + 1}", types)


def _pruned(source: KeySource, rows: list[Row], keys: Sequence[Key], types: Sequence[Type], backend: Backend) -> list[Row]:
    """The listed tuples for which the statement's own conditions on the keys are true."""
    stand_ins: dict[Scalar, Scalar] = {keys[position].value: Column(-1 - i, "", types[i]) for i, position in enumerate(source.positions)}
    given = {-1 - i: f"l.v{i}" for i in range(len(types))} | dict(zip(source.columns, (f"l.v{i}" for i in range(len(types))), strict=False))
    values = ", ".join(f"({i}, {', '.join(literal(v, t) for v, t in zip(row, types, strict=True))})" for i, row in enumerate(rows[: MAX_KEYS + 1]))
    columns_ = ", ".join(["i", *(f"v{i}" for i in range(len(types)))])
    text = f"SELECT DISTINCT l.i FROM (VALUES {values}) AS l({columns_}){_narrowed(source, given, stand_ins)}"
    return [rows[int(str(i))] for (i,) in backend.public_rows(text, [INTEGER])]


# ---- what stands beside ------------------------------------------------------------------------------------------------------------------


def _joined(source: KeySource) -> dict[int, str]:
    """The columns of the public relations that are joined."""
    joined = ((place, one.public) for place, one in enumerate(source.beside) if one.how in (Near.JOINED, Near.LEFT))
    return {c.id: f"b{place}.c{i}" for place, public in joined for i, c in enumerate(public.columns)}


def _narrowed(source: KeySource, given: Mapping[int, str], stand_ins: Mapping[Scalar, Scalar]) -> str:
    """The joins and WHERE behind a source's rows, whose columns are `given`; keys' expressions are read from their stand-ins."""
    whole = {**_joined(source), **given}

    def text(conditions: Sequence[Scalar], own: Mapping[int, str]) -> str:
        return " AND ".join(f"({sql(replaced(one, stand_ins), {**whole, **own})})" for one in conditions) or "TRUE"

    joins, where = "", [text(source.prune, {})]
    for place, one in enumerate(source.beside):
        table = f"{names.public(one.public.name)} AS b{place}"
        on = text(one.on, {c.id: f"b{place}.c{i}" for i, c in enumerate(one.public.columns)})  # one relation may be looked into several times
        match one.how:
            case Near.JOINED:
                joins += f" CROSS JOIN {table}"
            case Near.LEFT:
                joins += f" LEFT JOIN {table} ON {on}"
            case Near.SOME | Near.NONE:
                sign, read = ("ANTI", "NOT ") if one.how is Near.NONE else ("SEMI", "")
                sides = {c in one.public.columns for part in one.on for c in columns(replaced(part, stand_ins))}
                if len(sides) == 2:
                    joins += f" {sign} JOIN {table} ON {on}"
                elif sides == {False}:  # a condition on one side alone is no join's: the engine would try every pair
                    where.append(f"{read}(coalesce({on}, FALSE) AND EXISTS (SELECT 1 FROM {table}))")
                else:
                    where.append(f"{read}EXISTS (SELECT 1 FROM {table} WHERE {on})")
            case _:
                assert_never(one.how)
    return f"{joins} WHERE {' AND '.join(where)}"
