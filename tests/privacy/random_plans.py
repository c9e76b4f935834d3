"""Random drafts, prices and data over a small world: every node, option, card, key rule and bounding (test_neighbour_machine.py sees to it)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, product
from random import Random
from typing import Any

from interpreter import Data

from dpquery.aggregates import CARDS
from dpquery.aggregates.leading import COMPARED
from dpquery.errors import Refused
from dpquery.plan.coerce import convert
from dpquery.plan.draft import AggregateAsk, Contributions, Draft
from dpquery.plan.functions import call
from dpquery.plan.inside import PAIRS, WINDOWS, Frame, Place, Placing, Reduce, Reduction, Sort, Term, Whole
from dpquery.plan.leading import Lead
from dpquery.plan.rel import (
    Compute,
    Filling,
    Group,
    Hop,
    Join,
    Keep,
    Lookup,
    Match,
    Merge,
    Private,
    Public,
    Scan,
    ScanColumn,
    Semi,
    Stack,
    UnitPath,
    Windowed,
    output,
    walk,
)
from dpquery.plan.rel import publics as read_by
from dpquery.plan.release import Ask, Key, KeySource, Mechanism
from dpquery.plan.scalar import Case, Column, Interval, Literal, Scalar, columns
from dpquery.privacy import Facts
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TIMESTAMP, Type, Value

COUNTRIES = ("A", "B", "C")
ITEMS = ("x", "y")
Bag = dict[str, list[dict[str, Any]]]


def interval(low: int, high: int) -> Interval:
    return Interval(Fraction(low), Fraction(high))


# ---- the tables ----------------------------------------------------------------------------------------------------------------------

SCORES = Interval(Fraction(-3, 2), Fraction(29, 4))
PHYSICAL: Mapping[str, tuple[tuple[str, Type, Interval | None], ...]] = {
    "users": (("uid", INTEGER, None), ("country", STRING, None), ("age", INTEGER, interval(0, 9))),
    "orders": (
        ("oid", INTEGER, None),
        ("uid", INTEGER, None),
        ("item", STRING, None),
        ("amount", INTEGER, interval(-5, 20)),
        ("score", FLOAT, SCORES),
    ),
    "items": (("oid", INTEGER, None), ("price", INTEGER, interval(2, 7))),
}
PATHS = {
    "users": UnitPath("uid", INTEGER),
    "orders": UnitPath("uid", INTEGER),
    "items": UnitPath("uid", INTEGER, (Hop("oid", "orders", "oid"),)),
}
PUBLICS: Mapping[str, tuple[tuple[str, Type], ...]] = {
    "regions": (("country", STRING), ("region", STRING)),
    "marks": (("item", STRING), ("mark", INTEGER)),
}


@dataclass
class World:
    """Fresh column ids and names for one statement."""

    random: Random
    ids: Iterable[int] = field(default_factory=lambda: count(1))
    names: Iterable[int] = field(default_factory=count)

    def column(self, name: str, type: Type, declared: Interval | None = None, public: str | None = None) -> Column:
        return Column(next(iter(self.ids)), name, type, declared, public=public)

    def scan(self, table: str) -> Scan:
        held = tuple(ScanColumn(self.column(name, type, declared), name) for name, type, declared in PHYSICAL[table])
        own = frozenset(c.column.id for c in held if c.physical == "uid")
        unique = frozenset(c.column.id for c in held if c.physical == "oid" and table == "orders")
        return Scan(table, table, held, PATHS[table], 1 if table == "users" else None, unique, own)

    def public(self, table: str) -> Public:
        name = f"p{next(iter(self.names))}_{table}"
        return Public(name, f"SELECT * FROM data.main.{name}", tuple(self.column(n, t, public=table) for n, t in PUBLICS[table]))

    def released(self, filled: Filling, *types: Type) -> Public:
        """What is filled between two releases."""
        name = f"p{next(iter(self.names))}_released"
        return Public(name, f"SELECT * FROM data.main.{name}", tuple(self.column("f", t, public=name) for t in types), filled)


# ---- random expressions and relations ------------------------------------------------------------------------------------------------


def integers(known: Sequence[Column]) -> list[Column]:
    return [c for c in known if c.type == INTEGER]


def literal(v: Value, type: Type) -> Literal:
    return Literal(v, type)


def number(random: Random, known: Sequence[Column]) -> Scalar:
    floats = [c for c in known if c.type == FLOAT]
    if floats and random.random() < 0.3:
        return random.choice(floats)
    found = integers(known)
    if not found:
        return literal(random.randint(-3, 5), INTEGER)
    one = random.choice(found)
    match random.randrange(5):
        case 0:
            return call("add", one, literal(random.randint(-3, 3), INTEGER))
        case 1:
            otherwise = None if random.random() < 0.3 else literal(random.choice([None, 0, 4]), INTEGER)
            return Case(((condition(random, known), one),), otherwise, INTEGER)
        case 2:
            return convert(one, FLOAT)
        case _:
            return one


def condition(random: Random, known: Sequence[Column]) -> Scalar:
    one = random.choice([c for c in known if c.type != FLOAT])
    if one.type == STRING:
        if random.random() < 0.3:
            return call("is_null", one)
        return call("in", one, *(literal(s, STRING) for s in random.sample(COUNTRIES + ITEMS, 2)))
    if one.type == BOOLEAN:
        return one
    return call(random.choice(["eq", "ne", "lt", "ge"]), one, literal(random.randint(0, 6), INTEGER))


Below = Callable[[], Private]  # makes what a node stands on


def relation(world: World, depth: int) -> Private:
    random = world.random
    if depth == 0:
        return over(world, "Scan")
    return over(world, NODES[random.randrange(14)], lambda: relation(world, depth - 1), lambda: _right(world, depth))


NODES = {
    **dict.fromkeys((0, 1), "Keep"),
    2: "Compute",
    **dict.fromkeys((3, 13), "Lookup"),
    4: "path",
    **dict.fromkeys((5, 7), "Semi"),
    6: "Stack",
    8: "Group",
    9: "null side",
    **dict.fromkeys((10, 11), "Match"),
    12: "Windowed",
}
"""The productions of relations, by the node that they make as a rule."""


def over(world: World, node: str, below: Below | None = None, right: Below | None = None) -> Private:
    """A relation with this node on top, or one close to it; without `below` it stands on tables."""
    random = world.random
    below = below or (lambda: over(world, "Scan"))
    match node:
        case "Scan":
            return world.scan(random.choice(["users", "orders", "orders", "items"]))
        case "Windowed":
            return _windowed(world, below())
        case "Group":
            return _group(world, below())
        case "Keep":
            held = below()
            return Keep(held, condition(random, output(held)))
        case "Compute":
            held = below()
            computed = number(random, output(held))
            return Compute(held, ((world.column("n", computed.type), computed),))
        case "Lookup":
            return _lookup(world, below())
        case "path":
            return _along_the_path(world)
        case "Semi":
            return _semi(world, below(), below)
        case "Stack":
            return _stack(world, below(), below())
        case "null side":
            return _null_side(world)
        case "Match":
            left, other = below(), (right or below)()
            on = condition(random, (*output(left), *output(other))) if random.random() < 0.4 else None
            return Match(left, other, random.choice([Join.INNER, Join.LEFT]), on)
        case _:
            raise AssertionError(node)


def _right(world: World, depth: int) -> Private:
    """The right side of a join: smaller than the left one as a rule, and now and then one row or one group for each unit."""
    kind = world.random.random()
    if kind < 0.2:
        return world.scan("users")
    if kind < 0.3:
        return world.random.choice([_group, _windowed])(world, relation(world, depth - 1))
    return relation(world, world.random.randrange(depth))


def _group(world: World, below: Private) -> Private:
    """Rows by unit and up to two keys; without an integer among the keys there is a count."""
    random, held = world.random, output(below)
    keys = tuple(random.sample(held, random.randint(0, min(2, len(held)))))
    items = [_reduction(random, held) for _ in range(random.choice([0, 1, 1, 2]))]
    if all(key.type in (FLOAT, BOOLEAN) for key in keys):
        items.append(Reduction(Reduce.COUNT, None, INTEGER))
    return Group(below, keys, tuple((world.column("r", item.type), item) for item in items))


def _windowed(world: World, below: Private) -> Private:
    """A window by unit and up to one more column; now and then the first rows by their number."""
    random, held = world.random, output(below)
    partition = tuple(random.sample(held, random.choice([0, 0, 1])))
    order = tuple(Term(c, random.random() < 0.5, random.random() < 0.5) for c in random.sample(held, random.randint(0, min(2, len(held)))))
    item: Placing | Reduction
    if random.random() < 0.6:
        function = random.choice([*Place])
        value = random.choice(held) if function in (Place.LAG, Place.LEAD, Place.FIRST_VALUE) else None
        offset = random.choice([0, 1, 1, 2]) if function in (Place.LAG, Place.LEAD) else 1
        item = Placing(function, value, INTEGER if value is None else value.type, offset)
        frame = None
    else:
        while (found := _reduction(random, held)).function not in WINDOWS or found.distinct:
            pass
        item, frame = found, random.choice([None, Frame(False), Frame(True), Frame(True, random.randrange(3)), _between(random)])
    column = world.column("w", item.type)
    rel = Windowed(below, column, item, partition, order, frame)
    if isinstance(item, Placing) and item.function is Place.ROW_NUMBER and random.random() < 0.7:
        return Keep(rel, call(random.choice(["eq", "le", "lt"]), column, literal(random.randint(0, 3), INTEGER)))
    return rel


def _between(random: Random) -> Frame:
    """A frame with any two ends, the first row's now and then; the second may lie before the first, on the same side of the current row."""
    preceding, following = random.choice([None, *range(-2, 3)]), random.randint(-2, 2)
    if preceding is not None and preceding <= 0 and following <= 0:  # the other way round is no SQL
        preceding, following = -following, -preceding
    return Frame(True, preceding, following)


