"""Windows over the rows of one unit: PARTITION BY with the unit, or what fixes it. What tells equal rows apart has all columns as tie-breakers.

Windows of one SELECT that could differ in the order of equal rows share it: rows are numbered once below all of them, in the order of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.inside import WINDOWS, Frame, Place, Placing, Reduction, Term, total
from dpquery.plan.scalar import Column, Scalar, columns
from dpquery.sql.fields import peek, take
from dpquery.sql.modes import is_mode
from dpquery.sql.names import Statement
from dpquery.sql.quoting import written
from dpquery.values.types import INTEGER, Kind

FARTHEST = 1_000_000  # rows that a frame or LAG may reach
RANKS: dict[type[exp.Expr], Place] = {exp.RowNumber: Place.ROW_NUMBER, exp.Rank: Place.RANK, exp.DenseRank: Place.DENSE_RANK}
SHIFTS: dict[type[exp.Expr], Place] = {exp.Lag: Place.LAG, exp.Lead: Place.LEAD}
OFFERED = "ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, COUNT, SUM, AVG, MIN, MAX, MEDIAN, STDDEV or CORR"
JOINED = "the same with GROUP BY of the unit in a subquery of its own, joined by the unit"

Read = Callable[[exp.Expr], Scalar]
Kept = Callable[[Scalar], Column]  # the expression as a column of the relation
Item = tuple[Placing | Reduction, tuple[Column, ...], tuple[Term, ...], Frame | None]


def needs_number(windows: Sequence[exp.Expr]) -> bool:
    """Whether rows must be numbered below these windows: where one sees equal rows from the other end, or several see them."""
    seen = [one for one in windows if isinstance(one, exp.Window) and _tells_apart(one)]
    return len(seen) > 1 or any(_several_ways(one) for one in seen)


def _tells_apart(node: exp.Window) -> bool:
    """Whether it may tell equal rows apart."""
    spec = peek(node, "spec")
    counts = spec is not None and str(peek(spec, "kind")).upper() == "ROWS"
    return counts or isinstance(node.this, exp.RowNumber | exp.Lag | exp.Lead | exp.FirstValue | exp.LastValue | exp.Ntile | exp.NthValue)


def _several_ways(node: exp.Window) -> bool:
    """Whether it becomes several windows, for a default, or one from the other end."""
    spec = peek(node, "spec")
    starts, ends = ("", "") if spec is None else (str(peek(spec, side)).upper() for side in ("start", "end"))
    turned = starts in ("CURRENT ROW", "0") or (ends == "UNBOUNDED" and starts != "UNBOUNDED")
    return has_default(node.this) or isinstance(node.this, exp.LastValue | exp.NthValue) or turned


def has_default(node: exp.Expr) -> bool:
    """Whether it is LAG or LEAD with a default. That of NULL says nothing."""
    default = peek(node, "default") if isinstance(node, exp.Lag | exp.Lead) else None
    return default is not None and not isinstance(default, exp.Null)


def window(
    statement: Statement, node: exp.Window, read: Read, kept: Kept, reduced: Callable[[exp.Expr], Reduction], number: Column | None = None
) -> Item:
    """The window as written; whether its partition holds the unit is for the caller to see. The number breaks ties, turned round as the order is."""
    function, partition, order, spec, over, alias = take(node, "this", "partition_by", "order", "spec", "over", "alias")
    if alias is not None or (over is not None and str(over).upper() != "OVER"):
        raise statement.refuse("WINDOW_NAME", "a named window is not supported", node, "the window's definition inside OVER (...)")
    by = [read(one) for one in partition or ()]
    terms = () if order is None else tuple(one for term in take(order, "expressions")[0] for one in _term(statement, term, read, kept))
    if number is not None:
        terms = (*terms, Term(number, descending=False, nulls_first=False))
    item = _item(statement, function, read, kept, reduced)
    if isinstance(item, Placing):
        frame, terms = None, _from_an_end(statement, function, spec, terms)
    elif spec is not None:
        frame, terms = _frame(statement, spec, terms)
    else:
        frame = None
    if not total(item, frame):
        terms = tuple(term for term in terms if term.column != number)
    if isinstance(item, Placing):
        pass
    elif terms and frame is None:
        frame = Frame(rows=False)
    elif not terms and frame is not None and not frame.rows:
        frame = None  # without an order all rows are equal
    return item, tuple(dict.fromkeys(kept(one) for one in by if columns(one))), terms, frame


def _term(statement: Statement, node: exp.Ordered, read: Read, kept: Kept) -> tuple[Term, ...]:
    """A term of ORDER BY; a constant orders nothing."""
    this, descending, first = take(node, "this", "desc", "nulls_first")
    value = read(this)
    if value.type.kind in (Kind.INTERVAL, Kind.NULL):
        raise statement.refuse("TYPE_MISMATCH", f"rows cannot be ordered by a value of type {value.type}", this, "a CAST to another type")
    return (Term(kept(value), bool(descending), bool(first)),) if columns(value) else ()


def _item(statement: Statement, node: exp.Expr, read: Read, kept: Kept, reduced: Callable[[exp.Expr], Reduction]) -> Placing | Reduction:
    match node:
        case exp.RowNumber() | exp.Rank() | exp.DenseRank():
            take(node)
            return Placing(RANKS[type(node)], None, INTEGER)
        case exp.Lag() | exp.Lead():
            this, offset, _ = take(node, "this", "offset", "default")
            if has_default(node):
                raise AssertionError("a default is written out before")
            value = _value(statement, this, read, kept)
            return Placing(SHIFTS[type(node)], value, value.type, 1 if offset is None else _whole(statement, offset))
        case exp.FirstValue() | exp.LastValue():
            value = _value(statement, take(node, "this")[0], read, kept)
            return Placing(Place.FIRST_VALUE, value, value.type)
        case exp.IgnoreNulls() | exp.RespectNulls() if not isinstance(node.this, exp.AnyValue):
            raise statement.refuse("IGNORE_NULLS", "IGNORE NULLS and RESPECT NULLS are not supported", node, "the window without it")
        case _:
            return _aggregate(statement, node, reduced)


def _aggregate(statement: Statement, node: exp.Expr, reduced: Callable[[exp.Expr], Reduction]) -> Reduction:
    known = exp.AggFunc | exp.Filter | exp.IgnoreNulls | exp.Anonymous
    if not isinstance(node, known) or isinstance(node, exp.Ntile | exp.NthValue) or is_mode(node):
        raise _unknown(statement, node)
    found = reduced(node)
    if found.function not in WINDOWS:
        message = f"{statement.spelled(node)} as a window would hold all values of its rows once more for each of them"
        raise statement.refuse("WINDOW_FUNCTION", message, node, JOINED)
    if found.distinct:
        raise _unknown(statement, node)
    return found


def _unknown(statement: Statement, node: exp.Expr) -> Refused:
    return statement.refuse("WINDOW_FUNCTION", f"the window function {statement.spelled(node)} is not supported inside a unit", node, OFFERED)


def _value(statement: Statement, node: exp.Expr, read: Read, kept: Kept) -> Column:
    value = read(node)
    if value.type.kind in (Kind.INTERVAL, Kind.NULL):
        raise statement.refuse("TYPE_MISMATCH", f"a window over values of type {value.type} is not supported", node, "a CAST to another type")
    return kept(value)


def _whole(statement: Statement, node: object) -> int:
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdigit() or not text.isascii() or len(text) > 7 or int(text) > FARTHEST:
        at = node if isinstance(node, exp.Expr) else None
        raise statement.refuse("WINDOW_ARGUMENT", f"a literal number from 0 to {FARTHEST:,} is wanted here", at, "LAG(x, 1)")
    return int(text)


def _from_an_end(statement: Statement, node: exp.Expr, spec: exp.WindowSpec | None, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The order in which the first row is the one that is asked for: LAST_VALUE, of all rows, is FIRST_VALUE from the other end."""
    begins, ends = (None, None) if spec is None else _edges(statement, spec)
    if isinstance(node, exp.LastValue):
        if spec is None or begins is None or begins > 0 or ends != FARTHEST + 1:
            message = "LAST_VALUE ends at the current row"
            raise statement.refuse("WINDOW_FUNCTION", message, node, "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
        return _reversed(terms)
    if spec is not None and not (isinstance(node, exp.FirstValue) and begins == -FARTHEST - 1 and ends is not None and ends >= 0):
        raise statement.refuse("WINDOW_FRAME", FRAMED, spec, unframed(node, begins, ends))
    return terms


FRAMED = "a frame goes with COUNT, SUM, AVG, MIN and MAX only; FIRST_VALUE takes one from the first row on"


def unframed(node: exp.Expr, begins: int | None, ends: int | None) -> str:
    """What to write for a function with a frame: FIRST_VALUE of a frame is the row so many before; others take no heed of theirs."""
    if not isinstance(node, exp.FirstValue) or begins is None:
        return "the window without its frame"
    x = node.this.sql(dialect="duckdb", comments=False)[:100]
    if ends is None or ends < 0:
        return f"lag({x}, k) OVER (..) for the row k before"
    if begins >= 0:
        return f"lead({x}, {begins}) OVER (..)" if begins else f"{x} itself: the first row is the current one"
    rows = -begins
    return f"CASE WHEN row_number() OVER (..) > {rows} THEN lag({x}, {rows}) OVER (..) ELSE first_value({x}) OVER (..) END, no frame in any"


def _reversed(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple(Term(term.column, not term.descending, not term.nulls_first) for term in terms)


def _edges(statement: Statement, spec: exp.WindowSpec) -> tuple[int | None, int | None]:
    """Where a frame begins and ends, in rows from the current one; beyond FARTHEST: at the first or the last."""
    _, start, start_side, end, end_side = take(spec, "kind", "start", "start_side", "end", "end_side")
    return _edge(statement, start, start_side), 0 if end is None else _edge(statement, end, end_side)


def _edge(statement: Statement, at: object, side: object) -> int | None:
    sign = {"PRECEDING": -1, "FOLLOWING": 1}.get(str(side or "").upper())
    if str(at).upper() == "CURRENT ROW" and sign is None:
        return 0
    if sign is None:
        return None
    if str(at).upper() == "UNBOUNDED":
        return sign * (FARTHEST + 1)
    return sign * _whole(statement, at) if isinstance(at, exp.Literal) else None


def _frame(statement: Statement, spec: exp.WindowSpec, terms: tuple[Term, ...]) -> tuple[Frame | None, tuple[Term, ...]]:
    """ROWS or RANGE from the first row up to the current row, or ROWS between any two rows; and the order of rows.

    What goes on to the last row is that from the other end, and what goes over all rows has neither an order nor a frame.
    """
    kind, (begins, ends) = str(peek(spec, "kind") or "").upper(), _edges(statement, spec)
    if kind in ("ROWS", "RANGE") and begins is not None and ends is not None:
        if (begins >= 0 >= ends and begins != ends) or begins > FARTHEST or ends < -FARTHEST:
            message = "this frame ends before it begins, and has no rows"
            raise statement.refuse("WINDOW_FRAME", message, spec, "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")
        first, last = begins < -FARTHEST, ends > FARTHEST
        if first and last:
            return None, ()
        if (begins == 0 and ends >= 0 and (last or kind == "ROWS")) or (last and kind == "ROWS"):
            begins, ends, first, last, terms = -ends, -begins, last, False, _reversed(terms)
        if not last and (kind == "ROWS" or (first and ends == 0)):
            return Frame(kind == "ROWS", None if first else -begins, ends), terms
    message = "this frame is not supported inside a unit"
    raise statement.refuse("WINDOW_FRAME", message, spec, f"ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING, or no frame{_apart(statement)}")


def _apart(statement: Statement) -> str:
    """Which column tells the rows apart, where they are those of one table: then a join of it with itself says the same as a frame of distances."""
    unique = [column.name for table in statement.tables.values() for column in table.columns.values() if column.unique]
    alone = len(statement.tables) == 1 and unique
    return f"; or a join of the table with itself, grouped by {written(unique[0])}, which tells its rows apart" if alone else ""
