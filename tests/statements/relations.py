"""Productions of FROM: tables, subqueries, WITH queries, and joins of all kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from expressions import condition, number, text
from grammar import RELATION, Col, Expr, Grammar, Rel, both, production, visible
from worlds import ColumnSpec, TableSpec, World

from dpquery.values.types import BOOLEAN, INTEGER, STRING, Kind


def relation(g: Grammar, depth: int) -> Rel:
    """A private relation."""
    found = table(g) if depth <= 0 else g.make(RELATION, depth)
    assert isinstance(found, Rel)
    return found


# ---- tables --------------------------------------------------------------------------------------------------------------------------


def _ties(spec: TableSpec, column: ColumnSpec) -> frozenset[tuple[str, ...]]:
    """What equal values of this column prove."""
    found: set[tuple[str, ...]] = set()
    match spec.unit:
        case str(own) if own == column.name:
            found.add(("unit",))
        case (via, parent, key) if via == column.name:
            found.add((parent, key))
        case _:
            pass
    return frozenset(found | ({(spec.name, column.name)} if column.unique else set()))


def _read(g: Grammar, spec: TableSpec) -> Rel:
    """A declared table under an alias."""
    alias = g.name("t")
    word = g.random.choice([" AS ", " "])
    private = spec.unit is not None
    cols = tuple(
        Col(f"{alias}.{c.name}", c.name, c.type, c, private, unit=spec.unit == c.name, ties=_ties(spec, c) if private else frozenset())
        for c in spec.columns
    )
    name = spec.name.upper() if g.chance(0.05) else spec.name
    return Rel(f"{name}{word}{alias}", f'clean.main."{spec.name}" AS {alias}', f"{alias}.__u" if private else None, cols)


@production(RELATION, 2)
def table(g: Grammar, depth: int = 0) -> Rel:
    return _read(g, g.world.tables["people"] if g.chance(0.2) else g.random.choice(g.world.private()))


def public(g: Grammar) -> Rel:
    """A public relation: a table, now and then a subquery over one or two; of two that share no column all pairs of rows."""
    if g.chance(0.1):
        return _literals(g)
    found = (_view(g, False) if g.chance(0.1) else None) or _read(g, g.random.choice(g.world.public()))
    if g.chance(0.2):
        other = _read(g, g.random.choice(g.world.public()))
        pair = None if g.chance(0.15) else _pair(g, found, other)
        if pair is None:
            found = Rel(f"{found.dp} CROSS JOIN {other.dp}", f"{found.plain} CROSS JOIN {other.plain}", None, (*found.cols, *other.cols))
        else:
            on = both("{0} = {1}", BOOLEAN, g.read(pair[0]), g.read(pair[1]))
            how = g.random.choice(["JOIN", "LEFT JOIN"])
            cols = (*found.cols, *(replace(c, firm=c.firm and how == "JOIN") for c in other.cols))
            found = Rel(f"{found.dp} {how} {other.dp} ON {on.dp}", f"{found.plain} {how} {other.plain} ON {on.plain}", None, cols)
    if g.chance(0.15) and " JOIN " not in found.dp:
        found = _in_groups(g, found)
    found = derived(g, found) if g.chance(0.3) or " JOIN " in found.dp else found
    return replace(found, cols=tuple(replace(c, firm=True) for c in found.cols))  # what is NULL in the public relation itself is no key


def _in_groups(g: Grammar, below: Rel) -> Rel:
    """Public rows in groups, now and then the first of them in the order of their keys."""
    key, other = (g.read(g.random.choice(below.cols)) for _ in range(2))
    names = [g.name("n") for _ in range(3)]
    tail = g.random.choice(
        ["", "", " HAVING count(*) > 1", f" ORDER BY {names[0]} DESC LIMIT 3", f" HAVING {names[1]} < 3 ORDER BY 1 LIMIT 2 OFFSET 1"]
    )
    texts = [
        f"SELECT {k} AS {names[0]}, count(*) AS {names[1]}, max({o}) AS {names[2]} FROM {source} GROUP BY {k}{tail}"
        for k, o, source in ((key.dp, other.dp, below.dp), (key.plain, other.plain, below.plain))
    ]
    made: Made = ((key, names[0], True), (both("1", INTEGER), names[1], True), (replace(other, bare=None), names[2], True))
    return wrapped(g, *texts, made, private=False)


def _literals(g: Grammar) -> Rel:
    """A relation made of literals."""
    alias, a, b = g.name("t"), g.name("n"), g.name("n")
    whole = [g.random.randint(-2, 6) for _ in range(g.random.randint(1, 4))]
    numbers = Col(f"{alias}.{a}", a, INTEGER, private=False)
    match g.random.randrange(4):
        case 0:
            texts = [g.random.choice(_TEXTS) for _ in whole]
            texts[0] = "'a'" if {*texts} == {"NULL"} else texts[0]  # of which alone nobody knows the type
            rows = ", ".join(f"({x}, {text_})" for x, text_ in zip(whole, texts, strict=True))
            plain = f"SELECT CAST(x AS BIGINT) AS {a}, CAST(y AS VARCHAR) AS {b} FROM (VALUES {rows}) AS v(x, y)"
            cols = (numbers, Col(f"{alias}.{b}", b, STRING, private=False))
            return Rel(f"(VALUES {rows}) AS {alias}({a}, {b})", f"({plain}) AS {alias}", None, cols)
        case 1:
            one = f"UNNEST([{', '.join(map(str, whole))}])"
            return Rel(f"{one} AS {alias}({a})", f"(SELECT CAST(x AS BIGINT) AS {a} FROM {one} AS v(x)) AS {alias}", None, (numbers,))
        case 2:
            one = f"{g.random.choice(['range', 'generate_series'])}({', '.join(map(str, sorted(whole)[:2]))})"
            return Rel(f"{one} AS {alias}({a})", f"{one} AS {alias}({a})", None, (numbers,))
        case _:
            union = " UNION ALL ".join(f"SELECT {x} AS {a}" for x in whole)
            plain = f"SELECT CAST({a} AS BIGINT) AS {a} FROM ({union})"
            return Rel(f"({union}) AS {alias}", f"({plain}) AS {alias}", None, (numbers,))


_TEXTS = ("'a'", "'b'", "''", "NULL")


# ---- subqueries ----------------------------------------------------------------------------------------------------------------------


Made = tuple[tuple[Expr, str, bool], ...]  # the columns of a subquery: expression, name, whether it is firm


def derived(g: Grammar, below: Rel, compute: bool = True) -> Rel:
    """SELECT columns and expressions FROM the relation WHERE .., as a subquery or a WITH query."""
    return wrapped(g, *selected(g, below, compute), private=below.unit is not None)


def wrapped(g: Grammar, dp: str, plain: str, made: Made, private: bool) -> Rel:
    """The two texts of a query as a subquery or a WITH query."""
    columns, hidden = "", ""
    if g.chance(0.1):
        made = tuple((e, g.name("n"), firm) for e, _, firm in made)
        columns = f"({', '.join(name for _, name, _ in made)})"
        hidden = columns.replace("(", "(__u, ", 1) if private else columns
    if g.chance(0.4):
        name = g.name("c")
        g.ctes.append((f"{name}{columns} AS ({dp})", f"{name}{hidden} AS ({plain})"))
        alias = g.name("s") if g.chance(0.5) else name
        shown = name if alias == name else f"{name} AS {alias}"
        heads = shown, shown
    else:
        alias = g.name("s")
        heads = f"({dp}) AS {alias}{columns}", f"({plain}) AS {alias}{hidden}"
    return Rel(*heads, f"{alias}.__u" if private else None, _items(alias, made, private))


def selected(g: Grammar, below: Rel, compute: bool = True) -> tuple[str, str, Made]:
    """The two texts of SELECT .. FROM the relation WHERE .., and its columns."""
    scope = visible(g, below.cols)
    items: list[tuple[Expr, str]] = []
    star = g.chance(0.15) and len({c.name for c in below.cols}) == len(below.cols)
    for c in below.cols if star else scope:
        if star or c.unit or c.ties or g.chance(0.8):
            name = c.name if c.name not in [n for _, n in items] and (star or g.chance(0.8)) else g.name("n")
            items.append((g.read(c), name))
    lateral: tuple[Col, ...] = ()
    for _ in range(g.random.choice([0, 1, 1, 2]) if compute and not star else 0):
        expr = g.random.choice([number, text, number, condition])(g, (*scope, *lateral))
        items.append((expr, g.name("n")))
        lateral = (_item("", expr, items[-1][1], below.unit is not None, _is_firm(expr, (*scope, *lateral))),)
    if not items:
        items = [(g.read(below.cols[0]), below.cols[0].name)]
    where = [*below.where, *(condition(g, scope) for _ in range(g.random.choice([0, 0, 1])))]
    written = [e.dp if e.bare and e.bare.name == name else f"{e.dp}{g.random.choice([' AS ', ' '])}{name}" for e, name in items]
    dp = f"SELECT {'*' if star else ', '.join(written)} FROM {below.dp}{_where([e.dp for e in _all(where)])}"
    unit = [] if below.unit is None else [f"{below.unit} AS __u"]
    plain_items = ", ".join([*unit, *(f'{e.plain} AS "{name}"' for e, name in items)])
    plain = f"SELECT {plain_items} FROM {below.plain}{_where([e.plain for e in _all(where)])}"
    return dp, plain, tuple((e, name, _is_firm(e, (*scope, *lateral))) for e, name in items)


def _is_firm(e: Expr, scope: Sequence[Col]) -> bool:
    return e.reads.isdisjoint(c.text for c in scope if not c.firm)


def _items(alias: str, made: Made, private: bool) -> tuple[Col, ...]:
    return tuple(_item(alias, e, name, private, firm) for e, name, firm in made)


def _item(alias: str, e: Expr, name: str, private: bool, firm: bool) -> Col:
    text = f"{alias}.{name}" if alias else name
    return replace(e.bare, text=text, name=name, full="") if e.bare else Col(text, name, e.type, None, private, firm)


def _all(conditions: Sequence[Expr]) -> list[Expr]:
    return [c.whole for c in conditions] if len(conditions) > 1 else list(conditions)


def _where(texts: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(texts)}" if texts else ""


def views(made: World) -> None:
    """Gives the world two views, and its schema their texts."""
    for count, name in enumerate(("seen_from_here", "Open_view"), 1):
        g = Grammar(made.random, made, count=100 * count)  # names that no statement and no other view gives again
        below = relation(g, g.random.choice([0, 1, 1, 2])) if g.chance(0.8) else public(g)
        dp, plain, items = selected(g, below)
        heads = [f"WITH {', '.join(texts)} " if g.ctes else "" for texts in zip(*g.ctes, strict=True)] or ["", ""]
        made.views[name] = (heads[0] + dp, heads[1] + plain, items, below.unit is not None, _private(made, heads[0] + dp))
    lines = [f"  {name}: {json.dumps(view[0])}" for name, view in made.views.items()]
    made.whole = made.text + "views:\n" + "\n".join(lines) + "\n"
    vars(made).pop("schema", None)


def _private(made: World, text_: str) -> frozenset[str]:
    """The private tables that a text reads, through other views too."""
    words = set(re.findall(r"\w+", text_.lower()))
    through = [view[4] for name, view in made.views.items() if name.lower() in words]
    return frozenset(t.name for t in made.private() if t.name in words).union(*through)


def _view(g: Grammar, private: bool) -> Rel | None:
    found = [(name, view) for name, view in g.world.views.items() if view[3] is private]
    if not found:
        return None
    name, (_, plain, items, _, _) = g.random.choice(found)
    alias = g.name("v")
    return Rel(f"{name.lower()} {alias}", f"({plain}) AS {alias}", f"{alias}.__u" if private else None, _items(alias, items, private))


@production(RELATION, 1)
def private_view(g: Grammar, depth: int) -> Rel | None:
    return _view(g, True)


@production(RELATION, 3)
def subquery(g: Grammar, depth: int) -> Rel:
    return derived(g, relation(g, depth - 1))


def closed(g: Grammar, rel: Rel) -> Rel:
    """A relation that can be joined further: conditions that wait for WHERE get one."""
    return derived(g, rel) if rel.where else rel


def right_hand(g: Grammar, rel: Rel) -> Rel:
    """A relation that can stand on the right of a join: no joins in it but in parentheses."""
    return derived(g, rel) if rel.where or " JOIN " in _outside(rel.dp) or "," in _outside(rel.dp) else rel


def _outside(text_: str) -> str:
    """What stands outside all parentheses."""
    depth, kept = 0, []
    for sign in text_:
        depth -= sign == ")"
        if depth == 0:
            kept.append(sign)
        depth += sign == "("
    return "".join(kept)


# ---- joins ---------------------------------------------------------------------------------------------------------------------------

WORDS_OF = {
    "inner": ("JOIN", "INNER JOIN"),
    "left": ("LEFT JOIN", "LEFT OUTER JOIN"),
    "right": ("RIGHT JOIN",),
    "full": ("FULL JOIN", "FULL OUTER JOIN"),
}


def _pair(g: Grammar, left: Rel, right: Rel) -> tuple[Col, Col] | None:
    """Two columns of one type, of the same name if there are such."""
    pairs = [(a, b) for a in left.cols for b in right.cols if a.type == b.type and a.type.kind is not Kind.BOOLEAN]
    named = [(a, b) for a, b in pairs if a.name == b.name]
    return g.random.choice(named or pairs) if pairs else None


def pair_of(g: Grammar, cols: Sequence[Col], right: Rel) -> tuple[Col, Col] | None:
    """The same of columns and a relation."""
    return _pair(g, Rel("", "", None, tuple(cols)), right)


def _tied(g: Grammar, left: Rel, right: Rel) -> tuple[Col, Col] | None:
    """Two columns whose equality proves one unit."""
    pairs = [(a, b) for a in left.cols for b in right.cols if a.firm and b.firm and a.ties & b.ties and a.type == b.type]
    return g.random.choice(pairs) if pairs else None


def _unmerged(rel: Rel, name: str) -> bool:
    return sum(c.name == name for c in rel.cols) == 1


def _connected(g: Grammar, left: Rel, right: Rel, pair: tuple[Col, Col], how: str, unit: str) -> Rel:
    """The join on the equality of a pair, by ON (with further conditions) or USING."""
    left, pair = _apart(left, right), (_written(pair[0], right), pair[1])
    cols = _columns(left, right, how)
    word = g.random.choice(WORDS_OF[how])
    a, b = pair
    common = {c.name for c in left.cols} & {c.name for c in right.cols}
    if a.name == b.name and _unmerged(left, a.name) and _unmerged(right, b.name) and "." in a.text and "." in b.text and g.chance(0.4):
        merged = tuple(_merged(c, a, b, how) for c in cols if c.text != b.text)
        tail = f"USING ({a.name})"
        natural = common == {a.name} and g.chance(0.4)
        dp = f"{left.dp} NATURAL {word} {right.dp}" if natural else f"{left.dp} {word} {right.dp} {tail}"
        return Rel(dp, f"{left.plain} {word} {right.plain} {tail}", unit, merged)
    first, second = (a, b) if g.chance(0.5) else (b, a)
    parts = [both("{0} = {1}", BOOLEAN, g.read(first), g.read(second))]
    if g.chance(0.4):
        parts.append(condition(g, (*left.cols, *right.cols), 1))
    parts = _all(parts)
    g.random.shuffle(parts)
    dp, plain = " AND ".join(p.dp for p in parts), " AND ".join(p.plain for p in parts)
    return Rel(f"{left.dp} {word} {right.dp} ON {dp}", f"{left.plain} {word} {right.plain} ON {plain}", unit, cols)


def _merged(c: Col, a: Col, b: Col, how: str) -> Col:
    """The column that USING leaves of two: the preserved side's; its bare name stands for both."""
    if c.text != a.text:
        return c
    if how == "full":
        return replace(a, text=a.name, spec=None, ties=a.ties & b.ties, unit=a.unit and b.unit)
    kept = b if how == "right" else a
    public = next((x for x in (a, b) if not x.private), None)
    spec = public.spec if public is not None and how == "inner" else kept.spec
    private = kept.private if how != "inner" else public is None
    return replace(
        kept, text=a.name, full=kept.text, spec=spec, private=private, ties=a.ties & b.ties if how == "inner" else kept.ties, unit=kept.unit
    )


