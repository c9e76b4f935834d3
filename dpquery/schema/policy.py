"""A schema file drafted from what another system was told: BigQuery's privacy_policy, Snowflake's privacy policies and domains.

Read are the few statements and keys that have a counterpart here; what has none is named in a comment. What neither says is a TODO.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, assert_never

from dpquery.errors import SchemaError
from dpquery.schema.draft import comment, plain_word, quoted_text
from dpquery.schema.policysql import SPENT, Domain, Entity, Held, Spent, Token, Way, is_number, said

LONGEST: Final = 2**20
UNITS: Final = ("privacy_unit_column", "privacy_unit_columns")
SPENDING: Final = ("epsilon_budget", "delta_budget", "max_epsilon_per_query", "delta_per_query", "max_groups_contributed")
INSTEAD: Final = "a file with BigQuery's privacy_policy JSON, or with Snowflake's CREATE PRIVACY POLICY and ALTER TABLE .. SET PRIVACY DOMAIN"


WINDOWS = {"never": 0, "daily": 1, "weekly": 7, "monthly": 31, "yearly": 366}  # in days, of calendars' units the longest


@dataclass(slots=True)
class Column:
    """What was said of a column; each piece as YAML text."""

    type: str = "TODO"
    rest: list[str] = field(default_factory=list)
    note: str = ""


@dataclass(slots=True)
class Policy:
    """What was found. Numbers as text; None where nothing was said."""

    unit: tuple[str, str] | None = None
    units: dict[str, str] = field(default_factory=dict)  # of each table, the column that names its rows' unit
    epsilon: str | None = None
    delta: str | None = None
    most: str | None = None
    query_delta: str | None = None
    groups: str | None = None
    minimum: str | None = None
    period: int = 0  # days after which the cap of the analysts begins anew; 0: never
    tables: dict[str, dict[str, Column]] = field(default_factory=dict)
    public: dict[str, set[str]] = field(default_factory=dict)
    spelled: dict[tuple[str, ...], str] = field(default_factory=dict)  # names of tables, and of columns within them, by their lower case
    notes: list[str] = field(default_factory=list)

    def column(self, table: str, name: str) -> tuple[str, str]:
        """The table's and the column's name as they were first spelled; both systems compare names without case."""
        known = self.spelled.setdefault((table.lower(),), table)
        found = self.spelled.setdefault((table.lower(), name.lower()), name)
        self.tables.setdefault(known, {}).setdefault(found, Column())
        return known, found

    def owned(self, table: str, name: str) -> None:
        """Notes whose rows a table's are; the first such column is the privacy unit."""
        own = self.column(table, name)
        self.unit = self.unit or own
        self.units[own[0]] = own[1]
        if own != self.unit:
            message = f"{'.'.join(own)} must hold the same values as {'.'.join(self.unit)}; else declare unit: {{via: .., references: ..}}"
            self.notes.append(message)


def imported(text: str) -> str:
    """The text of a schema file. SchemaError where nothing in the text is known here."""
    if len(text) > LONGEST:
        raise SchemaError("BAD_POLICY", "the file is too long to be a policy", instead=INSTEAD)
    found = Policy()
    if text.lstrip().startswith("{"):
        _bigquery(*_resource(text), found)
    else:
        _sql(text, found)
    if found.unit is None and not found.tables and found.epsilon is None and found.minimum is None:
        raise SchemaError("BAD_POLICY", "no privacy policy and no privacy domain is found in the file", instead=INSTEAD)
    return "".join(f"{line}\n" for line in _lines(found))


def _sql(text: str, found: Policy) -> None:
    limits, ways = list[str](), list[Way]()
    for one in said(text):
        match one:
            case Held():
                _bigquery(_json(one.json), one.table or "TODO", found)
            case Spent():
                _spent(one, limits, found)
            case Way():
                ways.append(one)
            case Entity(columns=(column,)):
                found.owned(one.table, column)
            case Entity():
                _composite(one, found)
            case Domain():
                _domain(one, found)
            case _:
                assert_never(one)
    _limited(limits, found)
    _told_apart(ways, found)


def _composite(entity: Entity, found: Policy) -> None:
    """Several columns name the unit together: here one has to, which only the owner can add."""
    table = found.column(entity.table, entity.columns[0])[0]
    keys = " and ".join(found.column(entity.table, name)[1] for name in entity.columns)
    found.notes.append(f"{table}: the entity key {keys} has several columns; add one to the data that holds them together, and name it as the unit")


def _resource(text: str) -> tuple[Mapping[str, Any], str]:
    """The policy, and the table that the REST interface's resource around it names."""
    content = _parsed(text)
    named = content.get("table_reference")
    table = named.get("table_id") if isinstance(named, dict) else None
    return _inner(content), table if isinstance(table, str) and table else "TODO"


def _json(text: str) -> Mapping[str, Any]:
    return _inner(_parsed(text))


