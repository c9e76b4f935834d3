"""What is looked up in public tables before the charge: fan-outs and key lists."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from plan_bench import Bench, column, integer, of, public, scan

from dpquery.backends import exact
from dpquery.backends import public as looked_up
from dpquery.backends.canonical import canonical
from dpquery.backends.duckdb import DuckDB
from dpquery.backends.public import facts, fanout
from dpquery.errors import Fault, Refused
from dpquery.plan.draft import Contributions, Draft
from dpquery.plan.functions import call
from dpquery.plan.rel import Join, Lookup, Private, Public, Scan, Semi
from dpquery.plan.release import Key, KeySource
from dpquery.plan.scalar import Column, Literal, Scalar
from dpquery.schema.model import Schema
from dpquery.schema.read import read as read_schema
from dpquery.values.types import DATE, FLOAT, INTEGER, STRING, TIMESTAMP, UUID, Kind, Type, Value

TABLES = """
CREATE TABLE regions(country VARCHAR, region VARCHAR, x DOUBLE);
INSERT INTO regions VALUES ('US', 'AM', 1), ('US', 'AM2', 1), ('DE', 'EU', 2), ('FR', 'EU', 2);
INSERT INTO regions VALUES (NULL, 'EU', 'nan'), (NULL, 'EU', 0.0), (NULL, 'NN', '-0.0');
CREATE TABLE numbers AS SELECT i AS n, i % 2 AS even FROM range(10001) r(i);
CREATE TABLE empty(country VARCHAR);
"""
COUNTRIES = 'SELECT "country" AS c0, "region" AS c1, "x" AS c2 FROM "regions"'


class Here:
    """The part of a backend that is asked for public facts, in this process."""

    def __init__(self) -> None:
        self.bench = Bench(TABLES)
        self.texts: list[str] = []

    def prepare(self, publics: Sequence[Public]) -> None:
        self.bench.make(*publics)

    def public_rows(self, sql: str, types: Sequence[Type]) -> list[tuple[Value, ...]]:
        self.texts.append(sql)
        table = self.bench.con.sql(sql).to_arrow_table()
        return list(zip(*(exact.values(table.column(i), kind) for i, kind in enumerate(types)), strict=True))


def regions(name: str = "p0") -> Public:
    return public(name, COUNTRIES, country="string", region="string", x="float")


def users() -> Scan:
    return scan("users", uid="integer", country="string", age="integer")


def draft(rel: Private, keys: Sequence[Key] = (), sources: Sequence[KeySource] = ()) -> Draft:
    return Draft(rel, tuple(keys), tuple(sources), (), Contributions(1, 1, 1))


def key(value: Scalar) -> Key:
    return Key("k", value, value.type)


def listed(keys: Sequence[Key], *sources: KeySource, rel: Private | None = None) -> tuple[tuple[Value, ...], ...] | None:
    return facts([draft(rel or users(), keys, sources)], Here())[0].keys


# ---- fan-out -------------------------------------------------------------------------------------------------------------------------


def fan(table: Public, on: Scalar | None, rel: Private) -> int:
    here = Here()
    here.prepare([table])
    return fanout(Lookup(rel, table, Join.INNER, on), here)


def test_n9_the_fan_out_is_that_of_the_commonest_key() -> None:
    rel, table = users(), regions()
    country, region = of(table, "country"), of(table, "region")
    same = call("eq", of(rel, "country"), country)
    assert fan(table, same, rel) == 2
    assert fan(table, call("eq", country, of(rel, "country")), rel) == 2
    assert fan(table, call("and", same, call("eq", region, Literal("AM", STRING))), rel) == 1
    assert fan(table, call("and", same, call("ne", of(rel, "age"), integer(3))), rel) == 2


def test_partners_that_no_equality_finds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hashed equality stops at the first partner; any other condition is tried on each row that the equalities leave."""
    rel, table = users(), regions()
    same, later = call("eq", of(rel, "country"), of(table, "country")), call("gt", of(table, "x"), of(rel, "age"))
    own = call("gt", of(table, "x"), Literal(0.0, FLOAT))
    for most, wrong in ((7, []), (6, [later]), (1, [later, call("and", same, later)])):
        monkeypatch.setattr(looked_up, "LARGEST_FANOUT", most)
        for on in (None, same, own, call("and", same, own), later, call("and", same, later)):
            if on in wrong:
                with pytest.raises(Refused) as refused:
                    facts([draft(Semi(rel, table, on))], Here())
                assert refused.value.code == "FANOUT"
            else:
                facts([draft(Semi(rel, table, on))], Here())