def _apart(left: Rel, right: Rel) -> Rel:
    """The left side, its merged columns under a table's name where the right side has a column of that name."""
    return replace(left, cols=tuple(_written(c, right) for c in left.cols))


def _written(c: Col, right: Rel) -> Col:
    return replace(c, text=c.full) if "." not in c.text and any(c.name == other.name for other in right.cols) else c


def _columns(left: Rel, right: Rel, how: str) -> tuple[Col, ...]:
    """All columns; those of a side that a join can null-extend are not firm."""
    one = tuple(replace(c, firm=c.firm and how not in ("right", "full")) for c in left.cols)
    return (*one, *(replace(c, firm=c.firm and how not in ("left", "full")) for c in right.cols))


@production(RELATION, 3)
def looked_up(g: Grammar, depth: int) -> Rel | None:
    """A private relation joined to a public one on a column, either of them first; the private rows stay or only those with a match."""
    private, other = relation(g, depth - 1), public(g)
    first, second = (closed(g, private), right_hand(g, other)) if g.chance(0.7) else (other, right_hand(g, private))
    pair = _pair(g, first, second)
    if pair is None or first.where:
        return None
    unit = first.unit or second.unit
    assert unit is not None
    how = g.random.choice(["inner", "inner", "left"]) if first.unit else g.random.choice(["inner", "inner", "right"])
    return _connected(g, first, second, pair, how, unit)