def _reduction(random: Random, held: Sequence[Column]) -> Reduction:
    """Any aggregate within a unit."""
    function = random.choice([*Reduce])
    where = condition(random, held) if random.random() < 0.3 else None
    distinct = random.random() < 0.3
    match function:
        case Reduce.COUNT if random.random() < 0.5:
            return Reduction(function, None, INTEGER, where)
        case Reduce.COUNT:
            return Reduction(function, random.choice(held), INTEGER, where, distinct)
        case Reduce.ALL | Reduce.ANY:
            return Reduction(function, condition(random, held), BOOLEAN, where)
        case Reduce.ARG_MIN | Reduce.ARG_MAX:
            one = random.choice(held)
            return Reduction(function, one, one.type, where, by=random.choice(held))
        case Reduce.FIRST | Reduce.TEXTS:
            texts = function is Reduce.TEXTS
            one = random.choice([c for c in held if not texts or c.type == STRING] or [literal("x", STRING)])
            by = random.choice(held) if random.random() < 0.7 else None
            sort = Sort(random.random() < 0.5, random.random() < 0.5, random.choice([",", ""]) if texts else None)
            return Reduction(function, one, one.type, where, texts and by is None and distinct, by=by, sort=sort)
        case Reduce.ENTROPY:
            return Reduction(function, random.choice(held), FLOAT, where, distinct)
        case Reduce.MAD | Reduce.PRODUCT | Reduce.GEOMEAN:
            return Reduction(function, number(random, held), FLOAT, where, distinct)
        case Reduce.BIT_AND | Reduce.BIT_OR | Reduce.BIT_XOR:
            return Reduction(function, random.choice(integers(held) or [literal(5, INTEGER)]), INTEGER, where, distinct)
        case Reduce.MIN | Reduce.MAX | Reduce.QUANTILE_DISC | Reduce.QUANTILE_CONT:
            one = number(random, held) if function is Reduce.QUANTILE_CONT else random.choice(held)
            quantile = function in (Reduce.QUANTILE_DISC, Reduce.QUANTILE_CONT)
            fraction = Fraction(random.choice(["0", "0.25", "0.5", "0.9", "1"])) if quantile else None
            return Reduction(function, one, FLOAT if function is Reduce.QUANTILE_CONT else one.type, where, fraction=fraction)
        case _:
            one, by = number(random, held), number(random, held) if function in PAIRS else None
            whole, beside = _whole(random, one), None if by is None else _whole(random, by)
            if by is not None:
                return Reduction(function, one, FLOAT, where, by=by, whole=whole, beside=beside)
            bare = one.type == INTEGER and function in (Reduce.SUM, Reduce.AVG) and random.random() < 0.5
            kind = one.type if function is Reduce.SUM else FLOAT
            return Reduction(function, one, kind, where, distinct, whole=None if bare else whole)