def _inner(content: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = content.get("privacy_policy", content)
    return _json(inner) if isinstance(inner, str) else inner if isinstance(inner, dict) else {}


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text.replace('\\"', '"') if text.lstrip().startswith('{\\"') else text, parse_float=Decimal, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise SchemaError("BAD_POLICY", "the privacy policy is not valid JSON", instead=INSTEAD) from None
    if not isinstance(content, dict):
        raise SchemaError("BAD_POLICY", "the privacy policy is no JSON object", instead=INSTEAD)
    try:
        content = _snake(content)
    except RecursionError:
        raise SchemaError("BAD_POLICY", "the privacy policy is nested too deeply", instead=INSTEAD) from None
    return content


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, no name of which stands twice: of two values one would be lost."""
    for name, number in Counter(name for name, _ in pairs).items():
        if number > 1:
            raise SchemaError("BAD_POLICY", f"{name[:60]} is given twice", instead="it once")
    return dict(pairs)


def _snake(content: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of BigQuery's REST interface, which are in camel case, as its SQL spells them."""
    names = [re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found.group(1).lower(), name) for name in content]
    values = (_snake(value) if isinstance(value, dict) else value for value in content.values())
    return _once([*zip(names, values, strict=True)])


# ---- BigQuery ------------------------------------------------------------------------------------------------------------------------


def _bigquery(policy: Mapping[str, Any], table: str, found: Policy) -> None:
    for kind, content in policy.items():
        if not isinstance(content, dict):
            raise SchemaError("BAD_POLICY", f"{kind[:40]} holds no object", instead=INSTEAD)
        match kind:
            case "differential_privacy_policy":
                _known(kind, content, SPENDING, found)
                _spending(content, found)
            case "aggregation_threshold_policy":
                _known(kind, content, ("threshold",), found)
                _strictest(found, "minimum", _whole(content, "threshold"), max)
            case "join_restriction_policy":
                found.notes.append(f"{kind} has no counterpart: joins are allowed on the privacy unit, declared keys and public tables")
                continue
            case _:
                found.notes.append(f"{kind[:60]} is not known here, and nothing of it is read")
                continue
        units = [one for name in UNITS if name in content for one in _units(name, content[name])]
        if len(units) > 1:
            found.notes.append("several privacy unit columns have no counterpart: one column must name the unit")
        if units:
            found.owned(table, str(units[0]).strip())


def _known(kind: str, content: Mapping[str, Any], names: Sequence[str], found: Policy) -> None:
    """Notes the keys of a policy that nothing here reads."""
    for name in content:
        if name not in (*names, *UNITS):
            found.notes.append(f"{kind}: {name[:60]} is not known here, and is not read")


def _units(name: str, value: object) -> list[str]:
    """The columns that name the unit: a text, several of them separated by commas, or a list."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise SchemaError("BAD_POLICY", f"{name} is no column's name", instead=INSTEAD)


def _spending(content: Mapping[str, Any], found: Policy) -> None:
    for attribute, name in zip(("epsilon", "delta", "most", "query_delta"), SPENDING, strict=False):
        _strictest(found, attribute, _number(content, name), min)
    _strictest(found, "groups", _whole(content, SPENDING[-1]), min)


def _strictest(found: Policy, attribute: str, value: str | None, least: Callable[..., str]) -> None:
    """Keeps of two policies' limits the stricter one, and says so."""
    before = getattr(found, attribute)
    if value is None or before is None:
        setattr(found, attribute, value if before is None else before)
        return
    kept = least(before, value, key=Decimal)
    if before != value:
        found.notes.append(f"of the limits {before} and {value} in several policies {kept} is taken: the stricter one holds for all here")
    setattr(found, attribute, kept)


def _number(content: Mapping[str, Any], name: str) -> str | None:
    value = content.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        return value  # as the REST interface writes integers
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise SchemaError("BAD_POLICY", f"{name} is no number", instead=INSTEAD)
    return str(value)


def _whole(content: Mapping[str, Any], name: str) -> str | None:
    value = _number(content, name)
    if value is not None and not value.isdigit():
        raise SchemaError("BAD_POLICY", f"{name} is no whole number", instead=INSTEAD)
    return value


# ---- Snowflake -----------------------------------------------------------------------------------------------------------------------


def _spent(one: Spent, limits: list[str], found: Policy) -> None:
    match one.name:
        case "BUDGET_WINDOW":
            _window(one.value, found)
        case _ if one.name not in SPENT:
            found.notes.append(f"{one.name[:60]} {one.value[:60]} is not known here, and is not read")
        case _ if not is_number(one.value):
            found.notes.append(f"{one.name} {one.value} is no number")
        case "BUDGET_LIMIT":
            limits.append(one.value)
        case _:
            _strictest(found, "most", one.value, min)
            found.notes.append(f"MAX_BUDGET_PER_AGGREGATE {one.value} bounds each aggregate there, max_epsilon the whole statement here")