@production(RELATION, 1)
def looked_up_freely(g: Grammar, depth: int) -> Rel | None:
    """A join with a public relation on any condition, or on none."""
    private, other = closed(g, relation(g, depth - 1)), public(g)
    assert private.unit is not None
    private = _apart(private, other)
    cols = (*private.cols, *other.cols)
    if g.chance(0.3):
        sign = g.random.choice([" CROSS JOIN ", ", "])
        if sign == ", " and " JOIN " in private.dp:
            return None
        where = () if sign == " CROSS JOIN " or g.chance(0.3) else (condition(g, cols, 1),)
        return Rel(
            f"{private.dp}{sign}{other.dp}", f"{private.plain}{sign}{other.plain}", private.unit, cols, where or ((TRUE,) if sign == ", " else ())
        )
    how = g.random.choice(["inner", "left"])
    on = condition(g, cols, 1)
    word = g.random.choice(WORDS_OF[how])
    return Rel(
        f"{private.dp} {word} {other.dp} ON {on.dp}",
        f"{private.plain} {word} {other.plain} ON {on.plain}",
        private.unit,
        _columns(private, other, how),
    )


TRUE = Expr("TRUE", "TRUE", BOOLEAN)


@production(RELATION, 5)
def matched(g: Grammar, depth: int) -> Rel | None:
    """Two private relations joined on the unit, or along the path."""
    left, right = closed(g, relation(g, depth - 1)), relation(g, g.random.randint(0, max(0, depth - (1 if g.chance(0.2) else 2))))
    right = derived(g, right) if g.chance(0.4) else right_hand(g, right)
    pair = _tied(g, left, right)
    if pair is None:
        return None
    assert left.unit is not None
    assert right.unit is not None
    how = g.random.choice(["inner", "inner", "left", "left", "right", "full"])
    if how == "full":
        return derived(g, _connected(g, left, right, pair, how, f"coalesce({left.unit}, {right.unit})"))
    return _connected(g, left, right, pair, how, right.unit if how == "right" else left.unit)


