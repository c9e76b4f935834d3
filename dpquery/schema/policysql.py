"""What SQL text says of privacy policies and domains, read in one pass over its tokens: the time is linear in the text, whatever it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MOST_KEYS: Final = 16  # columns of one entity key
SPENT: Final = ("BUDGET_LIMIT", "MAX_BUDGET_PER_AGGREGATE", "BUDGET_WINDOW")

# Each token ends where it ends, or with the text: what is left open is never looked at from a second place.
_QUOTED = r"""\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)"""
_TOKEN = re.compile(
    rf"""\s+ | --[^\n]* | /\*.*?(?:\*/|\Z)
    | privacy_policy\s*=\s*r?(?:
        '''(?P<p1>.*?)(?:'''|\Z) | \"\"\"(?P<p2>.*?)(?:\"\"\"|\Z)
        | '(?P<p3>(?:[^'\\]|\\.)*+)(?:'|\Z) | "(?P<p4>(?:[^"\\]|\\.)*+)(?:"|\Z))
    | '(?P<text>(?:[^']|'')*+)(?:'|\Z)
    | (?P<name>(?:[\w$]+|{_QUOTED})(?:\.(?:[\w$]+|{_QUOTED}))*+)
    | (?P<mark>=>|.)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_PART = re.compile(r"\"[^\"]*\"?|`[^`]*`?|[\w$]+")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|[+-]?\.[0-9]+(?:e[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Token:
    """A literal text, what a privacy policy holds, a dotted name, or a mark."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Held:
    """The JSON of a table's or view's policy; no table where the statement names none."""

    table: str | None
    json: str


@dataclass(frozen=True, slots=True)
class Spent:
    """A named limit of a privacy budget."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Way:
    """What a policy answers some role with: a privacy budget, or no policy at all."""

    budget: bool


@dataclass(frozen=True, slots=True)
class Entity:
    """The columns that name whose a row is."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """A column's domain: BETWEEN two ends, IN a list, or REFERENCES a table's column."""

    table: str
    column: str
    kind: str
    values: tuple[Token, ...]


Said = Held | Spent | Way | Entity | Domain


def is_number(text: str) -> bool:
    """Whether the text is a plain decimal number."""
    return len(text) <= 100 and _NUMBER.fullmatch(text) is not None


def said(text: str) -> Iterator[Said]:
    """What the statements say, in their order."""
    tokens = list(_tokens(text))
    words = [token.text.upper() if token.kind == "name" else "" if token.kind != "mark" else token.text for token in tokens]
    table: str | None = None  # the first that the statement names
    ends = 0  # of the list that was read last
    within = False  # the arguments of a budget
    for i, token in enumerate(tokens):
        match words[i] if i >= ends else "":
            case ";":
                table, within = None, False
            case ")":
                within = False
            case "PRIVACY_BUDGET" | "NO_PRIVACY_POLICY" as word if words[i + 1 : i + 2] == ["("]:
                within = word == "PRIVACY_BUDGET"
                yield Way(within)
            case word if within and word not in (*SPENT, "BUDGET_NAME") and token.kind == "name" and words[i + 1 : i + 2] == ["=>"]:
                yield Spent(word, "".join(_value(tokens, i + 2)))
            case "TABLE" | "VIEW" if table is None:
                table = _named(tokens, words, i + 1)
            case word if word in SPENT and words[i + 1 : i + 2] == ["=>"]:
                yield from (Spent(word, value) for value in _value(tokens, i + 2))
            case "ENTITY" if table is not None and words[i + 1 : i + 3] == ["KEY", "("]:
                yield from _entity(table, tokens[i + 3 : i + 3 + 2 * MOST_KEYS])
            case "SET" if table is not None and i and words[i + 1 : i + 3] == ["PRIVACY", "DOMAIN"] and tokens[i - 1].kind == "name":
                kind, (values, ends) = words[i + 3] if i + 3 < len(words) else "", _values(tokens, words, i + 3)
                yield from (Domain(table, _last(tokens[i - 1].text), kind, tuple(one)) for one in values)
            case _ if token.kind == "policy":
                yield Held(table, token.text)


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is not None:
            found = match.group(kind)
            yield Token("policy", found) if kind.startswith("p") else Token(kind, found.replace("''", "'") if kind == "text" else found)


def _named(tokens: Sequence[Token], words: Sequence[str], at: int) -> str | None:
    """The name that follows VIEW or TABLE."""
    while words[at : at + 1] and words[at] in ("IF", "NOT", "EXISTS"):
        at += 1
    return _last(tokens[at].text) if at < len(tokens) and tokens[at].kind == "name" else None


def _entity(table: str, tokens: Sequence[Token]) -> Iterator[Entity]:
    """The columns of an entity key up to its closing bracket; nothing where it is not closed."""
    end = next((at for at, token in enumerate(tokens) if token.kind == "mark" and token.text == ")"), None)
    names = [] if end is None else [_last(token.text) for token in tokens[:end] if token.kind == "name"]
    if names and end == 2 * len(names) - 1:
        yield Entity(table, tuple(names))


def _value(tokens: Sequence[Token], at: int) -> list[str]:
    """The value of a named argument: a literal text or a number, whose sign and point may be tokens of their own."""
    texts: list[str] = []
    for token in tokens[at : at + 5]:
        if token.kind == "text" and not texts:
            return [f"'{token.text}'"]
        if token.text in (",", ")", ";"):
            break
        texts.append(token.text)
    return ["".join(texts)] if texts else []


def _values(tokens: Sequence[Token], words: Sequence[str], at: int) -> tuple[list[list[Token]], int]:
    """The values of the domain that starts here, if it is one, and where it ends."""
    kind = words[at] if at < len(words) else ""
    if kind in ("BETWEEN", "IN") and words[at + 1 : at + 2] == ["("]:
        return _items(tokens, at + 2)
    if kind == "REFERENCES" and words[at + 2 : at + 3] == ["("] and words[at + 4 : at + 5] == [")"]:
        return [[Token("name", _last(tokens[place].text)) for place in (at + 1, at + 3)]], at
    return [], at


def _items(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int]:
    """The items up to the closing bracket: literal texts, numbers, and names for all else; no list where it is not closed. And where that ends."""
    items, piece = list[Token](), list[Token]()
    for place in range(at, len(tokens)):
        token = tokens[place]
        if token.kind != "mark" or token.text not in (",", ")", ";"):
            piece.append(token)
            continue
        items += [_item(piece)] if piece else []
        piece = []
        if token.text != ",":
            return [items] if token.text == ")" else [], place
    return [], len(tokens)


def _item(piece: Sequence[Token]) -> Token:
    if len(piece) == 1 and piece[0].kind == "text":
        return piece[0]
    text = "".join(token.text for token in piece)
    return Token("number" if is_number(text) else "name", text)


def _last(name: str) -> str:
    """The last part of a dotted name, without quotation marks; within backticks a name may be dotted too."""
    parts = _PART.findall(name)
    part = parts[-1] if parts else name
    return part.strip("`").split(".")[-1] if part.startswith("`") else part.strip('"')