def _window(value: str, found: Policy) -> None:
    """A budget that begins anew: the cap of the analysts does, within the data set's own, which is for good."""
    days = WINDOWS.get(value.strip("'").lower())
    if days is None:
        found.notes.append(f"BUDGET_WINDOW {value} is not known here, and is not read: the budget is for the life of the data")
    elif days:
        found.period = max(days, found.period)
        found.notes.append(
            f"BUDGET_WINDOW {value} is analysts.default.period; budget is for the life of the data: raise it to as many windows as there are"
        )


def _limited(limits: list[str], found: Policy) -> None:
    """Nothing; of several budgets the smallest is the policy's."""
    found.epsilon = min(limits, key=Decimal) if limits else found.epsilon
    if len(set(limits)) > 1:
        several = ", ".join(dict.fromkeys(limits))
        found.notes.append(f"of the budgets {several} the smallest is taken: one budget holds for all here; accounts of a ledger split it")


def _told_apart(ways: Sequence[Way], found: Policy) -> None:
    """Notes that a policy answers some otherwise than others: here the budget, split over accounts, holds for all."""
    if not all(way.budget for way in ways):
        found.notes.append("NO_PRIVACY_POLICY() lets some roles ask without noise; here nobody does, and such roles are asked of the source itself")
    budgets = sum(way.budget for way in ways)
    if budgets > 1:
        found.notes.append(f"the {budgets} calls of PRIVACY_BUDGET are one budget here: declare analysts, whose shares add up to it")


def _domain(domain: Domain, found: Policy) -> None:
    table, name = found.column(domain.table, domain.column)
    column = found.tables[table][name] = Column()  # the last domain holds
    kinds = {value.kind for value in domain.values}
    match domain.kind:
        case "BETWEEN" if len(domain.values) == 2 and kinds == {"number"}:
            column.note = "   # integer, decimal or float"
            column.rest += [f"{end}: {value.text}" for end, value in zip(("lower", "upper"), domain.values, strict=True)]
        case "BETWEEN":
            column.type = "date" if kinds == {"text"} else "TODO"
            found.notes.append(f"{table}.{name}: bounds that are no numbers have no counterpart; WHERE bounds dates")
        case "IN":
            column.type = "string" if kinds == {"text"} else "TODO"
            column.rest += [f"values: [{', '.join(map(_listed, domain.values))}]"] if domain.values else []
        case _:
            other, key = (value.text for value in domain.values)
            found.public.setdefault(other, set()).add(key)
            found.notes.append(f"{table}.{name}: its domain is {other}.{key}; join that public table to have its rows as groups")


def _listed(value: Token) -> str:
    """A value of a list as YAML text. What is neither text nor number is written as text: it could be anything."""
    return value.text if value.kind == "number" else value.text.lower() if value.text.lower() in ("true", "false") else quoted_text(value.text)


# ---- the draft -----------------------------------------------------------------------------------------------------------------------


def _lines(found: Policy) -> Iterator[str]:
    yield "# Drafted from a policy of another system; no data was read. Each TODO is the owner's to decide: the file is refused while one is left."
    yield from (f"# {comment(note)}" for note in found.notes)
    yield "dataset: TODO"
    yield "source: {engine: duckdb, path: TODO}"
    yield f"privacy_unit: {_column_name(*found.unit) if found.unit and '.' not in ''.join(found.unit) else 'TODO'}"
    yield "adjacency: add_remove"
    caps = f"epsilon: {found.epsilon or 'TODO'}, delta: {found.delta or ('TODO' if found.query_delta else '0')}"
    yield f"budget: {{{caps}}}"
    if found.period and found.epsilon:
        yield f"analysts: {{default: {{{caps}, period: {found.period}d}}}}"
    yield f"per_query: {{epsilon: TODO, max_epsilon: {found.most or 'TODO'}, delta: {found.query_delta or '0'}}}"
    if found.minimum:
        yield f"min_units_per_group: {found.minimum}"
    yield f"contribution: {{max_groups_contributed: {found.groups or 'TODO'}, max_rows_per_group: TODO}}"
    yield "tables:"
    for table, columns in found.tables.items():
        yield f"  {plain_word(table)}:"
        yield f"    unit: {plain_word(found.units[table]) if table in found.units else 'TODO'}"
        yield "    columns:"
        yield from (
            f"      {plain_word(name)}: {{{', '.join([f'type: {column.type}', *column.rest])}}}{column.note}" for name, column in columns.items()
        )
    for table, keys in found.public.items():
        yield f"  {plain_word(table)}:\n    public: true\n    columns:"
        yield from (f"      {plain_word(key)}: {{type: TODO}}" for key in sorted(keys))


def _column_name(table: str, name: str) -> str:
    plain = all(plain_word(part) == part for part in (table, name) if part != "TODO")
    return f"{table}.{name}" if plain else quoted_text(f"{table}.{name}")