@production(RELATION, 1)
def listed(g: Grammar, depth: int) -> Rel | None:
    """Two private relations with a comma between them; the equality of units stands in WHERE."""
    left, right = relation(g, 0), right_hand(g, relation(g, depth - 1))
    pair = _tied(g, left, right)
    if pair is None:
        return None
    equal = both("{0} = {1}", BOOLEAN, g.read(pair[0]), g.read(pair[1]))
    return Rel(f"{left.dp}, {right.dp}", f"{left.plain}, {right.plain}", left.unit, (*left.cols, *right.cols), (equal,))


@production(RELATION, 2)
def strung(g: Grammar, depth: int = 0) -> Rel | None:
    """Several private tables, now and then a public one, in any order; what connects them stands in WHERE, now and then in the last ON."""
    found, tests = [table(g)], list[Expr]()
    for _ in range(g.random.randint(2, 3)):
        other = _read(g, g.random.choice(g.world.public() if g.chance(0.15) else g.world.private()))
        pairs = [(a, b) for one in found if one.unit is not None for a, b in _ties_of(one, other)]
        if not pairs:
            continue
        keys = [pair for pair in pairs if not (pair[0].unit and pair[1].unit)]
        found.append(other)
        tests.append(both("{0} = {1}", BOOLEAN, *(g.read(one) for one in g.random.choice(keys if keys and g.chance(0.8) else pairs))))
    cols = tuple(c for one in found for c in one.cols)
    if len(found) < 3:
        return None
    if g.chance(0.4):
        tests.append(condition(g, cols, 0))
    g.random.shuffle(found)
    g.random.shuffle(tests)
    dp, plain = found[0].dp, found[0].plain
    for one in found[1:-1]:
        sign = g.random.choice([", ", " CROSS JOIN ", " JOIN {} ON TRUE"])
        dp, plain = (f"{text}{sign.format(each) if '{}' in sign else sign + each}" for text, each in ((dp, one.dp), (plain, one.plain)))
    last = found[-1]
    unit = next(one.unit for one in found if one.unit is not None)
    cols = tuple(c for one in found for c in one.cols)
    if g.chance(0.3) and "," not in _outside(dp):
        whole = _all(tests)
        on, plainly = " AND ".join(one.dp for one in whole), " AND ".join(one.plain for one in whole)
        return Rel(f"{dp} JOIN {last.dp} ON {on}", f"{plain} JOIN {last.plain} ON {plainly}", unit, cols)
    return Rel(f"{dp}, {last.dp}", f"{plain}, {last.plain}", unit, cols, tuple(tests))


