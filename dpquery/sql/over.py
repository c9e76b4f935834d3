"""SELECT over released values: joins, conditions, groups and set operations above the noise, all of it as text of our own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpquery.plan.draft import Post
from dpquery.plan.scalar import Column, Scalar
from dpquery.sql import pairs
from dpquery.sql.bars import is_noisy
from dpquery.sql.fields import take
from dpquery.sql.joinkinds import at
from dpquery.sql.lift import Lifter, Where, guarded
from dpquery.sql.names import Field, Frame, Merged, Scope, Source, Statement, column_name, fold, identifier
from dpquery.sql.public import written
from dpquery.sql.refuse import near
from dpquery.sql.rowwise import conjunct_nodes
from dpquery.sql.sides import Cell, Released, check_product, check_written
from dpquery.sql.split import with_scalars
from dpquery.sql.unanswered import WRAPPERS, is_aggregate, unwrapped
from dpquery.sql.windows import summable
from dpquery.values.types import INTEGER, NULL, Kind, Type

JOINS = {"LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL", "INNER": "INNER", "CROSS": "INNER", "OUTER": "", "NATURAL": ""}
PLAIN: dict[type[exp.Expr], str] = {exp.Min: "min", exp.Max: "max", exp.Median: "median"}
OFFERED = "COUNT, SUM, AVG, MIN, MAX, MEDIAN or ARG_MAX of released values"


@dataclass(frozen=True, slots=True)
class Flat:
    """Released relations joined: SQL with columns c0, c1, .. as `cells` and the row numbers of `rows`; `places` has each column's place by id.

    `unique` are places of columns that tell its rows apart, where some are known to.
    """

    sql: str
    cells: tuple[Cell, ...]
    rows: tuple[tuple[str, str], ...]
    frame: Frame
    places: Mapping[int, int]
    single: bool = False  # one row at most
    unique: frozenset[int] | None = None
    most: int = 1  # as of `Open`
    unsure: bool = False  # as of `Released`


def flat(statement: Statement, released: Released, alias: str, names: Sequence[str], place: int) -> Flat:
    """One relation under its alias, its first columns under the alias's names."""
    called = [names[i] if i < len(names) else cell.name for i, cell in enumerate(released.cells)]
    columns = [Column(next(statement.ids), name, cell.type or NULL) for name, cell in zip(called, released.cells, strict=True)]
    frame = Frame((Source(alias, tuple(Field(c.name, c) for c in columns), place),))
    places = {c.id: i for i, c in enumerate(columns)}
    return Flat(released.sql, released.cells, released.rows, frame, places, released.single, released.unique, released.most, released.unsure)


# ---- joins ---------------------------------------------------------------------------------------------------------------------------


def joined(statement: Statement, left: Flat, right: Flat, node: exp.Join, over: Lifter, where: Sequence[exp.Expr] = ()) -> Flat:
    """Two relations joined as written. `over` gives the lifter of the condition what it needs besides them, `where` are conditions above it."""
    _, on, side, kind, method, using = take(node, "this", "on", "side", "kind", "method", "using")
    words = [str(word).upper() for word in (side, kind, method) if word]
    if any(word not in JOINS for word in words):
        word = next(word for word in words if word not in JOINS)
        raise statement.refuse("UNSUPPORTED_JOIN", f"{word} JOIN of released tables is not supported", at(node), "INNER, LEFT, RIGHT or FULL JOIN")
    way = next((JOINS[word] for word in words if JOINS[word]), "INNER")
    names = [identifier(name) for name in using or ()]
    if "NATURAL" in words:
        names = [name for name in left.frame.names() if right.frame.find(name)]
    if on is None and not names and way != "INNER":
        raise statement.refuse("JOIN_CONDITION", f"{way} JOIN has no condition", at(node), "ON .. or USING (..)")
    check_product(statement, left.most, right.most, at(node))
    width = len(left.cells)
    places = {**left.places, **{i: width + place for i, place in right.places.items()}}
    both = Flat("", (*left.cells, *right.cells), (*left.rows, *right.rows), Frame((*left.frame.sources, *right.frame.sources)), places)
    alike = [(_one(statement, left, name, node), _one(statement, right, name, node)) for name in names]
    equal = [(f"l.c{left.places[a.id]} = r.c{right.places[b.id]}", a.type == b.type) for a, b in alike]
    tests = [(text if same else f"TRY({text})", same) for text, same in equal]
    noisy = any(both.cells[both.places[one.id]].noisy for pair in alike for one in pair)
    if on is not None:
        more, reads = _conditions(statement, both, on, width, over)
        tests, noisy = tests + more, noisy or reads
    scopes = Scope(left.frame, statement), Scope(right.frame, statement)
    if not any(same for _, same in tests) and not (way == "INNER" and pairs.crosses(*scopes, where)):
        pairs.note(statement, (f"({left.sql})", f"({right.sql})"), pairs.FEW if tests else pairs.ALL, at(node), (left.unsure, right.unsure))
    text = " AND ".join(text for text, _ in tests) or "TRUE"
    both = replace(both, unsure=left.unsure or right.unsure or noisy)
    return _merged(statement, both, (left, right), way, list(zip(names, alike, strict=True)), text)


