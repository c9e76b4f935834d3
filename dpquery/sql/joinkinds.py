"""One join as written: its kind, or the refusal of kinds that are not supported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from sqlglot import exp

from dpquery.sql.fields import take
from dpquery.sql.names import Source, Statement
from dpquery.sql.refuse import place
from dpquery.sql.sides import Side


class How(Enum):
    INNER = auto()
    LEFT = auto()
    RIGHT = auto()
    FULL = auto()
    SEMI = auto()
    ANTI = auto()


MIRRORED = {How.INNER: How.INNER, How.LEFT: How.RIGHT, How.RIGHT: How.LEFT, How.FULL: How.FULL}
HALVES = (How.SEMI, How.ANTI)


Seat = Callable[[Side, Side, exp.Expr], tuple[Side, Side, exp.Expr]]  # two relations with columns for the subqueries of ON, and ON reading these


@dataclass(frozen=True, slots=True)
class Step:
    """One join as written: what is joined, how, and on what. `bare` is a comma or (`crossed`) a CROSS JOIN: its condition can only stand in WHERE."""

    node: exp.Join
    right: Side | Chain
    how: How
    on: exp.Expr | None
    using: tuple[exp.Identifier, ...]
    natural: bool = False
    bare: bool = False
    crossed: bool = False
    seat: Seat | None = None

    @property
    def plain(self) -> bool:
        """Whether it is an inner join that keeps all columns apart, on conditions of rows: then it may as well be made later."""
        queries = self.on is not None and self.on.find(exp.Query, exp.Subquery, exp.Values) is not None
        return self.how is How.INNER and not self.using and not self.natural and not queries


@dataclass(frozen=True, slots=True)
class Chain:
    """Relations as written, joined from left to right."""

    first: Side | Chain
    steps: tuple[Step, ...] = ()


def sources(joined: Side | Chain) -> Iterator[Source]:
    """The relations whose columns are visible above. Partners of SEMI and ANTI JOIN are not."""
    if not isinstance(joined, Chain):
        yield from joined.frame.sources
        return
    yield from sources(joined.first)
    for one in joined.steps:
        if one.how not in HALVES:
            yield from sources(one.right)


WORDS = ("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER", "NATURAL", "SEMI", "ANTI")
OTHER_KINDS = {
    "ASOF": ("ASOF_JOIN", "a join on the privacy unit with the inequality as a further condition"),
    "POSITIONAL": ("POSITIONAL_JOIN", "a join on the privacy unit"),
}


def step(statement: Statement, node: exp.Join, right: Side | Chain) -> Step:
    """The join as written; refuses kinds that are not supported, each by its own code."""
    _, on, side, kind, method, using = take(node, "this", "on", "side", "kind", "method", "using")
    words = [str(word).upper() for word in (side, kind, method) if word]
    for word in words:
        if word in OTHER_KINDS:
            code, instead = OTHER_KINDS[word]
            raise statement.refuse(code, f"{word} JOIN is not supported", at(node), instead)
        if word not in WORDS:
            raise statement.refuse("UNSUPPORTED_JOIN", f"{word} JOIN is not supported", at(node), "INNER, LEFT, RIGHT, FULL or CROSS JOIN")
    how = next((each for each in (*HALVES, How.LEFT, How.RIGHT, How.FULL) if each.name in words), How.INNER)
    natural, names = "NATURAL" in words, tuple(using or ())
    bare = on is None and not names and not natural
    if bare and how is not How.INNER:
        raise statement.refuse("JOIN_CONDITION", f"{how.name} JOIN has no condition", at(node), "ON .. or USING (..)")
    for name in names:
        if not isinstance(name, exp.Identifier):
            raise statement.refuse("USING", "USING takes names of columns", name, "ON .. with the condition")
    return Step(node, right, how, on, names, natural, bare, "CROSS" in words)


def at(node: exp.Join) -> exp.Expr:
    """What of a join has a place in the text."""
    this, on = take(node, "this", "on", "side", "kind", "method", "using")[:2]
    return on if isinstance(on, exp.Expr) and place(on) is not None else this if isinstance(this, exp.Expr) else node