def _whole(random: Random, one: Scalar) -> Whole:
    low = random.randint(-8, 4)
    return Whole(random.choice([Fraction(1), Fraction(1, 4)]) if one.type == FLOAT else Fraction(1), low, low + random.randint(0, 20))


def _along_the_path(world: World) -> Private:
    """Orders and their items, either of them first: the join multiplies no item, and so is not capped."""
    random = world.random
    orders, items = world.scan("orders"), world.scan("items")
    on = call("eq", *(next(c for c in output(rel) if c.name == "oid") for rel in (orders, items)))
    pair: list[Private] = [rel if random.random() < 0.6 else Keep(rel, condition(random, output(rel))) for rel in (orders, items)]
    random.shuffle(pair)
    return Match(*pair, random.choice([Join.INNER, Join.LEFT]), on, single=True)


def _null_side(world: World) -> Private:
    """Rows beside their unit's one row in `users`, where a condition holds: what depends on the unit there does not here."""
    left, users = world.scan(world.random.choice(["orders", "items"])), world.scan("users")
    right = _lookup(world, users) if world.random.random() < 0.4 else users
    return Match(left, right, Join.LEFT, condition(world.random, output(left)))


def attributed(world: World) -> Private:
    """Rows beside their unit's one row in `users`, either of them first, below what reads one of the sides, or now and then both."""
    random = world.random
    rows, users = (world.scan("orders") if random.random() < 0.6 else relation(world, 1)), world.scan("users")
    sides: list[Private] = [rows, _lookup(world, users) if random.random() < 0.2 else users]
    if random.random() < 0.3:
        sides.reverse()
    rel: Private = Match(*sides, Join.LEFT if random.random() < 0.1 else Join.INNER, None)
    for _ in range(random.randrange(3)):
        held = random.choice([output(rows), output(users), output(rel)])
        match random.randrange(3):
            case 0:
                rel = Keep(rel, condition(random, output(rows) if random.random() < 0.7 else held))
            case 1:
                computed = number(random, held)
                rel = Compute(rel, ((world.column("n", computed.type), computed),))
            case _:
                public, (_, country, _) = world.public("regions"), output(users)
                rel = Lookup(rel, public, random.choice([Join.INNER, Join.LEFT]), call("eq", country, public.columns[0]))
    return rel


