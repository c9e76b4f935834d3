"""Relations as SQL, on a real engine: whose rows there are, what joins make of them, and which rows a cap keeps."""

from __future__ import annotations

from fractions import Fraction

import pytest
from plan_bench import ROWS, UNITS, Bench, column, integer, of, public, release, scan, total

from dpquery.plan.functions import call
from dpquery.plan.inside import Frame, Place, Placing, Reduce, Reduction, Term, Whole
from dpquery.plan.rel import CapRows, Compute, Hop, Join, Keep, Lookup, Match, Scan, UnitPath, Windowed
from dpquery.plan.scalar import Literal
from dpquery.values.types import FLOAT, INTEGER, STRING

SHOP = """
CREATE TABLE users(uid INTEGER, country VARCHAR);
INSERT INTO users VALUES (1, 'US'), (2, 'DE'), (3, NULL), (NULL, 'FR');
CREATE TABLE orders(oid INTEGER, uid INTEGER, amount DOUBLE, item VARCHAR);
INSERT INTO orders VALUES (10, 1, 5, 'x'), (11, 1, 7, 'y'), (12, 2, 9, 'x'), (13, NULL, 100, 'x'), (14, 99, 3, 'z'), (NULL, 2, 1, 'z');
CREATE TABLE items(oid INTEGER, price INTEGER);
INSERT INTO items VALUES (10, 1), (10, 2), (12, 4), (13, 100), (77, 100), (NULL, 100);
CREATE TABLE regions(country VARCHAR, region VARCHAR);
INSERT INTO regions VALUES ('US', 'AM'), ('US', 'AM2'), ('DE', 'EU'), ('XX', 'ZZ'), (NULL, 'NN');
"""


def orders() -> Scan:
    return scan("orders", oid="integer", uid="integer", amount="float", item="string")


def test_a1_rows_without_a_unit_end_at_the_scan() -> None:
    rel = orders()
    assert Bench(SHOP).one(release(rel, parts=(ROWS, UNITS, total(of(rel, "amount"), 0, 50)))) == (5, 3, 25)


def test_a1_a_path_without_a_parent_ends_at_the_scan() -> None:
    path = UnitPath("uid", INTEGER, (Hop("oid", "orders", "oid"),))
    rel = scan("items", path, oid="integer", price="integer")
    assert Bench(SHOP).one(release(rel, parts=(ROWS, UNITS, total(of(rel, "price"), 0, 50)))) == (3, 2, 7)


def test_a_path_of_several_hops_leads_to_the_last_tables_unit() -> None:
    setup = SHOP + "CREATE TABLE parts(pid INTEGER, oid INTEGER); INSERT INTO parts VALUES (1, 10), (2, 12), (3, 13), (4, 55);"
    setup += "CREATE TABLE scratches(pid INTEGER); INSERT INTO scratches VALUES (1), (1), (2), (3), (4), (5), (NULL);"
    path = UnitPath("uid", INTEGER, (Hop("pid", "parts", "pid"), Hop("oid", "orders", "oid")))
    assert Bench(setup).one(release(scan("scratches", path, pid="integer"), parts=(ROWS, UNITS))) == (3, 2)


def test_a12_units_are_compared_as_they_are() -> None:
    """Texts that look like one number are several units: nothing casts them into one, or one into several."""
    setup = "CREATE TABLE t(uid VARCHAR); INSERT INTO t VALUES ('1'), ('01'), (' 1'), ('+1'), ('1');"
    asked = release(scan("t", UnitPath("uid", STRING), uid="string"), parts=(UNITS, ROWS))
    assert Bench(setup).one(asked) == (4, 5)


def test_a_filter_keeps_what_is_true_and_neither_false_nor_unknown() -> None:
    rel = scan("users", uid="integer", country="string")
    kept = Keep(rel, call("ne", of(rel, "country"), Literal("US", STRING)))
    assert Bench(SHOP).one(release(kept)) == (1,)


def test_computed_columns_are_columns() -> None:
    rel = orders()
    twice = column("twice", "float")
    made = Compute(rel, ((twice, call("add", of(rel, "amount"), of(rel, "amount"))), (column("unused"), integer(1))))
    assert Bench(SHOP).one(release(made, parts=(total(twice, 0, 50),))) == (50,)


def test_a_lookup_meets_every_public_row_and_only_its_own_unit_counts() -> None:
    bench, rel = Bench(SHOP), scan("users", uid="integer", country="string")
    regions = public("p0", 'SELECT "country" AS c0, "region" AS c1 FROM "regions"', country="string", region="string")
    bench.make(regions)
    on = call("eq", of(rel, "country"), of(regions, "country"))
    inner, left = (Lookup(rel, regions, join, on) for join in (Join.INNER, Join.LEFT))
    assert bench.one(release(inner, parts=(ROWS, UNITS))) == (3, 2)
    assert bench.one(release(left, parts=(ROWS, UNITS))) == (4, 3)
    region = of(regions, "region")
    assert bench.sums(release(left, [region])) == {("AM",): (1, 1), ("AM2",): (1, 1), ("EU",): (1, 1), (None,): (1, 1)}
    every = Lookup(rel, regions, Join.INNER, None)
    assert bench.one(release(every, parts=(ROWS, UNITS))) == (15, 3)


