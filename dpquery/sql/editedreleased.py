"""Edits around released values: conditions on them in a subquery of their own, the clause of privacy where it protects something, and whether there
are any rows as their noisy number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked
from dpquery.sql.editedvalues import FOLDS, STARTS
from dpquery.sql.ties import conjuncts
from dpquery.sql.words import Edit, Level, Words

BEFORE = (TokenType.FROM, TokenType.COMMA, TokenType.JOIN)
ENDS = (TokenType.JOIN, TokenType.COMMA, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS, TokenType.INNER, TokenType.NATURAL)
ANY = "whether there are any at all, as a noisy count tells"
OPPOSITE = {"=": "<>", "<>": "=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of FROM: its words, those behind its alias, and whether rows without a partner in it are kept."""

    start: int
    stop: int
    end: int
    alias: str
    optional: bool


def filtered_within(place: Place) -> Iterator[str]:
    """Conditions on one relation of FROM alone in a subquery in its place: whatever is joined to it, they choose the same rows."""
    words, level = place.words, place.level
    while level is not None:
        if TokenType.FROM in level.clauses and not any(
            words.kind(at) in (TokenType.RIGHT, TokenType.FULL) for at in words.flat(level.start, level.end)
        ):
            for one in _relations(words, level):
                yield from _moved(place, level, one)
        opened = words.opening(level.start)
        level = None if opened is None else words.level(opened)


def _relations(words: Words, level: Level) -> Iterator[Relation]:
    first, end = level.clauses[TokenType.FROM], level.after(TokenType.FROM)
    for at in words.flat(first, end):
        if words.kind(at) not in BEFORE:
            continue
        close = words.closing(at + 1) if words.kind(at + 1) is TokenType.L_PAREN else at + 1
        if close is None or close >= end:
            continue
        named = close + 1 + (words.kind(close + 1) is TokenType.ALIAS)
        own = words.kind(named) in (TokenType.VAR, TokenType.IDENTIFIER) and named < end
        alias = named if own else close
        if words.kind(alias + 1) is not TokenType.L_PAREN and words.kind(alias) is not TokenType.R_PAREN:
            optional = TokenType.LEFT in (words.kind(at - 1), words.kind(at - 2))
            yield Relation(at + 1, close + 1, alias + 1, words.cut(alias, alias + 1), optional)


def _moved(place: Place, level: Level, one: Relation) -> Iterator[str]:
    words, places = place.words, list[tuple[int, int]]()
    if words.kind(one.end) is TokenType.ON:
        places.append(
            (one.end, next((at for at in words.flat(one.end, level.after(TokenType.FROM)) if words.kind(at) in ENDS), level.after(TokenType.FROM)))
        )
    if TokenType.WHERE in level.clauses and not one.optional:
        places.append((level.clauses[TokenType.WHERE], level.after(TokenType.WHERE)))
    edits, moved = list[Edit](), list[str]()
    for first, end in places:
        tests = conjuncts(words, first, end) or [(first + 1, end)]
        mine = [test for test in tests if _own(place, *test, one.alias)]
        rest = " AND ".join(words.cut(*test) for test in tests if test not in mine)
        if mine and (rest or words.kind(first) is TokenType.WHERE):
            moved += [words.cut(*test) for test in mine]
            edits.append((words.stop(first - 1), words.stop(end - 1), f" {words.cut(first, first + 1)} {rest}" if rest else ""))
    if moved:
        rows = f"(SELECT * FROM {words.cut(one.start, one.stop)} AS {one.alias} WHERE {' AND '.join(moved)}) AS {one.alias}"
        yield words.with_edits((words.begin(one.start), words.stop(one.end - 1), rows), *edits)


def _own(place: Place, first: int, end: int, alias: str) -> bool:
    """Whether a condition reads the columns of one relation alone; a name without a table is the one that is refused."""
    words, refused, found = place.words, place.words.word(place.index), False
    for at in range(first, end):
        if words.kind(at) is TokenType.SELECT:
            return False
        dotted = words.kind(at + 1) is TokenType.DOT
        if dotted and words.word(at) != alias.upper():
            return False
        bare = (
            words.kind(at) is TokenType.VAR and not dotted and words.kind(at - 1) is not TokenType.DOT and words.kind(at + 1) is not TokenType.L_PAREN
        )
        if bare and words.word(at) != refused:
            return False
        found = found or dotted or bare
    return found


