"""LIMIT, OFFSET and FETCH: literal numbers of rows."""

from __future__ import annotations

from sqlglot import exp

from dpquery.sql.fields import peek, take
from dpquery.sql.names import Statement

GREATEST = 2**63 - 1


def whole_number(statement: Statement, node: exp.Expr | None, clause: str) -> int | None:
    """The literal number of LIMIT or OFFSET."""
    if node is None:
        return None
    if isinstance(node, exp.Fetch):
        _, value, more = take(node, "direction", "count", "limit_options")
        value = value or exp.Literal.number(1)
        more = more if more is not None and (peek(more, "percent") or peek(more, "with_ties")) else None
    else:
        value, more = take(node, "expression", "limit_options")
    if more is not None:
        percent, ties, _ = take(more, "percent", "with_ties", "rows")
        code, words = ("LIMIT_PERCENT", "LIMIT in percent") if percent else ("WITH_TIES", "WITH TIES") if ties else ("LIMIT", "this form of LIMIT")
        raise statement.refuse(code, f"{words} is not supported", node, "LIMIT with a number of rows")
    text = value.name if isinstance(value, exp.Literal) and not value.is_string else ""
    if not text.isdigit() or int(text[:20]) > GREATEST:
        raise statement.refuse("LIMIT", f"{clause} takes a literal whole number", node, f"{clause} 10")
    return int(text)