def _semi(world: World, left: Private, below: Below) -> Private:
    random = world.random
    right = world.public(random.choice(list(PUBLICS))) if random.random() < 0.3 else below()
    if random.random() < 0.1:
        right = world.released(random.choice(list(Filling)), STRING, INTEGER)
    theirs = right.columns if isinstance(right, Public) else output(right)
    on = condition(random, (*output(left), *theirs)) if random.random() < 0.7 else None
    same = [(a, b) for a in output(left) for b in theirs if a.type == b.type == STRING]
    if same and random.random() < 0.4:
        on = call("eq", *random.choice(same))
    return Semi(left, right, on, random.random() < 0.5)


def _stack(world: World, left: Private, right: Private) -> Private:
    """Columns of like types, in both branches; the first number in front, the unit now and then."""
    random = world.random
    pairs = [(a, b) for a in output(left) for b in output(right) if a.type == b.type]
    chosen = random.sample(pairs, min(len(pairs), random.randint(1, 3)))
    if INTEGER not in [a.type for a, _ in chosen]:
        chosen.append((world.column("x", INTEGER), world.column("x", INTEGER)))
    ours = tuple(literal(1, INTEGER) if a.name == "x" else a for a, _ in chosen)
    theirs = tuple(literal(2, INTEGER) if b.name == "x" else b for _, b in chosen)
    made = tuple(world.column(a.name, a.type, a.declared if a.declared == b.declared else None) for a, b in chosen)
    return Stack(left, right, made, ours, theirs, random.choice(list(Merge)))


def _lookup(world: World, below: Private) -> Private:
    random = world.random
    strings = [c for c in output(below) if c.type == STRING]
    if random.random() < 0.2:
        return _released(world, below)
    public = world.public(random.choice(list(PUBLICS)))
    on = call("eq", random.choice(strings), public.columns[0]) if strings else call("eq", public.columns[1], public.columns[1])
    if random.random() < 0.3:
        on = call("and", on, condition(random, output(below)))
    if random.random() < 0.15:
        return Lookup(below, public, random.choice([Join.INNER, Join.LEFT]), None)
    return Lookup(below, public, random.choice([Join.INNER, Join.LEFT]), on)


