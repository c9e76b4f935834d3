"""The differential privacy clause: found in a list of tokens, taken out of it, kept as options.

`SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (name = value, ..)` and `name => value` inside a call; values are literals.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from uuid import UUID

from sqlglot import Token, TokenType

from dpquery.errors import Position, Refused
from dpquery.sql.refuse import refuse

OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
MARK = "\0"  # begins a token that stands for a parameter, followed by its number; no statement holds this character
HINT = "DP"  # with the offset of a SELECT: stands in the parser's tree where its clause was, as a hint
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)
DIGITS = 400  # decimal exponents beyond this are no numbers that anyone means


Value = None | bool | int | float | Decimal | str | datetime.date | datetime.datetime | UUID
Marks = tuple[Value, ...]
"""The values of a statement's parameters, by number."""


@dataclass(frozen=True, slots=True)
class Option:
    """One `name = value` of OPTIONS, or one `name => value` of a call, as written; the name in lower case.

    `value` is a number, a pair of numbers or of moments, a text, or a (dotted) name. `levels`: how many SELECTs it is divided over, where it pays.
    """

    name: str
    value: Fraction | tuple[Fraction, Fraction] | tuple[datetime.datetime, datetime.datetime] | Text | Name
    position: Position
    levels: int = 1


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Name:
    parts: tuple[str, ...]


def where(token: Token) -> Position:
    """The place of a token. The tokenizer counts columns at a token's end."""
    length = token.end - token.start + 1
    return Position(token.line, max(1, token.col - length + 1), length)