def clause_dropped(place: Place) -> Iterator[str]:
    """The SELECT without its clause of privacy, where the one within has a clause of its own."""
    level, words = place.level, place.words
    if level is None or words.word(level.start + 1) != "WITH":
        return
    first, _ = words.items(level)[0]
    if any(words.kind(at) is TokenType.SELECT and words.word(at + 1) == "WITH" for at in range(level.start + 1, level.end)):
        yield words.with_edits((words.begin(level.start + 1), words.begin(first), ""))


def counted(place: Place) -> Iterator[Remarked]:
    """[NOT] EXISTS of private rows that nothing ties to the row around them as their number, which is released once for all rows."""
    words = place.words
    at = next((one for one in range(min(place.index, len(words.tokens) - 1), -1, -1) if words.kind(one) is TokenType.EXISTS), None)
    close = None if at is None else words.closing(at + 1)
    level = None if at is None else words.level(at + 3)
    if at is None or close is None or level is None or level.start != at + 2 or TokenType.FROM not in level.clauses:
        return
    if any(words.word(one) in FOLDS and words.call(one) for one in range(level.start, level.clauses[TokenType.FROM])):
        return  # one row, whatever there is
    first = at - 1 if words.kind(at - 1) is TokenType.NOT else at
    yield from _number(place, level, (first, close), "> 0" if first == at else "<= 0", "")


def members_counted(place: Place) -> Iterator[Remarked]:
    """A literal [NOT] IN private rows, or compared with ANY or ALL of them, as the number of those that it says."""
    words = place.words
    opened = next((at for at in range(place.index, len(words.tokens)) if words.kind(at) is TokenType.L_PAREN), None)
    level = None if opened is None or words.kind(opened + 1) is not TokenType.SELECT else words.level(opened + 2)
    if opened is None or level is None or TokenType.FROM not in level.clauses or len(words.items(level)) != 1:
        return
    word, first, sign = words.word(opened - 1), opened - 2, "="
    negated = word == "ALL" or words.kind(first) is TokenType.NOT
    if word in ("ANY", "SOME", "ALL"):
        sign = OPPOSITE.get(words.word(first), "") if word == "ALL" else words.word(first) * (words.word(first) in OPPOSITE)
        first -= 1
    elif word == "IN":
        first -= negated
    else:
        return
    if sign and words.kind(first) in (TokenType.NUMBER, TokenType.STRING) and words.kind(first - 1) in STARTS:
        item = words.cut(*words.items(level)[0])
        yield from _number(place, level, (first, level.end), "<= 0" if negated else "> 0", f"{words.cut(first, first + 1)} {sign} {item}")


def _number(place: Place, level: Level, edited: tuple[int, int], compared: str, test: str) -> Iterator[Remarked]:
    """The rows' number, compared, in place of some words."""
    words, (first, close) = place.words, edited
    if level.end != close or level.clauses.keys() - {TokenType.FROM, TokenType.WHERE, TokenType.ORDER_BY}:
        return
    rows = words.cut(level.clauses[TokenType.FROM], level.after(TokenType.WHERE))
    if test and TokenType.WHERE in level.clauses:
        where = level.clauses[TokenType.WHERE]
        rows = f"{words.cut(level.clauses[TokenType.FROM], where)} WHERE {test} AND ({words.cut(where + 1, level.after(TokenType.WHERE))})"
    elif test:
        rows += f" WHERE {test}"
    found = f"(SELECT COUNT(*) {rows}) {compared}"
    text = found if words.kind(first - 1) in STARTS else f"({found})"
    yield Remarked(words.with_edits((words.begin(first), words.stop(close), text)), ANY)


OUTPUTS: tuple[Change, ...] = (counted, members_counted)
EDITS: dict[str, tuple[Change, ...]] = {
    "EXISTS": (counted,),
    "RELEASED_JOIN": (filtered_within,),
    "NESTED_RELEASE": (clause_dropped,),
    **dict.fromkeys(("NO_TABLE", "SUBQUERY_ABOVE_NOISE"), OUTPUTS),
}