def _ties_of(left: Rel, right: Rel) -> list[tuple[Col, Col]]:
    """Pairs of columns whose equality connects the first, which is private, with the other: of private ones it proves one unit."""
    pairs = [(a, b) for a in left.cols for b in right.cols if a.type == b.type and a.type.kind is not Kind.BOOLEAN]
    if right.unit is None:
        return [(a, b) for a, b in pairs if a.name == b.name]
    return [(a, b) for a, b in pairs if a.firm and b.firm and a.ties & b.ties]


# ---- rows with a partner -------------------------------------------------------------------------------------------------------------


def outer(cols: Sequence[Col]) -> tuple[Col, ...]:
    """The columns as a subquery of a condition may write them."""
    return tuple(c if "." in c.text else replace(c, text=c.full) for c in cols if "." in c.text or c.full)


def query_of(g: Grammar, right: Rel, item: Expr | None, conditions: Sequence[Expr]) -> Expr:
    """(SELECT .. FROM the relation WHERE ..), which plain SQL asks of rows that have a unit."""
    parts = _all([*right.where, *conditions])
    g.random.shuffle(parts)
    owned = [] if right.unit is None else [f"({right.unit}) IS NOT NULL"]
    distinct = "DISTINCT " if g.chance(0.1) else ""
    heads = ("1", "1") if item is None else (item.dp, item.plain)
    dp = f"(SELECT {distinct}{heads[0]} FROM {right.dp}{_where([p.dp for p in parts])})"
    return Expr(dp, f"(SELECT {heads[1]} FROM {right.plain}{_where([*owned, *(p.plain for p in parts)])})", BOOLEAN)


