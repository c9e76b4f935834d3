"""What a star stands for: the declared columns, in order. EXCLUDE (EXCEPT), REPLACE and RENAME after it are that list, written otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpquery.sql.fields import argument, take
from dpquery.sql.names import Field, Frame, Statement, column_name, fold, identifier
from dpquery.sql.refuse import near

CHANGES = ("except_", "replace", "rename")


def star(statement: Statement, node: exp.Expr, frame: Frame) -> tuple[Field, ...] | None:
    """The columns that `*` or `t.*` stands for: the declared ones. None for other nodes."""
    if isinstance(node, exp.Columns):
        raise statement.refuse("COLUMNS", "COLUMNS(..) is not supported", node, "the columns by name")
    if isinstance(node, exp.Star):
        take(node)
        return frame.fields()
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Star):
        return None
    this, table = take(node, "this", "table")
    take(this)
    name = identifier(table)
    found = [s for s in frame.sources if fold(s.alias) == fold(name)]
    if not found:
        raise statement.refuse("UNKNOWN_TABLE", f"no table {name!r} in FROM{near(name, [s.alias for s in frame.sources])}", node)
    return found[0].fields


def unfolded(statement: Statement, items: Sequence[exp.Expr], frame: Frame) -> list[exp.Expr]:
    """The items of SELECT, each star that is changed as the columns that it stands for, by table and name. Other stars stay."""
    found: list[exp.Expr] = []
    for item in items:
        whole = item.this if isinstance(item, exp.Column) else item
        changed = isinstance(whole, exp.Star) and any(argument(whole, name) for name in CHANGES)
        found += _unfolded(statement, item, whole, frame) if changed else [item]
    return found


def _unfolded(statement: Statement, item: exp.Expr, whole: exp.Expr, frame: Frame) -> list[exp.Expr]:
    excluded, replaced, renamed = take(whole, *CHANGES)
    columns = _columns(statement, item, frame)
    out = [_named(statement, one, columns) for one in excluded or ()]
    new = {_named(statement, one, columns, alias=True): one.this for one in replaced or ()}
    names = {_named(statement, one.this, columns): one for one in renamed or ()}
    for name, table in (*new, *names):
        if any(_same((name, table or ""), one) for one in out):
            raise statement.refuse("STAR_EXCLUDE", f"column {name!r} is excluded and changed", whole, "one of the two")
    found = list[exp.Expr]()
    for name, alias in columns:
        if any(_same((name, alias), one) for one in out):
            continue
        value = next((value for one, value in new.items() if _same((name, alias), one)), None)
        rename = next((one for key, one in names.items() if _same((name, alias), key)), None)
        made = _column(item, name, alias) if value is None else value.copy()
        label = exp.to_identifier(name, quoted=True) if rename is None else take(rename, "this", "alias")[1]
        found.append(exp.Alias(this=made, alias=label))
        found[-1].meta.update(item.meta)
    if not found:
        raise statement.refuse("STAR_EXCLUDE", "all columns are excluded", whole, "the columns by name")
    return found


def _columns(statement: Statement, item: exp.Expr, frame: Frame) -> list[tuple[str, str]]:
    """The name of each column, and the alias of its table; none of one that USING made of several."""
    if isinstance(item, exp.Column):
        table = identifier(take(item, "this", "table")[1])
        star(statement, exp.Column(this=exp.Star(), table=item.args["table"].copy()), frame)
        return [(f.name, s.alias) for s in frame.sources if fold(s.alias) == fold(table) for f in s.fields]
    found: list[tuple[str, str]] = []
    for one in frame.fields():
        merged = any(one.value is m.value and fold(one.name) == fold(m.name) for m in frame.merged)
        owner = next((s.alias for s in frame.sources for f in s.fields if f.value is one.value and f.name == one.name), "")
        found.append((one.name, "" if merged else owner))
    return found


def _named(statement: Statement, node: exp.Expr, columns: Sequence[tuple[str, str]], alias: bool = False) -> tuple[str, str | None]:
    """The column that EXCLUDE, REPLACE or RENAME names: its name and, where it is given, its table's."""
    name, table = (node.alias, None) if alias else column_name(node, statement.source) if isinstance(node, exp.Column) else (node.name, None)
    if not any(_same(one, (name, table)) for one in columns):
        known = ", ".join(dict.fromkeys(one for one, _ in columns))[:200]
        message = f"the star has no column {name!r}{near(name, [one for one, _ in columns])}"
        raise statement.refuse("UNKNOWN_COLUMN", message, node, f"one of {known}")
    return fold(name), table


def _same(column: tuple[str, str], wanted: tuple[str, str | None]) -> bool:
    return fold(column[0]) == fold(wanted[0]) and (wanted[1] is None or fold(column[1]) == fold(wanted[1]))


def _column(item: exp.Expr, name: str, alias: str) -> exp.Expr:
    made = exp.column(name, table=alias or None, quoted=True)
    made.meta.update(item.meta)
    return made


def pointing(value: object, frame: Frame, item: exp.Expr) -> exp.Expr:
    """A column that a star stands for, in the star's place: by its table's name and its own."""
    for source in frame.sources:
        for one in source.fields:
            if one.value == value:
                made = exp.column(one.name, table=source.alias or None, quoted=True)
                made.meta.update(item.meta)
                return made
    made = exp.column(next(m.name for m in frame.merged if m.value == value), quoted=True)
    made.meta.update(item.meta)
    return made
