"""Releases as one statement, on a real engine: against plain SQL, at the edges of the integers, and bound for bound."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from plan_bench import ROWS, SALT, UNITS, Bench, column, integer, of, release, scan, total

from dpquery.backends.lower import lower
from dpquery.plan.functions import call
from dpquery.plan.rel import Keep, Scan
from dpquery.plan.release import (
    Additive,
    Bins,
    CellBound,
    Clamp,
    Element,
    Elements,
    Enforced,
    GroupCap,
    HeavyMean,
    Idle,
    Key,
    ListedKeys,
    NoKeys,
    One,
    Part,
    Present,
    PrivateKeys,
    Product,
    Release,
    RowWeights,
    Units,
    UnitTable,
)
from dpquery.plan.scalar import Literal, Scalar
from dpquery.privacy.contribution import enforced
from dpquery.values.types import DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type, Value

SALES = """
CREATE TABLE sales AS
SELECT (hash(i) % 40)::INTEGER AS uid, ['a', 'b', 'c', 'd', NULL][1 + (hash(i, 1) % 5)::INTEGER] AS kind, (hash(i, 2) % 4)::INTEGER AS shop,
    CASE WHEN hash(i, 3) % 11 = 0 THEN NULL WHEN hash(i, 3) % 11 = 1 THEN 'nan'::DOUBLE ELSE (hash(i, 4) % 30000)::DOUBLE / 100 - 100 END AS amount,
    (hash(i, 5) % 7)::INTEGER AS stars