def tie(g: Grammar, cols: Sequence[Col], right: Rel) -> tuple[Col, Col] | None:
    """Two columns that prove one unit where they are equal; either may be NULL."""
    pairs = [(a, b) for a in cols for b in right.cols if a.ties & b.ties and a.type == b.type]
    return g.random.choice(pairs) if pairs else None


def equal(g: Grammar, pair: tuple[Col, Col]) -> Expr:
    """The equality of two columns."""
    return both("{0} = {1}", BOOLEAN, *(g.read(c) for c in (pair if g.chance(0.5) else pair[::-1])))


@production(RELATION, 2)
def with_partner(g: Grammar, depth: int) -> Rel | None:
    """[NOT] EXISTS, [NOT] IN, = ANY and <> ALL of private rows."""
    left, right = relation(g, depth - 1), relation(g, g.random.randint(0, max(0, depth - 1)))
    cols = outer(left.cols)
    pair, like = tie(g, cols, right), _pair(g, replace(left, cols=cols), right)
    if pair is None or like is None:
        return None
    negated = g.chance(0.5)
    more = [condition(g, (*cols, *right.cols), 1)] if g.chance(0.3) else []
    if g.chance(0.4):
        found = both(f"{'NOT ' if negated else ''}EXISTS {{0}}", BOOLEAN, query_of(g, right, None, [equal(g, pair), *more]))
    elif (pair[0].firm and pair[1].firm) or not negated:
        found = in_(g, pair[0], negated, query_of(g, right, g.read(pair[1]), more))
    else:
        found = in_(g, like[0], negated, query_of(g, right, g.read(like[1]), [equal(g, pair), *more]))
    return replace(left, where=(*left.where, found))


