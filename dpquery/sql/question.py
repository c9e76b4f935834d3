"""A statement as a whole: which of its SELECTs release, in which order, and what is done with all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial

from sqlglot import exp

from dpquery.errors import Refused
from dpquery.plan.draft import Post, Question
from dpquery.plan.rel import Public
from dpquery.plan.scalar import Column
from dpquery.sql import byname, leading, levels, pairs, split
from dpquery.sql import keys as grouping
from dpquery.sql.again import again, renamed
from dpquery.sql.beside import beside, opened, projects
from dpquery.sql.correlated import once_for_all
from dpquery.sql.dialect import parse_view
from dpquery.sql.edges import check_feeds
from dpquery.sql.env import Env, alias_of, named_item
from dpquery.sql.feeds import listed, value
from dpquery.sql.fields import peek, take
from dpquery.sql.lift import Lifter, Where
from dpquery.sql.limits import whole_number
from dpquery.sql.names import MOST_RELATIONS, Frame, Scope, Source, Statement, aliased, declared, fold, identifier, view
from dpquery.sql.nested import check_flat, read_by
from dpquery.sql.over import Flat, Grouped, Over, flat, joined, released
from dpquery.sql.publicvalues import values
from dpquery.sql.rowwise import conjunct_nodes
from dpquery.sql.select import query, relation
from dpquery.sql.semi import reads_outside
from dpquery.sql.sides import Open, Released
from dpquery.sql.stars import pointing, star, unfolded
from dpquery.sql.statement import ALL, Clauses, block, clause, holds_aggregate, read_clauses
from dpquery.sql.titles import title
from dpquery.sql.trial import by_unit, trial
from dpquery.sql.united import united
from dpquery.sql.windows import window

SET = ("with_", "this", "expression", "distinct", "order", "limit", "offset")


class Sort(Enum):
    """What a query's rows are: of public tables, of private ones, or released."""

    PUBLIC = auto()
    PRIVATE = auto()
    RELEASED = auto()


def question(statement: Statement, tree: exp.Expr) -> Question:
    """The statement, read in full."""
    reader = Reader(statement, mentions=leading.mentions(tree))
    env = Env(lists=reader)
    node = reader.several(bare(tree), env)
    if not isinstance(node, exp.Select | exp.SetOperation):
        raise statement.refuse("NOT_A_SELECT", f"{type(node).__name__.upper()} is not answered: only SELECT is", node, "a SELECT statement")
    outermost = None
    if isinstance(node, exp.Select) and (reader.is_block(node, env) or not reader.is_above(node, env)):
        _, post = block(statement, node, env, reader)
        outermost = len(statement.blocks) - 1
    else:
        post = reader.above(node, env, inner=False)[1]
    check_named(statement)
    check_feeds(statement)
    public = tuple(statement.opened), tuple(statement.products), tuple(statement.paired)
    return Question(tuple(statement.blocks), post, tuple(dict.fromkeys(statement.warnings)), outermost, *public, frozenset(statement.ends))


def bare(node: exp.Expr) -> exp.Expr:
    """The query without brackets around it."""
    while isinstance(node, exp.Subquery):
        (node,) = take(node, "this")
    return node


