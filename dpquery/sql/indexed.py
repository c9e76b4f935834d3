"""Lists of released values: shown as a whole, or one value of them by its literal place."""

from __future__ import annotations

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql.fields import take
from dpquery.sql.names import Statement
from dpquery.sql.unanswered import called

PLACE = "place"  # the mark of an index whose place in the list is known, counted from 0
EXTRACT = "list_extract"  # NULL beyond the list's end
LONGEST = 9  # digits of a place


def placed(tree: exp.Expr, first: int) -> exp.Expr:
    """The tree, where each index with a literal place has it as a mark. `first` is what the dialect calls the first one."""
    for bracket in tree.find_all(exp.Bracket):
        _, places, shift, _, _ = take(bracket, "this", "expressions", "offset", "safe", "returns_list_for_maps")
        text = places[0].name if len(places) == 1 and isinstance(places[0], exp.Literal) and not places[0].is_string else ""
        if text.isdigit() and text.isascii() and len(text) <= LONGEST:
            place = int(text) - (first if shift is None else int(shift))
            if place >= 0:
                bracket.meta[PLACE] = place
    return tree


def place(statement: Statement, node: exp.Bracket, length: int | None) -> int:
    """The place of an index, counted from 0, in a list of this length, where it is known."""
    found = node.meta.get(PLACE)
    if not isinstance(found, int):
        raise statement.refuse("LIST_INDEX", "the place of a value in a list is a literal whole number, none before the first", node, "q[1]")
    if length is not None and found >= length:
        raise statement.refuse("LIST_INDEX", f"the list has {length} value{'s' * (length > 1)}", node, "a place within the list, as q[1]")
    return found


def extract(of: exp.Expr, at: int) -> exp.Expr:
    """One value of a list."""
    return exp.Anonymous(this=EXTRACT, expressions=[of, exp.Literal.number(at + 1)])


def extracted(node: exp.Expr) -> tuple[exp.Column, int] | None:
    """The list's column and the place; None where the node is no value of a list."""
    if called(node) != EXTRACT:
        return None
    _, (of, at) = take(node, "this", "expressions")
    return of, int(at.name) - 1


def misplaced(statement: Statement, node: exp.Expr) -> Refused:
    """The refusal of a list where it is neither shown nor indexed."""
    message = "a list of quantiles stands in SELECT by itself; what is computed, compared or ordered is one of its values"
    return statement.refuse("LIST_ABOVE_NOISE", message, node, "one of its values, q[1], or the list by itself in SELECT")
