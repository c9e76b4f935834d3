"""From text to a parser's tree, in any of six dialects, with the differential privacy clause cut out and kept beside it.

No parser knows `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...)` or `name => value` inside a call, so both are taken out of the list of tokens
before parsing. The other tokens keep their places, so that positions in refusals stay true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from dpquery.errors import Position, Refused
from dpquery.sql import abroad, borrowed, dollars, indexed, namedwindows, parameters, quantiles, rowvalues, shorthand
from dpquery.sql.clause import CLOSING, NAMES, OPENING, Cutter, Option, where
from dpquery.sql.parameters import Given
from dpquery.sql.refuse import near
from dpquery.sql.rephrased import rephrased

DIALECTS = ("duckdb", "bigquery", "snowflake", "postgres", "spark", "trino")
LONGEST = 2**20  # characters of a statement
MOST_TOKENS = 60_000  # all of them: a list of 10,000 literals fits
MOST_WORDS = 4_000  # without literals and commas: what bounds the depth of a tree
DEEPEST = 60  # brackets within brackets
LONGEST_RUN = 60  # operators and keywords in a row: NOT NOT NOT ...

LITERALS = (TokenType.NUMBER, TokenType.STRING, TokenType.COMMA)
BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)  # of a parser that misses a part: `SELECT a ->`
STARTS = ("SELECT", "WITH", "FROM", "(")
STATEMENTS = (
    "ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DESC DESCRIBE DETACH DROP EXECUTE EXPLAIN EXPORT "
    "FORCE GRANT IMPORT INSERT INSTALL KILL LOAD MERGE PIVOT PRAGMA PREPARE REFRESH REPLACE RESET REVOKE ROLLBACK SET SHOW SUMMARIZE TABLE "
    "TRUNCATE UNPIVOT UPDATE USE VACUUM VALUES"
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement: its tree, the options of each clause by the offset of its SELECT, and the named arguments by the offset of their call's name."""

    source: str
    tree: exp.Expr
    clauses: Mapping[int, tuple[Option, ...]]
    named: Mapping[int, tuple[Option, ...]]


def parse(text: str, dialect: str = "duckdb", given: Given | None = None) -> Parsed:
    """One SELECT statement as a tree with its clause beside it, the given values in place of its parameters. Raises Refused for anything else."""
    if dialect.lower() not in DIALECTS:
        raise Refused("DIALECT", f"no dialect {dialect!r}{near(dialect, DIALECTS)}", instead="one of " + ", ".join(DIALECTS))
    reader = Dialect.get_or_raise(dialect.lower())
    first = reader.INDEX_OFFSET
    reader.INDEX_OFFSET = 0  # else the parser shifts the places of what it takes for arrays, and of nothing else
    tokens = _tokens(text, reader)
    _check_size(text, tokens)
    _check_start(text, tokens)
    _check_joins(text, tokens)
    tokens, marks = parameters.marked(tokens, given, dialect.lower(), text)
    clauses, named, rest = Cutter(text, tokens, marks).cut()
    tree = parameters.bound(namedwindows.spelled_out(_tree(text, rowvalues.called(rest), reader), text), marks, text)
    shorthand.spelled_out(tree, text, dialect.lower())
    borrowed.written_out(tree, dialect.lower())
    rephrased(tree, dialect.lower(), text)
    abroad.check(tree, dialect.lower(), text)
    return Parsed(text, quantiles.located(indexed.placed(tree, first), rest), clauses, named)


@lru_cache(maxsize=64)
def parse_view(text: str) -> exp.Expr:
    """The tree of a view's text, in DuckDB's dialect, under the same limits. Trees are never changed."""
    parsed = parse(text)
    if parsed.clauses or parsed.named:
        raise Refused("VIEW_CLAUSE", "a view holds no DIFFERENTIAL_PRIVACY clause and no named arguments", source=text)
    return parsed.tree


