"""Productions of subqueries that look at several rows of a unit: GROUP BY with aggregates and HAVING, and DISTINCT.

Plain SQL groups by the unit as well. Sums, means and spreads are written out in plain SQL as integers or clamped numbers, all else as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from addedup import (
    added,
    anything,
    averaged,
    averaged_where,
    bits,
    decimals,
    entropy,
    floats,
    multiplied,
    paired,
    shape,
    spread,
    written,
)
from expressions import condition, number, text
from grammar import RELATION, Col, Expr, Grammar, Rel, both, production, visible
from relations import Made, closed, relation, selected, wrapped

from dpquery.values.types import BOOLEAN, FLOAT, INTEGER, STRING, Kind, Type

Scope = Sequence[Col]
NUMERIC = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


@production(RELATION, 1)
def distinct(g: Grammar, depth: int) -> Rel | None:
    """SELECT DISTINCT with the unit, or what fixes it, among its columns."""
    dp, plain, made = selected(g, relation(g, depth - 1))
    if not any(e.bare is not None and _fixes(e.bare) for e, _, _ in made):
        return None
    return wrapped(g, *(t.replace("SELECT ", "SELECT DISTINCT ", 1) for t in (dp, plain)), made, private=True)


def _fixes(c: Col) -> bool:
    return c.firm and (c.unit or bool(c.ties))


@production(RELATION, 3)
def grouped(g: Grammar, depth: int) -> Rel | None:
    """GROUP BY the unit, or what fixes it, and further keys; aggregates; HAVING."""
    below = closed(g, relation(g, depth - 1))
    fixing = [c for c in below.cols if _fixes(c)]
    if not fixing or below.unit is None:
        return None
    scope = visible(g, below.cols)
    first = g.random.choice(fixing)
    keys = [(g.read(scope[below.cols.index(first)]), first.name)]
    for _ in range(g.random.choice([0, 0, 1, 2])):
        key = g.random.choice([number, text, condition])(g, scope, 0 if g.chance(0.7) else 1)
        if key.reads and all(key.plain != known.plain for known, _ in keys):
            keys.append((key, g.name("n")))
    made: list[tuple[Expr, str, bool]] = [(e, name, e.reads.isdisjoint(c.text for c in scope if not c.firm)) for e, name in keys]
    if g.chance(0.2):
        made = made[g.random.randrange(2) :]
    results = [(reduction(g, scope), g.name("n")) for _ in range(g.random.choice([0, 1, 1, 2]) or (not made))]
    having = _having(g, results)
    where = [condition(g, scope, 1)] if g.chance(0.3) else []
    texts = []
    for place, unit in ((0, ""), (1, f"{below.unit} AS __u, ")):
        items = [f"{(e.dp, e.plain)[place]} AS {name}" for e, name in (*((e, name) for e, name, _ in made), *results)]
        by = ", ".join([*([below.unit] if place else []), *((e.dp, e.plain)[place] for e, _ in keys)])
        tests = f" WHERE {(where[0].dp, where[0].plain)[place]}" if where else ""
        texts.append(f"SELECT {unit}{', '.join(items)} FROM {(below.dp, below.plain)[place]}{tests} GROUP BY {by}")
    if having is not None:
        texts = [f"{texts[0]} HAVING {having.dp}", f"SELECT * FROM ({texts[1]}) AS h WHERE {having.plain}"]  # aggregates cannot stand in TRY
    columns: Made = (*made, *((replace(e, bare=None), name, True) for e, name in results))
    return wrapped(g, texts[0], texts[1], columns, private=True)


def reduced(g: Grammar, reduce: Callable[[Grammar, Sequence[Col]], Expr | None]) -> Rel | None:
    """Rows of a relation grouped by the unit, and one aggregate of them: alone, what it does is seen in the answer."""
    below = relation(g, 0)
    fixing = [c for c in below.cols if _fixes(c) and c.unit]
    scope = visible(g, below.cols)
    made = reduce(g, scope) if fixing and below.unit is not None else None
    if made is None or not made.reads:
        return None
    key, name, result = g.read(scope[below.cols.index(fixing[0])]), fixing[0].name, g.name("n")
    plain, texts = made.plain.replace("{f}", ""), list[str]()  # there is no FILTER
    for place, unit in ((0, ""), (1, f"{below.unit} AS __u, ")):
        items = f"{unit}{(key.dp, key.plain)[place]} AS {name}, {(made.dp, plain)[place]} AS {result}"
        by = f"{below.unit}, " if place else ""
        texts.append(f"SELECT {items} FROM {(below.dp, below.plain)[place]} GROUP BY {by}{(key.dp, key.plain)[place]}")
    return wrapped(g, texts[0], texts[1], ((key, name, True), (replace(made, bare=None), result, True)), private=True)


def _having(g: Grammar, results: Sequence[tuple[Expr, str]]) -> Expr | None:
    """A condition on the aggregates, by their aliases or written out."""
    if not results or g.chance(0.6):
        return None
    if g.chance(0.7):
        return condition(g, [Col(name, name, e.type) for e, name in results], 1)
    one, name = g.random.choice(results)
    return Expr(f"{one.dp} IS NOT NULL", f"{name} IS NOT NULL", BOOLEAN)


@production(RELATION, 2)
def windowed(g: Grammar, depth: int) -> Rel | None:
    """A window over the rows of a unit, as a column of a subquery or in QUALIFY. Plain SQL breaks ties by all columns, as dpquery does.

    Over a table the statement says nothing of these; elsewhere it names the visible columns, as dpquery would start with hidden ones.
    """
    below = closed(g, relation(g, depth - 1))
    fixing = [i for i, c in enumerate(below.cols) if _fixes(c)]
    if not fixing or below.unit is None:
        return None
    scope = visible(g, below.cols)
    first = scope[g.random.choice(fixing)]
    partition = [g.read(first), *([e for e in [anything(g, scope)] if e.reads] if g.chance(0.3) else [])]
    order = [e for e in (anything(g, scope) for _ in range(g.random.choice([0, 1, 1, 2]))) if e.reads]
    ways = [g.random.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]) for _ in order]
    dp, plain, kind, ties, frame = _function(g, scope)
    frame = frame if order or "ROWS" in frame else ""
    direct = below.dp.partition(" ")[0].strip('"') in g.world.tables and "JOIN" not in below.dp
    apart = ties or "ROWS" in frame
    texts, beside = list[str](), list[str]()
    for place, function in ((0, dp), (1, plain)):
        by = ", ".join([*([below.unit] if place else []), *((e.dp, e.plain)[place] for e in partition)])
        terms = [f"{(e.dp, e.plain)[place]}{way}" for e, way in zip(order, ways, strict=True)]
        terms += [c.text for c in below.cols] if (place or not direct) and apart else []
        within = f"PARTITION BY {by}{' ORDER BY ' + ', '.join(terms) if terms else ''}"
        over = f" OVER ({within}{frame})"
        texts.append(function.replace("{f}", over) if "{f}" in function else function + over)
        beside.append(f"ROW_NUMBER() OVER ({within})")
    kept = [(g.read(c), g.name("n")) for c in scope if g.chance(0.6)] or [(g.read(first), g.name("n"))]
    made: list[tuple[Expr, str, bool]] = [(e, name, e.bare is not None and e.bare.firm) for e, name in kept]
    items = [f"{e.dp} AS {name}" for e, name in kept], [f"{below.unit} AS __u", *(f"{e.plain} AS {name}" for e, name in kept)]
    if g.chance(0.4):
        tail = f" QUALIFY {texts[0]} IS DISTINCT FROM 1", f" QUALIFY {texts[1]} IS DISTINCT FROM 1"
        tail = tail if kind == INTEGER and g.chance(0.5) else (f" QUALIFY {texts[0]} IS NOT NULL", f" QUALIFY {texts[1]} IS NOT NULL")
        if kind == INTEGER and "ROW_NUMBER" in dp and g.chance(0.7):
            tail = f" QUALIFY {texts[0]} <= 1", f" QUALIFY {texts[1]} <= 1"
    else:
        tail, name = ("", ""), g.name("n")
        made.append((Expr(texts[0], texts[1], kind), name, True))
        for one, text_ in zip(items, texts, strict=True):
            one.append(f"{text_} AS {name}")
    if apart and g.chance(0.3):  # a second window, which sees equal rows in the same order
        name = g.name("n")
        made.append((Expr(beside[0], beside[1], INTEGER), name, True))
        for one, text_ in zip(items, beside, strict=True):
            one.append(f"{text_} AS {name}")
    sources = below.dp, below.plain
    return wrapped(g, *(f"SELECT {', '.join(i)} FROM {s}{t}" for i, s, t in zip(items, sources, tail, strict=True)), tuple(made), private=True)


WHOLE, REST = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"

BETWEEN = (
    " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    " ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
)
APART: tuple[tuple[str, str, Type, bool, str], ...] = (
    ("NTILE(2)", "ntile(2)", INTEGER, True, ""),
    ("PERCENT_RANK()", "percent_rank()", FLOAT, False, ""),
    ("CUME_DIST()", "cume_dist()", FLOAT, False, ""),
)


def _function(g: Grammar, scope: Scope) -> tuple[str, str, Type, bool, str]:
    """A window function in both texts, its type, whether equal rows differ in it, and its frame."""
    value = anything(g, scope)
    value = value if value.reads else g.read(g.random.choice(list(scope)))
    match g.random.randrange(9):
        case 8:
            return g.random.choice(APART)
        case 0 | 1:
            return "ROW_NUMBER()", "row_number()", INTEGER, True, ""
        case 2:
            word = g.random.choice(["RANK()", "DENSE_RANK()"])
            return word, word, INTEGER, False, ""
        case 3 | 4:
            words = ["LAG({})", "LEAD({})", "LAG({}, 2)", "LEAD({}, 0)", "FIRST_VALUE({})", "LEAD({0}, 1, {0})", "LAST_VALUE({})"]
            word = g.random.choice(words)
            if word == "LAST_VALUE({})":
                return word.format(value.dp), word.format(value.plain), value.type, True, WHOLE
            return word.format(value.dp), word.format(value.plain), value.type, True, ""
        case _:
            found = g.random.choice([counted, extreme, truth, added, averaged, spread, paired, bits, picked])(g, scope)
            frames = ["", "", " RANGE UNBOUNDED PRECEDING", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " ROWS 2 PRECEDING", REST, *BETWEEN]
            if found is None or "DISTINCT" in found.dp:
                return "COUNT(*)", "count(*)", INTEGER, False, g.random.choice(frames)
            return found.dp, found.plain, found.type, False, g.random.choice(frames)


# ---- aggregates ----------------------------------------------------------------------------------------------------------------------


def reduction(g: Grammar, scope: Scope) -> Expr:
    """An aggregate over the rows of a group, now and then with FILTER."""
    for _ in range(50):
        found = g.random.choice(FORMS)(g, scope)
        if found is not None:
            break
    else:
        found = both("COUNT(*)", INTEGER)
    if "ARG_" not in found.dp and "MAX_BY" not in found.dp and g.chance(0.2):
        return _filtered(g, scope, found)
    return replace(found, dp=found.dp.replace("{f}", ""), plain=found.plain.replace("{f}", ""))


def _filtered(g: Grammar, scope: Scope, found: Expr) -> Expr:
    test = condition(g, scope, 1)
    dp, plain = (f" FILTER (WHERE {t})" for t in (test.dp, test.plain))
    return replace(found, dp=found.dp.replace("{f}", "") + dp, plain=found.plain.replace("{f}", plain), reads=found.reads | test.reads)


def counted(g: Grammar, scope: Scope) -> Expr:
    word = g.random.choice(["COUNT(*)", "COUNT()", "COUNT({0})", "COUNT(DISTINCT {0})", "COUNT(1)"])
    return written(word, word.replace("COUNT()", "COUNT(*)") + "{f}", lambda e: INTEGER, anything(g, scope))


def counted_if(g: Grammar, scope: Scope) -> Expr:
    """Never NULL, as DuckDB's is where all conditions are."""
    return written("COUNT_IF({0})", "count(CASE WHEN {0} THEN 1 END){f}", lambda e: INTEGER, condition(g, scope, 1))