def test_n7_a_public_row_that_meets_nobody_is_nobodys() -> None:
    bench, rel = Bench(SHOP + "DELETE FROM users WHERE uid = 1;"), scan("users", uid="integer", country="string")
    regions = public("p0", 'SELECT "country" AS c0, "region" AS c1 FROM "regions"', country="string", region="string")
    bench.make(regions)
    on = call("eq", of(rel, "country"), of(regions, "country"))
    for join in Join:
        assert ("AM",) not in bench.sums(release(Lookup(rel, regions, join, on), [of(regions, "region")]))


def test_the_same_public_relation_may_be_looked_up_twice() -> None:
    bench, rel = Bench(SHOP), scan("users", uid="integer", country="string")
    sql = 'SELECT "country" AS c0 FROM "regions"'
    first, second = public("p0", sql, country="string"), public("p1", sql, country="string")
    bench.make(first, second)
    once = Lookup(rel, first, Join.INNER, call("eq", of(rel, "country"), of(first, "country")))
    twice = Lookup(once, second, Join.INNER, call("eq", of(rel, "country"), of(second, "country")))
    assert bench.one(release(twice)) == (5,)


def test_a_match_adds_the_equality_of_units() -> None:
    bench, users, bought = Bench(SHOP), scan("users", uid="integer", country="string"), orders()
    assert bench.one(release(Match(users, bought, Join.INNER, None), parts=(ROWS, UNITS))) == (4, 2)
    assert bench.one(release(Match(users, bought, Join.LEFT, None), parts=(ROWS, UNITS))) == (5, 3)
    on = call("gt", of(bought, "amount"), Literal(6.0, of(bought, "amount").type))
    both = total(of(bought, "amount"), 0, 50)
    assert bench.one(release(Match(users, bought, Join.LEFT, on), parts=(ROWS, both))) == (3, 16)
    assert bench.sums(release(Match(users, bought, Join.INNER, on), [of(users, "country")])) == {("US",): (1, 1), ("DE",): (1, 1)}


def test_the_unit_of_an_outer_join_is_the_preserved_sides() -> None:
    bench, users, bought = Bench(SHOP), scan("users", uid="integer", country="string"), orders()
    assert bench.one(release(Match(bought, users, Join.LEFT, None), parts=(UNITS, ROWS))) == (3, 5)


MANY = """
CREATE TABLE t AS SELECT i % 3 AS uid, i AS x, i % 2 AS y, CASE WHEN i % 5 = 0 THEN NULL ELSE 'n' || i % 7 END AS s FROM range(300) r(i);
INSERT INTO t VALUES (7, 1, 1, 's'), (7, 1, 1, 's');
"""


def test_a5_a_cap_keeps_so_many_rows_of_each_unit() -> None:
    rel = scan("t", uid="integer", x="integer", y="integer", s="string")
    bench = Bench(MANY)
    assert bench.one(release(CapRows(rel, 10), parts=(ROWS, UNITS))) == (32, 4)
    assert bench.one(release(CapRows(rel, 1000), parts=(ROWS, UNITS))) == (302, 4)
    joined = Match(CapRows(rel, 10), CapRows(scan("t", uid="integer", x="integer"), 10), Join.INNER, None)
    assert bench.one(release(joined, parts=(total(integer(1), 0, 1, rows=10_000),))) == (3 * 100 + 4,)


def kept(bench: Bench, rel: object, salt: int) -> set[tuple[object, ...]]:
    """The values of x that a cap keeps of unit 0."""
    x = of(rel.input, "x")  # type: ignore[attr-defined]
    asked = release(Keep(rel, call("lt", x, integer(300))), [x])  # type: ignore[arg-type]
    return {key for key in bench.sums(asked, salt) if key[0] is not None and int(str(key[0])) % 3 == 0}


def test_which_rows_a_cap_keeps_is_a_function_of_the_units_rows_and_the_salt() -> None:
    rel = CapRows(scan("t", uid="integer", x="integer", y="integer", s="string"), 10)
    first = kept(Bench(MANY), rel, salt=1)
    assert len(first) == 10
    assert first == kept(Bench(MANY, threads=1), rel, salt=1)
    shuffled = Bench("CREATE TABLE t AS SELECT * FROM (" + "SELECT i % 3 AS uid, i AS x, i % 2 AS y, CASE WHEN i % 5 = 0 THEN NULL"
                     " ELSE 'n' || i % 7 END AS s FROM range(300) r(i)) WHERE uid = 0 ORDER BY hash(x)")  # fmt: skip
    assert first == kept(shuffled, rel, salt=1)
    others = [kept(Bench(MANY), rel, salt) for salt in range(2, 12)]
    assert all(other != first for other in others)
    assert len(set().union(*others)) > 40  # salts do not correlate: of 100 rows 10 choices of 10 reach about 65