FROM range(2000) r(i);
INSERT INTO sales VALUES (NULL, 'a', 0, 5, 5);
"""
CENT = Fraction(1, 100)
VALID = "uid IS NOT NULL"


def sales() -> Scan:
    return scan("sales", uid="integer", kind="string", shop="integer", amount="float", stars="integer")


def amounts(rel: Scan, low: int = -5000, high: int = 10000, cell: Clamp | None = None, where: Scalar | None = None) -> Part:
    return Part(Units(of(rel, "amount"), CENT, low, high), cell or Clamp(-(10**9), 10**9), where)


def text(value: str) -> Literal:
    return Literal(value, STRING)


# ---- against plain SQL ---------------------------------------------------------------------------------------------------------------

UNIT = "floor(greatest(least(amount, 100), -50) * 100 + 0.5)::BIGINT"
COUNTED = "amount IS NOT NULL AND NOT isnan(amount)"


def test_without_keys_sums_are_those_of_plain_sql() -> None:
    bench, rel = Bench(SALES), sales()
    parts = (Part(One(), Clamp(0, 10**6)), UNITS, Part(One(of(rel, "amount")), Clamp(0, 10**6)), amounts(rel))
    wanted = bench.rows(
        f"SELECT count(*), count(DISTINCT uid), count(*) FILTER (WHERE {COUNTED}), sum({UNIT}) FILTER (WHERE {COUNTED}) FROM sales WHERE {VALID}"
    )
    assert [bench.one(release(rel, parts=parts))] == wanted


def test_cells_are_clamped_by_unit_and_group_as_in_plain_sql() -> None:
    bench, rel = Bench(SALES), sales()
    parts = (Part(One(), Clamp(0, 7)), amounts(rel, cell=Clamp(-10000, 15000)))
    wanted = bench.rows(
        f"""SELECT kind, shop, count(*), sum(least(n, 7)), sum(CASE WHEN m > 0 THEN greatest(least(s, 15000), -10000) ELSE 0 END) FROM (
            SELECT uid, kind, shop, count(*) AS n, count(*) FILTER (WHERE {COUNTED}) AS m, sum({UNIT}) FILTER (WHERE {COUNTED}) AS s
            FROM sales WHERE {VALID} GROUP BY uid, kind, shop) GROUP BY kind, shop"""
    )
    found = bench.sums(release(rel, [of(rel, "kind"), of(rel, "shop")], parts=parts))
    assert {(*key, *sums) for key, sums in found.items()} == set(wanted)


def test_a_filter_on_an_aggregate_counts_where_it_is_true() -> None:
    bench, rel = Bench(SALES), sales()
    where = call("gt", of(rel, "stars"), integer(3))
    parts = (Part(One(), Clamp(0, 10**6), where), Part(One(), Present(), where), amounts(rel, where=where), ROWS)
    wanted = bench.rows(
        f"""SELECT count(*) FILTER (WHERE stars > 3), count(DISTINCT uid) FILTER (WHERE stars > 3),
            sum({UNIT}) FILTER (WHERE stars > 3 AND {COUNTED}) FROM sales WHERE {VALID}"""
    )
    assert [bench.one(release(rel, parts=parts))[:3]] == wanted


def test_one_nan_does_not_spoil_a_sum() -> None:
    bench = Bench("CREATE TABLE t(uid INTEGER, x DOUBLE); INSERT INTO t VALUES (1, 1000), (2, 'nan'), (3, 'inf'), (4, '-inf'), (5, NULL), (6, 1e300)")
    rel = scan("t", uid="integer", x="float")
    x = of(rel, "x")
    assert bench.one(release(rel, parts=(total(x, -7, 2000), Part(One(x), Clamp(0, 9)), UNITS))) == (1000 + 2000 - 7 + 2000, 4, 6)


def test_a_float_that_only_a_sum_reads_needs_no_canonical_form_and_one_that_a_filter_reads_does() -> None:
    bench = Bench("CREATE TABLE t(uid INTEGER, x DOUBLE); INSERT INTO t VALUES (1, 5), (2, 'nan'), (3, 'inf'), (4, '-inf'), (5, NULL), (6, -0.0)")
    rel = scan("t", uid="integer", x="float")
    x = of(rel, "x")
    summed = release(rel, parts=(total(x, -7, 2000), Part(Units(x, Fraction(1), -7, 3000), Clamp(-9, 9000))))
    assert bench.one(summed) == (5 + 2000 - 7, 5 + 3000 - 7)
    assert 'TRY_CAST(t."x" AS DOUBLE) AS' in lower(summed, SALT).text
    assert bench.one(release(Keep(rel, call("is_null", x)), parts=(total(x, -7, 2000), UNITS))) == (0, 2)  # NaN is NULL
    assert bench.one(release(rel, parts=(total(x, -7, 2000), Part(One(x), Clamp(0, 9))))) == (5 + 2000 - 7, 4)
    assert bench.one(release(rel, parts=(amounts_where(x, call("is_null", x)), UNITS))) == (0, 6)


def amounts_where(x: Scalar, where: Scalar) -> Part:
    return Part(Units(x, Fraction(1), 3, 10), Clamp(3, 10), where)


def test_sums_of_small_integers_are_exact_beyond_32_bits() -> None:
    most = 2**24
    bench = Bench(f"CREATE TABLE t AS SELECT 1 AS uid, {most} AS x FROM range(1000) r(i)")
    rel = scan("t", uid="integer", x="integer")
    for top in (most, most + 1):
        assert bench.one(release(rel, parts=(Part(Units(of(rel, "x"), Fraction(1), -top, top), Clamp(-(2**60), 2**60)),))) == (1000 * most,)


# ---- keys ----------------------------------------------------------------------------------------------------------------------------


def test_listed_keys_drop_all_other_rows_and_null_counts_only_where_listed() -> None:
    bench, rel = Bench(SALES), sales()
    plain = dict(bench.rows(f"SELECT kind, count(*) FROM sales WHERE {VALID} GROUP BY kind"))
    part = Part(One(), Clamp(0, 10**6))
    without = bench.sums(release(rel, [of(rel, "kind")], [("a",), ("b",), ("zzz",)], (part,)))
    assert without == {("a",): (plain["a"],), ("b",): (plain["b"],)}
    with_null = bench.sums(release(rel, [of(rel, "kind")], [(None,), ("d",)], (part,)))
    assert with_null == {(None,): (plain[None],), ("d",): (plain["d"],)}


def test_listed_keys_of_several_columns_are_compared_column_by_column() -> None:
    bench, rel = Bench(SALES), sales()
    listed: list[tuple[Value, ...]] = [("a", 1), ("a", 2), (None, 3), ("b", None)]
    found = bench.sums(release(rel, [of(rel, "kind"), of(rel, "shop")], listed, (Part(One(), Clamp(0, 10**6)),)))
    plain = {(k, s): n for k, s, n in bench.rows(f"SELECT kind, shop, count(*) FROM sales WHERE {VALID} GROUP BY kind, shop")}
    assert found == {key: (plain[key],) for key in [("a", 1), ("a", 2), (None, 3)]}


def test_rows_outside_the_list_do_not_use_up_the_cap_on_groups() -> None:
    setup = "CREATE TABLE t AS SELECT 1 AS uid, i AS k FROM range(100) r(i)"
    rel = scan("t", uid="integer", k="integer")
    found = Bench(setup).sums(release(rel, [of(rel, "k")], [(5,), (50,), (95,)], by=GroupCap(2)))
    assert len(found) == 2


@pytest.mark.parametrize(
    ("physical", "kind", "listed"),
    [
        ("SELECT i AS uid, i * 7 AS k FROM range(5) r(i)", INTEGER, [(7,), (0,)]),
        ("SELECT i AS uid, (i / 2)::DOUBLE AS k FROM range(5) r(i)", FLOAT, [(0.5,), (0.0,)]),
        ("SELECT i AS uid, (i / 4)::DECIMAL(10, 2) AS k FROM range(5) r(i)", Type(Kind.DECIMAL, 2), [(Decimal("0.25"),), (Decimal("0.00"),)]),
        ("SELECT i AS uid, 'it''s ' || chr(10 + i::INT) AS k FROM range(5) r(i)", STRING, [("it's \n",), ("it's \r",)]),
        ("SELECT i AS uid, DATE '2024-02-28' + i::INT AS k FROM range(5) r(i)", DATE, [(datetime.date(2024, 2, 29),)]),
        (
            "SELECT i AS uid, TIMESTAMP '2024-01-01 00:00:00.000001' + to_hours(i) AS k FROM range(5) r(i)",
            TIMESTAMP,
            [(datetime.datetime(2024, 1, 1, 3, 0, 0, 1),)],
        ),
        ("SELECT i AS uid, '00000000-0000-0000-0000-00000000000' || i AS k FROM range(5) r(i)", UUID, []),
    ],
)
def test_keys_of_every_type_come_back_as_they_were_listed(physical: str, kind: Type, listed: list[tuple[Value, ...]]) -> None:
    import uuid

    setup = f"CREATE TABLE t AS {physical}" + ("; ALTER TABLE t ALTER k TYPE UUID" if kind == UUID else "")
    wanted = listed or [(uuid.UUID(int=3),)]
    rel = scan("t", uid="integer", k=kind)
    bench = Bench(setup)
    assert bench.sums(release(rel, [of(rel, "k")], wanted)) == dict.fromkeys(wanted, (1,))
    private = bench.sums(release(rel, [of(rel, "k")]))
    assert len(private) == 5
    assert all(private[key] == (1, 1) for key in wanted)
    assert {type(key[0]) for key in private} == {type(wanted[0][0])}


def test_a7_a_key_looks_the_same_whichever_row_it_comes_from() -> None:
    rel = scan("t", uid="integer", k="float")
    for order in ("uid", "-uid"):
        setup = (
            "CREATE TABLE t AS SELECT uid, k FROM (VALUES (1, 0.0::DOUBLE), (2, -0.0::DOUBLE), (3, 'nan'::DOUBLE), (4, '-nan'::DOUBLE), (5, NULL))"
        )
        found = Bench(f"{setup} v(uid, k) ORDER BY {order}").sums(release(rel, [of(rel, "k")]))
        assert found == {(0.0,): (2, 2), (None,): (3, 3)}
        assert "-0.0" not in repr(found)
    alone = Bench("CREATE TABLE t AS SELECT 1 AS uid, '-0.0'::DOUBLE AS k").sums(release(rel, [of(rel, "k")]))
    assert repr(list(alone)) == "[(0.0,)]"


def test_dates_that_cannot_be_handed_over_do_not_make_the_answer_fail() -> None:
    setup = "CREATE TABLE t(uid INTEGER, d DATE, s TIMESTAMP); INSERT INTO t VALUES (1, 'infinity', '-infinity'), (2, '20000-01-01', '20000-01-01'),"
    setup += " (3, '5000-01-01 (BC)', '5000-01-01 (BC)'), (4, '9999-12-31', '0001-01-01'), (5, NULL, NULL)"
    rel = scan("t", uid="integer", d="date", s="timestamp")
    found = Bench(setup).sums(release(rel, [of(rel, "d"), of(rel, "s")]))
    assert found == {(None, None): (4, 4), (datetime.date(9999, 12, 31), datetime.datetime(1, 1, 1)): (1, 1)}


def test_ten_thousand_keys_fit_into_the_statement() -> None:
    rel = scan("t", uid="integer", k="integer")
    listed = [(i,) for i in range(10_000)]
    found = Bench("CREATE TABLE t AS SELECT i AS uid, i * 3 AS k FROM range(6000) r(i)").sums(release(rel, [of(rel, "k")], listed))
    assert len(found) == 3334


def test_an_empty_key_list_has_no_groups() -> None:
    rel = sales()
    assert Bench(SALES).sums(release(rel, [of(rel, "kind")], [])) == {}


# ---- nothing there -------------------------------------------------------------------------------------------------------------------


def every_part(rel: Scan) -> tuple[Part, ...]:
    x = of(rel, "amount")
    return (
        ROWS,
        UNITS,
        Part(One(x), Clamp(3, 9)),
        Part(Units(x, CENT, 100, 900), Clamp(200, 5000)),
        Part(Units(x, CENT, 100, 900, centred=True), HeavyMean(4, 800)),
        Part(Units(x, CENT, 100, 900), HeavyMean(4, 900)),
        Part(One(x), Present()),
    )


def test_without_keys_there_is_one_row_whatever_the_data() -> None:
    rel = sales()
    nobody = Bench("CREATE TABLE sales(uid INTEGER, kind VARCHAR, shop INTEGER, amount DOUBLE, stars INTEGER)")
    assert nobody.one(release(rel, parts=every_part(rel))) == (0,) * 7
    none = Keep(rel, call("gt", of(rel, "stars"), integer(99)))
    assert Bench(SALES).one(release(none, parts=every_part(rel))) == (0,) * 7
    weights = release(rel, parts=(Part(One(), Additive(1)), Part(Units(of(rel, "amount"), CENT, -5, 5), Additive(5))), by=RowWeights(3))
    assert nobody.one(weights) == (0, 0)


def test_a_cell_without_a_counted_row_adds_nothing_not_its_lower_bound() -> None:
    bench = Bench(
        "CREATE TABLE sales(uid INTEGER, kind VARCHAR, shop INTEGER, amount DOUBLE, stars INTEGER); INSERT INTO sales VALUES (1, 'a', 1, NULL, 1)"
    )
    rel = sales()
    assert bench.one(release(rel, parts=every_part(rel))) == (1, 1, 0, 0, 0, 0, 0)


# ---- bounds --------------------------------------------------------------------------------------------------------------------------


def test_n1_a_mean_of_flags_moves_by_half_units() -> None:
    bench = Bench("CREATE TABLE t AS SELECT i AS uid, (i % 3 = 0)::INTEGER AS flag FROM range(9) r(i)")
    rel = scan("t", uid="integer", flag="integer")
    assert bench.one(release(rel, parts=(Part(Units(of(rel, "flag"), Fraction(1), 0, 1, centred=True), HeavyMean(5, 1)),))) == (3 - 6,)


def test_a_heavy_unit_keeps_its_mean_truncated_towards_zero() -> None:
    for sign in (1, -1):
        setup = f"CREATE TABLE t AS SELECT 1 AS uid, {sign} * (1 + i % 3) AS x FROM range(7) r(i)"
        rel = scan("t", uid="integer", x="integer")
        x = of(rel, "x")
        light, heavy = (Part(Units(x, Fraction(1), -3, 3), HeavyMean(rows, 3)) for rows in (7, 4))
        assert Bench(setup).one(release(rel, parts=(light, heavy))) == (sign * 13, sign * (13 * 4 // 7))


def test_n10_the_widest_rows_and_cells_stay_integers() -> None:
    edge = 2**62
    setup = "CREATE TABLE t(uid INTEGER, x DOUBLE, y BIGINT); INSERT INTO t SELECT 1, 1e300, 9223372036854775807 FROM range(1000);"
    setup += "INSERT INTO t SELECT 2, '-inf'::DOUBLE, -9223372036854775808 FROM range(1000)"
    bench, rel = Bench(setup), scan("t", uid="integer", x="float", y="integer")
    wide = 2**52
    for value in (of(rel, "x"), of(rel, "y")):
        parts = (
            Part(Units(value, Fraction(1), -edge, edge), Clamp(-(edge * 999), edge * 1001)),
            Part(Units(value, Fraction(1), -wide, wide, centred=True), HeavyMean(20, 2 * wide)),
            Part(Units(value, Fraction(1), 0, wide, centred=True), HeavyMean(20, wide)),
            Part(Units(value, Fraction(1), -edge, edge), Clamp(-10, 7)),
        )
        assert bench.one(release(rel, parts=parts)) == (edge, 0, 0, -3)
        alone = Keep(rel, call("eq", of(rel, "uid"), integer(1)))
        assert bench.one(release(alone, parts=parts)) == (1000 * edge, 40 * wide, 20 * wide, 7)


def test_n4_sums_do_not_depend_on_order_or_threads() -> None:
    setup = "CREATE TABLE t AS SELECT (i % 50)::INTEGER AS uid, [1e16, -1e16, 1.0][1 + (hash(i) % 3)::INTEGER]::DOUBLE AS x FROM range(60000) r(i)"
    rel = scan("t", uid="integer", x="float")
    part = Part(Units(of(rel, "x"), Fraction(1), -(2**52), 2**52), Clamp(-(2**60), 2**60))
    found = {Bench(f"{setup} ORDER BY hash(i, {n})", threads=1 + n % 2).one(release(rel, parts=(part, part))) for n in range(4)}
    assert len(found) == 1


def test_the_cap_on_groups_keeps_so_many_of_each_unit() -> None:
    setup = "CREATE TABLE t AS SELECT i % 10 AS uid, i // 10 AS k FROM range(200) r(i); INSERT INTO t VALUES (77, 0), (77, 0), (77, NULL)"
    rel = scan("t", uid="integer", k="integer")
    found = Bench(setup).sums(release(rel, [of(rel, "k")], by=GroupCap(3)))
    assert sum(units for units, _ in found.values()) == 10 * 3 + 2
    assert sum(rows for _, rows in found.values()) == 10 * 3 + 3


def test_the_choice_of_groups_is_a_function_of_the_unit_and_the_salt_and_salts_do_not_correlate() -> None:
    setup = "CREATE TABLE t AS SELECT i % 500 AS uid, i // 500 AS k FROM range(10000) r(i)"
    rel = scan("t", uid="integer", k="integer")
    asked = release(rel, [of(rel, "k")], by=GroupCap(1))
    every = Bench(setup)

    def chosen(bench: Bench, salt: int, unit: int) -> Value:
        mine = release(Keep(rel, call("eq", of(rel, "uid"), integer(unit))), [of(rel, "k")], by=GroupCap(1))
        (key,) = bench.sums(mine, salt)
        return key[0]

    firsts = {(salt, unit): chosen(every, salt, unit) for salt in (1, 2, 3, 2**63 - 1) for unit in range(40)}
    alone = Bench(setup.replace("range(10000)", "range(10000)") + "; DELETE FROM t WHERE uid >= 40")
    for (salt, unit), key in list(firsts.items())[::17]:
        assert chosen(alone, salt, unit) == key
    agree = sum(firsts[1, unit] == firsts[2, unit] for unit in range(40))
    assert agree <= 12  # of 40 chances of 1 in 20; more than 12 has probability below 1e-7
    whole = every.sums(asked, 1)
    assert sum(units for units, _ in whole.values()) == 500
    assert max(units for units, _ in whole.values()) < 60  # 500 choices among 20: mean 25


def test_removing_a_unit_changes_its_own_cells_only() -> None:
    random, rel = Random(4), sales()
    asked = release(rel, [of(rel, "kind"), of(rel, "shop")], parts=every_part(rel), by=GroupCap(2))
    bounds = lower(asked, SALT).enforced
    full = Bench(SALES)
    for unit in random.sample(range(40), 6):
        less = Bench(SALES + f"; DELETE FROM sales WHERE uid = {unit}")
        salt = random.randrange(2**63)
        with_it, without = full.sums(asked, salt), less.sums(asked, salt)
        nothing = (0,) * len(asked.table.parts)
        moves = [
            tuple(a - b for a, b in zip(with_it.get(key, nothing), without.get(key, nothing), strict=True)) for key in with_it.keys() | without.keys()
        ]
        moved = [move for move in moves if any(move)]
        assert 1 <= len(moved) <= 2
        for move in moved:
            for shift, bound in zip(move, bounds.cells, strict=True):
                assert shift == 0 or bound.low <= shift <= bound.high


# ---- row weights ---------------------------------------------------------------------------------------------------------------------


def weighed(rows: int, units: int, most: int, value: int = 1) -> tuple[int, ...]:
    rel = scan("t", uid="integer", x="integer")
    parts = (Part(One(), Additive(1)), Part(Units(of(rel, "x"), Fraction(1), -1, 1), Additive(1)))
    bench = Bench(f"CREATE TABLE t AS SELECT i % {units} AS uid, {value} AS x FROM range({rows * units}) r(i)")
    return bench.one(release(rel, parts=parts, by=RowWeights(most)))


def test_w1_a_unit_with_few_rows_counts_them_whole() -> None:
    assert weighed(rows=1, units=1000, most=10) == (1000 << 20, 1000 << 20)
    assert weighed(rows=3, units=10, most=10) == (30 << 20, 30 << 20)


def test_c2_weights_never_add_up_to_more_than_the_cap() -> None:
    count, total_ = weighed(rows=37, units=1, most=16)
    assert count == total_ == 37 * ((16 << 20) // 37) <= 16 << 20
    count, total_ = weighed(rows=1000, units=1, most=10, value=-1)
    assert count == 1000 * ((10 << 20) // 1000)
    assert total_ == -count  # no row is rounded by itself, down to -1000 in all


def test_weights_count_a_units_rows_over_all_listed_groups_and_no_others() -> None:
    setup = "CREATE TABLE t AS SELECT 1 AS uid, i % 4 AS k, CASE WHEN i % 2 = 0 THEN 1.5::DOUBLE END AS x FROM range(40) r(i)"
    rel = scan("t", uid="integer", k="integer", x="float")
    x, where = of(rel, "x"), call("ge", of(rel, "k"), integer(2))
    parts = (Part(One(), Additive(1)), Part(One(x), Additive(1)), Part(Units(x, CENT, 0, 200, True), Additive(200)), Part(One(), Additive(1), where))
    found = Bench(setup).sums(release(rel, [of(rel, "k")], [(0,), (1,), (2,)], parts, RowWeights(6)))
    w = (6 << 20) // 30
    assert found == {(0,): (10 * w, 10 * w, 10 * w * 100, 0), (1,): (10 * w, 0, 0, 0), (2,): (10 * w, 10 * w, 10 * w * 100, 10 * w)}


def test_n10_wide_rows_keep_their_weights() -> None:
    setup = "CREATE TABLE t AS SELECT 1 AS uid, 1e18::DOUBLE AS x FROM range(3) r(i)"
    rel = scan("t", uid="integer", x="float")
    for centred in (False, True):
        part = Part(Units(of(rel, "x"), Fraction(1), -(2**52), 2**52, centred), Additive(2**53))
        assert Bench(setup).one(release(rel, parts=(part,), by=RowWeights(3))) == ((3 << 20) * 2 ** (53 if centred else 52),)


def test_sums_are_those_of_integers_beyond_what_a_double_holds() -> None:
    """One unit's 1 does not drown in the sums of others, in cells and over units, whatever the order."""
    setup = f"CREATE TABLE t AS SELECT i AS uid, [{2**53}, 1, 1][1 + i % 3] AS x FROM range(6) r(i)"
    rel = scan("t", uid="integer", x="integer")
    part = Part(Units(of(rel, "x"), Fraction(1), 0, 2**60), Clamp(0, 2**60))
    assert Bench(setup).one(release(rel, parts=(part,))) == (2**54 + 4,)
    assert Bench(setup.replace("i AS uid", "1 AS uid")).one(release(rel, parts=(part,))) == (2**54 + 4,)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["integer", "float"])
