"""Windows over aggregates.

Each becomes a column of a subquery of its own, its arguments columns of the subquery below, so that nothing in it can fail.
"""

from __future__ import annotations

from sqlglot import exp

from dpquery.sql.fields import take
from dpquery.sql.lift import Lifter
from dpquery.sql.public import written
from dpquery.values.types import DATE, Kind

FARTHEST = 1_000_000  # rows that a frame or LAG may reach
ORDERED = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
BARE: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
}
SINGLE: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
}
SIDES = ("preceding", "following")
LENGTHS = {"DAY": 1, "WEEK": 7}  # in days


def window(above: Lifter, node: exp.Window) -> str:
    """The window's SQL over cells of the noisy table."""
    function, partition, order, spec, over, alias = take(node, "this", "partition_by", "order", "spec", "over", "alias")
    if alias is not None or (over is not None and str(over).upper() != "OVER"):
        raise above.statement.refuse("WINDOW_NAME", "a named window is not supported", node, "the window's definition inside OVER (...)")
    by = [_sql(above.cell(one)) for one in partition or ()]
    days = None if order is None or spec is None else _by_days(above, order, spec)
    terms = [] if order is None else ordered(above, order) if days is None else [days[0]]
    if isinstance(function, ORDERED) or _counts_rows(spec):
        terms += [f"t.{name} NULLS LAST" for name in above.ties]
    parts = ["PARTITION BY " + ", ".join(by)] if by else []
    parts += ["ORDER BY " + ", ".join(terms)] if terms else []
    parts += [_frame(above, spec) if days is None else days[1]] if spec is not None else []
    return f"{_call(above, function)} OVER ({' '.join(parts)})"


def ordered(above: Lifter, order: exp.Order) -> list[str]:
    """The terms of ORDER BY inside a window."""
    found = []
    for term in take(order, "expressions")[0]:
        this, desc, first = take(term, "this", "desc", "nulls_first")
        found.append(f"{_sql(above.cell(this))}{direction(desc, first)}")
    return found


def direction(desc: bool | None, first: bool | None) -> str:
    """How a term is ordered, spelled out."""
    return f"{' DESC' if desc else ''} NULLS {'FIRST' if first else 'LAST'}"


def _sql(node: exp.Expr) -> str:
    return written(node)


def _counts_rows(spec: exp.WindowSpec | None) -> bool:
    """Whether the frame counts rows, so that ties matter."""
    return spec is not None and str(take(spec, "kind", "start", "start_side", "end", "end_side")[0] or "").upper() == "ROWS"


def _frame(above: Lifter, spec: exp.WindowSpec) -> str:
    kind, start, start_side, end, end_side = take(spec, "kind", "start", "start_side", "end", "end_side")
    word = str(kind or "ROWS").upper()
    if word not in ("ROWS", "RANGE", "GROUPS"):
        raise above.statement.refuse("WINDOW_FRAME", f"a frame of {word} is not supported", spec, "ROWS BETWEEN ..")
    ends = _edge(above, spec, word, start, start_side), _edge(above, spec, word, end or "CURRENT ROW", end_side)
    return f"{word} BETWEEN {ends[0]} AND {ends[1]}"


def _by_days(above: Lifter, order: exp.Order, spec: exp.WindowSpec) -> tuple[str, str] | None:
    """The order and the frame of days around one date, by its number: there is no day after the last. None for other frames."""
    kind, *ends = take(spec, "kind", "start", "start_side", "end", "end_side")
    counts = {id(at): _days(at) for at in ends[::2] if isinstance(at, exp.Interval)}
    terms = take(order, "expressions")[0]
    if str(kind or "").upper() != "RANGE" or not counts or None in counts.values() or len(terms) != 1:
        return None
    this, desc, first = take(terms[0], "this", "desc", "nulls_first")
    if above.typed(above.cell(this)) != DATE:
        return None
    since = exp.Cast(this=exp.Literal.string("2000-01-01"), to=exp.DataType.build("DATE"))
    number = exp.DateDiff(this=this.copy(), expression=since, unit=exp.Var(this="DAY"), date_part_boundary=True)
    sides = [str(side or "").upper() for side in ends[1::2]]
    given = [at if at is not None else "CURRENT ROW" for at in ends[::2]]
    edges = [
        f"{counts[id(at)]} {side}" if id(at) in counts and side.lower() in SIDES else _edge(above, spec, "RANGE", at, side)
        for at, side in zip(given, sides, strict=True)
    ]
    return f"{_sql(above.cell(number))}{direction(desc, first)}", f"RANGE BETWEEN {edges[0]} AND {edges[1]}"


