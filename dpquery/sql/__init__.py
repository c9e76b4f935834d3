"""The only entrance for SQL text: from a statement to a question, or a refusal. Pure: no data, no files, no clock."""

from __future__ import annotations

import datetime

from sqlglot.errors import SqlglotError

from dpquery.errors import Refused
from dpquery.plan.draft import Question
from dpquery.schema.model import Schema
from dpquery.sql import rewritten
from dpquery.sql.advice import ADVICE
from dpquery.sql.dialect import parse
from dpquery.sql.names import Statement
from dpquery.sql.parameters import Given
from dpquery.sql.places import pointed
from dpquery.sql.question import question

__all__ = ["read"]


def read(
    text: str,
    schema: Schema,
    *,
    dialect: str = "duckdb",
    now: datetime.datetime | None = None,
    parameters: Given | None = None,
    auto: bool = False,
) -> Question:
    """The statement, read in full. Raises Refused, and nothing else, for whatever cannot be answered; `now` is the time of asking.

    `auto`: bounds that it does not write are chosen from the data.
    """
    try:
        return _read(text, schema, dialect, now, parameters, auto)
    except Refused as refused:
        refused.rewritten = rewritten.statement(refused, text, lambda other: _reads(other, schema, dialect, now, parameters, auto))
        raise


def _reads(text: str, schema: Schema, dialect: str, now: datetime.datetime | None, parameters: Given | None, auto: bool) -> bool:
    try:
        _read(text, schema, dialect, now, parameters, auto)
    except Refused:
        return False
    return True


def _read(text: str, schema: Schema, dialect: str, now: datetime.datetime | None, parameters: Given | None, auto: bool) -> Question:
    try:
        parsed = parse(text, dialect, parameters)
        statement = Statement(schema, text, parsed.named, now, parsed.clauses, auto=auto)
        return question(statement, parsed.tree)
    except RecursionError:
        raise Refused("TOO_COMPLEX", "the statement is nested too deeply", instead=ADVICE["TOO_COMPLEX"], source=text) from None
    except SqlglotError:
        raise Refused("SYNTAX", "the statement cannot be read", instead=ADVICE["SYNTAX"], source=text) from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        message = "the statement cannot be read, for a fault of dpquery's own: please report it"
        raise Refused("UNREADABLE", message, instead=ADVICE["UNREADABLE"], source=text) from None
    except Refused as refused:
        refused.source = refused.source or text
        pointed(refused, text)
        if refused.code == "SYNTAX" and dialect != "duckdb":
            refused.instead = refused.instead or f"a statement as {dialect} has it; docs/dialects.md names what is read of it"
        refused.instead = refused.instead or ADVICE.get(refused.code, ADVICE["UNREADABLE"])
        raise
