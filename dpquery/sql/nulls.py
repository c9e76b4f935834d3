"""Why an output may be NULL where no key is: because its text says so, or because what it computes has no value. Data-free words for a warning."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpquery.sql.lift import Lifter
from dpquery.sql.names import fold

SAYING: dict[type[exp.Expr], str] = {
    exp.Lag: "LAG has no row there",
    exp.Lead: "LEAD has no row there",
    exp.FirstValue: "FIRST_VALUE has no row there",
    exp.LastValue: "LAST_VALUE has no row there",
    exp.NthValue: "NTH_VALUE has no row there",
    exp.WindowSpec: "the window's frame has no row there",
    exp.Nullif: "NULLIF makes it NULL",
    exp.Case: "no branch of CASE gives a value",
    exp.If: "IF gives no value",
    exp.Null: "NULL is written",
}
FAILING: dict[type[exp.Expr], str] = {
    **dict.fromkeys((exp.Div, exp.IntDiv, exp.Mod, exp.SafeDivide), "divides by zero"),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Pow, exp.Exp), "overflows"),
    **dict.fromkeys((exp.Sqrt, exp.Ln, exp.Log), "is not defined"),
    **dict.fromkeys((exp.Cast, exp.TryCast), "does not fit the CAST"),
    exp.Anonymous: "fails",
}


def missing(above: Lifter, node: exp.Expr, lifted: exp.Expr) -> tuple[str, bool]:
    """Why the output may be NULL, in words, and whether its text alone says so: then nothing need be said."""
    parts = [one for one in _parts(above, node, set()) if not (isinstance(one, exp.If) and isinstance(one.parent, exp.Case))]
    saying = [word for one in parts for kind, word in SAYING.items() if isinstance(one, kind)]
    saying += [why for one in lifted.walk() if isinstance(one, exp.Column) and (why := above.missing(one))]
    failing = [word for one in parts for kind, word in FAILING.items() if isinstance(one, kind)]
    fails = [f"it {' or '.join(dict.fromkeys(failing))} above the noise"] if failing else []
    return ", or ".join(dict.fromkeys([*saying, *fails])), bool(saying) and not failing


def _parts(above: Lifter, node: exp.Expr, seen: set[str]) -> Iterator[exp.Expr]:
    """All that the expression is made of, the aliases that it reads written out."""
    for one in node.walk():
        yield one
        if isinstance(one, exp.Column) and not one.table and fold(one.name) in above.aliases and fold(one.name) not in seen:
            seen.add(fold(one.name))
            yield from _parts(above, above.aliases[fold(one.name)], seen)
