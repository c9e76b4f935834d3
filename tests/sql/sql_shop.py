"""The schema of the SQL tests, and plans as one line of text."""

from __future__ import annotations

import datetime
from functools import lru_cache
from pathlib import Path

from dpquery.plan.draft import Affine, AggregateAsk, Combined, Constant, Output, Question, Ratio
from dpquery.plan.inside import Reduction
from dpquery.plan.rel import CapRows, Compute, Group, Keep, Lookup, Match, Private, Public, Scan, Semi, Stack, Windowed
from dpquery.plan.release import KeySource
from dpquery.plan.scalar import Call, Case, Cast, Column, Literal, Scalar
from dpquery.schema.model import Schema
from dpquery.schema.read import read as read_schema
from dpquery.sql import read

HERE = Path(__file__).parent
NOW = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)


@lru_cache
def schema(name: str = "sql_shop") -> Schema:
    folder = HERE if name == "sql_shop" else HERE.parent / "cases"
    return read_schema(folder / f"{name}.yaml")


def ask(sql: str, name: str = "sql_shop", dialect: str = "duckdb") -> Question:
    return read(sql, schema(name), dialect=dialect, now=NOW)


def summary(question: Question) -> dict[str, object]:
    """What a statement was read as, in the words of the case files."""
    draft = question.blocks[0].draft
    limits = draft.contributions
    found: dict[str, object] = {
        "rel": relation(draft.input),
        "keys": [f"{key.name}: {scalar(key.value)} {key.type}" for key in draft.keys],
        "sources": [source(one) for one in draft.sources],
        "asks": [_ask(one) for one in draft.asks],
        "post": question.post.sql,
        "out": [output(one) for one in question.post.outputs],
        "limits": f"groups {limits.groups}, rows {limits.rows}, join rows {limits.join_rows}, weights {limits.weights}, minimum {draft.minimum}",
        "warnings": list(question.warnings),
    }
    return {name: value for name, value in found.items() if value != []}


def _ask(one: AggregateAsk) -> str:
    other = f", {scalar(one.other)}" if one.other else ""
    at = f" at {', '.join(map(str, one.fractions))}" if one.fractions else ""
    at += f"{', a list' * one.listed}{', one of the values' * one.discrete}{', of two the greater' * one.upper}"
    at += f" of {', '.join(map(str, one.values))}" if one.values else ""
    return f"{one.name}: {one.card}({scalar(one.argument)}{other})" + (f" where {scalar(one.where)}" if one.where else "") + at


def relation(rel: Private) -> str:
    match rel:
        case Scan(table=table):
            return table
        case Keep(input=below, predicate=predicate):
            return f"{relation(below)} where {scalar(predicate)}"
        case Compute(input=below, items=items):
            return f"{relation(below)} with {', '.join(scalar(value) for _, value in items)}"
        case Lookup(input=below, public=public, join=join, on=on):
            return f"[{relation(below)} {join} lookup {public.name} on {scalar(on)}]"
        case Match(left=left, right=right, join=join, on=on, single=single):
            return f"[{relation(left)} {join} {'single ' if single else ''}match {relation(right)} on {scalar(on)}]"
        case Semi(left=left, right=right, on=on, negated=negated):
            partners = right.name if isinstance(right, Public) else relation(right)
            return f"[{relation(left)} {'without' if negated else 'with a'} partner {partners} on {scalar(on)}]"
        case Windowed(input=below, item=item, partition=partition, order=order, frame=frame):
            said = reduction(item) if isinstance(item, Reduction) else f"{item.function}({scalar(item.value)}, {item.offset})"
            terms = ", ".join(f"{t.column.name}{' desc' if t.descending else ''}{' nulls first' if t.nulls_first else ''}" for t in order)
            rows = (
                ""
                if frame is None
                else f" {'rows' if frame.rows else 'range'} from {frame.preceding}{f' to {frame.following}' if frame.following else ''}"
            )
            return f"{relation(below)} over {said} by {', '.join(c.name for c in partition)} in order {terms or '-'}{rows}"
        case Group(input=below, keys=keys, items=items):
            made = ", ".join([*(c.name for c in keys), *(reduction(item) for _, item in items)])
            return f"{relation(below)} by unit: {made}"
        case Stack(left=left, right=right, ours=ours, theirs=theirs, how=how):
            first, second = (", ".join(scalar(value) for value in values) for values in (ours, theirs))
            return f"[{relation(left)}: {first} {how} {relation(right)}: {second}]"
        case CapRows():
            raise AssertionError("the entrance caps no rows")


def reduction(item: Reduction) -> str:
    said = f"{item.function}({'distinct ' if item.distinct else ''}{scalar(item.value)}{'' if item.by is None else ', ' + scalar(item.by)})"
    return said + ("" if item.where is None else f" where {scalar(item.where)}")


def scalar(value: Scalar | None) -> str:
    match value:
        case None:
            return "-"
        case Column(name=name, public=public):
            return f"{public}.{name}" if public else name
        case Literal(value=literal):
            return str(literal) if not isinstance(literal, str) else repr(literal)
        case Call(function=function, args=args):
            return f"{function}({', '.join(scalar(arg) for arg in args)})"
        case Cast(arg=arg, type=kind):
            return f"cast({scalar(arg)}, {kind})"
        case Case(branches=branches, otherwise=otherwise):
            whens = ", ".join(f"{scalar(when)} -> {scalar(then)}" for when, then in branches)
            return f"case({whens}, else {scalar(otherwise)})"


def source(one: KeySource) -> str:
    values = ", ".join(repr(row[0]) if isinstance(row[0], str) else str(row[0]) for row in one.literals)
    what = f"columns of {one.public.name}" if one.public else f"[{values}]"
    pruned = "; pruned by " + " and ".join(scalar(fact) for fact in one.prune) if one.prune else ""
    return f"{','.join(str(place) for place in one.positions)}: {one.origin}: {what}{pruned}"


def output(one: Output) -> str:
    return one.name if one.interval is None else f"{one.name} ~ {bar(one.interval)}"


def bar(how: Affine | Ratio | Combined | Constant) -> str:
    match how:
        case Affine(aggregate=name, factor=factor, offset=offset, place=place):
            return f"{factor} * {name}{'' if place is None else f'[{place}]'} + {offset}"
        case Ratio(top=top, bottom=bottom, factor=factor):
            return f"{factor} * {top} / {bottom}"
        case Constant(value=value):
            return str(value)
        case Combined(operation=operation, parts=parts, digits=digits):
            return f"{operation}({', '.join(map(bar, parts))}{f'; {digits}' if digits else ''})"