def in_(g: Grammar, value: Col, negated: bool, query: Expr) -> Expr:
    """[NOT] IN with a subquery, in one of its spellings."""
    way = g.random.choice(["{0} NOT IN {1}", "NOT {0} IN {1}", "{0} <> ALL {1}"] if negated else ["{0} IN {1}", "{0} IN {1}", "{0} = ANY {1}"])
    return both(way, BOOLEAN, g.read(value), query)


@production(RELATION, 1)
def with_public_partner(g: Grammar, depth: int) -> Rel | None:
    """[NOT] EXISTS and [NOT] IN of public rows, tied to the private row or not."""
    left, right = relation(g, depth - 1), public(g)
    cols = outer(left.cols)
    pair, negated = _pair(g, replace(left, cols=cols), right), g.chance(0.4)
    if pair is None:
        return None
    more = [condition(g, right.cols if g.chance(0.7) else (*cols, *right.cols), 1)] if g.chance(0.4) else []
    if g.chance(0.4):
        ties = [equal(g, pair)] if g.chance(0.7) else []
        found = both(f"{'NOT ' if negated else ''}EXISTS {{0}}", BOOLEAN, query_of(g, right, None, [*ties, *more]))
    elif not negated and g.chance(0.3):  # two values at once, of rows that read nothing around them: DuckDB itself takes no others
        other = _pair(g, replace(left, cols=cols), right) or pair
        item = both("{0}, {1}", BOOLEAN, g.read(pair[1]), g.read(other[1]))
        found = both("({0}, {1}) IN {2}", BOOLEAN, g.read(pair[0]), g.read(other[0]), query_of(g, right, item, []))
    else:
        found = in_(g, pair[0], negated, query_of(g, right, g.read(pair[1]), more))
    return replace(left, where=(*left.where, found))


@production(RELATION, 1)
def half_joined(g: Grammar, depth: int) -> Rel | None:
    """SEMI JOIN and ANTI JOIN, by ON or USING."""
    left, right = closed(g, relation(g, depth - 1)), right_hand(g, public(g) if g.chance(0.3) else relation(g, depth - 1))
    left = _apart(left, right)
    pair = _pair(g, left, right) if right.unit is None else tie(g, left.cols, right)
    if pair is None:
        return None
    word = g.random.choice(["SEMI JOIN", "ANTI JOIN"])
    a, b = pair
    if a.name == b.name and _unmerged(left, a.name) and _unmerged(right, b.name) and "." in a.text and "." in b.text and g.chance(0.4):
        return replace(left, dp=f"{left.dp} {word} {right.dp} USING ({a.name})", plain=f"{left.plain} {word} {right.plain} USING ({a.name})")
    parts = _all([equal(g, pair), *([condition(g, (*left.cols, *right.cols), 1)] if g.chance(0.4) else [])])
    g.random.shuffle(parts)
    on, plain = " AND ".join(p.dp for p in parts), " AND ".join(p.plain for p in parts)
    return replace(left, dp=f"{left.dp} {word} {right.dp} ON {on}", plain=f"{left.plain} {word} {right.plain} ON {plain}")