class Cutter:
    """Takes the clause and the named arguments out of a list of tokens, in one pass."""

    def __init__(self, text: str, tokens: Sequence[Token], marks: Marks = ()) -> None:
        self.text, self.tokens, self.marks = text, tokens, marks
        self.clauses: dict[int, tuple[Option, ...]] = {}  # by the offset of their SELECT
        self.named: dict[int, list[Option]] = {}
        self.rest: list[Token] = []
        self.calls: list[Token | None] = []  # per open bracket the name in front of it

    def cut(self) -> tuple[dict[int, tuple[Option, ...]], dict[int, tuple[Option, ...]], list[Token]]:
        index = 0
        while index < len(self.tokens):
            if self._clause_at(index):
                index = self._clause(index)
            elif self._named_at(index):
                index = self._argument(index)
            else:
                index = self._keep(index)
        return self.clauses, {start: tuple(found) for start, found in self.named.items()}, self.rest

    def _kind(self, index: int) -> TokenType | None:
        return self.tokens[index].token_type if 0 <= index < len(self.tokens) else None

    def _word(self, index: int) -> str:
        return self.tokens[index].text.upper() if index < len(self.tokens) else ""

    def _keep(self, index: int) -> int:
        token = self.tokens[index]
        if token.token_type is TokenType.HINT:
            raise self._refused(
                "HINT",
                "a hint says how an engine is to work, which is not for a statement to say here",
                index,
                "the statement without it, which has the same answer",
            )
        if self._word(index) in ("AT", "BEFORE") and self._kind(index + 1) is TokenType.L_PAREN and self._kind(index + 3) is TokenType.FARROW:
            message = f"{self._word(index)} ({self._word(index + 2)} => ..) asks for the data of another time, and only those of now are read"
            raise self._refused("TIME_TRAVEL", message, index, "the statement without it")
        if token.token_type in OPENING:
            self.calls.append(self.tokens[index - 1] if index else None)
        elif token.token_type in CLOSING and self.calls:
            self.calls.pop()
        self.rest.append(token)
        return index + 1

    def _clause_at(self, index: int) -> bool:
        if self._kind(index) is not TokenType.SELECT or self._kind(index + 1) is not TokenType.WITH:
            return False
        return self._word(index + 2) in ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION", "AGGREGATION_THRESHOLD")

    def _clause(self, index: int) -> int:
        if self._word(index + 2) == "ANONYMIZATION":
            message = "WITH ANONYMIZATION is the former name of the clause"
            raise self._refused("ANONYMIZATION", message, index + 2, "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...)")
        if self._word(index + 2) == "AGGREGATION_THRESHOLD":
            message = "WITH AGGREGATION_THRESHOLD shows exact results of large groups, which is not private"
            instead = "OPTIONS(min_privacy_units_per_group = 50) after WITH DIFFERENTIAL_PRIVACY"
            raise self._refused("AGGREGATION_THRESHOLD", message, index + 2, instead)
        select, after = self.tokens[index], index + 3
        self.rest += [select, Token(TokenType.HINT, "/*+", select.line, select.col, select.start, select.end, [f"{HINT}{select.start}"])]
        options: tuple[Option, ...] = ()
        if self._word(after) == "OPTIONS" and self._kind(after + 1) is TokenType.L_PAREN:
            options, after = self._list(after + 2)
        self.clauses[select.start] = options
        return after

    def _list(self, index: int) -> tuple[tuple[Option, ...], int]:
        found: list[Option] = []
        while self._kind(index) is not TokenType.R_PAREN:
            if self._kind(index + 1) is not TokenType.EQ:
                raise self._refused("SYNTAX", "OPTIONS holds name = value, separated by commas", index)
            named = index
            option, index = self._value(index)
            if option.name in (other.name for other in found):
                raise self._refused("DUPLICATE_OPTION", f"{option.name} is given twice", named, "it once")
            found.append(option)
            if self._kind(index) is TokenType.COMMA:
                index += 1
            elif self._kind(index) is not TokenType.R_PAREN:
                raise self._refused("OPTION_VALUE", f"the value of {option.name} is not a literal", index, "a number, a text or a name")
        return tuple(found), index + 1

    def _named_at(self, index: int) -> bool:
        return self._kind(index + 1) is TokenType.FARROW and bool(self.calls) and self._kind(index - 1) in (TokenType.COMMA, TokenType.L_PAREN)

    def _argument(self, index: int) -> int:
        """Cuts `name => value` with the comma before it, or after it where it stands first."""
        call = self.calls[-1]
        option, after = self._value(index)
        if call is None or self._kind(after) not in (TokenType.COMMA, TokenType.R_PAREN):
            code = "BOUNDS_NOT_LITERAL" if option.name.startswith("contribution_bounds") else "OPTION_VALUE"
            raise self._refused(code, f"the value of {option.name} is not a literal", after, f"{option.name} => with literal numbers")
        self.named.setdefault(call.start, []).append(option)
        if self.rest[-1].token_type is TokenType.COMMA:
            self.rest.pop()
        elif self._kind(after) is TokenType.COMMA:
            after += 1
        return after

    def _value(self, index: int) -> tuple[Option, int]:
        """The option that starts at a name followed by `=` or `=>`, and the index after it."""
        token = self.tokens[index]
        name, position, at = token.text.lower(), where(token), index + 2
        if self._kind(at) is TokenType.L_PAREN:
            pair, after = self._pair(at, name)
            return Option(name, pair, position), after
        if self._kind(at) is TokenType.STRING:
            return Option(name, Text(self.tokens[at].text), position), at + 1
        if isinstance(given := self._marked(at), str):
            return Option(name, Text(given), position), at + 1
        if self._is_mark(at) or self._kind(at) in (TokenType.NUMBER, TokenType.DASH, TokenType.PLUS, TokenType.DOT):
            number, after = self._number(at, name)
            return Option(name, number, position), after
        return self._name(name, position, at)

    def _marked(self, at: int) -> Value:
        """The value of the parameter that stands there; None where there is none."""
        return self.marks[int(self._word(at)[1:])] if self._is_mark(at) else None

    def _is_mark(self, at: int) -> bool:
        """Whether a parameter stands there: a text that spells the character, E'\\0', is none."""
        return self._kind(at) is TokenType.IDENTIFIER and self._word(at).startswith(MARK)

    def _name(self, name: str, position: Position, at: int) -> tuple[Option, int]:
        parts = []
        while at < len(self.tokens) and (self._kind(at) in NAMES or self._word(at).isidentifier()):
            parts.append(self.tokens[at].text)
            if self._kind(at + 1) is not TokenType.DOT:
                return Option(name, Name(tuple(parts)), position), at + 1
            at += 2
        raise self._refused("OPTION_VALUE", f"the value of {name} is not a literal", min(at, len(self.tokens) - 1), "a number, a text or a name")

    def _pair(self, at: int, name: str) -> tuple[tuple[Fraction, Fraction] | tuple[datetime.datetime, datetime.datetime], int]:
        code = "BOUNDS_NOT_LITERAL" if name.startswith("contribution_bounds") else "OPTION_VALUE"
        first = self._moment(at + 1)
        second = first and self._kind(first[1]) is TokenType.COMMA and self._moment(first[1] + 1)
        if first and second and self._kind(second[1]) is TokenType.R_PAREN:
            return (first[0], second[0]), second[1] + 1
        low, after = self._number(at + 1, name, code)
        if self._kind(after) is not TokenType.COMMA:
            raise self._refused(code, f"{name} takes two literal numbers, (low, high)", after, f"{name} => (0, 100)")
        high, after = self._number(after + 1, name, code)
        if self._kind(after) is not TokenType.R_PAREN:
            raise self._refused(code, f"{name} takes two literal numbers, (low, high)", after, f"{name} => (0, 100)")
        return (low, high), after + 1

    def _moment(self, at: int) -> tuple[datetime.datetime, int] | None:
        """The date or timestamp that stands there, with its type before it or without, and the index after it."""
        given = self._marked(at)
        if isinstance(given, datetime.datetime):
            return None if given.tzinfo else (given, at + 1)
        if isinstance(given, datetime.date):
            return datetime.datetime.combine(given, datetime.time()), at + 1
        at += self._word(at) in ("DATE", "TIMESTAMP", "DATETIME") and self._kind(at) is not TokenType.STRING
        if self._kind(at) is not TokenType.STRING or not MOMENT.fullmatch(self.tokens[at].text):
            return None
        try:
            return datetime.datetime.fromisoformat(self.tokens[at].text), at + 1
        except ValueError:
            return None

    def _number(self, at: int, name: str, code: str = "OPTION_VALUE") -> tuple[Fraction, int]:
        """A literal number with its sign; the tokenizer splits `.5` into a point and digits."""
        start, text = at, ""
        given = self._marked(at)
        if isinstance(given, int | float | Decimal) and not isinstance(given, bool):
            return self._exact(str(given), name, at, code), at + 1
        while self._kind(at) in (TokenType.DASH, TokenType.PLUS, TokenType.DOT) and len(text) < 2:
            text, at = text + self.tokens[at].text, at + 1
        if self._kind(at) is not TokenType.NUMBER:
            raise self._refused(code, f"{name} takes literal numbers", start, f"{name} => (0, 100)" if code == "BOUNDS_NOT_LITERAL" else "a number")
        return self._exact(text + self.tokens[at].text, name, start, code), at + 1

    def _exact(self, text: str, name: str, at: int, code: str) -> Fraction:
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise self._refused(code, f"{text[:40]!r} is not a number", at) from None
        if (number and abs(number.adjusted()) > DIGITS) or len(text) > DIGITS:
            raise self._refused(code, f"{name} is out of any sensible range", at)
        return Fraction(number)

    def _refused(self, code: str, message: str, index: int, instead: str | None = None) -> Refused:
        token = self.tokens[min(index, len(self.tokens) - 1)]
        return refuse(code, message, position=where(token), instead=instead, source=self.text)