def _released(world: World, below: Private) -> Private:
    """A released list, each of its columns compared with one of the relation's; or a released row."""
    random = world.random
    held = [c for c in output(below) if c.type in (STRING, INTEGER)]
    join = random.choice([Join.INNER, Join.LEFT])
    if not held or random.random() < 0.3:
        row = world.released(Filling.ROW, STRING, INTEGER)
        return Lookup(below, row, join, condition(random, row.columns) if random.random() < 0.5 else None)
    compared = random.sample(held, min(len(held), random.randint(1, 2)))
    made = world.released(Filling.KEYS, *(c.type for c in compared))
    tests = [call("eq", *random.sample([a, b], 2)) for a, b in zip(compared, made.columns, strict=True)]
    return Lookup(below, made, join, tests[0] if len(tests) == 1 else call("and", *tests))


# ---- random drafts -------------------------------------------------------------------------------------------------------------------


def draft(random: Random, made: Callable[[World], Private] | None = None) -> Draft:
    """A draft, over the relation that is made; it may be refused only for the combinations that are refused by name."""
    world = World(random)
    rel = relation(world, random.randrange(4)) if made is None else made(world)
    held = output(rel)
    keys = tuple(_key(random, held, i) for i in range(random.choice([0, 1, 1, 1, 2])))
    public = bool(keys) and random.random() < 0.5
    weights = random.randint(1, 3) if (public or not keys) and random.random() < 0.3 else None
    given = Contributions(*(random.randint(1, 3) for _ in range(3)), weights, random.random() < 0.5, random.random() < 0.5)
    asks = tuple(_ask(random, held, i, given) for i in range(random.randint(0 if keys else 1, 3)))
    source = (KeySource(tuple(range(len(keys))), "a list", literals=((),)),) if public else ()
    listed = world.released(Filling.KEYS, INTEGER, *(key.type for key in keys)) if public and random.random() < 0.3 else None
    plan = Draft(rel, keys, source, asks, given, random.choice([1, 1, 2]), listed)
    led = _led(Random(random.getstate()[1][0]), plan)  # the state is read and not moved on: all other drafts stay what they were
    if led is not None:
        return led
    return _in_units_of_a_cap(world, plan) if weights is None and random.random() < 0.15 else plan


def _led(random: Random, plan: Draft) -> Draft | None:
    """The draft with one of its counts or sums alone, of which nothing is shown but which group has the most, or the least; now and then."""
    fit = next((one for one in plan.asks if one.card in COMPARED), None)
    if fit is None or not plan.sources or plan.listed is not None or random.random() < 0.5:
        return None
    return replace(plan, asks=(fit,), lead=Lead(random.random() < 0.5, random.randrange(len(plan.keys)), "arg_max(k, n)"))


def by_attribute(plan: Draft) -> Draft:
    """The draft, by what the joined `users` hold."""
    users = [rel for rel in walk(plan.input) if isinstance(rel, Scan) and rel.table == "users"]
    known = [column for rel in users for column in output(rel)[1:] if column in output(plan.input)]
    keys = tuple(Key(f"k{i}", column, column.type) for i, column in enumerate(known[: len(plan.keys)]))
    return replace(plan, keys=keys, listed=None)


def _in_units_of_a_cap(world: World, plan: Draft) -> Draft:
    """The draft, whose counts, sums and means are in units of a released cap."""
    row = world.released(Filling.ROW, FLOAT)
    capped = (
        replace(one, auto=True, cap=row.columns[0], per_group=None, per_row=None) for one in plan.asks if one.card in ("count", "total", "mean")
    )
    others = (one for one in plan.asks if one.card not in ("count", "total", "mean"))
    return replace(plan, input=Lookup(plan.input, row, Join.INNER, None), asks=(*capped, *others))


def _key(random: Random, known: Sequence[Column], i: int) -> Key:
    one = random.choice([c for c in known if c.type not in (FLOAT, BOOLEAN)])
    scalar: Scalar = one
    if random.random() < 0.2:
        scalar = Case(((condition(random, known), one),), literal(None, one.type), one.type)
    elif one.type == INTEGER:
        scalar = call("mod", one, literal(3, INTEGER))
    return Key(f"k{i}", scalar, one.type)


@dataclass(frozen=True)
class Options:
    """What is given of an aggregate, besides its card."""

    card: str
    argument: bool
    where: bool
    per_group: bool
    per_row: bool
    other: bool
    weights: bool


