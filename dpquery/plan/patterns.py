"""Regular expressions: the subset that means the same in every engine, read here and written out for RE2, which takes time linear in the text.

A pattern is a literal, is read before the charge, and has a bounded size once its repetitions are written out; so whatever text it meets, the engine
neither fails nor takes longer than that size times the text. What other engines mean otherwise is refused by name: back-references, look-around.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from dpquery.plan.coerce import Mismatch

LONGEST_PATTERN = 256  # characters
MOST_PARTS = 128  # single characters to match, repetitions written out
DEEPEST_GROUP = 8
LAST = 0x10FFFF

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Flavour:
    """How a dialect writes patterns, and how its engine takes them where engines differ."""

    newline: bool = False  # whether a dot is a new line, too
    longest: bool = False  # whether of several matches at one place the longest is taken, not the first
    boundary: str = "b"  # the escape for the edge of a word
    end: str = "z"  # the escape for the end of the text
    named: bool = True  # whether [[:alpha:]] is a class
    similar: bool = False  # whether it is SQL's own SIMILAR TO, with % and _
    again: bool = False  # whether it is one that was written out here, and is read again


PLAIN = Flavour()  # that of DuckDB, in which patterns are written out
WRITTEN = Flavour(again=True)  # classes written out take more characters; whole texts one more group, and edges


@dataclass(frozen=True, slots=True)
class Chars:
    """One character, among these or among all others."""

    spans: tuple[Span, ...]
    others: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between two characters: ^, $ or \\b. Not \\B, which RE2 finds between the bytes of one character too: DuckDB then fails."""

    text: str


@dataclass(frozen=True, slots=True)
class Group:
    branches: tuple[tuple[Item, ...], ...]
    number: int | None = None  # of what it captures


@dataclass(frozen=True, slots=True)
class Repeat:
    of: Chars | Group
    least: int
    most: int | None
    lazy: bool = False


Item = Chars | Edge | Group | Repeat


@dataclass(frozen=True, slots=True)
class Pattern:
    body: Group
    groups: int
    any_case: bool


