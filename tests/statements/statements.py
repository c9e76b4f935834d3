"""Productions of keys and aggregates, and the statement around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random

import calls
import perunit
import plain
import upper
from expressions import condition, day, number, text
from grammar import AGGREGATE, KEY, Agg, Col, Expr, Grammar, Key, Limits, More, Rel, Statement, both, production, renamed, visible
from relations import preserved, relation
from seated import tested
from sqlglot import exp
from worlds import DAYS, WORDS, World, quoted

from dpquery.aggregates.values import DAY
from dpquery.values.types import BOOLEAN, DATE, INTEGER, STRING, Kind

Scope = Sequence[Col]


# ---- keys: each with the conditions that it wants in WHERE ---------------------------------------------------------------------------


@production(KEY, 5)
def column_key(g: Grammar, scope: Scope, wants: list[Expr]) -> Key | None:
    found = g.col(scope, where=lambda c: not c.unit)
    if found is None or found.bare is None:
        return None
    col = found.bare
    listed = col.firm and (not col.private or (col.spec is not None and col.spec.values is not None))
    return Key(found, listed)


POOLS: Mapping[Kind, tuple[str, ...]] = {
    Kind.STRING: tuple(quoted(w) for w in WORDS),
    Kind.INTEGER: ("-1", "0", "1", "2", "3.0", "5", "7", "'8'"),
    Kind.DECIMAL: ("0", "7.25", "-2.5", "0.05", "500.00", "12"),
    Kind.DATE: (*(f"DATE '{d}'" for d in DAYS), "'2024-03-15'"),
    Kind.BOOLEAN: ("true", "FALSE", "NULL", "'t'"),
}


@production(KEY, 2)
def listed_key(g: Grammar, scope: Scope, wants: list[Expr]) -> Key | None:
    """A column or expression with an IN list, or an equality, in WHERE."""
    column = g.col(scope, *POOLS, where=lambda c: not c.unit)
    key = column if g.chance(0.7) else g.random.choice([number, text])(g, scope, 1)
    if key is None or key.type.kind not in POOLS or not key.reads or (key.bare and key.bare.unit):
        return None
    some = g.random.sample(POOLS[key.type.kind], g.random.randint(1, 4))
    listed = ", ".join(some)
    head = key.whole
    match g.random.randrange(4):
        case 0 if len(some) == 1:
            wants.append(both(f"{{0}} = {listed}", BOOLEAN, head))
        case 1:
            wants.append(both(f"({{0}} IN ({listed}) OR {{0}} IS NULL)", BOOLEAN, head))
        case _:
            wants.append(both(f"{{0}} IN ({listed})", BOOLEAN, head))
    return Key(key, True)


@production(KEY, 2)
def case_key(g: Grammar, scope: Scope, wants: list[Expr]) -> Key:
    """CASE with literal branches; without ELSE it is a private key."""
    a, b = tested(g, scope, 1), condition(g, scope, 1)
    last = g.random.choice([" ELSE 'other'", " ELSE 'other'", " ELSE NULL", ""])
    made = both(f"CASE WHEN {{0}} THEN 'one' WHEN {{1}} THEN 'two'{last} END", STRING, a, b)
    return Key(made, bool(last))


@production(KEY, 3)
def computed_key(g: Grammar, scope: Scope, wants: list[Expr]) -> Key | None:
    made = g.random.choice([number, text, day, tested])(g, scope, 1)
    return None if made is None or not made.reads or (made.bare and made.bare.unit) else Key(made, False)


@production(KEY, 1)
def unit_key(g: Grammar, scope: Scope, wants: list[Expr]) -> Key | None:
    """A key that depends on the unit without being it."""
    unit = g.col(scope, Kind.INTEGER, where=lambda c: c.unit)
    return None if unit is None else Key(both("{0} % 3", INTEGER, unit), False)


# ---- aggregates ----------------------------------------------------------------------------------------------------------------------


@production(AGGREGATE, 4)
def count_rows(g: Grammar, scope: Scope, limits: Limits) -> Agg:
    match g.random.randrange(4):
        case 0 if limits.weights is None:
            low, high = g.random.choice([0, 0, 1]), g.random.randint(1, 3)
            return Agg(f"COUNT(*, contribution_bounds_per_group => ({low}, {high}))", "count", per_group=(str(low), str(high)))
        case 1:
            return Agg(g.random.choice(["COUNT(1)", "count()", "COUNT('x')"]), "count")
        case 2:
            test = tested(g, scope, 1)
            return Agg(f"COUNT_IF({test.dp})", "count", where=test)
        case _:
            return Agg("COUNT(*)", "count")


@production(AGGREGATE, 2)
def count_values(g: Grammar, scope: Scope, limits: Limits) -> Agg:
    value = g.col(scope) if g.chance(0.6) else number(g, scope)
    assert value is not None
    return Agg(f"COUNT({value.dp})", "count", value)


@production(AGGREGATE, 2)
def count_units(g: Grammar, scope: Scope, limits: Limits) -> Agg | None:
    unit = g.col(scope, where=lambda c: c.unit)
    return None if unit is None or limits.weights is not None else Agg(f"COUNT(DISTINCT {unit.dp})", "units", unit)


NAMES_OF_SPREADS: Mapping[str, tuple[str, ...]] = {
    "var_pop": ("VAR_POP",),
    "var_samp": ("VAR_SAMP", "variance"),
    "stddev_pop": ("stddev_pop",),
    "stddev_samp": ("STDDEV_SAMP", "STDDEV"),
}


@production(AGGREGATE, 2)
def count_distinct(g: Grammar, scope: Scope, limits: Limits) -> Agg | None:
    """Different values of a column or of a number computed from some."""
    value = g.col(scope, where=lambda c: not c.unit) if g.chance(0.6) else number(g, scope)
    if value is None or limits.weights is not None or (value.bare and value.bare.unit):
        return None
    name = g.random.choice(["COUNT(DISTINCT {})", "COUNT(DISTINCT {})", "approx_count_distinct({})"])
    return Agg(name.format(value.dp), "distinct", value)


def _bounds(g: Grammar) -> tuple[str, str]:
    low, high = g.random.choice([("-4", "9"), ("0", "5"), ("2", "30"), ("-20", "-2"), ("0.5", "2.25"), ("-1", "0"), ("0", "1e3")])
    return low, high


@production(AGGREGATE, 5)
def total(g: Grammar, scope: Scope, limits: Limits) -> Agg:
    value = number(g, scope, g.random.choice([0, 0, 1, 2]))
    bounded = all(c.spec is not None and c.spec.low is not None for c in scope if c.text in value.reads)
    if limits.weights is None and g.chance(0.25):
        low, high = _bounds(g)
        return Agg(f"SUM({value.dp}, contribution_bounds_per_group => ({low}, {high}))", "total", value, per_group=(low, high))
    if g.chance(0.3 if bounded else 0.85):
        low, high = _bounds(g)
        return Agg(f"sum({value.dp}, contribution_bounds_per_row => ({low}, {high}))", "total", value, per_row=(low, high))
    return Agg(f"SUM({value.dp})", "total", value)


@production(AGGREGATE, 1)
def raced(g: Grammar, scope: Scope, limits: Limits) -> Agg | None:
    """Caps that race up to a ceiling."""
    if limits.weights is not None:
        return None
    high = g.random.choice(["1", "3", "40"])
    options = f"contribution_bounds_per_group => (0, {high}), bounds => 'race'"
    if g.chance(0.5):
        return Agg(f"COUNT(*, {options})", "race_count", per_group=("0", high))
    value, (low, top) = number(g, scope), g.random.choice([("0", "5"), ("2", "30"), ("0.5", "2.25")])
    return Agg(
        f"SUM({value.dp}, contribution_bounds_per_row => ({low}, {top}), {options})", "race_total", value, per_row=(low, top), per_group=("0", high)
    )


@production(AGGREGATE, 3)
def mean(g: Grammar, scope: Scope, limits: Limits) -> Agg:
    value = number(g, scope, g.random.choice([0, 0, 1, 2]))
    bounded = all(c.spec is not None and c.spec.low is not None for c in scope if c.text in value.reads)
    if limits.weights is None and value.type.kind is not Kind.DECIMAL and g.chance(0.25):
        low, high = _bounds(g)
        return Agg(f"AVG({value.dp}, contribution_bounds_per_group => ({low}, {high}))", "mean", value, per_group=(low, high))
    if g.chance(0.3 if bounded else 0.85):
        low, high = _bounds(g)
        return Agg(f"AVG({value.dp}, contribution_bounds_per_row => ({low}, {high}))", "mean", value, per_row=(low, high))
    return Agg(f"AVG({value.dp})", "mean", value)


@production(AGGREGATE, 3)
def spread(g: Grammar, scope: Scope, limits: Limits) -> Agg:
    """A variance or a standard deviation, under any of its names."""
    value = number(g, scope, g.random.choice([0, 0, 1]))
    bounded = all(c.spec is not None and c.spec.low is not None for c in scope if c.text in value.reads)
    card = g.random.choice(plain.SPREADS)
    name = g.random.choice(NAMES_OF_SPREADS[card])
    if g.chance(0.3 if bounded else 0.85):
        low, high = _bounds(g)
        return Agg(f"{name}({value.dp}, contribution_bounds_per_row => ({low}, {high}))", card, value, per_row=(low, high))
    return Agg(f"{name}({value.dp})", card, value)


@production(AGGREGATE, 2)
def pair(g: Grammar, scope: Scope, limits: Limits) -> Agg:
    """A covariance or a correlation."""
    value, other = number(g, scope, 0), number(g, scope, g.random.choice([0, 1]))
    card = g.random.choice(plain.PAIRS)
    bounded = all(c.spec is not None and c.spec.low is not None for c in scope if c.text in value.reads | other.reads)
    if g.chance(0.3 if bounded else 0.9):
        low, high = _bounds(g)
        text_ = f"{card}({value.dp}, {other.dp}, contribution_bounds_per_row => ({low}, {high}))"
        return Agg(text_, card, value, per_row=(low, high), other=other)
    return Agg(f"{card.upper()}({value.dp}, {other.dp})", card, value, other=other)


LISTED: Mapping[str, bool] = {
    "quantile_cont({0}, [{1}])": False,
    "PERCENTILE_CONT([{1}]) WITHIN GROUP (ORDER BY {0})": False,
    "approx_quantile({0}, [{1}])": False,
    "quantile_disc({0}, [{1}])": True,
    "percentile_disc([{1}]) WITHIN GROUP (ORDER BY {0})": True,
    "APPROX_QUANTILES({0}, {n})": False,
}
QUANTILES: Mapping[str, bool] = {
    "MEDIAN({0})": False,
    "quantile_cont({0}, {1})": False,
    "PERCENTILE_CONT({1}) WITHIN GROUP (ORDER BY {0})": False,
    "approx_quantile({0}, {1})": False,
    "quantile_disc({0}, {1})": True,
    "percentile_disc({1}) WITHIN GROUP (ORDER BY {0})": True,
    "quantile({0}, {1})": True,
}


@production(AGGREGATE, 3)
def quantile(g: Grammar, scope: Scope, limits: Limits) -> Agg | None:
    """A quantile, under any of its names; of dates and timestamps too."""
    if limits.weights is not None:
        return None
    if g.chance(0.15) and (moments := _of_moments(g, scope)) is not None:
        return moments
    value = number(g, scope, g.random.choice([0, 0, 1]))
    bounded = all(c.spec is not None and c.spec.low is not None for c in scope if c.text in value.reads)
    listed = g.chance(0.3)
    name, discrete = g.random.choice([*(LISTED if listed else QUANTILES).items()])
    at = (
        ("0.5",)
        if name.startswith("MEDIAN")
        else tuple(g.random.choices(["0", "0.25", "0.5", "0.9", "1"], k=g.random.randint(1, 4) if listed else 1))
    )
    n = g.random.choice([1, 2, 4, 10])
    at = tuple(str(Fraction(k, n)) for k in range(n + 1)) if "{n}" in name else at
    down = "ORDER" in name and g.chance(0.5)
    bounds = None if (bounded and g.chance(0.7)) or "WITHIN" in name else _bounds(g)
    text_ = name.format(f"{value.dp} DESC" if down else value.dp, ", ".join(at), n=n)
    at = tuple(str(1 - Fraction(one)) for one in at) if down else at
    if bounds is not None:
        text_ = f"{text_[:-1]}, contribution_bounds_per_row => ({bounds[0]}, {bounds[1]}))"
    return Agg(text_, "quantile", value, per_row=bounds, fractions=at, discrete=discrete, upper=discrete and down, listed=listed)


def _of_moments(g: Grammar, scope: Scope) -> Agg | None:
    """A quantile of dates or timestamps, which plain SQL counts from 1970."""
    value = day(g, scope, g.random.choice([0, 0, 1]))
    if value is None or not value.reads:
        return None
    daily, (name, discrete) = value.type == DATE, g.random.choice([one for one in (*LISTED.items(), *QUANTILES.items()) if "WITHIN" not in one[0]])
    n, listed = g.random.choice([1, 2, 4]), name in LISTED
    at = tuple(str(Fraction(k, n)) for k in range(n + 1)) if "{n}" in name else ("0.5",) if "MEDIAN" in name else ("0.25", "0.9")[: 1 + listed]
    ends = g.random.choice([("2024-01-02", "2024-03-09"), ("2020-02-29 12:00:00", "2024-12-31 00:00:00.5"), ("1969-12-30", "2024-01-01")])
    numbers = [Fraction((datetime.fromisoformat(end) - datetime(1970, 1, 1)) // timedelta(microseconds=1), DAY if daily else 1) for end in ends]
    typed = ", ".join(f"{g.random.choice(['TIMESTAMP ', ''] if ':' in end else ['DATE ', '', 'TIMESTAMP '])}'{end}'" for end in ends)
    text_ = f"{name.format(value.dp, ', '.join(at), n=n)[:-1]}, contribution_bounds_per_row => ({typed}))"
    kept = f"CASE WHEN ({value.plain}) BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999' THEN ({value.plain}) END"
    number_ = f"date_diff('{'day' if daily else 'microsecond'}', DATE '1970-01-01', {kept})"
    discrete = discrete or name.lower().startswith("approx")
    counted = Expr(value.dp, number_, INTEGER, value.reads)
    bounds = str(numbers[0]), str(numbers[1])
    return Agg(text_, "quantile", counted, None, bounds, None, None, at, discrete, listed=listed, unit=DAY if daily and not discrete else 1)


def indexed(g: Grammar, agg: Agg) -> Agg:
    """One value of a list, now and then."""
    if not agg.listed or g.chance(0.6):
        return agg
    place = g.random.randrange(len(agg.fractions))
    return replace(agg, dp=f"({agg.dp})[{place + 1}]", place=place)


@production(AGGREGATE, 2)
def mode(g: Grammar, scope: Scope, limits: Limits) -> Agg | None:
    """The most frequent of declared values, or whether something is more often true or false."""
    if limits.weights is not None:
        return None
    value = g.col(scope, where=lambda c: not c.unit and c.spec is not None and c.spec.values is not None) if g.chance(0.6) else None
    value = condition(g, scope, g.random.choice([0, 1])) if value is None else value
    if value.reads & {c.text for c in scope if c.unit} or not value.reads:
        return None
    return Agg(g.random.choice(["MODE({})", "mode({})", "mode() WITHIN GROUP (ORDER BY {})"]).format(value.dp), "mode", value)


def filtered(g: Grammar, scope: Scope, agg: Agg) -> Agg:
    """The aggregate with a FILTER, now and then."""
    if not g.chance(0.25):
        return agg
    test = tested(g, scope, 1)
    where = test if agg.where is None else both("({0}) AND ({1})", BOOLEAN, test, agg.where)
    return replace(agg, dp=f"{agg.dp} FILTER (WHERE {test.dp})", where=where)


# ---- the statement -------------------------------------------------------------------------------------------------------------------


ATTEMPTS = 6
EXACT = ("count", "units", "distinct", "total")  # what is the same number in both engines, to the last digit


def statement(world: World, seed: str) -> Statement:
    """A random statement over the world, rarely one that no row answers."""
    for attempt in range(ATTEMPTS):
        made = attempted(Grammar(Random(f"{seed}/{attempt}"), world))
        if _has_rows(world, made):
            break
    return made


def about(world: World, seed: str, function: str, call: calls.Call, name: str) -> Statement | None:
    """A statement that groups by one call of a function and counts; None where no table has its arguments."""
    for attempt in range(40):
        g = Grammar(Random(f"{seed}/{attempt}"), world)
        rel = relation(g, 0)
        made = calls.one_call(g, rel.cols, function, call, name)
        if made is not None and (made.reads or not call.args):
            limits, options, _ = _options(g, rel, rel.cols, [not made.reads], True)
            return _written(g, rel, [], [Key(made, not made.reads)], [Agg("COUNT(*)", "count")], limits, options, False)
    return None


def counted_by(world: World, seed: str, reduce: Callable[[Grammar, Scope], Expr | None]) -> Statement | None:
    """A statement that counts units by what an aggregate makes of the rows of each."""
    for attempt in range(40):
        g = Grammar(Random(f"{seed}/{attempt}"), world)
        rel = perunit.reduced(g, reduce)
        if rel is not None:
            value = g.read(visible(g, rel.cols)[-1])
            limits, options, _ = _options(g, rel, rel.cols, [False], True)
            return _written(g, rel, [], [Key(value, False)], [Agg("COUNT(*)", "count")], limits, options, False)
    return None


def _has_rows(world: World, made: Statement) -> bool:
    ctes = f"WITH {', '.join(made.ctes)} " if made.ctes else ""
    where = " AND ".join([f"({made.rel.unit}) IS NOT NULL", *(f"({e.plain})" for e in made.where)])
    return bool(world.con.execute(f"{ctes}SELECT 1 FROM {made.rel.plain} WHERE {where} LIMIT 1").fetchall())


def attempted(g: Grammar) -> Statement:
    """A random statement."""
    return over(g, relation(g, g.random.choice([0, 0, 1, 1, 2, 2, 3])))


def over(g: Grammar, rel: Rel) -> Statement:
    """A random statement over the relation."""
    kept = preserved(g, rel) if g.chance(0.08) else None
    rel = kept or rel
    scope = visible(g, rel.cols)
    wants: list[Expr] = []
    keys = _kept_keys(g, rel, scope) if kept else [g.make(KEY, scope, wants) for _ in range(g.random.choice([0, 1, 1, 1, 2, 2, 3]))]
    keys = list({key.value.dp.lower(): key for key in sorted(keys, key=lambda key: key.listed)}.values())
    wants += _by_alias(g, keys) if keys and not kept and g.chance(0.1) else []
    where = [] if kept else [*wants, *(tested(g, scope, 2) for _ in range(g.random.choice([0, 0, 1, 1, 2])))]
    g.random.shuffle(where)
    limits, options, threshold = _options(g, rel, scope, [key.listed for key in keys], bool(kept))
    aggs = [filtered(g, scope, g.make(AGGREGATE, scope, limits)) for _ in range(g.random.choice([1, 1, 2, 3]))]
    aggs = [indexed(g, agg) for agg in (aggs if "rho = " in options else [shared(g, agg) for agg in aggs])]
    if keys and limits.weights is None and g.chance(0.06):
        aggs = []
    options = with_loss(g, aggs, limits, options)
    if not options:
        limits = _declared(g, rel.dp, *(one.dp for one in (*rel.where, *where, *aggs)), *(key.value.dp for key in keys))
    found = _written(g, rel, [*rel.where, *where], keys, aggs, limits, options, threshold)
    return replace(found, units=frozenset(c.text for c in scope if c.unit))


def _by_alias(g: Grammar, keys: list[Key]) -> list[Expr]:
    """A condition in WHERE that reads a key by its alias; the key gets it."""
    i = g.random.randrange(len(keys))
    keys[i] = replace(keys[i], aliased=True)
    value = keys[i].value
    test = condition(g, [Col(f"k{i}", f"k{i}", value.type)], 1)
    plain = renamed(test.plain, f"k{i}", value.whole.plain)
    if "(SELECT " in value.plain:  # no TRY may stand around a subquery
        plain = f"(SELECT {test.plain} FROM (SELECT {value.plain} AS k{i}))"
    return [Expr(test.dp, plain, BOOLEAN, value.reads)]


def _kept_keys(g: Grammar, rel: Rel, scope: Scope) -> list[Key]:
    """A column of the table whose rows are kept; USING writes it without its table."""
    own = [c for c in scope if not c.private and c.firm]
    found = g.random.choice(own)
    return [Key(g.read(found), True)]


def _tables(g: Grammar, text_: str) -> frozenset[str]:
    """The private tables that a text reads, through WITH queries and views too."""
    words = set(re.findall(r"\w+", text_.lower()))
    found = {t.name for t in g.world.private() if t.name in words}
    for dp, _ in g.ctes:
        name, _, body = dp.partition(" AS (")
        found |= _tables(g, body) if name.partition("(")[0] in words else set()
    for name, (_, _, _, _, tables) in g.world.views.items():
        found |= tables if name.lower() in words else set()
    return frozenset(found)


def _declared(g: Grammar, *texts: str) -> Limits:
    """The caps of a statement that sets none: the least of the tables that it reads, in subqueries of its expressions too."""
    own = [t.limits for name in _tables(g, " ".join(texts)) if (t := g.world.tables[name]).limits is not None]
    return Limits(*(min(column) for column in zip(*own, strict=True))) if own else Limits()


def _options(g: Grammar, rel: Rel, scope: Scope, listed: Sequence[bool], kept: bool) -> tuple[Limits, str, bool]:
    """The clause with its caps; the caps in force; whether it asks for a threshold."""
    if g.chance(0.25):
        return _declared(g, rel.dp), "", False
    public, given = bool(listed) and all(listed), {"epsilon": "1e20", "delta": "1"}
    limits, threshold = Limits(), False
    if (public or not listed) and g.chance(0.25):
        limits = Limits(weights=g.random.choice([1, 2, 3, 50]))
        given["max_rows_contributed"] = str(limits.weights)
    else:
        limits = Limits(g.random.choice([1, 2, 3, 50]), g.random.choice([1, 2, 3, 50]), minimum=1)
        given |= {"max_groups_contributed": str(limits.groups), "max_rows_per_group": str(limits.rows)}
        if not public and listed and g.chance(0.2):
            limits = Limits(limits.groups, limits.rows, minimum=g.random.choice([1, 2, 3]))
            given["min_privacy_units_per_group"] = str(limits.minimum)
        if listed and not kept and g.chance(0.15):
            threshold = True
            given["group_selection_strategy"] = g.random.choice(["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD"])
    unit = [c for c in scope if c.unit and c.firm]
    if unit and g.chance(0.2):
        given["privacy_unit_column"] = g.random.choice(unit).text
    given |= _price(g, public and not threshold, threshold or limits.minimum > 1)
    if "rho" in given:
        del given["epsilon"]
    listed_ = ", ".join(f"{name} = {value}" for name, value in g.random.sample(list(given.items()), len(given)))
    return limits, f"WITH DIFFERENTIAL_PRIVACY OPTIONS({listed_}) ", threshold


def _price(g: Grammar, public: bool, selected: bool) -> dict[str, str]:
    """Options that change price and noise, and so nothing of an answer without noise."""
    found: dict[str, str] = {}
    if g.chance(0.15):
        found["noise"] = g.random.choice(["LAPLACE", "'gaussian'", "EXPONENTIAL"])
    if g.chance(0.1):
        found["confidence_level"] = "0.9"
    if public and g.chance(0.1):
        found["group_selection_strategy"] = "PUBLIC_GROUPS"
    if selected and g.chance(0.3):
        found["group_selection_epsilon"] = "1e19"
    elif g.chance(0.1):
        found["rho"] = "1e20"
    return found


def shared(g: Grammar, agg: Agg) -> Agg:
    """The aggregate with a share of the price of its own, now and then."""
    if not g.chance(0.05) or "()" in agg.dp:
        return agg
    return replace(agg, dp=_with_argument(agg.dp, "epsilon => 1e18"))


def with_loss(g: Grammar, aggs: Sequence[Agg], limits: Limits, options: str) -> str:
    """The options, now and then with a part of the price for what bounds cut off."""
    capped = any(agg.card in ("count", "total", "race_count", "race_total") for agg in aggs)
    if not capped or limits.weights is not None or "epsilon = 1e20" not in options or "rho = " in options or not g.chance(0.06):
        return options
    return options.replace("OPTIONS(", "OPTIONS(loss_epsilon = 1e18, ")


def _with_argument(text_: str, named: str) -> str:
    """The aggregate with one more argument: inside its own brackets, not those of what follows them."""
    return re.sub(r"\)( WITHIN GROUP .*| FILTER .*|$)", lambda m: f", {named}){m[1]}", text_, count=1)


def _written(g: Grammar, rel: Rel, where: list[Expr], keys: list[Key], aggs: list[Agg], limits: Limits, options: str, threshold: bool) -> Statement:
    """The text: keys by name, alias, number or ALL, in any order among the aggregates."""
    distinct = not aggs and not options and g.chance(0.5)
    again = bool(aggs) and g.chance(0.05)  # DISTINCT above the noise
    by = g.random.choice(["text", "alias", "ordinal", "mixed", "all"])
    places = list(range(len(keys) + len(aggs)))
    if not again:
        g.random.shuffle(places)
    items: list[str] = [""] * len(places)
    group: list[str] = []
    for i, key in enumerate(keys):
        how = g.random.choice(["text", "alias", "ordinal"]) if by == "mixed" else by
        alias = how == "alias" or key.aliased or (g.chance(0.3) and not distinct)
        items[places[i]] = f"{key.value.dp} AS k{i}" if alias else key.value.dp
        group.append(f"k{i}" if how == "alias" else str(places[i] + 1) if how == "ordinal" else key.value.dp)
    for j, agg in enumerate(aggs):
        items[places[len(keys) + j]] = f"{agg.dp} AS a{j}" if g.chance(0.6) else agg.dp
    exact = [j for j, agg in enumerate(aggs) if agg.card in EXACT]
    further = _further(g, [agg.dp for agg in aggs], exact) if exact and not again else ()
    items += [f"{one.dp} AS m{i}" for i, one in enumerate(further)]
    items = items if again else _edged(g, items, aggs)
    where = [e.whole for e in where] if len(where) > 1 else where
    ctes = f"WITH {', '.join(dp for dp, _ in g.ctes)} " if g.ctes else ""
    text_ = f"{ctes}SELECT {options}{'DISTINCT ' if distinct or again else ''}{', '.join(items)} FROM {rel.dp}"
    text_ += f" WHERE {' AND '.join(e.dp for e in where)}" if where else ""
    literal = any(not key.value.reads for key in keys)
    if keys and not distinct:
        text_ += " GROUP BY ALL" if by == "all" and not literal else f" GROUP BY {', '.join(group)}"
    in_order = bool(keys) and (distinct or again or (by == "all" and not literal))
    having, sort, limit = _upper(g, keys, aggs)
    ranked = [f"{upper.WINDOWS[exp.RowNumber]} <= {g.random.randint(1, 3)}"]
    qualify = upper.more(g, [agg.dp for agg in aggs], exact, ranked) if exact and keys and g.chance(0.05) else None
    offset = g.random.randint(1, 2) if limit is not None and g.chance(0.4) else 0
    text_ += f" HAVING {aggs[having[0]].dp} {having[1]} {having[2]}" if having else ""
    text_ += f" QUALIFY {qualify.dp}" if qualify else ""
    text_ += f" ORDER BY {places[len(keys) + sort[0]] + 1}{' DESC' if sort[1] else ''}" if sort else ""
    text_ += f" LIMIT {limit}" if limit is not None else ""
    text_ += f" OFFSET {offset}" if offset else ""
    plains, shown = tuple(plain for _, plain in g.ctes), tuple(places)
    found = Statement(text_, plains, rel, tuple(where), tuple(keys), tuple(aggs), limits, threshold, having, sort, limit, shown, in_order=in_order)
    return replace(found, more=further, qualify=qualify, offset=offset)


def _edged(g: Grammar, items: Sequence[str], aggs: Sequence[Agg]) -> list[str]:
    """Now and then an aggregate as a report, or the ends of its error bar as columns: what stands below them stays as it is."""
    found = list(items)
    for j, agg in enumerate(aggs):
        if "()" not in agg.dp and agg.place is None and g.chance(0.05):
            report = _with_argument(agg.dp, "report_format => 'JSON'")
            found = [item.replace(agg.dp, report) if item in (agg.dp, f"{agg.dp} AS a{j}") else item for item in found]
        if agg.card != "mode" and (not agg.listed or agg.place is not None) and g.chance(0.05):
            end = f"DP_INTERVAL_{g.random.choice(['LOW', 'high'])}({agg.dp})"
            found.append(f"{end} - 1" if agg.card in EXACT and agg.place is None and g.chance(0.5) else end)
    return found


def _further(g: Grammar, texts: Sequence[str], exact: Sequence[int]) -> tuple[More, ...]:
    """Columns computed from aggregates, now and then."""
    kinds = g.random.choices([upper.ALL, tuple(upper.WINDOWS.values())], [3, 1], k=g.random.choice([0, 0, 1, 2]))
    return tuple(upper.more(g, texts, exact, templates) for templates in kinds)


def _upper(g: Grammar, keys: Sequence[Key], aggs: Sequence[Agg]) -> tuple[tuple[int, str, int] | None, tuple[int, bool] | None, int | None]:
    """HAVING, ORDER BY and LIMIT, now and then. Only sums and counts are compared: they are exact."""
    exact = [i for i, agg in enumerate(aggs) if agg.card in EXACT]
    having = (g.random.choice(exact), g.random.choice([">", "<=", "<>"]), g.random.randint(-1, 3)) if exact and g.chance(0.12) else None
    sort = (g.random.choice(exact), g.chance(0.5)) if exact and keys and g.chance(0.15) else None
    return having, sort, g.random.randint(1, 4) if keys and g.chance(0.1) else None
