"""A subquery takes all rows of its WHERE: which of them are kept is chosen within each unit, or above the noise."""

from __future__ import annotations

import re

from sqlglot import exp

from dpquery.sql.fields import peek, take
from dpquery.sql.names import Statement
from dpquery.sql.peruser import unit_named
from dpquery.sql.sides import Bound

NAME = re.compile(r"[\w.]+")


def check_whole(statement: Statement, side: Bound, node: exp.Select) -> None:
    """Refuses a choice of private rows that is not made within each unit, and names the one that is."""
    distinct, limit = peek(node, "distinct"), peek(node, "limit")
    on = None if distinct is None else take(distinct, "on")[0]
    if on is not None:
        keys = [one.sql(dialect="duckdb", comments=False)[:100] for one in on.expressions]
        instead = f"QUALIFY row_number() OVER ({_partition(side, keys)} ORDER BY ..) = 1, which keeps a row of each person"
        raise statement.refuse("DISTINCT_ON", "DISTINCT ON would keep one person's row in place of others'", on, instead)
    if limit is not None:
        message = "LIMIT in a subquery would keep some people's rows in place of others'"
        instead = f"QUALIFY row_number() OVER ({_partition(side, [])} ORDER BY ..) <= 5, rows of each person; or LIMIT in the outermost SELECT"
        raise statement.refuse("LIMIT_IN_SUBQUERY", message, limit, instead)


def _partition(side: Bound, keys: list[str]) -> str:
    """The unit's column, where it is visible, and the keys."""
    named = unit_named(side.frame, side.rel, "in PARTITION BY").removesuffix(" in PARTITION BY")
    unit = named if NAME.fullmatch(named) else "unit"
    known = [key.rpartition(".")[2] for key in keys]
    return f"PARTITION BY {', '.join(keys if unit.rpartition('.')[2] in known else [unit, *keys])}"