def test_a3_a_lookup_with_two_rows_for_a_key_is_not_unique() -> None:
    rel, table = users(), public("p0", 'SELECT DISTINCT "country" AS c0 FROM "regions"', country="string")
    assert fan(table, call("eq", of(rel, "country"), of(table, "country")), rel) == 1
    twice = regions()
    assert fan(twice, call("eq", of(rel, "country"), of(twice, "country")), rel) == 2


def test_a_null_on_either_side_meets_nobody() -> None:
    rel, table = users(), regions()
    assert fan(table, call("eq", of(table, "region"), of(rel, "country")), rel) == 4
    assert fan(table, call("eq", of(table, "x"), Literal(0.0, FLOAT)), rel) == 2  # 0.0 and -0.0 are one value


def test_n9_without_an_equality_a_row_meets_the_whole_table() -> None:
    rel, table = users(), regions()
    age, country = of(rel, "age"), of(table, "country")
    for on in (
        None,
        call("gt", country, Literal("A", STRING)),
        call("or", call("eq", country, of(rel, "country")), call("eq", age, integer(1))),
        call("eq", age, integer(7)),
        call("not_distinct", country, of(rel, "country")),
        call("eq", of(table, "region"), country),
    ):
        assert fan(table, on, rel) == 7


def test_a_computed_side_is_counted_as_it_is_compared() -> None:
    rel, table = users(), regions()
    shortened = call("left", of(table, "region"), integer(1))
    assert fan(table, call("eq", shortened, of(rel, "country")), rel) == 4


def test_sides_of_unlike_types_are_no_equality() -> None:
    """Whole numbers beyond 2^53 count as equal once they are floats."""
    rel, table = users(), public("p0", 'SELECT "n" AS c0 FROM "numbers"', n="integer")
    from dpquery.plan.scalar import Call
    from dpquery.values.types import BOOLEAN

    assert fan(table, Call("eq", (of(table, "n"), Literal(1.5, FLOAT)), BOOLEAN), rel) == 10_001


def test_an_empty_table_counts_as_one() -> None:
    rel, table = users(), public("p0", 'SELECT "country" AS c0 FROM "empty"', country="string")
    assert fan(table, call("eq", of(table, "country"), of(rel, "country")), rel) == 1


def test_facts_name_every_lookup_of_the_plan() -> None:
    rel, first, second = users(), regions("p0"), regions("p1")
    once = Lookup(rel, first, Join.INNER, call("eq", of(rel, "country"), of(first, "country")))
    twice = Lookup(once, second, Join.LEFT, None)
    (found,) = facts([draft(twice)], Here())
    assert (found.fanouts, found.keys) == ({"p0": 2, "p1": 7}, None)


# ---- key lists -----------------------------------------------------------------------------------------------------------------------


def test_n11_a_key_list_is_a_set_without_null() -> None:
    table = regions()
    rel = Lookup(users(), table, Join.INNER, None)
    source = KeySource((0,), "regions.region", table, (of(table, "region").id,))
    assert listed([key(of(table, "region"))], source, rel=rel) == (("AM",), ("AM2",), ("EU",), ("NN",))
    country = KeySource((0,), "regions.country", table, (of(table, "country").id,))
    assert listed([key(of(table, "country"))], country, rel=rel) == (("DE",), ("FR",), ("US",))
    x = KeySource((0,), "regions.x", table, (of(table, "x").id,))
    assert listed([key(of(table, "x"))], x, rel=rel) == ((0.0,), (1.0,), (2.0,))


def test_keys_of_one_table_stay_together() -> None:
    table = regions()
    keys = [key(of(table, "region")), key(of(table, "country"))]
    source = KeySource((1, 0), "regions", table, (of(table, "country").id, of(table, "region").id))
    assert listed(keys, source) == (("AM", "US"), ("AM2", "US"), ("EU", "DE"), ("EU", "FR"))


