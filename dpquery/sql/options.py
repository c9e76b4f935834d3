"""OPTIONS(...) of the differential privacy clause: each option read into its type, contradictions refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from dpquery.aggregates.total import unit_total
from dpquery.plan.draft import AggregateAsk, Contributions, Level, Options
from dpquery.plan.rel import Private, Scan, walk
from dpquery.plan.release import KeySource, Mechanism
from dpquery.plan.scalar import Column
from dpquery.privacy.rows import rows_per_unit
from dpquery.schema.model import Schema, Table
from dpquery.sql import automatic
from dpquery.sql.clause import Name, Option, Text
from dpquery.sql.names import Field, Statement, fold
from dpquery.sql.refuse import near
from dpquery.sql.sides import Bound
from dpquery.values.types import LEAST_AMOUNT

NAMES = (
    *("epsilon", "delta", "rho", "max_groups_contributed", "max_rows_per_group", "max_rows_contributed", "privacy_unit_column"),
    *("min_privacy_units_per_group", "group_selection_strategy", "group_selection_epsilon", "noise", "confidence_level", "bounds", "loss_epsilon"),
)
STRATEGIES = {"PUBLIC_GROUPS": None, "LAPLACE_THRESHOLD": Mechanism.LAPLACE, "GAUSSIAN_THRESHOLD": Mechanism.GAUSSIAN}
NOISES = {"LAPLACE": Mechanism.LAPLACE, "GAUSSIAN": Mechanism.GAUSSIAN, "EXPONENTIAL": None}  # which adds none where something can be chosen
GREATEST_EPSILON = 50
MOST = 10**9  # groups, rows and units that a limit may name
JOIN_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """The options of a statement, typed; None where it is silent. `public` says PUBLIC_GROUPS, `threshold` one of the other strategies, `choices`
    that quantiles are chosen by rank, `auto` that bounds are chosen from the data. `loss` pays for an estimate of what bounds cut off."""

    price: Options
    groups: int | None
    rows: int | None
    weights: int | None
    minimum: int | None
    unit: Name | None
    public: bool
    threshold: bool
    choices: bool
    auto: bool
    loss: Fraction | None
    given: Mapping[str, Option]


def chosen(statement: Statement, options: tuple[Option, ...] | None) -> Chosen:
    """The options, typed and free of contradictions; None without a clause."""
    given = {option.name: option for option in options or ()}
    for name, option in given.items():
        if name not in NAMES:
            raise statement.refuse_at("UNKNOWN_OPTION", f"no option {name!r}{near(name, NAMES)}", option.position, "one of " + ", ".join(NAMES))
    _check_pairs(statement, given)
    strategy = _word(statement, given, "group_selection_strategy", STRATEGIES)
    levels = max((option.levels for option in given.values()), default=1)
    price = Options(
        epsilon=part(_epsilon(statement, given, "epsilon"), levels),
        delta=part(_delta(statement, given), levels),
        rho=part(_positive(statement, given, "rho"), levels),
        noise=_word(statement, given, "noise", NOISES),
        selection=strategy,
        selection_epsilon=part(_epsilon(statement, given, "group_selection_epsilon"), levels),
        confidence=_confidence(statement, given),
        plain=options is None,
        levels=levels,
    )
    has_strategy = "group_selection_strategy" in given
    return Chosen(
        price=price,
        groups=_count(statement, given, "max_groups_contributed"),
        rows=_count(statement, given, "max_rows_per_group"),
        weights=_count(statement, given, "max_rows_contributed"),
        minimum=_count(statement, given, "min_privacy_units_per_group"),
        unit=_unit(statement, given),
        public=has_strategy and strategy is None,
        threshold=has_strategy and strategy is not None,
        auto="bounds" in given and automatic.check(statement, given["bounds"]),
        loss=part(_epsilon(statement, given, "loss_epsilon"), levels),
        choices="noise" in given and _text(given["noise"]) == "EXPONENTIAL",
        given=given,
    )


def part(price: Fraction | None, levels: int) -> Fraction | None:
    """What one of several levels of groups pays."""
    return None if price is None else price / levels


def _check_pairs(statement: Statement, given: Mapping[str, Option]) -> None:
    """Refuses options that contradict each other."""
    public = "group_selection_strategy" in given and _text(given["group_selection_strategy"]) == "PUBLIC_GROUPS"
    pairs = [
        ("epsilon", "rho", "a statement is priced in epsilon or in rho"),
        ("max_groups_contributed", "max_rows_contributed", "one limit at most"),
    ]
    pairs += [("max_rows_per_group", "max_rows_contributed", "one limit at most"), ("group_selection_epsilon", "rho", "shares are parts of epsilon")]
    pairs += [("loss_epsilon", "rho", "shares are parts of epsilon")]
    if public:
        pairs += [("group_selection_strategy", "min_privacy_units_per_group", "public groups appear whatever their number of units")]
        pairs += [("group_selection_strategy", "group_selection_epsilon", "public groups are not selected")]
    for one, other, why in pairs:
        if one in given and other in given:
            raise statement.refuse_at("OPTIONS_CONFLICT", f"{one} and {other} exclude each other: {why}", given[other].position, f"{one} or {other}")


def _text(option: Option) -> str:
    match option.value:
        case Text(text=text):
            return text.upper()
        case Name(parts=(only,)):
            return only.upper()
        case _:
            return ""


def _word(statement: Statement, given: Mapping[str, Option], name: str, words: Mapping[str, Mechanism | None]) -> Mechanism | None:
    if name not in given:
        return None
    word = _text(given[name])
    if word not in words:
        raise statement.refuse_at("OPTION_VALUE", f"no {name} {word!r}{near(word, words)}", given[name].position, "one of " + ", ".join(words))
    return words[word]


def _number(statement: Statement, given: Mapping[str, Option], name: str) -> Fraction | None:
    if name not in given:
        return None
    value = given[name].value
    if not isinstance(value, Fraction):
        written = _text(given[name]).replace(",", ".")
        meant = written if len(written) < 40 and re.fullmatch(r"[0-9]*\.?[0-9]+", written) else "1"
        raise statement.refuse_at("OPTION_VALUE", f"{name} takes a number", given[name].position, f"{name} = {meant}")
    return value


def _positive(statement: Statement, given: Mapping[str, Option], name: str) -> Fraction | None:
    value = _number(statement, given, name)
    if value is not None and value <= 0:
        raise statement.refuse_at("BAD_PRICE", f"{name} must be above 0: no answer is free", given[name].position, f"{name} = 1")
    if value is not None and value < LEAST_AMOUNT:
        raise statement.refuse_at("BAD_PRICE", f"{name} is out of all proportion", given[name].position, f"{name} = 1")
    return value


def _epsilon(statement: Statement, given: Mapping[str, Option], name: str) -> Fraction | None:
    value = _positive(statement, given, name)
    if value is not None and value > GREATEST_EPSILON and not statement.schema.unsafe_testing:
        raise statement.refuse_at("EPSILON_TOO_LARGE", f"{name} is at most {GREATEST_EPSILON}", given[name].position, f"{name} = 1")
    return value


def _delta(statement: Statement, given: Mapping[str, Option]) -> Fraction | None:
    value, unsafe = _number(statement, given, "delta"), statement.schema.unsafe_testing
    if value is not None and not (0 <= value < 1 or (unsafe and value == 1)):
        raise statement.refuse_at("BAD_DELTA", f"delta lies in [0, 1{']' if unsafe else ')'}", given["delta"].position, "delta = 1e-6")
    if value is not None and 0 < value < LEAST_AMOUNT:
        raise statement.refuse_at("BAD_DELTA", "delta is out of all proportion", given["delta"].position, "delta = 0, or delta = 1e-9")
    return value


def _confidence(statement: Statement, given: Mapping[str, Option]) -> Fraction | None:
    value = _number(statement, given, "confidence_level")
    if value is not None and not Fraction(1, 2) <= value < 1:
        raise statement.refuse_at(
            "BAD_CONFIDENCE", "confidence_level lies in [0.5, 1)", given["confidence_level"].position, "confidence_level = 0.95"
        )
    return value


def _count(statement: Statement, given: Mapping[str, Option], name: str) -> int | None:
    value = _number(statement, given, name)
    if value is None:
        return None
    if value.denominator != 1 or not 1 <= value <= MOST:
        raise statement.refuse_at("OPTION_VALUE", f"{name} is a whole number from 1 to {MOST:,}", given[name].position, f"{name} = 4")
    return int(value)


def _unit(statement: Statement, given: Mapping[str, Option]) -> Name | None:
    if "privacy_unit_column" not in given:
        return None
    option = given["privacy_unit_column"]
    value = Name(tuple(option.value.text.split("."))) if isinstance(option.value, Text) else option.value
    if not isinstance(value, Name) or len(value.parts) > 2:
        raise statement.refuse_at("OPTION_VALUE", "privacy_unit_column takes a column's name", option.position, "privacy_unit_column = user_id")
    return value


# ---- what they mean for a statement --------------------------------------------------------------------------------------------------


def check_unit(statement: Statement, options: Chosen, side: Bound, own: frozenset[int]) -> None:
    """Refuses a privacy_unit_column that is not the unit's, by lineage."""
    if options.unit is None:
        return
    *table, name = options.unit.parts
    position = options.given["privacy_unit_column"].position
    found = side.frame.find(name, *table)
    units = [f"{s.alias}.{f.name}" if s.alias else f.name for s in side.frame.sources for f in s.fields if _owned(f, own)]
    instead = f"privacy_unit_column = {units[0]}" if units else "the clause without privacy_unit_column"
    if not found:
        message = f"no column {'.'.join(options.unit.parts)!r}{near(name, side.frame.names())}"
        raise statement.refuse_at("UNKNOWN_COLUMN", message, position, instead)
    if not all(isinstance(f.value, Column) and f.value.id in own for f in found):
        message = f"{name!r} is not the privacy unit; the data owner declares it, and no statement can change it"
        raise statement.refuse_at("PRIVACY_UNIT", message, position, instead)


