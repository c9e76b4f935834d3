"""The shapes that total forms share: a piece of SQL that remembers what a float can be, and functions from a call to its piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpquery.backends.values import INFINITY, literal
from dpquery.plan.scalar import Call, Literal, Scalar
from dpquery.values.types import INTEGER


@dataclass(frozen=True, slots=True)
class Piece:
    """SQL of one expression. Of a float: whether it can be NaN, can be -0.0, and is surely finite; other types have neither."""

    text: str
    nan: bool = False
    minus: bool = False
    finite: bool = False

    @property
    def clean(self) -> str:
        """The SQL with NaN made NULL and -0.0 made 0.0, where they can occur. NaN lies above infinity in DuckDB's order."""
        text = f"({self.text} + 0.0)" if self.minus else self.text
        return f"CASE WHEN {self.text} <= {INFINITY} THEN {text} END" if self.nan else text


Pieces = tuple[Piece, ...]
Form = Callable[[Call, Pieces], Piece]


def in_list(call: Call, pieces: Pieces) -> Piece:
    """x IN (literals)."""
    subject = replace(pieces[0], minus=False).clean
    return Piece(f"({subject} IN ({', '.join(bare(item) for item in call.args[1:])}))")


def bare(item: Scalar) -> str:
    """A literal of a list or comparison; integers without their type, which is the other side's."""
    match item:
        case Literal(value=int(value), type=kind) if kind == INTEGER:
            return str(value) if value > -(2**63) else literal(value, kind)
        case Literal(value=value, type=kind):
            return literal(value, kind)
        case _:
            raise TypeError("not a literal")


def plain(template: str) -> Form:
    """A function that cannot fail on canonical arguments."""

    def form(call: Call, pieces: Pieces) -> Piece:
        return Piece(template.format(*(piece.clean for piece in pieces)))

    return form


def joined(word: str) -> Form:
    """The arguments with an operator between them."""
    return lambda call, pieces: Piece("(" + f" {word} ".join(piece.clean for piece in pieces) + ")")


def listed(word: str) -> Form:
    """A function of any number of arguments that cannot fail on canonical ones."""
    return lambda call, pieces: Piece(f"{word}(" + ", ".join(piece.clean for piece in pieces) + ")")


def compared(template: str) -> Form:
    """A comparison: NaN must be NULL first (to DuckDB it is the largest number); -0.0 compares as 0.0."""

    def form(call: Call, pieces: Pieces) -> Piece:
        whole = all(isinstance(arg, Literal) for arg in call.args)
        shown = (
            bare(arg) if isinstance(arg, Literal) and not whole else replace(piece, minus=False).clean
            for arg, piece in zip(call.args, pieces, strict=True)
        )
        return Piece(template.format(*shown))

    return form