def _one(statement: Statement, side: Flat, name: str, node: exp.Join) -> Column:
    found = side.frame.find(name)
    if len(found) != 1 or not isinstance(found[0].value, Column):
        what = "is in several tables" if found else "is not in both tables"
        raise statement.refuse("USING", f"column {name!r} {what}{near(name, side.frame.names())}", at(node), "ON .. with the condition")
    if found[0].value.type.kind is Kind.LIST:
        raise statement.refuse("LIST_ABOVE_NOISE", f"column {name!r} is a list, which nothing is compared with", at(node), "ON a.q[1] = b.q[1]")
    return found[0].value


def _conditions(statement: Statement, both: Flat, on: exp.Expr, width: int, over: Lifter) -> tuple[list[tuple[str, bool]], bool]:
    """ON by conditions, each with whether the engine can hash by it, a bare equality (of others what fails is NULL); and whether one is noisy."""

    def placed(below: exp.Expr) -> exp.Expr:
        if not isinstance(below, exp.Column):
            return below
        place = int(below.name[1:])
        return exp.column(f"c{place if place < width else place - width}", table="l" if place < width else "r")

    lifter = Over(statement, scope=replace(over.scope, frame=both.frame), aliases={}, window=over.window, scalar=over.scalar, flat=both)
    found, noisy = list[tuple[str, bool]](), False
    for part in conjunct_nodes(on):
        lifted = lifter.lift(part, Where.HAVING)
        noisy = noisy or is_noisy(lifter, lifted)
        bare = pairs.equal(lifter, lifted)
        if lifter.scalars or lifter.marks:
            raise statement.refuse("SUBQUERY_ABOVE_NOISE", "a subquery in ON is not supported", part, "the condition in WHERE")
        moved = lifted.transform(placed)
        found.append((written(moved) if bare else guarded(moved), bare and len({one.table for one in moved.find_all(exp.Column)}) == 2))
    return found, noisy


