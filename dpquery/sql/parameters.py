"""Parameters of a statement: `?`, `$1` and `$name`, and `@name` or `:name` where the dialect writes them so.

A value never becomes text. Before parsing, each parameter is a name that no statement can spell; in the parser's tree that name, where it stands
alone for a value, becomes a typed literal. Anywhere else it is refused.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from sqlglot import Token, TokenType, exp

from dpquery.errors import Refused
from dpquery.sql.clause import MARK, Marks, Value, where
from dpquery.sql.fields import texts
from dpquery.sql.refuse import near, refuse

Given = Sequence[object] | Mapping[str, object]
SIGNS: Mapping[str, str] = {"bigquery": "@", "snowflake": ":", "spark": ":"}
"""The dialect's own sign before a parameter's name, beside `$`."""
ENDS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN, TokenType.R_BRACKET)
MOST = 1_000  # parameters of one statement
MOST_DIGITS = 400
INSTEAD = "a number, a text, TRUE or FALSE, None, a date, a datetime, a Decimal or a UUID"


def marked(tokens: Sequence[Token], given: Given | None, dialect: str, text: str) -> tuple[list[Token], Marks]:
    """The tokens with a mark in place of each parameter, and the values by mark. Refused where values and parameters do not go together."""
    found: list[Token] = []
    values: list[Value] = []
    spelled: list[str] = []
    source = _Values(given, text)
    index = 0
    while index < len(tokens):
        name, length = _parameter(tokens, index, SIGNS.get(dialect, "$"))
        if not length:
            found.append(tokens[index])
            index += 1
            continue
        mark = _marked(tokens[index], tokens[index + length - 1], f"{MARK}{len(values)}")
        values.append(source.value(name, mark))
        spelled.append(name)
        if len(values) > MOST:
            raise refuse("TOO_COMPLEX", f"at most {MOST:,} parameters", position=where(mark), source=text)
        if index + length < len(tokens) and tokens[index + length].token_type is TokenType.L_PAREN:
            raise _misplaced(mark, text)
        found.append(mark)
        index += length
    source.check_all_used(tokens[-1])
    return found, tuple(values)


def _parameter(tokens: Sequence[Token], index: int, sign: str) -> tuple[str, int]:
    """The parameter that starts here, and how many tokens it takes: an empty name and 1 for `?`; 0 tokens: there is none."""
    token = tokens[index]
    if token.token_type is TokenType.PLACEHOLDER and token.text == "?":
        return "", 1
    if token.token_type is TokenType.VAR and token.text[:1] == "$" and len(token.text) > 1:
        return token.text[1:], 1
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.text not in ("$", sign) or following is None or following.start != token.end + 1:
        return "", 0
    if token.token_type is TokenType.COLON and index and tokens[index - 1].token_type in ENDS:  # a path into a value: x:y
        return "", 0
    named = following.text.isidentifier() and following.token_type is not TokenType.STRING
    numbered = token.text == "$" and following.text.isdecimal()
    return (following.text, 2) if token.token_type in SIGNED and (named or numbered) else ("", 0)


SIGNED = (TokenType.PARAMETER, TokenType.COLON)


def _marked(first: Token, last: Token, name: str) -> Token:
    """One token in the place of several."""
    return Token(TokenType.IDENTIFIER, text=name, line=last.line, col=last.col, start=first.start, end=last.end, comments=last.comments)


class _Values:
    """The values given beside a statement, handed out parameter by parameter."""

    def __init__(self, given: Given | None, text: str) -> None:
        self.text, self.next = text, 0
        self.used: set[object] = set()
        if given is not None and (isinstance(given, str | bytes) or not isinstance(given, Mapping | Sequence)):
            raise refuse("PARAMETER", "parameters are a list of values, or a mapping of names to values", instead="params=[30] or params={'age': 30}")
        self.named = given if isinstance(given, Mapping) else None
        self.listed = tuple(given) if given is not None and not isinstance(given, Mapping) else ()
        self.folded = {str(name).lower(): name for name in self.named or ()}
        if len(self.folded) < len(self.named or ()):
            raise refuse("PARAMETER", "two parameters have the same name but for its case", instead="one value for each name")

    def value(self, name: str, token: Token) -> Value:
        if self.named is not None and (not name or name.isdecimal()):
            raise self._unfit("the values have names, but this parameter has none", token, "$name, or the values as a list")
        if self.named is not None:
            key = self.folded.get(name.lower())
            if key is None:
                raise self._unfit(f"no value for ${name}{near(name, map(str, self.named))}", token, f"params={{'{name}': ..}}")
            self.used.add(key)
            return self._checked(self.named[key], token)
        if name and not name.isdecimal():
            raise self._unfit(f"no value for ${name}", token, f"params={{'{name}': ..}}")
        place = int(name[:9]) - 1 if name else self.next
        self.next += not name
        if not 0 <= place < len(self.listed):
            raise self._unfit(f"no value for parameter {place + 1}: {len(self.listed)} given", token, "one value for each parameter, in order")
        self.used.add(place)
        return self._checked(self.listed[place], token)

    def check_all_used(self, last: Token) -> None:
        """Refused where a value belongs to no parameter."""
        unused = [str(n) for n in self.named if n not in self.used] if self.named is not None else []
        unused += [str(place + 1) for place in range(len(self.listed)) if place not in self.used]
        if unused:
            message = f"the statement has no parameter for {', '.join(unused[:5])[:100]}"
            raise self._unfit(message, last, "one value for each parameter, and no more")

    def _checked(self, value: object, token: Token) -> Value:
        try:
            return checked(value)
        except ValueError as error:
            raise refuse("PARAMETER_VALUE", str(error), position=where(token), instead=INSTEAD, source=self.text) from None

    def _unfit(self, message: str, token: Token, instead: str) -> Refused:
        return refuse("PARAMETER", message, position=where(token), instead=instead, source=self.text)


def checked(value: object) -> Value:
    """The value, if a literal can stand for it; a ValueError otherwise. Moments with a zone are turned to UTC.

    It is of the plain type, whatever a type of the caller's own would have it say of itself.
    """
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case UUID():
            return UUID(int=value.int)
        case int() if int.bit_length(value) <= 4 * MOST_DIGITS:
            return int.__int__(value)
        case Decimal() if _sensible(plain := Decimal(value)):
            return plain
        case float() if math.isfinite(value):
            return float.__float__(value)
        case datetime.datetime():
            return _moment(value)
        case datetime.date():
            return datetime.date(value.year, value.month, value.day)
        case int() | Decimal() | float():
            raise ValueError("a number must be finite and of a sensible size")
        case _:
            raise ValueError(f"no literal stands for a value of type {type(value).__name__[:50]}")


def _sensible(value: Decimal) -> bool:
    """Whether it can be written out: not too large, too near to zero, or of too many digits."""
    return value.is_finite() and abs(value.adjusted()) < MOST_DIGITS and len(value.as_tuple().digits) <= MOST_DIGITS


def _moment(value: datetime.datetime) -> datetime.datetime:
    try:
        known = value if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        raise ValueError("a moment must lie within the years 1 to 9999 in UTC") from None
    return datetime.datetime(known.year, known.month, known.day, known.hour, known.minute, known.second, known.microsecond)


def bound(tree: exp.Expr, values: Marks, text: str) -> exp.Expr:
    """The tree with literals in place of the marks. Refused where one stands for anything but a value."""
    if not values:
        return tree
    for name in [node for node in tree.find_all(exp.Identifier) if node.name.startswith(MARK)]:
        column = name.parent
        if not isinstance(column, exp.Column) or len(column.parts) > 1 or _is_ordinal(column):
            raise refuse("PARAMETER_PLACE", PLACE, node=name, instead=WRITE, source=text)
        made = literal(values[int(name.name[1:])])
        made.meta.update(name.meta)
        column.replace(made)
    for node in tree.walk():
        if not isinstance(node, exp.Literal) and any(MARK in one for one in texts(node)):
            raise refuse("PARAMETER_PLACE", PLACE, node=node, instead=WRITE, source=text)
    return tree


PLACE = "a parameter stands for a value, and there can be none here"
WRITE = "the name, the number or the word itself in the statement's text"


def _misplaced(token: Token, text: str) -> Refused:
    return refuse("PARAMETER_PLACE", PLACE, position=where(token), instead=WRITE, source=text)


def _is_ordinal(column: exp.Expr) -> bool:
    """Whether a literal in this place would count columns: GROUP BY 1, ORDER BY 1."""
    above = column.parent
    while isinstance(above, exp.Paren | exp.Tuple):
        above = above.parent
    return isinstance(above, exp.Group | exp.Ordered)


def literal(value: Value) -> exp.Expr:
    """The value as the parser would have read it."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(value)
        case int() | float() | Decimal():
            return _number(value)
        case datetime.datetime():
            return _cast(value.isoformat(" "), "TIMESTAMP")
        case datetime.date():
            return _cast(value.isoformat(), "DATE")
        case UUID():
            return _cast(str(value), "UUID")


def _number(value: int | float | Decimal) -> exp.Expr:
    """A negative number is one in brackets, so that no operator can get between its sign and its digits; a float has an exponent."""
    size = abs(value)
    text = f"{size!r}{'' if 'e' in repr(size) else 'e0'}" if isinstance(size, float) else f"{size:f}" if isinstance(size, Decimal) else str(size)
    made = exp.Literal.number(text)
    return exp.Paren(this=exp.Neg(this=made)) if value < 0 else made


def _cast(text: str, kind: str) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind, dialect="duckdb"))


def fraction(value: Value) -> Fraction | None:
    """The exact number, as people write it; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def written(given: Given | None) -> Iterator[tuple[str, str | None]]:
    """Each parameter with its value as text, for the log."""
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given or (), 1)
    for name, value in pairs:
        yield str(name), None if value is None else str(checked(value))