def _tokens(text: str, reader: Dialect) -> list[Token]:
    if len(text) > LONGEST:
        raise Refused("TOO_LONG", f"the statement has {len(text)} characters; at most {LONGEST} are read")
    if "\x00" in text:
        raise _syntax("a NUL character", text, _at(text, text.index("\x00")))
    if (odd := next((i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff"), None)) is not None:
        raise _syntax("half a character (a surrogate), which cannot be passed on", text, _at(text, odd))
    try:
        tokens = dollars.tokens(text, reader)
    except SqlglotError:
        raise _syntax("a quotation mark or comment that is never closed", text, _unclosed(text)) from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise Refused("SYNTAX", "the statement is empty", position=Position(1, 1), source=text)
    if len(tokens) > MOST_TOKENS:
        raise Refused("TOO_LONG", f"the statement has {len(tokens)} words; at most {MOST_TOKENS} are read")
    return tokens


def _check_size(text: str, tokens: Sequence[Token]) -> None:
    """Bounds the depth of any tree that the parser could build, before it builds one."""
    depth = words = run = 0
    previous: Token | None = None
    for token in tokens:
        kind = token.token_type
        literal = kind in LITERALS
        words += not literal
        run = 0 if literal or kind in NAMES or kind in CLOSING else run + 1
        depth += (kind in OPENING) - (kind in CLOSING)
        if depth > DEEPEST or run > LONGEST_RUN or words > MOST_WORDS:
            raise Refused("TOO_COMPLEX", "the statement is nested too deeply or too long", position=where(token), source=text)
        if previous is not None:
            _check_pair(text, previous, token)
        previous = token


def _check_pair(text: str, left: Token, right: Token) -> None:
    """Refuses what the parser would read as something else than the engine: `a,,b`, `0x1F` (taken for an alias), two statements."""
    if left.token_type is TokenType.COMMA and right.token_type is TokenType.COMMA:
        raise _syntax("nothing between two commas", text, where(right))
    if left.token_type is TokenType.NUMBER and right.token_type is TokenType.VAR and right.start == left.end + 1:
        raise _syntax("a number that runs into a word", text, where(right))
    if left.token_type is TokenType.SEMICOLON:
        message = "one statement at a time is answered; another one starts here"
        raise Refused("SEVERAL_STATEMENTS", message, position=where(right), instead="the statements one by one", source=text)


def _check_start(text: str, tokens: Sequence[Token]) -> None:
    first = tokens[0].text.upper()
    if first in STARTS:
        return
    if first in STATEMENTS.split():
        message = f"{first} is not answered: only SELECT is"
        raise Refused("NOT_A_SELECT", message, position=where(tokens[0]), instead="a SELECT statement", source=text)
    raise _syntax(f"a statement starts with SELECT, WITH or FROM, not with {tokens[0].text[:40]!r}{near(first, STARTS[:3])}", text, where(tokens[0]))


def _check_joins(text: str, tokens: Sequence[Token]) -> None:
    """Refuses a JOIN whose condition does not come before the next JOIN: the parser takes a time that doubles with each of them."""
    open_joins = [False]
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind in OPENING:
            open_joins.append(False)
        elif kind in CLOSING and len(open_joins) > 1:
            open_joins.pop()
        elif kind in (TokenType.ON, TokenType.USING):
            open_joins[-1] = False
        elif kind is TokenType.JOIN:
            if open_joins[-1]:
                message = "a JOIN follows another one that has no condition yet"
                raise Refused("NESTED_JOIN", message, position=where(token), instead="each JOIN followed by its own ON or USING", source=text)
            words = [before.text.upper() for before in tokens[max(0, index - 3) : index]]
            open_joins[-1] = not any(word in ("CROSS", "NATURAL", "POSITIONAL") for word in words)


def _tree(text: str, tokens: list[Token], reader: Dialect) -> exp.Expr:
    try:
        trees = reader.parser().parse(tokens, text)
    except ParseError as error:
        raise _unparsed(error, text) from None
    except RecursionError:
        raise Refused("TOO_COMPLEX", "the statement is nested too deeply", source=text) from None
    except (SqlglotError, *BROKEN):
        raise Refused("SYNTAX", "the statement cannot be read", source=text) from None
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        raise Refused("SYNTAX", "the statement cannot be read", position=where(tokens[0]) if tokens else None, source=text)
    if any(map(_malformed, tree.walk())):
        raise Refused("SYNTAX", "the statement cannot be read: a value is missing, or stands where none may", position=where(tokens[0]), source=text)
    return tree


def _malformed(node: exp.Expr) -> bool:
    """Whether a part lacks what its kind has to have, or has what its kind never has: the parser looks at neither in what it makes by itself."""
    lacks = any(needed and node.args.get(name) in (None, []) for name, needed in node.arg_types.items())
    return lacks or any(value and name not in node.arg_types for name, value in node.args.items())


def _unparsed(error: ParseError, text: str) -> Refused:
    """The parser's first complaint, in its own words as far as they are words."""
    first = error.errors[0] if error.errors else {}
    found, line, column = str(first.get("highlight") or ""), first.get("line"), first.get("col")
    message = f"cannot read the statement from {found[:40]!r} on" if found else "cannot read the statement"
    position = None
    if isinstance(line, int) and isinstance(column, int):
        position = Position(line, max(1, column - len(found) + 1), max(1, len(found)))
    return _syntax(message, text, position)


def _syntax(message: str, text: str, position: Position | None) -> Refused:
    return Refused("SYNTAX", message, position=position, source=text)


def _at(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _unclosed(text: str) -> Position | None:
    """Where the last opened quotation starts, as far as counting quotation marks can tell."""
    for mark in ("'", '"'):
        if text.count(mark) % 2:
            return _at(text, text.rindex(mark))
    return _at(text, text.rindex("/*")) if "/*" in text else None