def _owned(one: Field, own: frozenset[int]) -> bool:
    return isinstance(one.value, Column) and one.value.id in own


def contributions(statement: Statement, options: Chosen, rel: Private, keyed: bool, asks: tuple[AggregateAsk, ...], node: exp.Expr) -> Contributions:
    """The limits in force: the statement's, else the least of its tables', else the schema's, else what the plan itself bounds."""
    schema, tables = statement.schema, tuple(statement.tables.values())
    groups = options.groups if options.groups is not None else _limit(schema, tables, "max_groups_contributed")
    rows = options.rows if options.rows is not None else _limit(schema, tables, "max_rows_per_group")
    join_rows, most = _limit(schema, tables, "join_rows_per_unit"), rows_per_unit(rel)
    groups, rows = groups or most, rows or most
    if not keyed or options.weights is not None:
        groups = groups or 1
    if options.weights is not None or all(ask.card == "units" or ask.per_group is not None or _by_total(ask) for ask in asks):
        rows = rows or 1
    for name, value in (("max_groups_contributed", groups), ("max_rows_per_group", rows)):
        if value is None:
            message = f"neither the statement nor the schema sets {name}: how much one unit may contribute is not bounded"
            owner = f"the data owner writes `contribution: {{{name}: 4}}` into the schema, for every statement"
            raise statement.refuse("MISSING_LIMIT", message, node, f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({name} = 4) ..; or {owner}")
    return Contributions(groups or 1, rows or 1, join_rows or JOIN_ROWS, options.weights, options.groups is not None, options.rows is not None)


def _by_total(ask: AggregateAsk) -> bool:
    """Whether what a unit brings is bounded whatever its number of rows."""
    return (ask.auto and ask.card != "mean") or unit_total(ask) is not None


def rows_in_group(statement: Statement, rel: Private) -> int | None:
    """The most rows of a unit in a group that bounds of aggregates inside it reckon with: the limit in force, or the plan's if less."""
    tables = tuple(statement.tables[below.table] for below in walk(rel) if isinstance(below, Scan))
    limit = statement.rows if statement.rows is not None else _limit(statement.schema, tables, "max_rows_per_group")
    known = [rows for rows in (limit, rows_per_unit(rel)) if rows is not None]
    return min(known) if known else None


def _limit(schema: Schema, tables: tuple[Table, ...], name: str) -> int | None:
    found: list[int | None] = [getattr(table.contribution, name) for table in tables]
    known = [value for value in found if value is not None]
    default: int | None = getattr(schema.contribution, name)
    return min(known) if known else default


def selecting(statement: Statement, options: Chosen, sources: tuple[KeySource, ...], names: tuple[str, ...], level: Level | None) -> Chosen:
    """The options for keys of these names; what selects groups, without those of which none are selected. Refused where they do not go with them.

    Of several levels of groups one that selects some is enough: options speak for all of them.
    """
    given, private = options.given, bool(names) and not sources
    if options.public and private:
        instead = f"RIGHT JOIN a public table USING ({fold(names[0])}), or WHERE {names[0]} IN (..); or another strategy"
        message = f"PUBLIC_GROUPS needs a public list of all keys ({', '.join(names)}), and there is none"
        raise statement.refuse_at("PUBLIC_GROUPS", message, given["group_selection_strategy"].position, instead)
    if options.weights is not None and private:
        message = "max_rows_contributed goes with public keys only"
        raise statement.refuse_at("ROW_WEIGHTS", message, given["max_rows_contributed"].position, "max_groups_contributed, or a public list of keys")
    if private:
        return options
    others = [] if level is None else [one for one in statement.blocks if one.level is not None and one.level.number == level.number]
    keyed = bool(names) or any(one.draft.keys for one in others)
    if level is not None and (len(others) + 1 < level.count or any(one.draft.keys and not one.draft.sources for one in others)):
        return replace(options, price=replace(options.price, selection=None, selection_epsilon=None))
    for name in ("group_selection_epsilon", "min_privacy_units_per_group", "group_selection_strategy"):
        if name in given and not options.public:
            why = "the keys are public" if keyed else "there is no GROUP BY"
            raise statement.refuse_at("OPTION_WITHOUT_EFFECT", f"{name} has no effect: {why}", given[name].position, "the statement without it")
    return options


def check_shares(statement: Statement, options: Chosen, asks: tuple[AggregateAsk, ...]) -> None:
    """Refuses shares that add up to more than the statement's epsilon."""
    shares = [ask.epsilon for ask in asks if ask.epsilon is not None]
    if options.price.selection_epsilon is not None:
        shares.append(options.price.selection_epsilon)
    if options.loss is not None:
        shares.append(options.loss)
    if shares and options.price.rho is not None:
        raise statement.refuse_at("OPTIONS_CONFLICT", "shares are parts of epsilon, but rho is given", options.given["rho"].position, "epsilon")
    if options.price.epsilon is not None and sum(shares) > options.price.epsilon:
        message = "the epsilons of aggregates and of group selection add up to more than the statement's epsilon"
        raise statement.refuse_at("EPSILON_SHARES", message, options.given["epsilon"].position, "smaller shares, or a larger epsilon")
