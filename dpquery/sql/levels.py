"""ROLLUP, CUBE and GROUPING SETS of private rows: one release for each set of keys, put together by UNION ALL as SQL has it.

A level is a SELECT of its own, with its own bounds on what a unit brings (pitfalls C15); keys that it does not group by are NULL in it, GROUPING(key)
is 0 or 1. OPTIONS of the SELECT speak for all of its levels: what they pay is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from dpquery.plan.draft import Level
from dpquery.sql.fields import peek, take
from dpquery.sql.keys import SETS, bare, resolved
from dpquery.sql.levelwindows import Around, windowed
from dpquery.sql.names import Scope, Statement, fold
from dpquery.sql.statement import LEVEL, holds_aggregate
from dpquery.sql.titles import title
from dpquery.sql.trial import Trial
from dpquery.sql.unanswered import is_aggregate, unwrapped

MOST_LEVELS = 32
WITH = {"rollup": exp.Rollup, "cube": exp.Cube}  # GROUP BY a, b WITH ROLLUP
OF = "grouping_sets"  # GROUP BY a, b GROUPING SETS ((a), (b)), which lists its keys beforehand

Keys = tuple[exp.Expr, ...]


def leveled(node: exp.Select) -> exp.Expr | None:
    """What says that the SELECT groups by several sets of keys; None: it does not."""
    group = peek(node, "group")
    if group is None:
        return None
    found = [bare(one) for one in peek(group, "expressions") or ()]
    found += [one for name in (*WITH, OF) for one in peek(group, name) or ()]
    return next((one for one in found if type(one) in SETS), None)


def union(trial: Trial, node: exp.Select, mark: exp.Expr, number: int, by_unit: Callable[[exp.Select], bool]) -> exp.Expr:
    """The SELECT as UNION ALL of one SELECT for each set of keys, in their order, as the `number`th of the statement."""
    statement = trial.statement
    if len(sets := _sets(statement, node)) > MOST_LEVELS:
        raise statement.refuse("TOO_COMPLEX", f"more than {MOST_LEVELS} levels of groups", mark, "the levels that are needed, in GROUPING SETS")
    read = _Levels(trial.scope, {})
    read.keys.update({id(key): read.known(resolved(statement, key, trial.items, trial.scope)[1]) for level in sets for key in level})
    around = _around(read, trial, node)
    branches = [_branch(read, trial, node, level, (number, len(sets)), around) for level in sets]
    alone = [by_unit(branch) for branch in branches]
    if any(alone):
        code, words = SETS[type(mark)]
        message = (
            f"{words} beside the privacy unit is not supported"
            if all(alone)
            else f"{words} of the privacy unit or what fixes it: the total's row is everybody's"
        )
        raise statement.refuse(code, message, mark, "GROUP BY with plain keys, or without the unit")
    whole: exp.Query = branches[0]
    for branch in branches[1:]:
        whole = exp.Union(this=whole, expression=branch, distinct=False)
    return _finished(trial, node, whole, around)


# ---- which levels there are ----------------------------------------------------------------------------------------------------------


def _sets(statement: Statement, node: exp.Select) -> list[Keys]:
    """The sets of keys, each key once: every combination of what the items of GROUP BY say."""
    names, sets, *behind = take(peek(node, "group"), "expressions", OF, *WITH)
    listed = list(sets or names or ())
    for (word, kind), given in zip(WITH.items(), behind, strict=True):
        if given:
            if any(take(one, "expressions")[0] for one in given):  # of another reader's making
                raise statement.refuse(word.upper(), f"{word.upper()} here is not supported", given[0], f"{word.upper()} (..) with its keys")
            listed = [kind(expressions=listed)]
    return [_joined(several) for several in product(*map(_of, listed))]


def _of(node: exp.Expr) -> list[Keys]:
    """The sets that an item of GROUP BY stands for."""
    inner = bare(node)
    match inner:
        case exp.Rollup():
            parts = _parts(inner)
            return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = _parts(inner)
            return [_joined(some) for length in range(len(parts), -1, -1) for some in combinations(parts, length)]
        case exp.GroupingSets():
            return [keys for one in take(inner, "expressions")[0] or () for keys in _of(one)]
        case _:
            return [_flat(inner)]


def _parts(node: exp.Expr) -> list[Keys]:
    return [_flat(bare(one)) for one in take(node, "expressions")[0] or ()]


def _flat(node: exp.Expr) -> Keys:
    """(a, b) is both of them."""
    return _joined([_flat(bare(one)) for one in take(node, "expressions")[0] or ()]) if isinstance(node, exp.Tuple) else (node,)


def _joined(parts: Sequence[Keys]) -> Keys:
    return tuple(key for part in parts for key in part)


# ---- one level -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Levels:
    """What the keys are, by id of their nodes: their expressions with each column known by what it stands for."""

    scope: Scope
    keys: dict[int, exp.Expr]

    def known(self, node: exp.Expr) -> exp.Expr:
        """The expression with columns in the order of the frame in place of their names, so that equal ones are equal."""
        fields = self.scope.frame.fields()

        def changed(one: exp.Expr) -> exp.Expr:
            found = self.scope.find(one) if isinstance(one, exp.Column) and self.scope.inside(one) else None
            return one if found is None else exp.column(f"column {fields.index(found)}")

        return bare(node).copy().transform(changed)

    def level(self, node: exp.Expr, here: Sequence[exp.Expr], gone: Sequence[exp.Expr]) -> exp.Expr:
        """What the expression is where some keys are grouped by, and NULL stands for others. What an aggregate reads is of the rows, as it is."""
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node, here, gone)
        if (known := self.known(node)) in here:
            return node.copy()
        if known in gone:
            return _null(node)
        if isinstance(node, exp.Query | exp.Subquery) or is_aggregate(unwrapped(node)):
            return node.copy()
        made = node.copy()
        for old, child in zip(list(node.iter_expressions()), list(made.iter_expressions()), strict=True):
            child.replace(self.level(old, here, gone))
        return made

    def _grouping(self, node: exp.Expr, here: Sequence[exp.Expr], gone: Sequence[exp.Expr]) -> exp.Expr:
        """GROUPING(a, b): a bit for each, 1 where it is not grouped by."""
        known = [self.known(one) for one in take(node, "expressions")[0] or ()]
        if not known or any(one not in (*here, *gone) for one in known):
            raise self.scope.statement.refuse("NOT_GROUPED", "GROUPING reads keys of GROUP BY, and this is none", node, "one of the keys")
        return exp.Literal.number(int("".join(str(int(one in gone)) for one in known), 2))


def _null(node: exp.Expr) -> exp.Expr:
    made = exp.Null()
    made.meta.update(node.meta)
    return made


def _branch(read: _Levels, trial: Trial, node: exp.Select, level: Keys, levels: tuple[int, int], around: _Around) -> exp.Select:
    """The SELECT of one level."""
    here = [read.keys[id(key)] for key in level]
    gone = [one for one in read.keys.values() if one not in here]
    made = node.copy()
    for name in ("with_", "qualify", "order", "limit", "offset", "distinct"):
        made.set(name, None)
    items = [_item(name, read.level(one, here, gone), one) for name, one in around.kept]
    items += [exp.alias_(read.level(one, here, gone), name, quoted=True) for name, one in around.hidden]
    made.set("expressions", items)
    made.set("group", exp.Group(expressions=[key.copy() for key in level]) if level else None)
    having = peek(node, "having")
    made.set("having", None if having is None else exp.Having(this=read.level(having.this, here, gone)))
    if not items or (not level and not any(map(holds_aggregate, [*items, *([] if having is None else [having.this])]))):
        message = "a level without keys has nothing to show where SELECT holds no aggregate"
        raise trial.statement.refuse("RAW_ROWS", message, trial.items[0][1], "an aggregate such as COUNT(*) in SELECT, or the levels that have keys")
    different = list(dict.fromkeys(read.keys.values()))
    made.meta[LEVEL] = Level(*levels, tuple(dict.fromkeys(different.index(one) for one in here)))
    return made


def _item(name: str, made: exp.Expr, written: exp.Expr) -> exp.Expr:
    """The item under the name that the output has anyway."""
    return made if made == written and name == title(written) else exp.alias_(made, name, quoted=True, copy=False)


# ---- all of them ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Around:
    """What stands behind all levels together; the outputs that are theirs, and what else is read of them."""

    items: tuple[exp.Expr, ...]
    kept: tuple[tuple[str, exp.Expr], ...]
    qualify: exp.Expr | None
    terms: tuple[exp.Expr, ...]
    hidden: tuple[tuple[str, exp.Expr], ...]
    moved: bool  # whether some of it was written anew, over columns of the levels by their names


def _around(read: _Levels, trial: Trial, node: exp.Select) -> _Around:
    """The outputs by their names, windows over columns of the levels, QUALIFY, and ORDER BY with each term as a name or a place of an output."""
    names, known = {fold(name) for name, _ in trial.items}, [read.known(one) for _, one in trial.items]
    kept = [(name, one) for name, one in trial.items if not windowed(one, trial.scope, trial.aliases)]
    moving = Around(trial.scope, read.known, frozenset(read.keys.values()), trial.aliases, {read.known(one): name for name, one in kept})
    items = [
        exp.column(name, quoted=True) if (name, one) in kept else exp.alias_(moving.moved(one, late=False), name, quoted=True, copy=False)
        for name, one in trial.items
    ]
    qualify = peek(node, "qualify")
    if qualify is not None:
        qualify = exp.Qualify(this=moving.moved(qualify.this, late=True))
    terms: list[exp.Expr] = []
    order = peek(node, "order")
    for term in () if order is None else take(order, "expressions")[0]:
        one, found = bare(term.this), term.copy()
        if not isinstance(one, exp.Literal | exp.Var) and not (isinstance(one, exp.Column) and not one.table and fold(one.name) in names):
            same = read.known(one)
            found.set("this", exp.Literal.number(known.index(same) + 1) if same in known else moving.moved(one, late=True))
        terms.append(found)
    return _Around(tuple(items), tuple(kept), qualify, tuple(terms), tuple(moving.hidden.values()), bool(moving.read))


def _finished(trial: Trial, node: exp.Select, whole: exp.Query, around: _Around) -> exp.Expr:
    """What stands behind all levels: in the UNION itself, or in a SELECT around it where that shows other columns, or other rows."""
    distinct = peek(node, "distinct")
    if distinct is not None or around.qualify is not None or around.moved or len(around.kept) < len(around.items):
        if len({fold(name) for name, _ in around.kept}) < len(around.kept):
            raise trial.statement.refuse("DUPLICATE_ALIAS", "two columns of several levels have one name", node, "an alias of its own for each")
        select = exp.Select(expressions=list(around.items))
        select.set("from_", exp.From(this=exp.Subquery(this=whole, alias=exp.TableAlias(this=exp.to_identifier("levels")))))
        select.set("distinct", distinct)
        select.set("qualify", around.qualify)
        whole = select
    if around.terms:
        whole.set("order", exp.Order(expressions=list(around.terms)))
    for name in ("with_", "limit", "offset"):
        whole.set(name, peek(node, name))
    return whole
