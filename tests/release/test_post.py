"""What happens above the noise: plain SQL, sealed off from everything but the noisy table."""

from __future__ import annotations

import datetime
import os
import threading
import uuid
from decimal import Decimal

import pytest

from dpquery.errors import Fault, Position, Refused
from dpquery.plan.draft import Output, Post, Product
from dpquery.release import post
from dpquery.schema.model import Limits
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, NULL, STRING, TIMESTAMP, UUID, Kind, Type

LIMITS = Limits(timeout=Decimal(10), memory=512 * 2**20, threads=2)
COLUMNS: list[post.Column] = [("k0", STRING, ["a", "b", None]), ("a0", INTEGER, [3, -2, 2**63 - 1]), ("__row", INTEGER, [0, 1, 2])]


def asked(sql: str) -> Post:
    return Post(sql, (Output("x"),))


def rows(sql: str, columns: list[post.Column] = COLUMNS, limits: Limits = LIMITS) -> list[tuple[object, ...]]:
    table = post.run(asked(sql), {"noisy": columns}, limits)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_order_having_and_windows_are_plain_sql() -> None:
    sql = "SELECT k0, a0 * 2.0 AS twice, __row FROM noisy WHERE a0 < 100 ORDER BY a0"
    assert rows(sql) == [("b", -4.0, 1), ("a", 6.0, 0)]
    assert rows("SELECT sum(a0) OVER () FROM noisy WHERE a0 < 100") == [(1,), (1,)]


def test_every_type_goes_in_and_comes_out_as_it_is() -> None:
    identity = uuid.UUID(int=7)
    values: list[tuple[Type, object, str]] = [
        (BOOLEAN, True, "BOOLEAN"),
        (INTEGER, -(2**63), "BIGINT"),
        (Type(Kind.DECIMAL, 2), Decimal("-12.30"), "DECIMAL(38,2)"),
        (FLOAT, float("inf"), "DOUBLE"),
        (STRING, 'it\'s "q"\n\0', "VARCHAR"),
        (DATE, datetime.date(9999, 12, 31), "DATE"),
        (TIMESTAMP, datetime.datetime(1, 1, 1, 0, 0, 0, 1), "TIMESTAMP"),
        (UUID, identity, "UUID"),
        (NULL, None, "INTEGER"),
        (FLOAT.listed, [1.5, -0.25], "DOUBLE[]"),
        (Type(Kind.DECIMAL, 2).listed, [Decimal("0.10")], "DECIMAL(38,2)[]"),
    ]
    columns: list[post.Column] = [(f"k{i}", kind, [value, None]) for i, (kind, value, _) in enumerate(values)]  # type: ignore[list-item]
    back, empty = rows("SELECT * FROM noisy", columns)
    assert back == tuple(str(identity) if value == identity else value for _, value, _ in values)
    assert set(empty) == {None}
    types = ", ".join(f"typeof(k{i})" for i in range(len(values)))
    assert rows(f"SELECT {types} FROM noisy LIMIT 1", columns) == [tuple(name for _, _, name in values)]


def test_an_answer_without_groups_keeps_its_types() -> None:
    table = post.run(asked("SELECT k0, a0 FROM noisy"), {"noisy": [(name, kind, []) for name, kind, _ in COLUMNS]}, LIMITS)
    assert [str(t) for t in table.schema.types] == ["string", "int64"]
    assert table.num_rows == 0


def test_each_statement_sees_its_own_table_only() -> None:
    assert rows("SELECT k0 FROM noisy LIMIT 1") == [("a",)]
    assert rows("SELECT x FROM noisy", [("x", INTEGER, [9])]) == [(9,)]
    with pytest.raises(Refused):
        post.check(asked("SELECT x FROM noisy"), {"noisy": COLUMNS})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM COLUMNS_NOT_THERE",
        "COPY noisy TO '/tmp/dpquery_never.csv'",
        "ATTACH '/tmp/dpquery_never.duckdb'",
        "SET threads = 64",
        "CREATE TABLE kept AS SELECT 1",
        "SELECT 1; SELECT 2",
        "INSTALL httpfs",
        "",
    ],
)
def test_nothing_else_is_within_reach(sql: str) -> None:
    with pytest.raises(Refused):
        post.check(asked(sql), {"noisy": COLUMNS})
    with pytest.raises(Fault) as broken:
        rows(sql)
    assert broken.value.code == "POST_FAILED"
    assert not os.path.exists("/tmp/dpquery_never.csv")


