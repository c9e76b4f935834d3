"""Error bars as columns: Snowflake's DP_INTERVAL_LOW(x) and DP_INTERVAL_HIGH(x), BigQuery's report_format => 'JSON'.

Each is an item of SELECT by itself: it is filled in when the error bars are known, after everything else above the noise is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.draft import Edge
from dpquery.sql.clause import Name, Option, Text
from dpquery.sql.fields import take
from dpquery.sql.names import Statement
from dpquery.sql.unanswered import WRAPPERS, called

NAMES = {"dp_interval_low": Edge.LOW, "dp_interval_high": Edge.HIGH}
NOTHING = "CAST(NULL AS DOUBLE)"  # what stands in a column until it is filled in


@dataclass(frozen=True, slots=True)
class Shown:
    """What an item shows, and of which expression."""

    edge: Edge
    of: exp.Expr


def shown(statement: Statement, node: exp.Expr) -> Shown | None:
    """What an item of SELECT shows of an error bar; None where it is an ordinary one."""
    while isinstance(node, exp.Paren):
        node = node.this
    if called(node) in NAMES:
        _, args = take(node, "this", "expressions")
        if len(args or ()) != 1:
            raise statement.refuse("WRONG_ARGUMENTS", f"{called(node).upper()} takes one argument", node, f"{called(node).upper()}(n)")
        return Shown(NAMES[called(node)], args[0])
    return Shown(Edge.REPORT, node) if _reports(statement, node) else None


def _start(node: exp.Expr) -> int | None:
    while isinstance(node, WRAPPERS):
        node = node.this
    start = node.meta.get("start")
    return start if isinstance(start, int) else None


def _reports(statement: Statement, node: exp.Expr) -> bool:
    start = _start(node)
    return start is not None and any(option.name == "report_format" for option in statement.named.get(start, ()))


def check_format(statement: Statement, option: Option) -> None:
    """Refused where a report is asked for in a format that there is none of."""
    match option.value:
        case Text(text=text) | Name(parts=(*_, text)) if text.upper() == "JSON":
            return
        case _:
            raise statement.refuse_at("REPORT_FORMAT", "a report is written in JSON only", option.position, "report_format => 'JSON'")


def check_places(statement: Statement, items: Sequence[exp.Expr], distinct: bool) -> None:
    """Refused where a report or the end of an error bar stands anywhere but alone in SELECT."""
    found = [one for node in items if (one := shown(statement, node)) is not None]
    alone = {_start(one.of) for one in found if one.edge is Edge.REPORT}
    for start in sorted(statement.reports - alone):
        option = next(one for one in statement.named[start] if one.name == "report_format")
        message = "an aggregate with report_format is a column by itself"
        raise statement.refuse_at("REPORT_FORMAT", message, option.position, "the aggregate without report_format here, and with it in SELECT")
    if found and distinct:
        message = "SELECT DISTINCT merges rows, and with them their error bars"
        raise statement.refuse("DP_INTERVAL", message, found[0].of, "the statement without DISTINCT")


def misplaced(statement: Statement, node: exp.Expr) -> Refused:
    """The refusal of the end of an error bar inside another expression."""
    message = "the end of an error bar is a column of its own; nothing is computed from it"
    return statement.refuse("DP_INTERVAL", message, node, "DP_INTERVAL_LOW(n) AS low in SELECT, and n itself elsewhere")