def _merged(
    statement: Statement, both: Flat, sides: tuple[Flat, Flat], way: str, using: Sequence[tuple[str, tuple[Column, Column]]], test: str
) -> Flat:
    left, right = sides
    items = [f"l.c{i} AS c{i}" for i in range(len(left.cells))] + [f"r.c{i} AS c{len(left.cells) + i}" for i in range(len(right.cells))]
    cells, places, merged = list(both.cells), dict(both.places), [*left.frame.merged, *right.frame.merged]
    where = (frozenset(s.place for s in left.frame.sources), frozenset(s.place for s in right.frame.sources))
    for name, (a, b) in using:
        value: Scalar = b if way == "RIGHT" else a
        if way == "FULL":
            one, other = both.cells[both.places[a.id]], both.cells[both.places[b.id]]
            value = Column(next(statement.ids), name, a.type)
            places[value.id] = len(cells)
            items.append(f"coalesce(l.c{left.places[a.id]}, r.c{right.places[b.id]}) AS c{len(cells)}")
            cells.append(Cell(name, one.type if one.type == other.type else None, one.noisy or other.noisy))
        merged = [one for one in merged if fold(one.name) != fold(name)] + [Merged(name, value, where[0] | where[1])]
    items += [f"l.{alias}" for alias, _ in left.rows] + [f"r.{alias}" for alias, _ in right.rows]
    sql = f"SELECT {', '.join(items)} FROM ({left.sql}) AS l {way} JOIN ({right.sql}) AS r ON {test}"
    both_unique = None if left.unique is None or right.unique is None else left.unique | {len(left.cells) + place for place in right.unique}
    frame, single = Frame(both.frame.sources, tuple(merged)), left.single and right.single
    return Flat(sql, tuple(cells), both.rows, frame, places, single, both_unique, left.most * right.most, both.unsure)


# ---- SELECT --------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Over(Lifter):
    """Expressions over released relations, row by row. `kept` is the text of WHERE over the rows with `subqueries` of its own."""

    flat: Flat = field(kw_only=True)
    filtered: str = ""
    hashed: bool = False

    @property
    def table(self) -> str:
        return self.filtered or self.closed

    @property
    def closed(self) -> str:
        return f"({self.flat.sql})"

    @property
    def tied(self) -> bool:
        return self.hashed

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        return tuple((alias, name, alias) for alias, name in self.flat.rows)

    @property
    def ties(self) -> tuple[str, ...]:
        rows, cells = tuple(alias for alias, _ in self.flat.rows), tuple(f"c{i}" for i in range(len(self.flat.cells)))
        return (*rows, *cells) if self.statement.opened or not rows else rows  # rows of public tables have no numbers

    @property
    def apart(self) -> tuple[str, ...] | None:
        return None if self.flat.unique is None else tuple(f"c{i}" for i in self.flat.unique)

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        return None

    def _column(self, node: exp.Column, where: Where) -> exp.Expr:
        """A column of the relations, or an alias of SELECT where the engine looks there."""
        seen = self.scope.find(node)
        alias = self.named(node)
        if alias is not None and (seen is None or where in (Where.ORDER, Where.QUALIFY)):
            return self.followed(node, alias, where)
        if seen is None:
            raise self.scope.unknown(node)
        if not isinstance(seen.value, Column):
            raise AssertionError("released relations have columns only")
        return exp.column(f"c{self.flat.places[seen.value.id]}", table="t")

    def below_sums(self) -> Lifter:
        return self  # there are no aggregates here

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        raise self.statement.refuse("MISPLACED_AGGREGATE", "an aggregate here is not supported", node, "HAVING for conditions on aggregates")

    def kind(self, name: str) -> Type | None:
        if name in self.whole:
            return INTEGER
        found = self._cell(name) if name[0] in "cy" else None
        return None if found is None else found.type

    def own(self, name: str) -> Cell | None:
        return self.flat.cells[int(name[1:])] if name.startswith("c") else None

    def keep(self, test: exp.Expr) -> None:
        """From here on, only the rows for which WHERE is true."""
        below = replace(self, scalars=[], subqueries={}, alike={}, cells=[], windows=[], marks=[], given=[])
        lifted = [below.lift(part, Where.HAVING) for part in conjunct_nodes(test)]
        self.hashed = any(pairs.ties(below, one) for one in lifted)
        self.unsure = self.unsure or bool(below.scalars or below.marks) or any(is_noisy(below, one) for one in lifted)
        rest = [one for one in lifted if not pairs.equal(below, one)]
        texts = [written(one) for one in lifted if one not in rest]
        texts += [guarded(one) for one in rest] if len(rest) < 2 else [f"TRY({' AND '.join(f'({written(one)})' for one in rest)})"]
        text = " AND ".join(texts)
        names = [f"t.c{i}" for i in range(len(self.flat.cells))] + [f"t.{alias}" for alias, _ in self.flat.rows]
        self.filtered = f"(SELECT {', '.join(names) or '0 AS nothing'} FROM {with_scalars(below, self.table)} AS t WHERE {text})"


