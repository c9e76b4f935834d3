"""Expressions of the plan as total DuckDB SQL: nothing made here can fail, whatever the data and whatever statement it stands in.

What differs from plain DuckDB: overflow, division by zero, a logarithm of nothing, a cast that does not fit and a date beyond the years 1 to 9999 are
NULL; a float is never NaN (NULL) nor -0.0; texts are cut at 4096 characters. The results are functions of the row alone, so they are deterministic.

Columns are expected in the canonical form that `scan` makes; other values of their types change results, never make them fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import assert_never

from dpquery.backends.forms import FORMS
from dpquery.backends.grid import grid
from dpquery.backends.shapes import Piece, bare
from dpquery.backends.values import cast, literal, scan
from dpquery.errors import Refused
from dpquery.plan.coerce import LONGEST
from dpquery.plan.scalar import Call, Case, Cast, Column, Literal, Scalar
from dpquery.values.types import FLOAT, STRING, Type

__all__ = ["literal", "scan", "sql", "units"]

LONGEST_TEXT = 50_000  # characters of one expression's SQL, lists of literals and names of columns not counted


def sql(scalar: Scalar, names: Mapping[int, str]) -> str:
    """The expression's SQL, of exactly its type and in canonical form. `names` gives the SQL of each column, by id.

    Refused: TOO_COMPLEX where the SQL would grow beyond all measure (divisions within divisors, ten deep).
    """
    return lower(scalar, names).clean


def units(scalar: Scalar, step: Fraction, low: int, high: int, names: Mapping[int, str], double: bool = False) -> str:
    """The value in whole grid units as BIGINT, or if `double` as DOUBLE: clamp(floor(value / step + 1/2), low, high); NULL for NULL and NaN.

    Exact for INTEGER, DECIMAL and BOOLEAN. A FLOAT takes one correctly rounded multiplication where 1 / step is a whole number, as for 0.01, so that
    0.07 and 1.15 fall on the units they show. |low| and |high| are at most 2^62.
    """
    return grid(sql(scalar, names), scalar.type, step, low, high, double)


def lower(scalar: Scalar, names: Mapping[int, str]) -> Piece:
    """The expression's SQL. Refused: TOO_COMPLEX where it would be longer than the limit, so that no text grows exponentially."""
    piece = _lower(scalar, names)
    if len(piece.text) > LONGEST_TEXT and len(piece.text) > LONGEST_TEXT + _allowance(scalar, names):
        raise Refused("TOO_COMPLEX", "an expression is too complex to be made safe against errors", instead="fewer divisions within divisions")
    return piece


def _allowance(scalar: Scalar, names: Mapping[int, str]) -> int:
    """Characters that are there however simple the expression is: literals of lists and columns that stand for expressions."""
    total, stack = 0, [scalar]
    while stack:
        match stack.pop():
            case Call(function="in", args=(subject, *items)):
                total += sum(len(bare(item)) + 2 for item in items)
                stack.append(subject)
            case Column(id=identity):
                total += len(names[identity])
            case Call(args=args):
                stack += args
            case Case(branches=branches, otherwise=otherwise):
                stack += [part for branch in branches for part in branch] + ([] if otherwise is None else [otherwise])
            case Cast(arg=arg):
                stack.append(arg)
            case Literal():
                pass
    return total


def _lower(scalar: Scalar, names: Mapping[int, str]) -> Piece:
    match scalar:
        case Literal(value=value, type=kind):
            return Piece(literal(value, kind), finite=True)
        case Column(id=identity):
            return Piece(names[identity])
        case Call(function=function, args=args):
            return FORMS[function](scalar, tuple(lower(arg, names) for arg in args))
        case Case():
            return Piece(_case(scalar, names))
        case Cast(arg=arg, type=kind):
            return _cast(lower(arg, names), arg.type, kind)
        case _:
            assert_never(scalar)


def _case(case: Case, names: Mapping[int, str]) -> str:
    branches = " ".join(f"WHEN {lower(condition, names).clean} THEN {lower(result, names).clean}" for condition, result in case.branches)
    otherwise = f" ELSE {lower(case.otherwise, names).clean}" if case.otherwise is not None else ""
    return f"CASE {branches}{otherwise} END"


def _cast(piece: Piece, source: Type, to: Type) -> Piece:
    text = cast(piece.clean, source, to)
    if to == FLOAT:
        from_text = source == STRING
        return Piece(text, nan=from_text, minus=from_text, finite=not from_text)
    return Piece(f"left({text}, {LONGEST})" if source == STRING == to else text)