def test_keys_of_several_sources_are_all_combinations() -> None:
    table, rel = regions(), users()
    keys = [key(of(rel, "age")), key(of(table, "region")), key(of(rel, "country"))]
    region = KeySource((1,), "regions.region", table, (of(table, "region").id,), prune=(call("eq", of(table, "country"), Literal("US", STRING)),))
    found = listed(keys, KeySource((2, 0), "a list", literals=(("DE", 2), ("FR", 1))), region)
    assert found == ((1, "AM", "FR"), (1, "AM2", "FR"), (2, "AM", "DE"), (2, "AM2", "DE"))


def test_null_is_a_key_where_it_is_listed_and_sorts_last() -> None:
    country = key(column("country", "string"))
    assert listed([country], KeySource((0,), "", literals=((None,), ("b",), ("a",), ("b",)))) == (("a",), ("b",), (None,))


def test_conditions_on_the_keys_prune_the_list() -> None:
    rel = users()
    country = of(rel, "country")
    values = (("US",), ("DE",), (None,), ("it's",))
    for condition, wanted in (
        (call("ne", country, Literal("US", STRING)), (("DE",), ("it's",))),
        (call("is_null", country), ((None,),)),
        (call("in", country, Literal("US", STRING), Literal("FR", STRING)), (("US",),)),
    ):
        assert listed([key(country)], KeySource((0,), "", literals=values, prune=(condition,))) == wanted
    shortened = call("left", country, integer(1))
    source = KeySource((0,), "", literals=(("U",), ("D",)), prune=(call("gt", shortened, Literal("F", STRING)),))
    assert listed([key(shortened)], source) == (("U",),)


def test_h_conditions_on_a_public_table_prune_its_keys() -> None:
    table = regions()
    region, x = of(table, "region"), of(table, "x")
    prune = (call("gt", x, Literal(1.5, FLOAT)), call("ne", region, Literal("zz", STRING)))
    assert listed([key(region)], KeySource((0,), "", table, (region.id,), prune=prune)) == (("EU",),)


def test_more_than_ten_thousand_keys_are_refused() -> None:
    table = public("p0", 'SELECT "n" AS c0, "even" AS c1 FROM "numbers"', n="integer", even="integer")
    n, even = of(table, "n"), of(table, "even")
    for keys, sources in (
        ([key(n)], [KeySource((0,), "", table, (n.id,))]),
        ([key(even), key(column("k"))], [KeySource((0,), "", table, (even.id,)), KeySource((1,), "", literals=tuple((i,) for i in range(5001)))]),
        ([key(column("k"))], [KeySource((0,), "", literals=tuple((i,) for i in range(10_001)))]),
    ):
        with pytest.raises(Refused) as refused:
            listed(keys, *sources)
        assert refused.value.code == "TOO_MANY_KEYS"
    most = tuple((i,) for i in range(10_000))
    assert listed([key(column("k"))], KeySource((0,), "", literals=most)) == most


def test_sources_that_do_not_cover_each_key_once_are_a_bug() -> None:
    with pytest.raises(ValueError, match="cover each key once"):
        listed([key(column("a")), key(column("b"))], KeySource((0,), "", literals=((1,),)))


def test_where_the_keys_come_from_is_said() -> None:
    sources = [KeySource((0,), "declared values of a", literals=((1,),)), KeySource((1,), "branches of b", literals=((1,),))]
    (found,) = facts([draft(users(), [key(column("a")), key(column("b"))], sources)], Here())
    assert found.key_origin == "declared values of a, branches of b"


def test_which_lists_rows_may_have_other_keys_than() -> None:
    """Declared values do, and a public table's column that is NULL somewhere; an IN list and the branches of CASE do not."""
    rel = regions()
    joined = Lookup(users(), rel, Join.INNER, Literal(True, Type(Kind.BOOLEAN)))

    def partial(source: KeySource, of_key: Scalar) -> str:
        return facts([draft(joined, [key(of_key)], [source])], Here())[0].partial

    a = column("a")
    assert partial(KeySource((0,), "declared", literals=((1,),)), a) == "declared"
    assert partial(KeySource((0,), "a list", literals=((1,),), whole=True), a) == ""
    for name, said in (("country", "rows"), ("region", "")):
        assert partial(KeySource((0,), "rows", public=rel, columns=(of(rel, name).id,)), of(rel, name)) == said