@dataclass(slots=True)
class Grouped(Lifter):
    """Expressions over groups of released rows. Rows are merged, so that nothing here has an error bar."""

    below: Over = field(kw_only=True)
    keys: list[exp.Expr] = field(default_factory=list)  # lifted
    calls: list[str] = field(default_factory=list)
    led: bool = False  # whether one of the rows was chosen, and that is all that is known of them
    extremes: dict[str, Type] = field(default_factory=dict)  # calls that give one of the values of a column, whose type they have

    @property
    def table(self) -> str:
        keys = [f"t.k{i}" for i in range(len(self.keys))]
        given = "".join(f", {guarded(key)} AS k{i}" for i, key in enumerate(self.keys)) + "".join(
            f", {text} AS p{i}" for i, text in enumerate(self.below.cells)
        )
        inner = f"(SELECT t.*{given} FROM {with_scalars(self.below, self.below.table)} AS t)"
        items = [*keys, *(f"{call} AS a{i}" for i, call in enumerate(self.calls))]
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"(SELECT {', '.join(items) or 'count(*) AS a0'} FROM {inner} AS t{by})"

    @property
    def closed(self) -> str:
        return self.below.closed

    @property
    def tied(self) -> bool:
        return self.below.tied

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        return ()

    @property
    def ties(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.keys)))

    def chosen(self, node: exp.Expr) -> bool:
        return self.led

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Literal) or not self.keys:
            return None
        if isinstance(node, exp.Column) and self.scope.find(node) is None:
            return None
        if self._above_keys(node):
            return None
        text = written(self.below.lift(node, Where.HAVING))
        place = next((i for i, key in enumerate(self.keys) if written(key) == text), None)
        return None if place is None else exp.column(f"k{place}", table="t")

    def _above_keys(self, node: exp.Expr) -> bool:
        """Whether it holds an aggregate, a window or a subquery, or the alias of what does."""
        waiting, seen = [node], set[str]()
        while waiting:
            for one in waiting.pop().walk():
                if isinstance(one, exp.Query | exp.Window) or is_aggregate(unwrapped(one)):
                    return True
                alias = self.named(one) if isinstance(one, exp.Column) and self.scope.find(one) is None else None
                if alias is not None and fold(one.name) not in seen:
                    seen.add(fold(one.name))
                    waiting.append(alias)
        return False

    def _column(self, node: exp.Column, where: Where) -> exp.Expr:
        name, _ = column_name(node, self.statement.source)
        alias = self.named(node)
        if alias is not None and (self.scope.find(node) is None or where is not Where.SELECT):
            return self.followed(node, alias, where)
        if self.scope.find(node) is None:
            raise self.scope.unknown(node)
        message = f"column {name!r} is neither a key of GROUP BY nor inside an aggregate"
        raise self.statement.refuse("NOT_GROUPED", message, node, f"{name} in GROUP BY, or MAX({name})")

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        text = self._call(node)
        if text not in self.calls:
            self.calls.append(text)
        return exp.column(f"a{self.calls.index(text)}", table="t")

    def _call(self, node: exp.Expr) -> str:
        match node:
            case exp.Filter():
                inner, where = take(node, "this", "expression")
                if isinstance(inner, WRAPPERS):
                    raise self.statement.refuse("AGGREGATE", "this aggregate of released values is not supported", node, OFFERED)
                if isinstance(inner, exp.ArgMin | exp.ArgMax):
                    return self._picked(inner, f" AND {written(self.below.cell(take(where, 'this')[0]))}")
                plain = self._call(inner)
                text = f"{plain} FILTER (WHERE {written(self.below.cell(take(where, 'this')[0]))})"
                return self._extreme(text, self.extremes.get(plain))
            case exp.Count():
                return self._count(node)
            case exp.ArgMin() | exp.ArgMax():
                return self._picked(node)
            case exp.CountIf():
                return f"count(*) FILTER (WHERE {written(self.below.cell(take(node, 'this', 'zero_on_all_null')[0]))})"
            case exp.Sum() | exp.Avg():
                (this,) = take(node, "this")
                self._check_plain(this, node)
                return f"{'sum' if isinstance(node, exp.Sum) else 'avg'}({summable(self.below, this)})"
            case exp.Min() | exp.Max() | exp.Median():
                (this,) = take(node, "this")
                self._check_plain(this, node)
                cell = self.below.cell(this)
                return self._extreme(f"{PLAIN[type(node)]}({written(cell)})", None if isinstance(node, exp.Median) else self.below.kind(cell.name))
            case _:
                what = self.statement.spelled(node)
                raise self.statement.refuse("AGGREGATE", f"{what} of released values is not supported", node, OFFERED)

    def _picked(self, node: exp.ArgMin | exp.ArgMax, where: str = "") -> str:
        """The value where another one is least or greatest; of several the least value."""
        cells = [self.below.cell(one) for one in take(node, "this", "expression")]
        value, by = (written(cell) for cell in cells)
        way = "DESC" if isinstance(node, exp.ArgMax) else "ASC"
        text = f"first({value} ORDER BY {by} {way}, {value}) FILTER (WHERE {value} IS NOT NULL AND {by} IS NOT NULL{where})"
        return self._extreme(text, self.below.kind(cells[0].name))

    def _extreme(self, text: str, kind: Type | None) -> str:
        if kind is not None:
            self.extremes[text] = kind
        return text

    def _check_plain(self, this: exp.Expr, node: exp.Expr) -> None:
        if isinstance(this, exp.Distinct | exp.Order | exp.Limit | exp.HavingMax | exp.Star):
            raise self.statement.refuse("AGGREGATE_CLAUSE", "DISTINCT, ORDER BY and LIMIT inside it are not supported", node, OFFERED)

    def _count(self, node: exp.Count) -> str:
        this, more, _ = take(node, "this", "expressions", "big_int")
        if this is None or isinstance(this, exp.Star):
            return "count(*)"
        if more:
            raise self.statement.refuse("WRONG_ARGUMENTS", "COUNT takes one argument", node, "COUNT(*)")
        if isinstance(this, exp.Distinct):
            (items,) = take(this, "expressions")
            if len(items) != 1:
                raise self.statement.refuse("WRONG_ARGUMENTS", "COUNT(DISTINCT ..) takes one argument", node, "COUNT(DISTINCT x)")
            return f"count(DISTINCT {written(self.below.cell(items[0]))})"
        return f"count({written(self.below.cell(this))})"

    def kind(self, name: str) -> Type | None:
        if name in self.whole:
            return INTEGER
        if name.startswith("a") and self.calls[int(name[1:])].startswith("count("):
            return INTEGER
        if name.startswith("a"):
            return self.extremes.get(self.calls[int(name[1:])])
        found = self._cell(name) if name[0] in "ky" else None
        return None if found is None else found.type

    def below_sums(self) -> Lifter:
        return self.below

    def own(self, name: str) -> Cell | None:
        if not name.startswith("k"):
            return None
        key = self.keys[int(name[1:])]
        return Cell(name, self.below.kind(key.name) if isinstance(key, exp.Column) else None, is_noisy(self.below, key))


# ---- relations -----------------------------------------------------------------------------------------------------------------------


def released(lifter: Lifter, post: Post, single: bool) -> Released:
    """What a SELECT over released values is to the one around it; error bars follow its rows."""
    types = [*lifter.types]
    cells = tuple(
        Cell(one.name, kind, one.noisy, one.interval if post.rows else None, one.missing) for one, kind in zip(post.outputs, types, strict=True)
    )
    check_written(lifter.statement, post.sql)
    most = lifter.flat.most if isinstance(lifter, Over) else 1
    return Released(post.sql, cells, post.rows, single, lifter.unique, most, lifter.unsure and not single)