def test_an_invalid_expression_is_refused_before_the_charge_in_one_line() -> None:
    with pytest.raises(Refused) as refused:
        post.check(asked("SELECT nosuch(a0) FROM noisy"), {"noisy": COLUMNS})
    assert refused.value.code == "POST_INVALID"
    assert "nosuch" in refused.value.message
    assert "\n" not in refused.value.message
    assert "Catalog Error" not in refused.value.message


def test_checking_looks_at_no_value() -> None:
    post.check(asked("SELECT 1 // a0, CAST(k0 AS DATE) FROM noisy"), {"noisy": COLUMNS})


def test_a_statement_is_checked_once_over_tables_of_the_same_types(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(post, "_check", lambda one, tables, limits: checked.append(one.sql))
    monkeypatch.setattr(post, "_SOUND", set())
    for columns in (COLUMNS, [(name, kind, []) for name, kind, _ in COLUMNS], [("k0", INTEGER, []), *COLUMNS[1:]]):
        post.check(asked("SELECT k0 FROM noisy"), {"noisy": columns}, LIMITS)
    post.check(asked("SELECT k0 FROM other"), {"other": COLUMNS}, LIMITS)
    assert checked == [*["SELECT k0 FROM noisy"] * 2, "SELECT k0 FROM other"]


def test_what_is_refused_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(Refused):
            post.check(asked("SELECT nothing FROM noisy"), {"noisy": COLUMNS}, LIMITS)


def test_a_failure_at_run_time_is_a_fault_without_the_engines_words() -> None:
    with pytest.raises(Fault) as broken:
        rows("SELECT CAST(k0 AS DATE) FROM noisy")
    assert broken.value.code == "POST_FAILED"
    assert "Conversion" not in str(broken.value)
    assert rows("SELECT count(*) FROM noisy") == [(3,)]


def test_a_statement_that_does_not_end_is_stopped() -> None:
    endless = "SELECT count(*) FROM range(1000000) a(x), range(1000000) b(y) WHERE hash(x) > hash(y)"
    with pytest.raises(Fault) as stopped:
        rows(endless, limits=Limits(timeout=Decimal("0.2"), memory=512 * 2**20))
    assert stopped.value.code == "POST_FAILED"
    assert rows("SELECT count(*) FROM noisy") == [(3,)]


def test_generated_rows_are_stopped_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "CHECK_SECONDS", 0.2)
    with pytest.raises(Refused) as refused:
        post.check(asked("SELECT count(*) FROM range(1000000) a(x), range(1000000) b(y) WHERE hash(x) > hash(y)"), {"noisy": COLUMNS})
    assert refused.value.code == "POST_TOO_SLOW"


def test_rows_that_take_too_long_to_count_are_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "CHECK_SECONDS", 0.2)
    side = "(SELECT 1 FROM range(1000000) a(x), range(1000000) b(y) WHERE hash(x) > hash(y))"
    with pytest.raises(Refused) as refused:
        post.check_pairs([Product((side, "noisy"), ("days",), 10, Position(7, 7))], {"noisy": COLUMNS}, LIMITS)
    assert (refused.value.code, refused.value.position) == ("POST_TOO_SLOW", Position(7, 7))


def test_a_type_that_cannot_be_handed_over_is_refused_before_the_charge() -> None:
    with pytest.raises(Refused) as refused:
        post.check(asked("SELECT INTERVAL 1 DAY FROM noisy"), {"noisy": COLUMNS})
    assert refused.value.code == "OUTPUT_TYPE"


def test_a_value_that_does_not_fit_its_type_is_a_fault() -> None:
    with pytest.raises(Fault) as broken:
        rows("SELECT * FROM noisy", [("a0", INTEGER, [2**63])])
    assert broken.value.code == "POST_FAILED"


def test_the_meaning_of_sql_does_not_depend_on_defaults() -> None:
    sql = "SELECT 1 / 2, 1.0 / 0, NULL IS NULL, current_setting('TimeZone'), current_setting('null_order')"
    assert rows(sql, [("a0", INTEGER, [1])])[0][:2] == (0.5, float("inf"))
    assert rows("SELECT k0 FROM noisy ORDER BY k0") == [("a",), ("b",), (None,)]
    assert rows("SELECT k0 FROM noisy ORDER BY k0 DESC") == [("b",), ("a",), (None,)]


def test_threads_of_one_process_take_turns() -> None:
    wrong: list[object] = []

    def one(n: int) -> None:
        for _ in range(10):
            found = rows("SELECT a0 FROM noisy", [("a0", INTEGER, [n])])
            if found != [(n,)]:
                wrong.append(found)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_an_engine_of_its_own() -> None:
    assert rows("SELECT count(*) FROM noisy") == [(3,)]
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if rows("SELECT count(*) FROM noisy") == [(3,)] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
