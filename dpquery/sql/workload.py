"""A text of several statements, one after the other."""

from __future__ import annotations

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from dpquery.errors import Refused
from dpquery.sql.dialect import DIALECTS, LONGEST
from dpquery.sql.refuse import near


def statements(text: str, dialect: str = "duckdb") -> tuple[str, ...]:
    """The statements between semicolons, which do not count in quotes and comments. Raises Refused where the text cannot be read that far."""
    if not isinstance(text, str) or not isinstance(dialect, str):
        raise Refused("NOT_A_TEXT", "statements and their dialect are texts", instead="con.what_if('SELECT COUNT(*) FROM ..')")
    if dialect.lower() not in DIALECTS:
        raise Refused("DIALECT", f"no dialect {dialect!r}{near(dialect, DIALECTS)}", instead="one of " + ", ".join(DIALECTS))
    if len(text) > LONGEST:
        raise Refused("TOO_LONG", f"the text has {len(text)} characters; at most {LONGEST} are read", instead="several files")
    try:
        tokens = Dialect.get_or_raise(dialect.lower()).tokenize(text)
    except SqlglotError:
        raise Refused("SYNTAX", "a quotation mark or comment is never closed", instead="close it") from None
    found: list[str] = []
    start: int | None = None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found += [] if start is None else [text[start : token.start].strip()]
            start = None
        elif start is None:
            start = token.start
    found += [] if start is None else [text[start:].strip()]
    if not found:
        raise Refused("SYNTAX", "the text holds no statement", instead="statements with `;` between them")
    return tuple(found)