def taken(ask: AggregateAsk, given: Contributions) -> bool:
    """Whether the card takes the ask."""
    try:
        CARDS[ask.card].plan(ask, given, None)
    except Refused:
        return False
    return True


def _accepted(made: Options) -> bool:
    """Whether the card takes these options, of an argument with declared bounds."""
    number = Column(0, "x", INTEGER, interval(0, 9)) if made.argument else None
    group, row = (interval(0, 3) if given else None for given in (made.per_group, made.per_row))
    where = literal(True, BOOLEAN) if made.where else None
    ask = AggregateAsk("a", "a", made.card, number, where, group, row, other=number if made.argument and made.other else None)
    ask = replace(ask, values=(0, 1)) if made.card == "mode" else ask
    given = Contributions(1, 1, 1, 1 if made.weights else None)
    return taken(ask, given) and (not made.other or not taken(replace(ask, other=None), given))


ACCEPTED = tuple(made for card in CARDS for flags in product([False, True], repeat=6) if _accepted(made := Options(card, *flags)))
"""Every way to give every card its options: a new card is among them."""


QUANTILES = ("quantile", "quantile_by_rank")
TRIES = 8  # numbers that one set of options is tried with: not every number has bounds


def _ask(random: Random, known: Sequence[Column], i: int, given: Contributions) -> AggregateAsk:
    """An aggregate that its card takes."""
    weighed = given.weights is not None
    for attempt in count():
        if attempt % TRIES == 0:
            card = random.choice([*{o.card: o for o in ACCEPTED if o.weights == weighed}])
            made = random.choice([o for o in ACCEPTED if o.card == card and o.weights == weighed])
        low = random.randint(-6, 6)
        bounds = interval(low, low + random.randint(1, 9))
        group = interval(random.randint(0, 2), random.randint(2, 4)) if random.random() < 0.5 else bounds
        ask = AggregateAsk(
            f"a{i}",
            f"{card}(..)",
            card,
            (condition(random, known) if card == "mode" else number(random, known)) if made.argument else None,
            condition(random, known) if made.where else None,
            group if made.per_group else None,
            bounds if made.per_row else None,
            other=number(random, known) if made.other else None,
            **(_quantiles(random) if card in QUANTILES else {}),
            values=random.choice([(False, True), (True, False)]) if card == "mode" else (),
        )
        if taken(ask, given):
            return ask
    raise AssertionError("no aggregate is taken")


def _quantiles(random: Random) -> dict[str, Any]:
    """Which quantiles: one of them, or a list."""
    listed, discrete = random.random() < 0.3, random.random() < 0.5
    found = tuple(Fraction(one) for one in random.choices(["0", "0.25", "0.5", "1"], k=random.randint(1, 4) if listed else 1))
    upper, doubt = discrete and random.random() < 0.5, random.choice([Fraction(1, 20), Fraction(1, 3)])
    moment, unit = random.choice([(None, 1), (None, 1), (None, 1), (DATE, 1), (TIMESTAMP, 86_400_000_000)])
    return {"fractions": found, "listed": listed, "discrete": discrete, "upper": upper, "doubt": doubt, "moment": moment, "unit": unit}


def shared(random: Random, plan: Draft) -> Draft:
    """The draft, now and then with an explicit share of the price for some aggregates."""
    if random.random() < 0.8:
        return plan
    return replace(plan, asks=tuple(replace(one, epsilon=Fraction(1, 40)) if random.random() < 0.5 else one for one in plan.asks))


def ask(random: Random) -> Ask:
    """A price and noise that most drafts can be sold for."""
    delta = random.choice([Fraction(0), Fraction(1, 10**6), Fraction(1, 10**6)])
    rho = Fraction(1, random.randint(1, 9)) if random.random() < 0.3 else None
    noise, selection = (random.choice([None, None, *Mechanism]) for _ in range(2))
    share = Fraction(1, 10) if random.random() < 0.2 and rho is None else None
    confidence = random.choice([Fraction(95, 100), Fraction(1, 2)])
    epsilon, unsplit = Fraction(random.randint(1, 20), 8) if rho is None else None, random.random() < 0.3
    return Ask(delta, epsilon, rho, noise, selection, share, confidence, plain=unsplit)