# ---- set operations --------------------------------------------------------------------------------------------------------------


@production(RELATION, 2)
def stacked(g: Grammar, depth: int) -> Rel | None:
    """UNION [ALL], INTERSECT and EXCEPT of two private relations, as a subquery or a WITH query."""
    left, right = relation(g, depth - 1), relation(g, g.random.randint(0, max(0, depth - 1)))
    pairs = [(a, b) for a in left.cols for b in right.cols if a.type == b.type and (a.spec == b.spec or not _both_listed(a, b))]
    units = [(a, b) for a, b in pairs if a.unit and b.unit and a.firm and b.firm]
    word = g.random.choice(["UNION ALL", "UNION ALL", "UNION", "UNION DISTINCT", "INTERSECT", "EXCEPT"] if units else ["UNION ALL"])
    chosen = g.random.sample(pairs, min(len(pairs), g.random.randint(1, 4)))
    if word != "UNION ALL" and not set(units) & set(chosen):
        chosen.insert(g.random.randint(0, len(chosen)), g.random.choice(units))
    if not chosen:
        return None
    names = [g.name("n") for _ in chosen]
    dp, plain = f" {word} ".join(_branch(left, right, chosen, names, True)), f" {word} ".join(_branch(left, right, chosen, names, False))
    alias = g.name("s")
    heads = f"({dp}) AS {alias}", f"({plain}) AS {alias}"
    if g.chance(0.3):
        g.ctes.append((f"{alias} AS ({dp})", f"{alias} AS ({plain})"))
        heads = alias, alias
    return Rel(*heads, f"{alias}.__u", tuple(_merged_column(f"{alias}.{name}", name, a, b) for name, (a, b) in zip(names, chosen, strict=True)))


def _both_listed(a: Col, b: Col) -> bool:
    return all(c.spec is not None and c.spec.values is not None for c in (a, b))


def _branch(left: Rel, right: Rel, chosen: Sequence[tuple[Col, Col]], names: Sequence[str], dp: bool) -> Sequence[str]:
    found = []
    for place, rel in enumerate((left, right)):
        items = ", ".join(f"{pair[place].text} AS {name}" for pair, name in zip(chosen, names, strict=True))
        unit = "" if dp else f"{rel.unit} AS __u, "
        where = _where([e.dp if dp else e.plain for e in _all(rel.where)])
        found.append(f"SELECT {unit}{items} FROM {rel.dp if dp else rel.plain}{where}")
    return found


def _merged_column(text: str, name: str, a: Col, b: Col) -> Col:
    spec = a.spec if a.spec == b.spec and a.private and b.private else None
    return Col(text, name, a.type, spec, True, a.firm and b.firm, a.unit and b.unit, a.ties & b.ties)


def preserved(g: Grammar, private: Rel) -> Rel | None:
    """A private relation joined to a public table all of whose rows are kept; for the outermost FROM only."""
    other = _read(g, g.random.choice(g.world.public()))
    private = closed(g, private)
    named = [(a, b) for a in private.cols for b in other.cols if a.type == b.type and a.name == b.name] or [
        (a, b) for a in private.cols for b in other.cols if a.type == b.type
    ]
    if not named:
        return None
    a, b = g.random.choice(named)
    alias = other.cols[0].text.partition(".")[0]
    if g.chance(0.5):
        found = _connected(g, private, other, (a, b), "right", private.unit or "")
    else:
        found = _connected(g, other, right_hand(g, private), (b, a), "left", private.unit or "") if " JOIN " not in private.dp else None
    return None if found is None else replace(found, kept=alias)