def test_sums_of_one_sign_are_exact_up_to_what_a_double_holds_and_clamped_beyond(kind: str, sign: int) -> None:
    """At the very edge, and where a 1 that comes late would be rounded away."""
    edge, physical = 2**53, "BIGINT" if kind == "integer" else "DOUBLE"
    rel = scan("t", uid="integer", x=kind)

    def summed(rows: list[int], most: int) -> int:
        values = ", ".join(f"(1, {sign * row}::{physical})" for row in rows)
        low, high = sorted((0, sign * edge))
        least, greatest = sorted((0, sign * most))
        asked = release(rel, parts=(Part(Units(of(rel, "x"), Fraction(1), low, high), Clamp(least, greatest)),))
        assert "CAST(floor(" not in lower(asked, SALT).text
        (found,) = Bench(f"CREATE TABLE t(uid INTEGER, x {physical}); INSERT INTO t VALUES {values}").one(asked)
        return sign * found

    late = ([edge - 3, 1, 1], [1, 1, edge - 3], [edge - 1, 1], [edge, 0], [edge, 1], [1] * 7 + [edge])
    for rows in (*(late if kind == "integer" else ()), [edge // 4] * 4, [edge // 4] * 4 + [1], [1, *[edge // 4] * 4], [edge] * 9, [5, 6]):
        for most in (edge, edge - 1, 10):
            assert summed(rows, most) == min(sum(rows), most), (rows, most)


def test_sums_that_are_more_than_clamped_or_of_both_signs_are_of_integers() -> None:
    rel = scan("t", uid="integer", x="float")
    x = of(rel, "x")
    one = Part(Units(x, Fraction(1), 0, 9), Clamp(0, 99))
    others = (
        Part(Units(x, Fraction(1), -1, 9), Clamp(0, 99)),
        Part(Units(x, Fraction(1), 0, 2**53 + 1), Clamp(0, 99)),
        Part(Units(x, Fraction(1), 0, 9), Clamp(0, 2**53 + 1)),
        Part(Units(x, Fraction(1), 0, 9, centred=True), Clamp(-99, 99)),
        Part(Units(x, Fraction(1), 0, 9), HeavyMean(20, 9)),
    )
    assert "CAST(floor(" not in lower(release(rel, parts=(one,)), SALT).text
    for other in others:
        for parts in ((other,), (one, other)):
            assert "CAST(floor(" in lower(release(rel, parts=parts), SALT).text, parts
    weighed = release(rel, parts=(Part(Units(x, Fraction(1), 0, 9), Additive(9)),), by=RowWeights(3))
    assert "CAST(floor(" in lower(weighed, SALT).text


# ---- what was enforced ---------------------------------------------------------------------------------------------------------------


def test_the_bounds_are_those_that_were_written() -> None:
    rel = sales()
    plan = release(rel, [of(rel, "kind")], parts=every_part(rel), by=GroupCap(4))
    lowered = lower(plan, SALT)
    assert lowered.enforced == enforced(plan)
    assert lowered.enforced.selecting == 0
    assert "place <= 4" in lowered.text
    assert lowered.enforced.cells[-2:] == (CellBound(-3600, 3600), CellBound(0, 1))


def test_bounds_agree_with_the_plans_own_account_for_every_bounding() -> None:
    rel = sales()
    idle = GroupCap(2, Idle.ALL_KEYS)
    keys = [of(rel, "kind")]
    for plan in (
        release(rel, parts=every_part(rel)),
        release(rel, keys, [("a",), ("b",)], every_part(rel), idle),
        release(rel, keys, [("a",), ("b",), ("c",)], every_part(rel), GroupCap(2)),
        release(rel, keys, parts=every_part(rel), by=GroupCap(1, Idle.UNIT_KEY)),
        release(rel, keys, [("a",)], (Part(One(), Additive(1)),), RowWeights(9)),
    ):
        found, wanted = lower(plan, SALT).enforced, enforced(plan)
        assert (found.bounding, found.selecting, found.keyed) == (wanted.bounding, wanted.selecting, wanted.keyed)
        assert [max(-c.low, c.high) for c in found.cells] == [max(-c.low, c.high) for c in wanted.cells]


def test_an_idle_cap_is_left_out_only_where_the_statement_shows_it_or_the_unit_decides() -> None:
    rel = sales()
    text_ = lower(release(rel, [of(rel, "kind")], [("a",), ("b",)], by=GroupCap(2, Idle.ALL_KEYS)), SALT).text
    assert "row_number" not in text_
    with pytest.raises(ValueError, match="idle"):
        lower(release(rel, [of(rel, "kind")], [("a",), ("b",), ("c",)], by=GroupCap(2, Idle.ALL_KEYS)), SALT)
    with pytest.raises(ValueError, match="idle"):
        lower(release(rel, [of(rel, "kind")], by=GroupCap(2, Idle.NO_KEYS)), SALT)
    assert "row_number" not in lower(release(rel, [of(rel, "uid")], by=GroupCap(1, Idle.UNIT_KEY)), SALT).text
    with pytest.raises(ValueError, match="idle"):
        lower(release(rel, [of(rel, "uid")], by=GroupCap(2, Idle.UNIT_KEY)), SALT)


def test_plans_that_do_not_hold_together_are_not_lowered() -> None:
    rel = sales()
    key = Key("k", of(rel, "kind"), STRING)
    with pytest.raises(ValueError, match="distinct units"):
        lower(Release(UnitTable(rel, (key,), (ROWS,), GroupCap(1)), PrivateKeys(0), ()), SALT)
    few = call("lt", of(rel, "shop"), Literal(2, INTEGER))
    with pytest.raises(ValueError, match="distinct units"):  # a group whose units are counted in part
        lower(Release(UnitTable(rel, (key,), (replace(UNITS, where=few),), GroupCap(1)), PrivateKeys(0), ()), SALT)
    with pytest.raises(ValueError, match="add up over rows"):
        lower(Release(UnitTable(rel, (key,), (ROWS,), RowWeights(1)), ListedKeys((("a",),), ""), ()), SALT)
    amount = Units(of(rel, "amount"), CENT, 0, 2**40)
    with pytest.raises(ValueError, match="64 bits"):
        lower(Release(UnitTable(rel, (), (Part(Product(amount, amount), HeavyMean(1, 2**80)),), GroupCap(1, Idle.NO_KEYS)), NoKeys(), ()), SALT)
    with pytest.raises(ValueError, match="add up over rows"):
        lower(Release(UnitTable(rel, (), (Part(Element(amount.value), Elements(1)),), RowWeights(1)), NoKeys(), ()), SALT)
    with pytest.raises(ValueError, match="bound rows"):
        lower(Release(UnitTable(rel, (), (Part(One(), Additive(1)),), GroupCap(1, Idle.NO_KEYS)), NoKeys(), ()), SALT)
    with pytest.raises(ValueError, match="wider"):
        lower(Release(UnitTable(rel, (), (Part(Units(of(rel, "amount"), CENT, -5, 5), Additive(4)),), RowWeights(1)), NoKeys(), ()), SALT)
    for row, cell, said in (
        (One(), Bins(2, 1, 9), "grid units"),
        (Units(of(rel, "amount"), CENT, 0, 9, True), Bins(2, 1, 10), "grid units"),
        (Units(of(rel, "amount"), CENT, 0, 9), Bins(2, 1, 9), "last bin"),
        (Units(of(rel, "amount"), CENT, -1, 9), Bins(2, 2, 5), "last bin"),
    ):
        with pytest.raises(ValueError, match=said):
            lower(Release(UnitTable(rel, (), (Part(row, cell),), GroupCap(1, Idle.NO_KEYS)), NoKeys(), ()), SALT)
    fits = Release(UnitTable(rel, (), (Part(Units(of(rel, "amount"), CENT, 0, 9), Bins(2, 2, 5)),), GroupCap(1, Idle.NO_KEYS)), NoKeys(), ())
    assert lower(fits, SALT).enforced.cells == (CellBound(0, 2 << 20, bins=5),)


def test_parts_share_what_rows_add() -> None:
    rel = sales()
    x = of(rel, "amount")
    parts = (Part(Units(x, CENT, 0, 10), Clamp(0, 100)), Part(Units(x, CENT, 0, 10, True), HeavyMean(4, 10)), Part(Units(x, CENT, 0, 10), Present()))
    assert lower(release(rel, parts=parts), SALT).text.count("AS x") == 1


def test_a_statement_is_the_same_each_time_but_for_its_salt() -> None:
    rel = sales()
    plan = release(rel, [of(rel, "kind")], by=GroupCap(2))
    assert lower(plan, 5) == lower(plan, 5)
    assert lower(plan, 5).text.replace("5::UBIGINT", "6::UBIGINT") == lower(plan, 6).text
    assert not isinstance(lower(plan, 5), str)


def test_the_selecting_part_is_named_for_private_keys_only() -> None:
    rel = sales()
    private = lower(release(rel, [of(rel, "kind")]), SALT).enforced
    assert private == Enforced(GroupCap(1_000_000), (CellBound(0, 1), CellBound(0, 100)), 0, keyed=True)
    assert lower(release(rel), SALT).enforced.selecting is None


def test_a_key_of_another_type_is_cast_to_its_own() -> None:
    rel = sales()
    shop = of(rel, "shop")
    plan = Release(UnitTable(rel, (Key("k", shop, STRING),), (ROWS,), GroupCap(9)), ListedKeys((("1",), ("3",)), ""), ())
    assert set(Bench(SALES).sums(plan)) == {("1",), ("3",)}


def test_a_column_of_the_plan_may_have_any_name() -> None:
    bench = Bench('CREATE TABLE "odd ""table"(uid INTEGER, "a ""b; --" INTEGER); INSERT INTO "odd ""table" VALUES (1, 4)')
    rel = scan('odd "table', uid="integer", **{'a "b; --': "integer"})
    assert bench.one(release(rel, parts=(total(of(rel, 'a "b; --'), 0, 9),))) == (4,)
    assert column("x").name == "x"
