"""The texts that dpquery gives to engines, read by the engine's own parser: one SELECT, known tables, known functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import duckdb

from dpquery.backends import names
from dpquery.schema.model import Schema


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# In public subqueries and below the noise: what the forms of the plan's functions are written with, and what sums, caps and key lists need.
FORMS = _set(
    """+ - * / // % || ~~ ~~* like_escape ilike_escape abs ceil concat contains count count_star date_diff date_part date_trunc dayname ends_with
    exp floor greatest hash isnan last_day least left length list_value ln log log10 log2 lower ltrim max monthname pow range regexp_extract
    regexp_matches regexp_replace replace right round
    row_number rtrim sign sqrt starts_with strlen strpos substring sum trim trunc unnest upper xor"""
)
# Inside a unit too: none depends on the order of rows, that of `first`, of lists and of windows being total.
BELOW = FORMS | _set(
    """>> bit_and bit_or bit_xor bool_and bool_or dense_rank first first_value histogram isfinite lag lead list list_aggr list_product list_sort
    list_sum list_transform mad map_values min quantile_cont quantile_disc rank"""
)
# In public subqueries and above the noise, as the statement's author wrote them.
WRITTEN = FORMS | _set(
    """!~~ !~~* not_like_escape not_ilike_escape nullif power year quarter month week day dayofweek dayofyear hour minute second to_centuries
    to_days to_decades to_hours to_microseconds to_milliseconds to_millennia to_minutes to_months to_quarters to_seconds to_weeks to_years"""
)
# In public subqueries alone: rows made of literals, and values of public rows, which are exact.
ROWS = _set("generate_series range")
PUBLIC = WRITTEN | ROWS | _set("avg bool_or max median min prefix stddev_pop stddev_samp suffix var_pop var_samp")
ABOVE = WRITTEN | _set(
    """datepart datediff datetrunc acos asin atan atan2 avg cbrt cos cume_dist degrees dense_rank even first_value gcd isfinite isinf lag last_value
    lead list_extract min nth_value ntile percent_rank pi radians rank sin strftime tan"""
)
OWN = re.compile(r"u|v|w|k|i|n|d|c|place|__row|[acdekmnoprsvwx]\d+|[mq]\d+_\d+")
GIVEN = re.compile(r"noisy(_[1-9][0-9]*)?|public_[0-9]+")  # tables that the engine above the noise is given
BINNED = ("t", "b")  # of the bins of quantiles: the part, and the bin
SPELLED = _set(  # names that the engine takes for functions where no column bears them
    """current_date current_time current_timestamp localtime localtimestamp current_catalog current_user current_role current_schema session_user user
    rowid"""
)


@dataclass(frozen=True)
class Shape:
    """What a statement is made of: the tables it reads (in full), functions, columns, and which kinds of nodes stand within which."""

    tables: frozenset[str]
    functions: frozenset[str]
    columns: frozenset[tuple[str, ...]]
    nodes: frozenset[str]
    odd: frozenset[str]
    rows: frozenset[str]  # functions that FROM calls


PARTS = tuple(field.name for field in fields(Shape))


def shape(con: duckdb.DuckDBPyConnection, text: str) -> Shape:
    """The shape of a text; an AssertionError where it is not one SELECT."""
    found = con.extract_statements(text)
    assert [one.type for one in found] == [duckdb.StatementType.SELECT], f"not one SELECT: {text}"
    row = con.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
    assert row is not None
    tree = json.loads(row[0])
    assert not tree["error"], f"{tree.get('error_message')}: {text}"
    assert len(tree["statements"]) == 1, text
    seen: dict[str, set[Any]] = {name: set() for name in PARTS}
    for node, parent, scope in _walk(tree["statements"][0]["node"], "", frozenset()):
        kind = str(node.get("type", ""))
        seen["nodes"].add(f"{parent} {kind} {node.get('function_name', '')}")
        match kind:
            case "BASE_TABLE":
                path = tuple(part for part in (node["catalog_name"], node["schema_name"], node["table_name"]) if part)
                if not (len(path) == 1 and path[0].lower() in scope):
                    seen["tables"].add(".".join(path))
            case "TABLE_FUNCTION" | "PIVOT" | "SHOW_REF" | "DELIM_GET" | "COLUMN_DATA" | "BOUND_TABLE_REF" | "LAMBDA" | "VALUE_PARAMETER" | "COLLATE":
                seen["odd"].add(kind)
                if kind == "TABLE_FUNCTION":
                    seen["rows"].add(node["function"]["function_name"].lower())
            case "COLUMN_REF":
                seen["columns"].add(tuple(node["column_names"]))
            case _ if "function_name" in node:
                seen["functions"].add(node["function_name"].lower())
                if node.get("schema") or node.get("catalog"):
                    seen["odd"].add(f"{node.get('catalog')}.{node.get('schema')}.{node['function_name']}")
    return Shape(**{name: frozenset(seen[name]) for name in PARTS})


def _walk(node: Any, parent: str, scope: frozenset[str]) -> Iterator[tuple[Mapping[str, Any], str, frozenset[str]]]:
    """Every node with the kind of the one around it and the names of the CTEs in sight."""
    if isinstance(node, list):
        for one in node:
            yield from _walk(one, parent, scope)
    elif isinstance(node, dict):
        if "cte_map" in node:
            scope = scope | {entry["key"].lower() for entry in node["cte_map"]["map"]}
        if "type" in node:
            yield node, parent, scope
            parent = str(node["type"])
        for key, one in node.items():
            if key != "qualified_name":
                yield from _walk(one, parent, scope)


# ---- the three kinds of text ---------------------------------------------------------------------------------------------------------


def check_private(found: Shape, schema: Schema, text: str) -> None:
    """A statement over private rows: tables of the source and public relations, each named in full."""
    ours = {names.table(table.physical).replace('"', "") for table in schema.tables.values()}
    made = {name for name in found.tables if re.fullmatch(r"memory\.main\.public_\d+", name)}
    _check(replace(found, odd=found.odd - {"LAMBDA"}), ours | made, BELOW, text)  # of sums over a list
    declared = {column for table in schema.tables.values() for column in table.columns}
    strange = {c for c in found.columns if not OWN.fullmatch(c[-1]) and c[-1] not in BINNED and not (len(c) == 2 and c[-1] in declared)}
    assert not strange, f"columns {strange}: {text}"


def check_public(found: Shape, schema: Schema, text: str) -> None:
    """A statement over public rows: declared public tables, and public relations made of them."""
    ours = {table.physical for table in schema.tables.values() if table.public}
    made = {name for name in found.tables if re.fullmatch(r"memory\.main\.public_\d+", name)}
    assert found.rows <= ROWS, f"rows of {sorted(found.rows - ROWS)}: {text}"
    _check(replace(found, odd=found.odd - {"TABLE_FUNCTION"}), ours | made, PUBLIC, text)
    declared = {column for table in schema.tables.values() if table.public for column in table.columns}
    strange = {c for c in found.columns if not OWN.fullmatch(c[-1]) and not (len(c) == 1 and c[-1] in declared | {"s"})}  # s: of literals
    assert not strange, f"columns {strange}: {text}"


def check_noisy(found: Shape, text: str) -> None:
    """A statement over noisy tables, and over public rows that were handed over to it."""
    _check(found, {name for name in found.tables if GIVEN.fullmatch(name)}, ABOVE, text)
    own = re.compile(r"[hly]\d+")  # y: what another table has one of; h, l: ends of error bars
    strange = {c for c in found.columns if not (OWN.fullmatch(c[-1]) or own.fullmatch(c[-1]))}
    assert not strange, f"columns {strange}: {text}"


def _check(found: Shape, tables: set[str], functions: frozenset[str], text: str) -> None:
    assert found.tables <= tables, f"tables {found.tables - tables}: {text}"
    assert found.functions <= functions, f"functions {sorted(found.functions - functions)}: {text}"
    assert not found.odd, f"{sorted(found.odd)}: {text}"
    spelled = {c for c in found.columns if c[-1].lower() in SPELLED}
    assert not spelled, f"{sorted(spelled)}: {text}"
