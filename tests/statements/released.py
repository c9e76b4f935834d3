"""Statements in which a list of released keys stands on the private side of a later release, over the data sets of worlds.py."""

from __future__ import annotations

from decimal import Decimal

from worlds import World

from dpquery.schema.model import Schema
from dpquery.values.types import DATE, INTEGER, STRING

LISTED = "SELECT {k}, count(*) AS how_many FROM {t} GROUP BY {k} HAVING count(*) > {few}"
FORMS: tuple[str, ...] = (
    "SELECT {k}, count(*) AS how_many FROM {t} WHERE {k} {in_list} GROUP BY {k}",
    "SELECT count(*) AS how_many FROM {t} WHERE {k} {in_list}",
    "SELECT count(*) AS how_many FROM {t} WHERE {k} {not_in_list}",
    "SELECT {k}, count(*) AS how_many FROM {t} AS a SEMI JOIN {list} AS r USING ({k}) GROUP BY {k}",
    "SELECT r.{k}, count(a.{k}) AS how_many FROM {t} AS a RIGHT JOIN {list} AS r ON a.{k} = r.{k} GROUP BY r.{k}",
    "SELECT r.{k} IS NULL AS other, count(*) AS how_many FROM {t} AS a LEFT JOIN {list} AS r ON r.{k} = a.{k} GROUP BY other",
    "SELECT a.{k}, count(*) AS how_many FROM {t} AS a JOIN {list} AS r ON a.{k} = r.{k} GROUP BY a.{k}",
)
"""With `{list}` a relation of different keys, `{in_list}` and `{not_in_list}` what follows a value."""
KEYED, SINGLE = "SELECT __u, {k} AS key FROM {t} WHERE {k} IN (SELECT {k} FROM listed)", "SELECT __u, NULL AS key FROM {t} WHERE {k} "
COUNTED: tuple[str, ...] = (
    KEYED,
    SINGLE + "IN (SELECT {k} FROM listed)",
    SINGLE + "NOT IN (SELECT {k} FROM listed)",
    KEYED,
    KEYED,
    "SELECT __u, {k} IS NULL OR {k} NOT IN (SELECT {k} FROM listed WHERE {k} IS NOT NULL) AS key FROM {t}",
    KEYED,
)
"""The rows that each form counts, by unit and group, where the list is a table of plain SQL."""


def keyed(made: World) -> list[tuple[str, str]]:
    """Private tables with a column that can be a key, other than what identifies rows or units, and whose values are not declared."""
    kinds = (STRING, INTEGER, DATE)
    return [
        (table.name, column.name)
        for table in made.private()
        for column in table.columns
        if column.type in kinds and column.values is None and not column.unique and column.name not in (table.unit, *(table.unit or ()))
    ]


def adaptive(form: str, table: str, key: str, few: int) -> str:
    """The statement with the list as a release."""
    listed = LISTED.format(k=f'"{key}"', t=f'"{table}"', few=few)
    inner = f'SELECT "{key}" FROM ({listed})'
    return _written(form, table, key, f"({listed})", f"IN ({inner})", f"NOT IN ({inner})")


def _written(form: str, table: str, key: str, listed: str, in_list: str, not_in_list: str) -> str:
    return form.format(k=f'"{key}"', t=f'"{table}"', list=listed, in_list=in_list, not_in_list=not_in_list)


def lists(made: World) -> list[str]:
    """One statement of each form, one that joins a released row, and some with public tables beside released ones."""
    found = keyed(made)
    unit = made.schema.privacy_unit_table
    row = f'SELECT count(*) AS how_many FROM "{unit}" AS a, (SELECT count(*) AS m FROM "{unit}") AS r WHERE r.m > 3'
    count, beside = f'SELECT count(*) AS n FROM "{unit}"', [row]
    for table in made.public()[:2]:
        column = table.columns[0].name
        beside.append(f'SELECT r.n, p."{column}" FROM ({count}) AS r, "{table.name}" AS p')
        beside.append(f'{count} HAVING (SELECT "{column}" FROM "{table.name}") IS NULL')
    return [*(adaptive(form, *found[i % len(found)], 0) for i, form in enumerate(FORMS)), *beside] if found else beside


def automatic(made: World) -> list[str]:
    """Statements whose caps are chosen by a release of their own: of rows, of a number, for the unit's table and for another."""
    found = [f"SELECT count(*, bounds => 'auto') AS n FROM \"{made.schema.privacy_unit_table}\""]
    for table in made.private():
        numbers = [
            column.name
            for column in table.columns
            if column.type.numeric and not column.unique and column.name not in (table.unit, *(table.unit or ()))
        ]
        clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(bounds = 'auto', noise = LAPLACE)"
        found += [f'{clause} count("{name}") AS n, sum("{name}") AS s FROM "{table.name}"' for name in numbers[:1]]
    return found


def summed(made: World) -> list[tuple[Schema, str]]:
    """Sums of a number whose schema says what one unit's values add up to at most; with the schema that does."""
    found = []
    for table in made.private():
        declared = made.schema.tables[table.name]
        for column in declared.columns.values():
            if column.type.numeric and column.name != declared.unit and not column.unique:
                other = column.model_copy(update={"most_per_unit": Decimal(7)})
                changed = declared.model_copy(update={"columns": {**declared.columns, column.name: other}})
                schema = made.schema.model_copy(update={"tables": {**made.schema.tables, table.name: changed}})
                found.append((schema, f'SELECT sum("{column.name}") AS s FROM "{table.name}"'))
    return found