def extreme(g: Grammar, scope: Scope) -> Expr:
    word, plain = g.random.choice([("MIN", "min"), ("MAX", "max"), ("MIN", "min"), ("MAX", "max"), ("ANY_VALUE", "min")])
    return written(f"{word}({{0}})", f"{plain}({{0}}){{f}}", lambda e: e.type, anything(g, scope))


def truth(g: Grammar, scope: Scope) -> Expr:
    word = g.random.choice(["BOOL_AND", "BOOL_OR"])
    return written(f"{word}({{0}})", f"{word}({{0}}){{f}}", lambda e: BOOLEAN, condition(g, scope, 1))


def picked(g: Grammar, scope: Scope) -> Expr:
    value = anything(g, scope)
    at = g.random.choice(["0", "0.25", "0.5", "0.9", "1"])
    return written(f"QUANTILE_DISC({{0}}, {at})", f"quantile_disc({{0}}, {at}){{f}}", lambda e: e.type, value)


def between(g: Grammar, scope: Scope) -> Expr:
    value, at = number(g, scope, 1), g.random.choice(["0", "0.25", "0.5", "0.9", "1"])
    ways = [("MEDIAN({0})", "0.5"), (f"QUANTILE_CONT({{0}}, {at})", at), (f"PERCENTILE_CONT({at}) WITHIN GROUP (ORDER BY {{0}})", at)]
    word, at = g.random.choice(ways)
    plain = f"quantile_cont(CAST({{0}} AS DOUBLE), {at}){{f}}"
    return written(word, f"CASE WHEN {plain} <= CAST('inf' AS DOUBLE) THEN {plain} + 0.0 END", lambda e: FLOAT, value)