MIDNIGHT = datetime.datetime(2024, 1, 2)


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (True, Type(Kind.BOOLEAN), True),
        (1.0, INTEGER, 1),
        (Decimal("2.0"), INTEGER, 2),
        (2.5, INTEGER, None),
        (2**63, INTEGER, None),
        (-(2**63), INTEGER, -(2**63)),
        (1, Type(Kind.DECIMAL, 2), Decimal("1.00")),
        (Decimal("0.005"), Type(Kind.DECIMAL, 2), None),
        (Decimal(10**37), Type(Kind.DECIMAL, 2), None),
        (-0.0, FLOAT, 0.0),
        (float("nan"), FLOAT, None),
        (Decimal("0.1"), FLOAT, 0.1),
        (10**400, FLOAT, None),
        ("x" * 5000, STRING, "x" * 4096),
        (5, STRING, None),
        (MIDNIGHT, DATE, MIDNIGHT.date()),
        (MIDNIGHT.replace(hour=1), DATE, None),
        (MIDNIGHT.date(), TIMESTAMP, MIDNIGHT),
        (uuid.UUID(int=1), UUID, uuid.UUID(int=1)),
        ("00000000-0000-0000-0000-000000000001", UUID, None),
    ],
)
def test_listed_values_are_held_as_their_type_holds_them(value: Value, kind: Type, wanted: Value) -> None:
    found = canonical((value,), [kind])
    assert found == (None if wanted is None else (wanted,))
    assert found is None or repr(found) == repr((wanted,))
    assert canonical((None,), [kind]) == (None,)


def test_a_backend_makes_public_relations_anew_only_where_they_changed(kept: DuckDB) -> None:
    first = public("p0", 'SELECT "country" AS c0 FROM "regions"', country="string")
    kept.prepare([first])
    made = kept.public_rows("SELECT table_oid FROM duckdb_tables() WHERE table_name = 'p0'", [INTEGER])
    kept.prepare([first])
    assert kept.public_rows("SELECT table_oid FROM duckdb_tables() WHERE table_name = 'p0'", [INTEGER]) == made
    other = Public("p0", 'SELECT "region" AS c0 FROM "regions"', (Column(first.columns[0].id, "region", STRING),))
    kept.prepare([other])
    assert sorted(kept.public_rows("SELECT c0 FROM memory.main.p0", [STRING])) == [("AM",), ("EU",), ("EU",)]
    kept.prepare([])
    assert kept.public_rows("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'p0'", [INTEGER]) == [(0,)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_public_tables_of_files_can_be_looked_up(ending: str, tmp_path: Path, opened: Callable[[Schema], DuckDB]) -> None:
    """The test of what a statement reads does not look into the files that stand behind a name."""
    duckdb.execute(f"COPY (SELECT 1 AS uid) TO '{tmp_path}/users.{ending}'")
    duckdb.execute(f"COPY (SELECT * FROM (VALUES ('US', 'AM'), ('DE', 'EU')) t(country, region)) TO '{tmp_path}/regions.{ending}'")
    (tmp_path / "s.yaml").write_text(
        "dataset: d\nprivacy_unit: users.uid\nbudget: {epsilon: 1}\ntables:\n"
        f"  users: {{path: users.{ending}, unit: uid, columns: {{uid: {{type: integer}}}}}}\n"
        f"  regions: {{path: regions.{ending}, public: true, columns: {{country: {{type: string}}, region: {{type: string}}}}}}\n"
    )
    backend = opened(read_schema(tmp_path / "s.yaml"))
    backend.prepare([public("p0", 'SELECT "country" AS c0, "region" AS c1 FROM "regions"', country="string", region="string")])
    assert sorted(backend.public_rows('SELECT c1 FROM memory.main."p0"', [STRING])) == [("AM",), ("EU",)]
    for text in ("SELECT uid FROM data.main.users", "SELECT (SELECT max(uid) FROM users)", "SELECT * FROM query('SELECT uid FROM data.main.users')"):
        with pytest.raises(Fault):
            backend.public_rows(text, [INTEGER])