def _days(node: exp.Interval) -> int | None:
    """How many days a literal interval has, where it is of days or weeks."""
    this, unit = take(node, "this", "unit")
    text = this.name if isinstance(this, exp.Literal) else ""
    length = LENGTHS.get(str(unit).upper().removesuffix("S"))
    return int(text) * length if length is not None and text.isdigit() and text.isascii() and len(text) < 6 else None


def _edge(above: Lifter, spec: exp.WindowSpec, word: str, at: object, side: object) -> str:
    text = str(at).upper()
    if text == "CURRENT ROW" and not side:
        return text
    direction_word = str(side or "").lower()
    if direction_word in SIDES and text == "UNBOUNDED":
        return f"UNBOUNDED {direction_word.upper()}"
    if direction_word in SIDES and isinstance(at, exp.Literal) and word != "RANGE":
        return f"{_whole(above, at, 0)} {direction_word.upper()}"
    message = "a frame ends at UNBOUNDED, CURRENT ROW or, for ROWS and GROUPS, a literal number of rows away"
    raise above.statement.refuse("WINDOW_FRAME", message, spec, "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")


def _whole(above: Lifter, node: exp.Expr, least: int) -> int:
    """A literal whole number."""
    text, is_string = take(node, "this", "is_string") if isinstance(node, exp.Literal) else ("", True)
    if is_string or not str(text).isdigit() or len(str(text)) > 7 or not least <= int(str(text)) <= FARTHEST:
        raise above.statement.refuse("WINDOW_ARGUMENT", f"a literal number from {least} to {FARTHEST:,} is wanted here", node)
    return int(str(text))


def _call(above: Lifter, node: exp.Expr) -> str:
    match node:
        case exp.RowNumber() | exp.Rank() | exp.DenseRank() | exp.PercentRank() | exp.CumeDist():
            take(node)
            return f"{BARE[type(node)]}()"
        case exp.Ntile():
            return f"ntile({_whole(above, take(node, 'this')[0], 1)})"
        case exp.Count():
            return _count(above, node)
        case exp.Lag() | exp.Lead():
            return _shifted(above, node)
        case exp.NthValue():
            this, offset = take(node, "this", "offset")
            return f"nth_value({_sql(above.cell(this))}, {_whole(above, offset, 1)})"
        case exp.Sum() | exp.Avg():
            (this,) = take(node, "this")
            return f"{SINGLE[type(node)]}({summable(above, this)})"
        case exp.Min() | exp.Max() | exp.FirstValue() | exp.LastValue():
            (this,) = take(node, "this")
            return f"{SINGLE[type(node)]}({_sql(above.cell(this))})"
        case exp.IgnoreNulls() | exp.RespectNulls():
            raise above.statement.refuse("IGNORE_NULLS", "IGNORE NULLS and RESPECT NULLS are not supported", node, "the window without it")
        case exp.Filter():
            raise above.statement.refuse("WINDOW_FILTER", "FILTER on a window is not supported", node, "SUM(CASE WHEN .. THEN n END) OVER ()")
        case _:
            name = above.statement.spelled(node)
            raise above.statement.refuse(
                "WINDOW_FUNCTION", f"the window function {name} is not supported", node, "SUM, AVG, COUNT, RANK, ROW_NUMBER, LAG"
            )


def _count(above: Lifter, node: exp.Count) -> str:
    this, _ = take(node, "this", "big_int")
    if this is None or isinstance(this, exp.Star):
        return "count(*)"
    if isinstance(this, exp.Distinct):
        raise above.statement.refuse("WINDOW_FUNCTION", "COUNT(DISTINCT ..) over a window is not supported", node, "COUNT(*) OVER ()")
    return f"count({_sql(above.cell(this))})"


def _shifted(above: Lifter, node: exp.Lag | exp.Lead) -> str:
    this, offset, default = take(node, "this", "offset", "default")
    args = [_sql(above.cell(this)), str(1 if offset is None else _whole(above, offset, 0))]
    if default is not None:
        args.append(_sql(above.cell(default)))
    return f"{'lag' if isinstance(node, exp.Lag) else 'lead'}({', '.join(args)})"


def summable(above: Lifter, node: exp.Expr) -> str:
    """The argument of SUM or AVG in a type whose sum cannot overflow: 64-bit integers and doubles as they are, decimals with room to spare."""
    lifted = above.cell(node)
    kind = above.kind(lifted.name)
    if kind is not None and kind.kind in (Kind.INTEGER, Kind.FLOAT):
        return _sql(lifted)
    if kind is not None and kind.kind is Kind.DECIMAL and kind.scale <= 16:
        return f"TRY_CAST({_sql(lifted)} AS DECIMAL(30, {kind.scale}))"
    return f"TRY_CAST({_sql(lifted)} AS DOUBLE)"