def test_h_the_choice_of_rows_reads_computed_columns_and_literals_too() -> None:
    """Rows that differ in a computed column only are not alike: which one stays must not depend on the order of the file."""
    rel = scan("t", uid="integer", x="integer")
    mark = column("mark")
    capped = CapRows(Compute(rel, ((mark, call("mod", of(rel, "x"), integer(2))),)), 1)
    one = Bench("CREATE TABLE t AS SELECT 1 AS uid, i AS x FROM range(64) r(i)")
    others = [Bench(f"CREATE TABLE t AS SELECT 1 AS uid, i AS x FROM range(64) r(i) ORDER BY {by}", threads=1) for by in ("hash(i)", "-i")]
    for salt in range(10):
        first = one.sums(release(capped, [mark]), salt)
        assert [other.sums(release(capped, [mark]), salt) for other in others] == [first, first]


FOUR = Whole(Fraction(1, 4), -1000, 1000)


@pytest.mark.parametrize("function", [*Place, "rows", "range", "whole"])
def test_a4_windows_say_the_same_in_whatever_order_rows_come(function: str) -> None:
    """Most rows are equal in what the window orders by, and some in all columns; sums are of floats that do not add up exactly."""
    made = (
        "CREATE TABLE t AS SELECT i % 500 AS uid, i % 3 AS d, (i // 500 * 7919) % 41 AS x, ((i // 500 * 7919) % 41) * 0.3 AS f FROM range(20000) r(i)"
    )
    rel = scan("t", uid="integer", d="integer", x="integer", f="float")
    order = (Term(of(rel, "d"), True, False),)
    if function in [*Place]:
        value = None if function in (Place.ROW_NUMBER, Place.RANK, Place.DENSE_RANK) else of(rel, "x")
        windowed = Windowed(rel, column("w"), Placing(Place(function), value, INTEGER), (), order)
    else:
        frame = {"rows": Frame(True, 3), "range": Frame(False), "whole": None}[function]
        item = Reduction(Reduce.SUM, of(rel, "f"), FLOAT, whole=FOUR)
        windowed = Windowed(rel, column("w", FLOAT), item, (), () if frame is None else order, frame)
    asked = release(windowed, [of(rel, "x"), windowed.column])
    first = Bench(made).sums(asked)
    assert len(first) > 1
    for by, threads in (("hash(i)", 2), ("-i", 1)):
        assert Bench(f"{made} ORDER BY {by}", threads=threads).sums(asked) == first


def test_n6_zeros_of_either_sign_are_one_value_and_nan_is_none() -> None:
    rel = scan("t", uid="integer", x="float")
    capped = CapRows(rel, 1)
    setup = "CREATE TABLE t(uid INTEGER, x DOUBLE); INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 0.0 ELSE -0.0::DOUBLE END FROM range(100) r(i);"
    setup += "INSERT INTO t SELECT uid, -x FROM t; INSERT INTO t VALUES (1000, 'nan'::DOUBLE)"
    assert Bench(setup).sums(release(rel, [of(rel, "x")])) == {(0.0,): (100, 200), (None,): (1, 1)}
    assert Bench(setup).sums(release(capped, [of(rel, "x")])) == {(0.0,): (100, 100), (None,): (1, 1)}
    below = "CREATE TABLE t(uid INTEGER, x DOUBLE); INSERT INTO t VALUES (1, '-0.0'), (1, '-0.0')"
    for one in (rel, capped):
        assert repr(list(Bench(below).sums(release(one, [of(rel, "x")])))) == "[(0.0,)]"


def test_w3_a_cap_sits_where_the_plan_puts_it_above_filters() -> None:
    rel = scan("t", uid="integer", x="integer", y="integer", s="string")
    few = CapRows(Keep(rel, call("lt", of(rel, "x"), integer(30))), 10)
    assert Bench(MANY).one(release(few, parts=(ROWS, UNITS))) == (32, 4)
    late = Keep(CapRows(rel, 10), call("lt", of(rel, "x"), integer(30)))
    assert Bench(MANY).one(release(late, parts=(ROWS, UNITS)))[0] < 30


def test_columns_that_nothing_reads_are_not_carried() -> None:
    from plan_bench import SALT

    from dpquery.backends.lower import lower

    rel = scan("orders", oid="integer", amount="float", item="string")
    text = lower(release(Keep(rel, call("gt", of(rel, "oid"), integer(1)))), SALT).text
    assert '"amount"' not in text
    assert '"item"' not in text
    assert '"oid"' in text