ANY, LINE = Chars((), others=True), Chars(((10, 10),), others=True)
DIGIT, WORD, SPACE = ((48, 57),), ((48, 57), (65, 90), (95, 95), (97, 122)), ((9, 10), (12, 13), (32, 32))
SETS = {"d": DIGIT, "w": WORD, "s": SPACE}
NAMED: dict[str, tuple[Span, ...]] = {
    "alpha": ((65, 90), (97, 122)),
    "digit": DIGIT,
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "upper": ((65, 90),),
    "lower": ((97, 122),),
    "space": ((9, 13), (32, 32)),
    "blank": ((9, 9), (32, 32)),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
EVERY = tuple(f"\\{one}\\{other}]" for letter in SETS for one, other in ((letter, letter.upper()), (letter.upper(), letter)))
CONTROLS = {"t": 9, "n": 10, "f": 12, "r": 13}
QUANTIFIERS = "*+?{"
AHEAD = {"?=": "look-ahead", "?!": "look-ahead", "?<=": "look-behind", "?<!": "look-behind", "?>": "an atomic group"}


def parse(text: str, flavour: Flavour = PLAIN, *, any_case: bool = False) -> Pattern:
    """The pattern that a text spells. Raises Mismatch, with the place in the text."""
    if len(text) > LONGEST_PATTERN * (20 if flavour.again else 1):
        raise Mismatch(f"takes a pattern of at most {LONGEST_PATTERN} characters", code="TOO_COMPLEX")
    start = 0
    if text.startswith("(?i)") and not flavour.similar:
        start, any_case = 4, True
    reader = _Reader(text, flavour, start)
    body = Group(reader.branches(0))
    if reader.at < len(text):
        raise reader.bad("has a ')' that nothing opens", "\\) for the sign itself")
    if parts(body) > MOST_PARTS + (4 if flavour.again else 0):
        raise Mismatch(f"has a pattern of more than {MOST_PARTS} characters to match, repetitions written out", code="TOO_COMPLEX")
    return Pattern(body, reader.groups, any_case)


def written(pattern: Pattern, *, whole: bool = False) -> str:
    """The pattern as RE2 takes it; `whole`: that matches nothing but whole texts."""
    text = _branches(pattern.body.branches)
    return ("(?i)" if pattern.any_case else "") + (f"^(?:{text})$" if whole else text)


class _Reader:
    def __init__(self, text: str, flavour: Flavour, start: int) -> None:
        self.text, self.flavour, self.at, self.groups = text, flavour, start, 0

    def bad(self, why: str, instead: str | None = None) -> Mismatch:
        return Mismatch(f"{why} (character {min(self.at, len(self.text)) + 1} of the pattern)", code="BAD_LITERAL", instead=instead)

    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def took(self, sign: str) -> bool:
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

    def branches(self, depth: int) -> tuple[tuple[Item, ...], ...]:
        if depth > DEEPEST_GROUP + self.flavour.again:
            raise self.bad(f"has groups more than {DEEPEST_GROUP} deep")
        found = [self.sequence(depth)]
        while self.took("|"):
            found.append(self.sequence(depth))
        return tuple(found)

    def sequence(self, depth: int) -> tuple[Item, ...]:
        items: list[Item] = []
        while self.next() and self.next() not in "|)":
            items.append(self.repeated(self.atom(depth)))
        return tuple(items)

    def atom(self, depth: int) -> Item:
        sign = self.next()
        if sign in QUANTIFIERS:
            raise self.bad(f"repeats nothing with {sign!r}", f"\\{sign} for the sign itself")
        if sign == "(":
            return self.group(depth)
        self.at += 1
        if sign == "[":
            return self.bracket()
        if sign == "\\":
            return self.escape()
        if self.flavour.similar:
            return Repeat(ANY, 0, None) if sign == "%" else ANY if sign == "_" else _one(sign)
        match sign:
            case ".":
                return ANY if self.flavour.newline else LINE
            case "^" | "$":
                return Edge(sign)
            case _:
                return _one(sign)

    def group(self, depth: int) -> Group:
        start = self.at
        self.at += 1
        kind = next((name for sign, name in AHEAD.items() if self.text.startswith(sign, self.at)), None)
        if kind is not None:
            raise self.bad(f"has {kind}, which takes more than one pass over a text", "two conditions: s matches this AND NOT that")
        captures = not self.took("?:")
        if captures and self.next() == "?":
            raise self.bad("has a group with a name or options", "(..), (?:..) or (?i) before all else")
        if captures:
            self.groups += 1
        number, branches = self.groups if captures else None, self.branches(depth + 1)
        if not self.took(")"):
            self.at = start
            raise self.bad("has a '(' that nothing closes", "\\( for the sign itself")
        return Group(branches, number)

    def escape(self) -> Item:
        sign = self.next()
        self.at += 1
        flavour = self.flavour
        if flavour.similar:
            return _one(self.character(sign))
        if sign.lower() in SETS and sign:
            return Chars(SETS[sign.lower()], others=sign.isupper())
        if sign == flavour.boundary.upper():
            self.at -= 2
            raise self.bad(f"has \\{sign}, which is found within a character of several bytes, too", f"\\{flavour.boundary} for the edge of a word")
        if sign == flavour.boundary:
            return Edge("\\b")
        if sign == "A" or sign == flavour.end:
            return Edge("^" if sign == "A" else "$")
        return _one(self.character(sign))

    def character(self, sign: str) -> str:
        """The character that an escape stands for."""
        if sign in CONTROLS:
            return chr(CONTROLS[sign])
        if sign and sign in string.punctuation:
            return sign
        self.at -= len(sign) + 1
        if sign.isdigit():
            raise self.bad(f"has the back-reference \\{sign}, which no single pass over a text can follow")
        known = "\\d, \\w, \\s, \\t, \\n, \\r, \\f, \\" + self.flavour.boundary
        raise self.bad(f"has the escape \\{sign}, which is not one of {known} or a sign", "the characters themselves, or [..]")

    def bracket(self) -> Chars:
        if any(self.took(every) for every in EVERY):
            return ANY
        start, others = self.at - 1, self.took("^")
        first = self.at
        spans: list[Span] = []
        while self.next() and self.next() != "]":
            if self.took("[:"):
                spans += self.named()
                continue
            low = self.member(first)
            if isinstance(low, Chars):
                if low.others:
                    raise self.bad("has all others than a class within brackets", "(?:\\D|[..])")
                spans += low.spans
                continue
            high: int | Chars = low
            if self.next() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.member(self.at)
            if isinstance(high, Chars) or high < low:
                raise self.bad("has a range that ends before it starts, or at no character")
            spans.append((low, high))
        if not self.took("]") or not spans:
            self.at = start
            raise self.bad("has a '[' that nothing closes, or with nothing in it", "\\[ for the sign itself, [\\]] for the other one")
        return Chars(_merged(spans), others)

    def member(self, first: int) -> int | Chars:
        sign = self.next()
        if sign == "[" or self.text.startswith("&&", self.at) or (sign == "-" and self.at != first and self.text[self.at + 1 : self.at + 2] != "]"):
            raise self.bad(f"has {sign!r} within brackets, where engines differ", f"\\{sign}")
        self.at += 1
        if sign != "\\":
            return ord(sign)
        sign = self.next()
        self.at += 1
        if sign and sign.lower() in SETS and not self.flavour.similar:
            return Chars(SETS[sign.lower()], others=sign.isupper())
        return ord(self.character(sign))

    def named(self) -> Sequence[Span]:
        end = self.text.find(":]", self.at)
        name = self.text[self.at : end] if end >= 0 else ""
        if name not in NAMED or not self.flavour.named:
            self.at -= 2
            raise self.bad(f"has the class [:{name}:]", "[A-Za-z], \\d, \\w or \\s")
        self.at = end + 2
        return NAMED[name]

    def repeated(self, item: Item) -> Item:
        sign, start = self.next(), self.at
        if not sign or sign not in QUANTIFIERS:
            return item
        if not isinstance(item, Chars | Group):
            raise self.bad(f"repeats nothing with {sign!r}")
        least, most = self.times(sign)
        lazy = not self.flavour.similar and self.took("?")
        if self.next() and self.next() in QUANTIFIERS:
            raise self.bad("repeats a repetition", "(?:a{2}){3}")
        if isinstance(item, Group) and most != 1 and shortest(item) == 0:
            self.at = start
            raise self.bad("repeats what may be empty, where engines differ", "the inner one with + in place of *")
        return Repeat(item, least, most, lazy)

    def times(self, sign: str) -> tuple[int, int | None]:
        self.at += 1
        if sign != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        end = self.text.find("}", self.at)
        inside = self.text[self.at : end] if end >= 0 else ""
        low, comma, high = inside.partition(",")
        numbers = [one for one in (low, high) if one]
        if not low or any(not (one.isascii() and one.isdigit()) or len(one) > 3 for one in numbers) or (high and int(high) < int(low)):
            self.at -= 1
            raise self.bad("has a '{' that is no repetition", "a{2}, a{2,}, a{2,5}, or \\{ for the sign itself")
        self.at = end + 1
        return int(low), int(high) if high else None if comma else int(low)


def _one(sign: str) -> Chars:
    return Chars(((ord(sign), ord(sign)),))


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The same characters, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


# ---- written out ---------------------------------------------------------------------------------------------------------------------


def _branches(branches: Sequence[Sequence[Item]]) -> str:
    return "|".join("".join(map(_written, sequence)) for sequence in branches)


def _written(item: Item) -> str:
    match item:
        case Chars(spans=(), others=True):
            return "[\\s\\S]"
        case Chars(spans=((low, high),), others=False) if low == high:
            return _sign(low)
        case Chars(spans=spans, others=others):
            shown = (_sign(low) if low == high else f"{_sign(low)}-{_sign(high)}" for low, high in spans)
            return f"[{'^' if others else ''}{''.join(shown)}]"
        case Edge(text=text):
            return text
        case Group(branches=branches, number=number):
            return f"({'?:' if number is None else ''}{_branches(branches)})"
        case Repeat(of=of, least=least, most=most, lazy=lazy):
            short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
            long = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
            return f"{_written(of)}{short or long}{'?' if lazy else ''}"
        case _:
            assert_never(item)


def _sign(code: int) -> str:
    sign = chr(code)
    control = next((f"\\{letter}" for letter, other in CONTROLS.items() if other == code), None)
    return control or (f"\\{sign}" if sign in string.punctuation and sign != "_" else sign)


# ---- measured ------------------------------------------------------------------------------------------------------------------------


def parts(item: Item) -> int:
    """How many characters there are to match, repetitions written out."""
    match item:
        case Chars() | Edge():
            return 1
        case Group(branches=branches):
            return sum(1 + sum(map(parts, sequence)) for sequence in branches)
        case Repeat(of=of, least=least, most=most):
            return parts(of) * max(1, most if most is not None else least + 1)
        case _:
            assert_never(item)


def shortest(item: Item) -> int:
    """The least number of characters that it matches."""
    match item:
        case Chars():
            return 1
        case Edge():
            return 0
        case Group(branches=branches):
            return min(sum(map(shortest, sequence)) for sequence in branches)
        case Repeat(of=of, least=least):
            return shortest(of) * least
        case _:
            assert_never(item)


def sure(pattern: Pattern) -> frozenset[int]:
    """The groups that take part in every match; 0 is the whole of it."""
    return frozenset({0, *_sure(pattern.body)})


def _sure(item: Item) -> Iterator[int]:
    match item:
        case Group(branches=branches, number=number):
            if number is not None:
                yield number
            for inner in branches[0] if len(branches) == 1 else ():
                yield from _sure(inner)
        case Repeat(of=of, least=least) if least > 0:
            yield from _sure(of)
        case _:
            return


def plain(pattern: Pattern) -> bool:
    """Whether there is one way only to match at each place, so that it does not matter whether an engine takes the first or the longest."""
    steps = list(_steps(pattern.body))
    return None not in steps and all(_alone(steps[i:], pattern.any_case) for i in range(len(steps)))


def _steps(item: Item) -> Iterator[Chars | Edge | Repeat | None]:
    """The pattern as one row of steps, None for what is not."""
    match item:
        case Chars() | Edge():
            yield item
        case Repeat(of=of, least=least, most=most, lazy=lazy):
            yield item if isinstance(of, Chars) and not (lazy and least != most) else None
        case Group(branches=branches):
            if len(branches) > 1:
                yield None
            for inner in branches[0]:
                yield from _steps(inner)
        case _:
            assert_never(item)


def _alone(steps: Sequence[Chars | Edge | Repeat | None], any_case: bool) -> bool:
    """Whether what the first step may take once more is never what comes next."""
    first, *rest = steps
    if not isinstance(first, Repeat) or first.least == first.most or not isinstance(first.of, Chars):
        return True
    for step in rest:
        match step:
            case Chars() if _meet(first.of, step, any_case):
                return False
            case Chars():
                return True
            case Repeat(of=Chars() as of) if _meet(first.of, of, any_case):
                return False
            case Repeat(least=least) if least > 0:
                return True
            case _:
                continue
    return True


def _meet(one: Chars, other: Chars, any_case: bool) -> bool:
    ours, theirs = _codes(one, any_case), _codes(other, any_case)
    return any(low <= end and start <= high for low, high in ours for start, end in theirs)


def _codes(chars: Chars, any_case: bool) -> tuple[Span, ...]:
    """The characters, with all letters beside one where their case does not matter."""
    spans = chars.spans
    letters = any_case and any(high >= 65 for _, high in spans)
    if not chars.others:
        return (*spans, (65, LAST)) if letters else spans
    edges = [-1, *(edge for low, high in spans for edge in (low, high)), LAST + 1]
    found = [(edges[i] + 1, edges[i + 1] - 1) for i in range(0, len(edges), 2) if edges[i] + 1 < edges[i + 1]]
    return (*found, (65, LAST)) if letters else tuple(found)