def most_frequent(g: Grammar, scope: Scope) -> Expr:
    """Of equals the least value: plain SQL asks a histogram."""
    word = g.random.choice(["MODE({0})", "MODE({0})", "MODE() WITHIN GROUP (ORDER BY {0})"])
    bins = "histogram({0}){f}"
    plain = f"map_keys({bins})[list_position(map_values({bins}), list_max(map_values({bins})))]"
    return written(word, plain, lambda e: e.type, anything(g, scope))


def at_extreme(g: Grammar, scope: Scope) -> Expr | None:
    value, by = anything(g, scope), anything(g, scope)
    if not value.reads or not by.reads:
        return None
    word, way = g.random.choice([("ARG_MIN", "ASC"), ("ARG_MAX", "DESC"), ("MAX_BY", "DESC")])
    plain = f"first({value.plain} ORDER BY {by.plain} {way}, {value.plain}) FILTER (WHERE ({value.plain}) IS NOT NULL AND ({by.plain}) IS NOT NULL)"
    return Expr(f"{word}({value.dp}, {by.dp})", plain, value.type, value.reads | by.reads)


def in_order(g: Grammar, scope: Scope) -> Expr | None:
    """The first value, or all texts as one. Plain SQL breaks ties by the value."""
    texts = g.chance(0.6)
    value, by = text(g, scope, 1) if texts else anything(g, scope), anything(g, scope)
    if not value.reads or not by.reads:
        return None
    way, back = g.random.choice([("", " DESC NULLS FIRST"), (" DESC", " NULLS FIRST"), (" NULLS FIRST", " DESC NULLS LAST")])
    if not texts:
        word, turned = g.random.choice([("FIRST", way), ("LAST", back)])
        plain = f"first({value.plain} ORDER BY {by.plain}{turned}, {value.plain}){{f}}"
        return Expr(f"{word}({value.dp} ORDER BY {by.dp}{way})", plain, value.type, value.reads | by.reads)
    each, order, plainly, sign = g.random.choice(
        [
            ("", f" ORDER BY {by.dp}{way}", f"{by.plain}{way}, {value.plain}", ", '; '"),
            ("", "", value.plain, ""),
            ("DISTINCT ", f" ORDER BY {value.dp}{way}", f"{value.plain}{way}", ", ''"),
        ]
    )
    plain = f"left(string_agg({each}{value.plain}{sign or ', ' + repr(',')} ORDER BY {plainly}){{f}}, 4096)"
    return Expr(f"STRING_AGG({each}{value.dp}{sign}{order})", plain, STRING, value.reads | (by.reads if by.dp in order else frozenset()))


FORMS: tuple[Callable[[Grammar, Scope], Expr | None], ...] = (
    *(counted, counted_if, extreme, extreme, truth, picked, between, most_frequent, at_extreme, in_order),
    *(added, added, averaged, decimals, floats, spread, spread, paired, paired, paired, averaged_where),
    *(shape, bits, multiplied, entropy),
)
"""The aggregates within a unit."""
