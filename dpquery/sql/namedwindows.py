"""Windows with a name: `OVER w` and `OVER (w ROWS ..)` with the definition of `WINDOW w AS (..)` of the same SELECT in the name's place."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.sql.fields import peek, take
from dpquery.sql.refuse import refuse

PARTS = ("partition_by", "order", "spec")


def spelled_out(tree: exp.Expr, text: str) -> exp.Expr:
    """The tree, which is this reader's own, without names of windows."""
    for select in list(tree.find_all(exp.Select)):
        known = dict[str, exp.Window]()
        for node in peek(select, "windows") or ():
            if not isinstance(node, exp.Window) or not isinstance(node.this, exp.Identifier):
                raise _unread(node, text)
            if node.name.lower() in known:
                raise refuse("DUPLICATE_ALIAS", f"two windows are called {node.name!r}", node=node, instead="a name of its own for each", source=text)
            known[node.name.lower()] = node
        own, done = [*_own(select)], dict[str, exp.Window]()
        unused = set(known) - {_name(node) for node in (*known.values(), *own)}
        for name, node in known.items():  # each sees those before it
            _fill(node, done, text)
            done[name] = node
        for node in own:
            _fill(node, done, text)
        for name in sorted(unused):
            raise refuse("WINDOW_NAME", f"nothing uses the window {name!r}", node=known[name], instead="the statement without it", source=text)
        select.set("windows", None)
    return tree


def _name(node: exp.Window) -> str:
    """The window that it is made from; empty: none."""
    alias = peek(node, "alias")
    return "" if alias is None else str(alias.name.lower())


def _own(select: exp.Select) -> Iterator[exp.Window]:
    """The windows of the SELECT itself, not those of its subqueries."""
    for name in ("expressions", "qualify", "order"):
        found = peek(select, name)
        for one in found if isinstance(found, list) else [found] if found is not None else []:
            for node in one.walk(prune=lambda below: isinstance(below, exp.Query)):
                if isinstance(node, exp.Window):
                    yield node


def _fill(node: exp.Window, known: dict[str, exp.Window], text: str) -> None:
    """Puts what the name stands for into the window, which may add an order or a frame."""
    alias = peek(node, "alias")
    if alias is None:
        return
    base = known.get(alias.name.lower())
    if base is None:
        raise refuse("WINDOW_NAME", f"no window is called {alias.name!r}", node=alias, instead="WINDOW w AS (..), or OVER (..)", source=text)
    take(base, "this", *PARTS)
    if peek(node, "partition_by") or (peek(base, "spec") and any(peek(node, part) for part in PARTS)):
        raise _unread(node, text)
    for part in PARTS:
        own, theirs = peek(node, part), peek(base, part)
        if own and theirs:
            raise _unread(node, text)
        if theirs:
            node.set(part, [one.copy() for one in theirs] if isinstance(theirs, list) else theirs.copy())
    node.set("alias", None)


def _unread(node: exp.Expr, text: str) -> Refused:
    message = "a window that adds to what a named one says already is not read"
    return refuse("WINDOW_NAME", message, node=node, instead="the whole definition inside OVER (..)", source=text)