def facts(plan: Draft, data: Data, random: Random) -> Facts:
    """The facts of the public tables: fan-outs that are true, or more than that; a key list where the draft has sources, or an empty one."""
    looked = [rel for rel in walk(plan.input) if isinstance(rel, Lookup)]
    times = 101 if len(looked) == 1 and random.random() < 0.1 else 1
    fanouts = {rel.public.name: times * _fanout(rel, data) for rel in looked}
    keys = tuple(product(*(_values(key) for key in plan.keys))) if plan.sources and plan.listed is None else None
    return Facts(fanouts, keys and keys[: random.choice([0, 1, None, None, None, None])], "a list", random.choice(["", "a table"]))


def _values(key: Key) -> tuple[Value, ...]:
    return (*COUNTRIES[:2], "x", None) if key.type == STRING else (0, 1, None)


def _fanout(rel: Lookup, data: Data) -> int:
    """The most public rows that one private row can meet: the largest multiplicity of the first column, or the table's size."""
    rows = data.publics[rel.public.name]
    if rel.public.filled is not None:
        return 1
    keyed = rel.on is not None and rel.public.columns[0] in columns(rel.on)
    return max(Counter(row[0] for row in rows if row[0] is not None).values(), default=0) if keyed else len(rows)


# ---- random data ---------------------------------------------------------------------------------------------------------------------


def score(random: Random) -> float | None:
    """A float that may be missing, out of bounds or no number."""
    return random.choice([None, math.nan, math.inf, -1e300, 0.1, random.uniform(-2, 8), random.uniform(-2, 8)])


def unit_rows(random: Random, unit: int, most: int = 5) -> Bag:
    """One unit's rows: at most one user, some orders with ids of its own, items of these orders."""
    oids = [100 * unit + i for i in range(random.randrange(most + 1))]
    users = [{"uid": unit, "country": random.choice([*COUNTRIES, None]), "age": random.choice([None, 0, 3, 9])}] if random.random() < 0.8 else []
    orders = [
        {"oid": o, "uid": unit, "item": random.choice([*ITEMS, None]), "amount": random.choice([None, -5, 0, 3, 20]), "score": score(random)}
        for o in oids
    ]
    items = [{"oid": random.choice(oids), "price": random.choice([None, 2, 7])} for _ in range(random.randrange(most)) if oids]
    return {"users": users, "orders": orders, "items": items}


def _released_values(kind: Type) -> tuple[Value, ...]:
    return (*COUNTRIES, *ITEMS, None) if kind == STRING else (0.0, 1e-9, 0.5, 4.0, 1e9, None) if kind == FLOAT else (*range(4), None)


def publics(random: Random, plan: Draft) -> dict[str, list[tuple[Any, ...]]]:
    """The public tables of a draft, unique or not; those filled later hold rows that all differ, or one at most."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    if plan.listed is not None:
        keys = list(product(*(_values(key) for key in plan.keys)))
        found[plan.listed.name] = [(i, *key) for i, key in enumerate(random.sample(keys, random.randint(0, len(keys))))]
    for public in read_by(plan.input):
        if public.filled is not None:
            every = list(product(*(_released_values(c.type) for c in public.columns)))
            found[public.name] = random.sample(every, random.randint(0, 1 if public.filled is Filling.ROW else min(20, len(every))))
            continue
        keys = [*COUNTRIES, *ITEMS]
        many = random.choice([1, 1, 2])
        found[public.name] = [(k, f"{k}{i}" if public.columns[1].type == STRING else i) for k in keys for i in range(many) if random.random() < 0.9]
    return found


def together(units: Mapping[int, Bag], public: Mapping[str, Sequence[tuple[Any, ...]]], salt: str = "salt") -> Data:
    """The data of all units, in one bag of tables."""
    tables = {name: [row for unit in units.values() for row in unit[name]] for name in PHYSICAL}
    return Data(tables, public, salt)


def without(units: Mapping[int, Bag], unit: int) -> dict[int, Bag]:
    return {u: bag for u, bag in units.items() if u != unit}


Neighbours = Callable[[Mapping[int, Bag], int, Random], dict[int, Bag]]


def removed(units: Mapping[int, Bag], unit: int, random: Random) -> dict[int, Bag]:
    return without(units, unit)


def replaced(units: Mapping[int, Bag], unit: int, random: Random) -> dict[int, Bag]:
    return {**units, unit: unit_rows(random, unit)}