@dataclass(slots=True)
class Reader:
    """Reads queries over released values; remembers what each query is, so that a WITH query used twice is released once."""

    statement: Statement
    sorts: dict[int, Sort] = field(default_factory=dict)
    known: dict[int, Released] = field(default_factory=dict)
    held: list[exp.Expr] = field(default_factory=list)  # so that no other node takes an id of theirs
    mentions: Counter[str] = field(default_factory=Counter)  # how often the text names each relation
    leveled: dict[int, exp.Expr] = field(default_factory=dict)  # SELECTs with several sets of keys, as UNION ALL
    wanted: dict[int, leading.Wanted] = field(default_factory=dict)  # of a query whose groups another one only compares

    # ---- what a query is ---------------------------------------------------------------------------------------------------------

    def sort(self, node: exp.Expr, env: Env) -> Sort:
        """What the query's rows are."""
        node = bare(node)
        if id(node) not in self.sorts:
            self.held.append(node)
            self.sorts[id(node)] = self._sort(node, env)
        return self.sorts[id(node)]

    def _sort(self, node: exp.Expr, env: Env) -> Sort:
        if isinstance(node, exp.SetOperation):
            inside = env.within(self.statement, peek(node, "with_"))
            sorts = {self.sort(branch, inside) for branch in (node.left, node.right)}
            return next((sort for sort in (Sort.RELEASED, Sort.PRIVATE) if sort in sorts), Sort.PUBLIC)
        if not isinstance(node, exp.Select):
            return Sort.PUBLIC
        sorts = self._sources(node, env)
        if Sort.PRIVATE in sorts:
            return Sort.RELEASED if self._aggregates(node) and not by_unit(self.statement, node, env) else Sort.PRIVATE
        return Sort.RELEASED if Sort.RELEASED in sorts else Sort.PUBLIC

    def is_block(self, node: exp.Select, env: Env) -> bool:
        """Whether a SELECT that releases reads private rows itself."""
        return Sort.PRIVATE in self._sources(node, env)

    def is_above(self, node: exp.Select, env: Env) -> bool:
        """Whether a SELECT reads released relations."""
        return Sort.RELEASED in self._sources(node, env)

    def _sources(self, node: exp.Select, env: Env) -> set[Sort]:
        inside = env.within(self.statement, peek(node, "with_"))
        if peek(node, "from_") is None:
            found = {self.sort(one, inside) for item in peek(node, "expressions") for one in values(item)}
            return found & {Sort.RELEASED}
        return {self._source(one, inside) for one in read_by(node)}

    def _source(self, node: exp.Expr, env: Env) -> Sort:
        if isinstance(node, exp.Subquery):
            return self.sort(take(node, "this", "alias")[0], env)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return Sort.PUBLIC
        name = identifier(node.this)
        if fold(name) in env.queries:
            query, inside = env.queries[fold(name)]
            return self.sort(query.this, inside)
        table = declared(self.statement, name)
        if table is not None:
            return Sort.PUBLIC if table.public else Sort.PRIVATE
        text = view(self.statement, name)
        if text is None or fold(name) in env.views:
            return Sort.PUBLIC
        try:
            return self.sort(parse_view(text), Env(views=env.views | {fold(name)}, lists=self))
        except Refused:
            return Sort.PRIVATE  # whoever reads it says what is wrong

    def _aggregates(self, node: exp.Select) -> bool:
        distinct = peek(node, "distinct")
        if any(peek(node, name) is not None for name in ("group", "having")) or (distinct is not None and peek(distinct, "on") is None):
            return True
        above = [one for name in ("qualify", "order") if (one := peek(node, name)) is not None]
        return any(holds_aggregate(one) for one in (*peek(node, "expressions"), *above))

    def several(self, node: exp.Expr, env: Env) -> exp.Expr:
        """A SELECT of private rows in groups of several levels, as UNION ALL of these; any other query as it is."""
        mark = levels.leveled(node) if isinstance(node, exp.Select) else None
        if not isinstance(node, exp.Select) or mark is None or not self.is_block(node, env):
            return node
        if id(node) not in self.leveled:
            found = trial(self.statement, node, env)
            inside = env.within(self.statement, peek(node, "with_"))
            self.leveled[id(node)] = (
                node if found is None else levels.union(found, node, mark, len(self.statement.blocks), partial(by_unit, self.statement, env=inside))
            )
        return self.leveled[id(node)]

    # ---- above the noise ---------------------------------------------------------------------------------------------------------

    def released(self, node: exp.Expr, env: Env) -> Released:
        """A query that releases, as a relation."""
        node = self.several(bare(node), env)
        if isinstance(node, exp.Select) and self.is_block(node, env):
            above, post = block(self.statement, node, env, self, inner=True, want=self.wanted.get(id(node)))
            return renamed(self.statement, above, post, read_clauses(self.statement, node))
        return released(*self._above(node, env, inner=True))

    def above(self, node: exp.Expr, env: Env, inner: bool) -> tuple[Lifter, Post]:
        return self._above(node, env, inner)[:2]

    def _above(self, node: exp.Expr, env: Env, inner: bool, outer: Lifter | None = None) -> tuple[Lifter, Post, bool]:
        if isinstance(node, exp.SetOperation):
            return self._set(node, env, inner)
        if not isinstance(node, exp.Select):
            raise self.statement.refuse("UNSUPPORTED_FROM", f"{type(node).__name__.upper()} here is not supported", node, "a SELECT")
        ctes, first, joins = take(node, *ALL)[:3]
        inside = env.within(self.statement, ctes)
        want = leading.wanted(self.statement, node, inside, self.mentions, self.wanted)
        clauses = read_clauses(self.statement, node)
        below = self._from(first, joins or (), inside, conjunct_nodes(clauses.where))
        if clause(self.statement, node) is not None:  # only now: what is wrong below may be why its rows seem to be released
            message = "this SELECT reads released values only: there is nothing private left in them to protect"
            raise self.statement.refuse(
                "NESTED_RELEASE", message, node, "the clause in the SELECT that aggregates private rows, and a plain SELECT here"
            )
        return self._selected(node, below, clauses, inside, inner, outer, leading.chosen(self.statement, below.rows, want))

    def _selected(
        self, node: exp.Expr, below: Flat, clauses: Clauses, env: Env, inner: bool, outer: Lifter | None = None, led: bool = False
    ) -> tuple[Lifter, Post, bool]:
        statement = self.statement
        items: list[tuple[str, exp.Expr]] = []
        given: list[tuple[str, exp.Expr]] = []
        for item in unfolded(statement, clauses.items, below.frame):
            stars = star(statement, item, below.frame)
            if stars is not None:
                items += [(f.name, pointing(f.value, below.frame, item)) for f in stars]
                continue
            name, one = named_item(statement, item)
            items.append((name or title(one), one))
            given.append((name, one))
        scope, aliases = Scope(below.frame, statement), aliased(given)
        over = Over(statement, scope, aliases, window, partial(self.inner, env=env), outer=outer, flat=below, unsure=below.unsure)
        if clauses.where is not None:
            over.keep(clauses.where)
        lifter: Lifter = over
        tops = [one for _, one in items] + [one for one in (clauses.qualify, clauses.order) if one is not None]
        grouped = clauses.group is not None or clauses.having is not None or any(holds_aggregate(one) for one in tops)
        if grouped:
            named = () if clauses.group is None else grouping.grouped(statement, clauses.group, items, scope)
            keys = [over.lift(one, Where.HAVING) for _, one in named]
            lifter = Grouped(statement, scope, aliases, window, over.scalar, outer=outer, below=over, keys=keys, led=led)
        parts = split.Parts(items, clauses.having, clauses.qualify, clauses.order, clauses.limit, clauses.offset, clauses.distinct is not None)
        lifter.unsure = over.unsure or ((grouped or clauses.cut) and any(cell.noisy for cell in below.cells))
        post = split.post(lifter, parts, inner)
        few = clauses.limit is not None and clauses.limit <= 1
        return lifter, post, few or (clauses.group is None if grouped else below.single)

    def _from(self, first: exp.From | None, joins: Sequence[exp.Join], env: Env, where: Sequence[exp.Expr]) -> Flat:
        if first is None:  # one row of subqueries that are values
            return Flat("SELECT 0 AS nothing", (), (), Frame((Source("", ()),)), {}, single=True, unique=frozenset())
        found = self._relation(take(first, "this")[0], env, 0)
        for place, join in enumerate(joins, 1):
            right = self._relation(take(join, "this", "on", "side", "kind", "method", "using")[0], env, place)
            known = {fold(s.alias) for s in found.frame.sources if s.alias}
            if any(fold(s.alias) in known for s in right.frame.sources):
                raise self.statement.refuse("DUPLICATE_ALIAS", "two relations have one name", join.this, "an alias of its own for each")
            over = Over(self.statement, Scope(found.frame, self.statement), {}, window, partial(self.inner, env=env), flat=found)
            found = joined(self.statement, found, right, join, over, where)
        return found

    def _relation(self, node: exp.Expr, env: Env, place: int) -> Flat:
        """One relation of FROM under its alias."""
        statement = self.statement
        if next(statement.relations) > MOST_RELATIONS:
            raise statement.refuse("TOO_COMPLEX", f"more than {MOST_RELATIONS} relations, those inside views and WITH queries included", node)
        check_flat(statement, node)
        match self._source(node, env):
            case Sort.PRIVATE:
                message = "rows of a private table cannot be joined with released values"
                instead = "a subquery that aggregates them: (SELECT k, COUNT(*) AS n FROM .. GROUP BY k)"
                raise statement.refuse("RAW_ROWS", message, node, instead)
            case Sort.PUBLIC:
                return self._public(node, env, place)
            case Sort.RELEASED:
                pass
        alias, names = alias_of(statement, node)
        if isinstance(node, exp.Subquery):
            return flat(statement, self.released(take(node, "this", "alias")[0], env), alias, names, place)
        name = identifier(take(node, "this", "alias")[0])
        if fold(name) in env.queries:
            query, inside = env.queries[fold(name)]
            statement.queries.add(id(query))
            own = alias_of(statement, query)[1]
            found = self._once(take(query, "this", "alias")[0], inside)
            cells = tuple(replace(cell, name=own[i]) if i < len(own) else cell for i, cell in enumerate(found.cells))
            return flat(statement, replace(found, cells=cells), alias or name, names, place)
        text = view(statement, name)
        if text is None:
            raise AssertionError("what is released is a query")
        try:
            inner = Reader(replace(statement, source=text, named={}, clauses={}), self.sorts, self.known, self.held)
            found = inner._once(parse_view(text), Env(views=env.views | {fold(name)}, lists=inner))
        except Refused as wrong:
            raise statement.refuse(wrong.code, f"in the view {name!r}: {wrong.message}", node, wrong.instead) from None
        return flat(statement, found, alias or name, names, place)

    def _once(self, node: exp.Expr, env: Env) -> Released:
        """The query's relation, released at its first use; each further use is another look at the same values."""
        if id(node) not in self.known:
            self.known[id(node)] = self.released(node, env)
            return self.known[id(node)]
        return again(self.statement, self.known[id(node)])

    def _public(self, node: exp.Expr, env: Env, place: int) -> Flat:
        """A public relation of FROM. One that aggregates is read as released values are."""
        inner = take(node, "this", "alias")[0] if isinstance(node, exp.Subquery) else None
        if inner is not None and not projects(inner):
            alias, names = alias_of(self.statement, node)
            return flat(self.statement, self.released(inner, env), alias, names, place)
        return beside(self.statement, relation(self.statement, node, env, iter((place,))), node)

    def _branch(self, node: exp.Expr, env: Env) -> Released:
        """A branch of a set operation."""
        sort = self.sort(node, env)
        if sort is Sort.PRIVATE:
            message = "a branch of the set operation shows rows that were not aggregated"
            instead = "an aggregate in each branch: SELECT COUNT(*) FROM .. UNION ALL SELECT COUNT(*) FROM .."
            raise self.statement.refuse("SET_OPERATION", message, node, instead)
        return self._values(node, env) if sort is Sort.PUBLIC else self.released(node, env)

    def _values(self, node: exp.Expr, env: Env, single: bool = False) -> Released:
        """A query over public tables."""
        if not projects(node):
            return self.released(node, env)
        return opened(self.statement, query(self.statement, node, env), node, single)

    def _set(self, node: exp.SetOperation, env: Env, inner: bool) -> tuple[Lifter, Post, bool]:
        ctes, left, right, distinct, order, limit, offset, *matched = take(node, *SET, *byname.MATCHED)
        inside = env.within(self.statement, ctes)
        both = byname.branches(self.statement, node, byname.by_name(matched), self._branch(left, inside), self._branch(right, inside))
        found = united(self.statement, node, *both, bool(distinct))
        limits = whole_number(self.statement, limit, "LIMIT"), whole_number(self.statement, offset, "OFFSET")
        everything = Clauses([exp.Star()], None, None, None, None, None, order, *limits)
        return self._selected(node, flat(self.statement, found, "", (), 0), everything, inside, inner)

    def releases(self, node: exp.Expr, env: Env) -> bool:
        """Whether a subquery's rows are released ones."""
        return self.sort(node, env) is Sort.RELEASED

    def open(self, node: exp.Expr, env: Env) -> bool:
        """Whether all that a query reads is public."""
        return self.sort(node, env) is Sort.PUBLIC

    def lists(self, node: exp.Expr, env: Env) -> bool:
        """Whether a relation of FROM has released rows."""
        return self._source(node, env) is Sort.RELEASED

    def listed(self, statement: Statement, node: exp.Expr, env: Env, place: int) -> Open:
        """A relation of FROM, or a subquery of IN, whose rows are released, as one that private rows are joined with."""
        own = self if statement.blocks is self.statement.blocks else Reader(statement, self.sorts, held=self.held)  # of a trial nothing is kept
        if isinstance(node, exp.Table | exp.Subquery):
            return listed(statement, own._relation(node, env, place))
        return listed(statement, flat(statement, own.released(node, env), "", (), place))

    def value(self, statement: Statement, frame: Frame, node: exp.Expr, env: Env) -> tuple[Public, Column]:
        """The released value of a subquery below the noise: a public relation of one row, and its column."""
        own = Reader(statement, self.sorts, self.known if statement.blocks is self.statement.blocks else {}, self.held, self.mentions)
        return value(statement, frame, node, env, own)

    def scalar(self, node: exp.Expr, env: Env) -> Released:
        """A subquery that is a value: one column, at most one row."""
        return self.inner(node, None, False, env)

    def inner(self, node: exp.Expr, outer: Lifter | None, rows: bool, env: Env) -> Released:
        """A subquery above the noise, which may read the row around it: a value, or (`rows`) any number of rows."""
        found = self._inner(node, outer, env, single=not rows)
        if rows:
            return found
        if len(found.cells) != 1:
            raise self.statement.refuse("SCALAR_SUBQUERY", f"a subquery that is a value has {len(found.cells)} columns", node, "one column")
        if not found.single:
            message = "a subquery that is a value may have several rows"
            raise self.statement.refuse("SCALAR_SUBQUERY", message, node, "an aggregate without GROUP BY, or ORDER BY with LIMIT 1; or a join")
        return found

    def _inner(self, node: exp.Expr, outer: Lifter | None, env: Env, single: bool) -> Released:
        sort, query = self.sort(node, env), bare(node)
        if sort is Sort.PRIVATE:
            message = "a subquery here must aggregate private rows, and read nothing of the SELECT around it"
            raise self.statement.refuse("SUBQUERY_ABOVE_NOISE", message, node, "an aggregate, or a literal")
        around = outer is not None and isinstance(query, exp.Select) and reads_outside(query)
        if sort is Sort.PUBLIC and not around:
            return self._values(query, env, single)
        if isinstance(query, exp.Select) and id(query) not in self.known and outer is not None and not self.is_block(query, env):
            lent = outer.lendings
            above = self._above(query, env, inner=True, outer=outer)
            found = released(*above)
            if outer.lendings == lent:
                self.known[id(query)] = found
            elif not above[0].tied:
                pairs.note(self.statement, (outer.closed, above[0].closed), pairs.FEW, node, (outer.unsure, above[0].unsure))
            return found
        try:
            return self._once(query, env)
        except Refused as wrong:
            raise (wrong if outer is None else once_for_all(self.statement, node, outer.scope, wrong)) from None


def check_named(statement: Statement) -> None:
    """Refuses named arguments that were cut out of the text but that no aggregate has read."""
    for start, arguments in statement.named.items():
        if start not in statement.used:
            message = f"{arguments[0].name} => belongs to COUNT, SUM or AVG"
            raise statement.refuse_at("NAMED_ARGUMENT", message, arguments[0].position, "the argument inside an aggregate")
