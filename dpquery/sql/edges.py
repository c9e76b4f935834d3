"""Error bars as columns: Snowflake's DP_INTERVAL_LOW(x) and DP_INTERVAL_HIGH(x), BigQuery's report_format => 'JSON'.

As an item of the outermost SELECT it is filled in when the error bars are known, after everything else above the noise is done. Elsewhere, and inside
expressions, an end is read as a column of the noisy table: that of a count or sum, which is a function of what is released and of its noise alone.
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
from dpquery.sql.unanswered import called, unwrapped

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


def is_end(node: exp.Expr) -> bool:
    """Whether the item is the end of an error bar."""
    return called(node.unnest()) in NAMES


def _start(node: exp.Expr) -> int | None:
    start = unwrapped(node).meta.get("start")
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
    """The refusal of the end of an error bar where it is not read."""
    message = "the end of an error bar is read in the SELECT that aggregates private rows; elsewhere it is an item of the outermost SELECT by itself"
    return statement.refuse("DP_INTERVAL", message, node, "DP_INTERVAL_LOW(n) AS low, of a count or sum, in that SELECT, and low here")


def unread(statement: Statement, node: exp.Expr) -> Refused:
    """The refusal of the end of an error bar that is no column of the noisy table."""
    message = "beside other clauses and expressions the ends of error bars are read of a single count or sum, moved or stretched by literals"
    return statement.refuse("DP_INTERVAL", message, node, "DP_INTERVAL_LOW(n) AS low of a count or sum n; of others as an item of SELECT by itself")


def check_feeds(statement: Statement) -> None:
    """Refused where a later release reads an end: a stored answer to it would be one at another confidence."""
    fed = {table for block in statement.blocks for one in block.feeds for table in one.tables}
    for (table, _), node in statement.ends.items():
        if table in fed:
            message = "a release that others read shows no ends of its error bars"
            raise statement.refuse("DP_INTERVAL", message, node, "the value itself, or the ends of other releases")
