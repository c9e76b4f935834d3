"""The only entrance for SQL text: from a statement to a question, or a refusal. Pure: no data, no files, no clock."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlglot.errors import SqlglotError

from dpquery.errors import Error, Refused
from dpquery.plan.draft import Question
from dpquery.schema.model import Schema
from dpquery.sql import rewritten
from dpquery.sql.advice import ADVICE
from dpquery.sql.dialect import DIALECTS, parse
from dpquery.sql.names import Statement
from dpquery.sql.parameters import Given
from dpquery.sql.places import MEANT, pointed
from dpquery.sql.question import question
from dpquery.sql.quiet import quiet
from dpquery.sql.quoting import mended

__all__ = ["offered", "plainly", "read"]


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
    with offered(text, dialect, lambda other: plainly(other, schema, dialect, now, parameters, auto)):
        return plainly(text, schema, dialect, now, parameters, auto)


@contextmanager
def offered(text: str, dialect: str, attempt: Callable[[str], object]) -> Iterator[None]:
    """A refusal from within names the whole statement to write instead, where one is sure and not refused when it is tried."""

    def refusal(other: str) -> Refused | None:
        try:
            attempt(other)
        except Error as again:
            return again if isinstance(again, Refused) else Refused(again.code, again.message)
        return None

    try:
        yield
    except Refused as refused:
        if refused.rewritten is None and dialect.lower() in DIALECTS:
            found = rewritten.statement(refused, text, dialect, refusal)
            if found is not None:
                refused.rewritten, refused.differs = found
        pointed(refused, text, MEANT)
        raise


def plainly(text: str, schema: Schema, dialect: str, now: datetime.datetime | None, parameters: Given | None, auto: bool) -> Question:
    """The statement, read in full; what refuses it offers no other one."""
    try:
        with quiet():
            parsed = parse(text, dialect, parameters)
            statement = Statement(schema, text, parsed.named, now, parsed.clauses, auto=auto)
            return question(statement, parsed.tree)
    except RecursionError:
        raise Refused("TOO_COMPLEX", "the statement is nested too deeply", instead=ADVICE["TOO_COMPLEX"], source=text) from None
    except SqlglotError:
        raise Refused("SYNTAX", "the statement cannot be read", instead=ADVICE["SYNTAX"], source=text) from None
    except Refused as refused:
        refused.source = refused.source or text
        pointed(refused, text)
        if refused.code == "SYNTAX" and dialect != "duckdb":
            refused.instead = refused.instead or f"a statement as {dialect} has it; docs/dialects.md names what is read of it"
        refused.instead = refused.instead or ADVICE.get(refused.code, ADVICE["UNREADABLE"])
        mended(refused, text, schema, dialect)
        raise
    except Error:
        raise
    except Exception as error:
        if _of_sqlglot(error):  # it read what it cannot write
            raise Refused("SYNTAX", "the statement cannot be read", instead=ADVICE["SYNTAX"], source=text) from None
        message = "the statement cannot be read, for a fault of dpquery's own: please report it"
        raise Refused("UNREADABLE", message, instead=ADVICE["UNREADABLE"], source=text) from None


def _of_sqlglot(error: BaseException) -> bool:
    """Whether sqlglot itself failed, over a tree that its reader should not have made."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and str(frame.tb_frame.f_globals.get("__name__", "")).startswith("sqlglot.")
