"""Known attacks on private query engines, one test each."""

from __future__ import annotations

import inspect
import os
import shutil
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import people
import pytest
from people import code, noise_of, one, rows, shown

from dpquery.engine import check, create_ledger
from dpquery.engine.session import Session
from dpquery.errors import Error, OverBudget
from dpquery.mechanisms import Noise, SystemBits, sample
from dpquery.plan.release import Mechanism

Pair = tuple[Session, Session]
COUNT = "SELECT count(*) FROM visits"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two neighbours, noise off: everybody, and everybody but one person."""
    folder = tmp_path_factory.mktemp("pair")
    with people.opened(people.made(folder / "all"), people.made(folder / "without", people.DATA + people.WITHOUT)) as (whole, without):
        yield whole, without


@pytest.fixture(scope="module")
def whole(pair: Pair) -> Session:
    return pair[0]


@pytest.fixture(scope="module")
def unspent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("unspent"), terms=people.ORDINARY)


@pytest.fixture
def ordinary(unspent: Path, tmp_path: Path) -> Iterator[Session]:
    """An ordinary budget, unspent."""
    with people.opened(people.copied(unspent, tmp_path / "kept")) as (session,):
        yield session


def refused(session: Session, sql: str) -> str:
    """The code of a refusal: the statement's own fault, before anything is read."""
    with pytest.raises(Error) as failed:
        session.query(sql)
    assert failed.value.exit_status == 2
    return failed.value.code


def test_attack_01_low_bits_of_noisy_floats(ordinary: Session) -> None:
    """Noise is drawn on the grid of the sum: every released float is a whole number of steps, so that its support tells of nothing."""
    sql = "SELECT k, sum(x) FROM visits WHERE k IN (0, 1, 2, 3, 4, 9) GROUP BY k"
    step = Fraction(shown(ordinary, sql, epsilon="0.25")["releases"][0]["step"])
    values = [value for _ in range(3) for _, value in rows(ordinary, sql, epsilon="0.25", delta=0, fresh=True)]
    assert len(values) == len(set(values)) == 18
    assert all((Fraction(value) / step).denominator == 1 for value in values)


def test_attack_02_precision_that_follows_the_value(ordinary: Session, whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid is that of the bounds, whatever is summed: what is released near 0 and near 2^40 is as fine, and no finer."""
    steps = {
        shown(ordinary, f"SELECT sum({expression}, contribution_bounds_per_row => (-10, 10)) FROM visits")["releases"][0]["step"]
        for expression in ("x", "x * 0", "x * 1e12", "exp(x)")
    }
    assert len(steps) == 1
    sums = [f"SELECT sum({value}, contribution_bounds_per_row => (-4294967296, 4294967296)) FROM visits" for value in ("x / 1e9", f"x * 0 + {2**32}")]
    (step,) = {Fraction(shown(whole, sql)["releases"][0]["step"]) for sql in sums}
    assert step < 1
    exact = []
    for sql in sums:
        found = []
        for noise in (0, 1, 1001):
            monkeypatch.setattr("dpquery.release.noise.sample", noise_of(noise))
            found.append(Fraction(one(whole, sql)))
        assert found[0] % step == 0
        assert [value - found[0] for value in found] == [0, step, 1001 * step]
        exact.append(found[0])
    assert abs(exact[0]) < 1
    assert exact[1] == 400 * 2**32 > 2**40
    monkeypatch.undo()
    assert Fraction(one(ordinary, sums[0])) % step == 0


def test_attack_03_biased_or_predictable_samplers() -> None:
    """Laws are tested beside the sampler; here: no seed can be given, and a forked process does not draw what its parent draws."""
    assert not inspect.signature(SystemBits).parameters
    assert set(inspect.signature(sample).parameters) == {"noise", "count", "bits"}
    bits, noise = SystemBits(), Noise(Mechanism.LAPLACE, Fraction(10**6))
    sample(noise, 4, bits)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str([int(z) for z in sample(noise, 4, bits)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reader, 1000).decode()
    os.close(reader)
    os.close(writer)
    assert theirs.startswith("[")
    assert theirs != str([int(z) for z in sample(noise, 4, bits)])


def test_attack_04_time_that_depends_on_a_row(whole: Session) -> None:
    """No function whose cost a row can choose; what is left of the channel is a named residual risk, counted by time-outs."""
    for heavy in (
        "regexp_matches(s, s)",
        "regexp_matches(s, '(s+)\\1')",
        "regexp_matches(s, '(?=s*)s+x')",
        "repeat(s, 1000000) = 'a'",
        "list_sum(range(1000000)) > 1",
        "array_length(string_split(s, '')) > 1",
        "levenshtein(s, s) > 1",
    ):
        assert refused(whole, f"{COUNT} WHERE CASE WHEN pid = 7 THEN {heavy} ELSE FALSE END")


@pytest.mark.parametrize(
    "sql",
    [
        "SET threads = 1",
        "PRAGMA database_list",
        "CREATE TEMP TABLE t AS SELECT * FROM visits",
        "COPY visits TO '/tmp/visits.csv'",
        "ATTACH '/tmp/other.duckdb'",
        "DELETE FROM visits",
        "CALL duckdb_tables()",
        "EXPLAIN ANALYZE SELECT count(*) FROM visits",
        "PREPARE q AS SELECT count(*) FROM visits",
        "SELECT count(*) FROM visits; DROP TABLE visits",
        "WITH gone AS (DELETE FROM visits RETURNING *) SELECT count(*) FROM gone",
        "SELECT nextval('s'), count(*) FROM visits",
        "SELECT count(*) FROM visits WHERE nextval('s') > 1",
        "SELECT setseed(0.5), count(*) FROM visits",
    ],
)
def test_attack_05_side_effects(sql: str, whole: Session) -> None:
    assert refused(whole, sql)
    assert one(whole, COUNT) == 400


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = (SELECT count(*) FROM visits)) count(*) FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5 + 0.5) count(*) FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = k) count(*) FROM visits",
        "SELECT sum(x, contribution_bounds_per_row => (0, (SELECT max(x) FROM visits))) FROM visits",
        "SELECT sum(x, contribution_bounds_per_row => (0, x)) FROM visits",
        "SELECT count(*) FROM visits LIMIT (SELECT count(*) FROM calls)",
    ],
)
def test_attack_06_prices_and_bounds_from_the_data(sql: str, whole: Session) -> None:
    assert refused(whole, sql)


@pytest.mark.parametrize(
    "expression",
    [
        "1 % (k - 2)",
        "1 // (k - 2)",
        "1 / (k - 2)",
        "CAST(s AS INT)",
        "9223372036854775807 + k",
        "sqrt(x)",
        "ln(x)",
        "power(x, 0.5)",
        "k * 1e308 * 10",
    ],
)
def test_attack_07_errors_that_tell_of_a_row(expression: str, pair: Pair) -> None:
    """What fails in the engine for one person's row has a value here; the functions that raise on purpose are refused."""
    values = [one(each, f"SELECT sum({expression}, contribution_bounds_per_row => (-1, 1)) FROM visits") for each in pair]
    assert abs(values[0] - values[1]) <= 20
    for raising in ("error(s) = 'a'", "CAST(error(s) AS INT) = 1", "chr(k) = 'a'"):
        assert refused(pair[0], f"{COUNT} WHERE {raising}")


def test_attack_08_keys_of_one_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that one person holds, NULL too, shows only where the noise carries it over the threshold; public keys always show."""
    data = people.DATA + "INSERT INTO visits VALUES (9001, 1, '2024-01-01', 0, 1, 'SECRET-VALUE'), (9002, 1, '2024-01-01', 0, 1, NULL);"
    with people.opened(people.made(tmp_path, data, terms=people.ORDINARY)) as (session,):
        sql = "SELECT s, count(*) FROM visits GROUP BY s"
        threshold = shown(session, sql, epsilon="0.5", delta="1e-8")["keys"]["threshold"]
        assert threshold > 1
        monkeypatch.setattr("dpquery.release.noise.sample", noise_of(threshold - 2))
        found = [key for key, _ in rows(session, sql, epsilon="0.5", delta="1e-8")]
        assert found == [f"s{i}" for i in range(7)], "a person more would do, as it does for others: this one is one short of it"
        monkeypatch.setattr("dpquery.release.noise.sample", noise_of(0))
        assert rows(session, "SELECT k, count(*) FROM visits WHERE k IN (7, 8) GROUP BY k", epsilon="0.1") == [(7, 0), (8, 0)]
        assert rows(session, "SELECT menu FROM people WHERE FALSE GROUP BY menu", epsilon="0.1") == [(menu,) for menu in ("DE", "FR", "JP", "US")]


@pytest.mark.parametrize(
    "volatile",
    [
        "random()",
        "uuid()",
        "gen_random_uuid()",
        "current_setting('threads')",
        "getenv('HOME')",
        "txid_current()",
        "current_query()",
        "rowid",
        "version()",
    ],
)
def test_attack_09_volatile_functions(volatile: str, whole: Session) -> None:
    assert refused(whole, f"SELECT count(*) FROM visits WHERE CAST({volatile} AS VARCHAR) > 'a'")
    assert refused(whole, f"SELECT {volatile}, count(*) FROM visits")


def test_attack_09_the_clock_is_read_once(whole: Session) -> None:
    """NOW() is a literal of the statement, below and above the noise."""
    answer = rows(whole, "SELECT now(), now() = current_timestamp, count(*) FILTER (WHERE day < current_date) FROM visits")
    assert answer[0][1:] == (True, 400)
    assert "now" not in shown(whole, "SELECT count(*) FROM visits WHERE day < now()")["sql"].lower()


def test_attack_10_functions_of_their_own_making(tmp_path: Path) -> None:
    """A macro in the database is no function of the allow-list, whatever it is called."""
    shadows = ["leak(a) AS a + 1", "lower(a) AS error(a)", "sum(a) AS 7", "count(a) AS 7", "least(a, b) AS a", '"+"(a, b) AS 7', "hash(a) AS 7"]
    shadows += ["range(a) AS TABLE SELECT 7", "everybody() AS TABLE SELECT * FROM visits"]
    with people.opened(people.made(tmp_path, people.DATA + "".join(f"CREATE MACRO {shadow};" for shadow in shadows))) as (session,):
        assert rows(session, "SELECT count(*), sum(k + 1, contribution_bounds_per_row => (0, 9)) FROM visits") == [(400, 400 + 800)]
        assert rows(session, "SELECT c.name, count(*) FROM visits JOIN (SELECT k, lower(name) AS name FROM codes) c USING (k) GROUP BY c.name") == [
            *(("a", 160), ("b", 160), ("c", 0)),
        ]
        assert refused(session, "SELECT count(*) FROM visits WHERE leak(k) > 1") == "UNKNOWN_FUNCTION"
        assert refused(session, "SELECT count(*) FROM everybody()") == "TABLE_FUNCTION"
        assert one(session, "SELECT count(*) FROM visits WHERE lower(s) = 's1'") == one(session, "SELECT count(*) FROM visits WHERE s = 's1'")


@pytest.mark.parametrize(
    "source",
    [
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "'/etc/passwd'",
        '"/etc/passwd"',
        "'https://example.org/a.parquet'",
        "glob('/*')",
        "parquet_metadata('a')",
        "query('SELECT 1')",
        "query_table('visits')",
        "sniff_csv('/etc/passwd')",
    ],
)
def test_attack_11_files_and_network(source: str, whole: Session) -> None:
    assert refused(whole, f"SELECT count(*) FROM {source}") in ("TABLE_FUNCTION", "UNKNOWN_TABLE")


def test_attack_12_averaging(ordinary: Session) -> None:
    """Asking again shows the same noise, in other words of the same question too; what is drawn anew is charged: no average comes for less."""
    spellings = [
        "SELECT count(*) FROM visits WHERE x < 5",
        "SELECT count(*) AS n FROM visits AS v WHERE 5 > v.x",
        "select COUNT(*) from VISITS where (x) < 5",
        "SELECT n FROM (SELECT count(*) AS n FROM visits v WHERE v.x < 5) AS t",
    ]
    reworded = ["SELECT count(*) FROM visits WHERE NOT x >= 5", "SELECT count(*) FROM visits WHERE x < 5 OR x < 4"]
    seen = [one(ordinary, sql, epsilon="0.1", delta=0) for _ in range(5) for sql in spellings[::-1]]
    assert len(set(seen)) == 1
    assert ordinary.budget().spent.epsilon == Decimal("0.1")
    for sql in reworded:
        one(ordinary, sql, epsilon="0.1", delta=0)
    assert ordinary.budget().spent.epsilon == Decimal("0.3")
    for _ in range(17):
        one(ordinary, spellings[0], epsilon="0.1", delta=0, fresh=True)
    assert ordinary.budget().spent.epsilon == 2
    for sql in (*spellings, *reworded):
        assert code(ordinary, sql, epsilon="0.1", delta=0, fresh=True) == "OVER_BUDGET"
        assert one(ordinary, sql, epsilon="0.1", delta=0) is not None, "what was seen stays free"


def test_attack_13_stored_answers_across_versions(ordinary: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored answer is shown as it was released, and says so, as long as its data version is the one at hand; after that nothing old is shown."""
    answers = [ordinary.query("SELECT sum(x) FROM visits", epsilon="0.1", delta=0) for _ in range(3)]
    assert len({str(answer.table.to_pylist()) for answer in answers}) == 1
    assert {answer.receipt["data_version"] for answer in answers} == {1}
    assert len({answer.receipt["entry"] for answer in answers}) == 1
    assert ["stored" in answer.receipt for answer in answers] == [False, True, True]
    assert any("stored answer" in said for said in answers[1].warnings)
    monkeypatch.setattr("dpquery.release.noise.sample", noise_of(0))
    people_ = "SELECT count(*) FROM people"
    assert one(ordinary, people_, epsilon="0.1", delta=0) == 40
    file = ordinary.schema.file.with_suffix(".duckdb")
    new = file.with_suffix(".new")
    shutil.copyfile(file, new)
    with duckdb.connect(str(new)) as con:
        con.execute("INSERT INTO people VALUES (1000, 30, 'US', 'US')")
    new.replace(file)
    assert code(ordinary, people_, epsilon="0.1", delta=0) == "DATA_NOT_REGISTERED"
    assert check(ordinary.schema.file, register=True).version == 2
    later = ordinary.query(people_, epsilon="0.1", delta=0)
    assert (later.table.to_pylist(), later.receipt["data_version"]) == ([{"count_star()": 41}], 2)
    assert ordinary.budget().spent.epsilon == Decimal("0.3"), "what was spent on the old version counts for the new one"
    assert "stored" not in later.receipt
    again = ordinary.query("SELECT sum(x) FROM visits", epsilon="0.05", delta=0)
    assert "stored" not in again.receipt, "a cheaper repeat too is asked anew"


def test_attack_14_refusals_that_depend_on_the_data(pair: Pair, tmp_path: Path) -> None:
    """Too few rows, nobody, no group: answered, or refused in the same words, whoever is there."""
    answered = {
        "SELECT count(*) FROM visits WHERE pid = 8": 1,
        "SELECT avg(age) FROM people WHERE pid = 8": 1,
        "SELECT k, count(*), sum(x) FROM visits WHERE pid = 8 AND k IN (1, 2, 9) GROUP BY k": 3,
    }
    other = ["SELECT max(x) FROM visits WHERE pid = 8", "SELECT count(*) FROM visits a JOIN calls b ON a.k = b.k", "SELECT sum(k) FROM visits"]
    with people.opened(people.made(tmp_path, people.DATA + people.EMPTY)) as (empty,):
        for session in (*pair, empty):
            for sql, lines in answered.items():
                assert session.query(sql).table.num_rows == lines
            assert session.query("SELECT s, sum(x) FROM visits GROUP BY s").table.column_names == ["s", "sum(x)"]
        for sql in other:
            told = []
            for session in (*pair, empty):
                with pytest.raises(Error) as failed:
                    session.query(sql)
                told.append(str(failed.value))
            assert len(set(told)) == 1


def test_attack_15_noise_that_cancels(ordinary: Session) -> None:
    """Two draws never share noise; the same aggregate is one release, in one statement or in two, whatever stands around it."""
    first, second, third = (
        one(ordinary, sql, epsilon="0.1", delta=0, fresh=fresh)
        for sql, fresh in (("SELECT sum(x) FROM visits", False), ("SELECT sum(x) + 0 FROM visits", False), ("SELECT sum(x) + 0 FROM visits", True))
    )
    assert first == second != third
    assert ordinary.budget().spent.epsilon == Decimal("0.2")
    ((a, b),) = rows(ordinary, "SELECT sum(x), sum(x) + 0 FROM visits", epsilon="0.1", delta=0)
    assert a == b
    assert len(shown(ordinary, "SELECT sum(x), sum(x) + 0, count(*) FROM visits")["releases"]) == 2


def test_attack_16_order_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come by key, or as ORDER BY says with ties by key: how the engine found them does not show."""
    monkeypatch.setattr("dpquery.release.noise.sample", noise_of(0))
    turned = people.DATA + "CREATE TABLE again AS SELECT * FROM visits ORDER BY vid DESC; DROP TABLE visits; ALTER TABLE again RENAME TO visits;"
    with people.opened(people.made(tmp_path / "a"), people.made(tmp_path / "b", turned)) as (one_way, other_way):
        for sql in (
            "SELECT s, count(DISTINCT pid) FROM visits GROUP BY s",
            "SELECT k, count(*) FROM visits GROUP BY k ORDER BY 2",
            "SELECT country, row_number() OVER () FROM people GROUP BY country",
        ):
            clause = sql.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e20, delta = 1, max_groups_contributed = 100)")
            assert rows(one_way, clause) == rows(other_way, clause)
        options = "epsilon = 1e20, delta = 1, max_groups_contributed = 100"
        private = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) s, k, row_number() OVER (), count(*) FROM visits GROUP BY s, k"
        for session in (one_way, other_way):
            found = rows(session, private)
            assert len(found) > 30
            assert found == sorted(found)
            assert [row[2] for row in found] == list(range(1, len(found) + 1)), "as windows see them, too"
        assert [k for k, _ in rows(one_way, "SELECT k, count(*) FROM visits WHERE k IN (4, 1, 3) GROUP BY k")] == [1, 3, 4]


@pytest.mark.parametrize("selection", ["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD"])
def test_attack_17_thresholds_off_by_one(selection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of one person needs noise of at least T - 1: that tail, and not the next, is what delta pays for."""
    data = people.DATA + "INSERT INTO visits VALUES (9001, 1, '2024-01-01', 0, 1, 'alone');"
    options = f"epsilon = 1, delta = 1e-6, max_groups_contributed = 100, group_selection_strategy = {selection}"
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) s, count(DISTINCT pid) FROM visits WHERE s = 'alone' OR FALSE GROUP BY s"
    with people.opened(people.made(tmp_path, data)) as (session,):
        threshold = shown(session, sql)["keys"]["threshold"]
        assert threshold > 1
        for noise, groups in ((threshold - 2, 0), (threshold - 1, 1)):
            monkeypatch.setattr("dpquery.release.noise.sample", noise_of(noise))
            assert len(rows(session, sql)) == groups


def test_attack_18_thresholds_on_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rows of one person open no group that one row would not."""
    data = people.DATA + "INSERT INTO visits SELECT 10000 + i, 1, '2024-01-01', 0, 1, 'SECRET-VALUE' FROM range(1000) t(i);"
    monkeypatch.setattr("dpquery.release.noise.sample", noise_of(1))
    with people.opened(people.made(tmp_path, data)) as (session,):
        clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5, delta = 0.001, max_groups_contributed = 100, max_rows_per_group = 1000)"
        sql = f"SELECT {clause} s, count(*) FROM visits GROUP BY s"
        assert shown(session, sql)["keys"]["threshold"] > 2
        assert "SECRET-VALUE" not in [key for key, _ in rows(session, sql)]


def test_attack_19_bounds_before_a_join(pair: Pair) -> None:
    """One person's rows are capped after a public table has doubled them."""
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e20, delta = 1, max_rows_per_group = 3)"
    sql = f"SELECT {clause} count(*) FROM visits JOIN people USING (pid) JOIN regions USING (country)"
    said = shown(pair[0], sql)["releases"][0]
    counts = [one(each, sql) for each in pair]
    assert counts[0] - counts[1] == said["linf"] == 3


def test_attack_20_races_for_the_budget(ordinary: Session) -> None:
    """Between sessions of one process, all at once; between processes see the tests of crashes and of the ledger."""
    with people.opened(*[ordinary.schema.file] * 3) as others:
        barrier = threading.Barrier(len(others))
        outcomes: list[str] = []

        def race(session: Session) -> None:
            session.explain(COUNT)
            for _ in range(3):
                barrier.wait(60)
                try:
                    outcomes.append(session.query(COUNT, epsilon="0.4", delta=0, fresh=True).receipt["entry"])
                except OverBudget as refused:
                    outcomes.append(refused.code)

        threads = [threading.Thread(target=race, args=(session,)) for session in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 9
        assert outcomes.count("OVER_BUDGET") == 4
        assert len(set(outcomes)) == 5 + 1
        balance = ordinary.budget()
        assert (balance.spent.epsilon, balance.entries) == (2, 5)


def test_attack_21_ledgers_that_forget(ordinary: Session, tmp_path: Path) -> None:
    """An older copy put in place, a missing file, another name for the data set: refused, and spent amounts never shrink."""
    schema = ordinary.schema.file
    ledger = schema.with_suffix(".ledger")
    spent = []
    for _ in range(2):
        ordinary.query(COUNT, epsilon="0.5", delta=0, fresh=True)
        refused(ordinary, "SELECT max(x) FROM visits")
        with people.opened(schema) as (again,):
            spent += [ordinary.budget().spent.epsilon, again.budget().spent.epsilon]
    assert spent == [Decimal("0.5"), Decimal("0.5"), 1, 1]
    named = schema.with_name("again.yaml")
    named.write_text(schema.read_text().replace("dataset: people", "dataset: another"))
    with pytest.raises(Error) as failed:
        create_ledger(named)
    assert failed.value.code == "SOURCE_BOUND"
    with people.opened(named) as (again,), pytest.raises(Error) as failed:
        again.query(COUNT)
    assert failed.value.code == "LEDGER_MISSING"
    shutil.copy(ledger, named.with_suffix(".ledger"))
    with people.opened(named) as (again,), pytest.raises(Error) as failed:
        again.query(COUNT)
    assert failed.value.code == "LEDGER_FOREIGN"
    named.with_suffix(".ledger").unlink()
    copy = tmp_path / "copy"
    copy.write_bytes(ledger.read_bytes())
    ordinary.query(COUNT, epsilon="0.5", fresh=True)
    copy.replace(ledger)
    with pytest.raises(Error) as failed:
        ordinary.query(COUNT, epsilon="0.5")
    assert failed.value.code == "LEDGER_CORRUPT"
    ledger.unlink()
    with people.opened(schema) as (again,), pytest.raises(Error) as failed:
        again.query(COUNT)
    assert failed.value.code == "LEDGER_MISSING"
    for left_over in schema.parent.glob(f"{ledger.name}-*"):
        left_over.unlink()
    with pytest.raises(Error) as failed:
        create_ledger(schema)
    assert failed.value.code == "SOURCE_BOUND"


def test_attack_22_budgets_in_floating_point(ordinary: Session) -> None:
    """A tenth twenty times is two, exactly; what is no finite positive number is no price."""
    for _ in range(10):
        ordinary.query(COUNT, epsilon=0.1, delta=0, fresh=True)
        ordinary.query(COUNT, epsilon="0.1", delta=0, fresh=True)
    assert ordinary.budget().spent.epsilon == 2
    assert ordinary.budget().left.epsilon == 0
    for epsilon in (1e-320, float("nan"), float("inf"), -1, "1e308", "1e-1 ", True, Decimal("NaN")):
        assert code(ordinary, COUNT, epsilon=epsilon) in ("BAD_PRICE", "EPSILON_TOO_LARGE")
    assert code(ordinary, COUNT, epsilon="1e-50", delta=0, fresh=True) == "OVER_BUDGET"


def test_attack_23_metadata(pair: Pair, whole: Session) -> None:
    """Statistics, catalogues and plans of the engine are out of reach; an explanation knows public things only."""
    for sql in (
        "SELECT stats(x), count(*) FROM visits",
        "SELECT count(*) FROM duckdb_tables()",
        "SELECT count(*) FROM duckdb_columns()",
        "SELECT count(*) FROM pragma_storage_info('visits')",
        "SELECT count(*) FROM information_schema.columns",
        "EXPLAIN ANALYZE SELECT count(*) FROM visits",
        "SUMMARIZE visits",
        "DESCRIBE visits",
        "SHOW TABLES",
    ):
        assert refused(whole, sql)
    assert shown(pair[0], "SELECT s, sum(x), avg(x) FROM visits GROUP BY s") == shown(pair[1], "SELECT s, sum(x), avg(x) FROM visits GROUP BY s")


def test_attack_24_error_bars_from_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With equal released values, error bars, warnings and receipts are equal: nothing is told of rows that were clipped, or of groups left out."""
    data = [
        people.DATA,
        people.DATA + "UPDATE visits SET x = 1e9; INSERT INTO visits SELECT 9000 + i, 1, '2024-01-01', 1e9, 1, 's' FROM range(99) t(i);",
    ]
    told = []
    for name, content in zip("ab", data, strict=True):
        with people.opened(people.made(tmp_path / name, content, terms=people.ORDINARY)) as (session,):
            monkeypatch.setattr("dpquery.release.noise.add", frozen)
            answer = session.query("SELECT k, count(*), sum(x), avg(x) FROM visits WHERE k IN (0, 1) GROUP BY k")
            receipt = {k: v for k, v in answer.receipt.items() if k not in ("entry", "commitment", "time")}
            told.append((answer.table.to_pylist(), answer.intervals, answer.warnings, receipt))
    assert told[0] == told[1]


def frozen(exact: object, release: object, priced: object, bits: object) -> object:
    """Stands in for the noise line: the same released values whatever is below it."""
    from dpquery.values.noisy import Noisy

    parts = len(release.table.parts)  # type: ignore[attr-defined]
    return Noisy(((0,), (1,)), tuple((1000 + part, 2000 + part) for part in range(parts)))


def test_attack_25_conditions_that_single_somebody_out(pair: Pair) -> None:
    """They are answered, with noise for all of it; another private number that they compare with is a release of its own, noisy and paid for."""
    assert [one(each, f"SELECT count(*) FROM visits WHERE pid = {people.UNIT}") for each in pair] == [10, 0]
    assert shown(pair[0], "SELECT count(*) FROM visits WHERE pid = 8", epsilon=1)["releases"][0]["linf"] == 20
    for sql in (
        "SELECT count(*) FROM visits WHERE x > (SELECT avg(x) FROM visits)",
        "SELECT count(*) FROM visits HAVING count(*) > (SELECT count(*) FROM calls)",
    ):
        receipt = shown(pair[0], sql, epsilon=1, delta=0)
        assert [row["charged_epsilon"] for row in receipt["tables"]] == ["0.5", "0.5"]
    for sql in (
        "SELECT count(*) FROM visits WHERE x > (SELECT x FROM visits)",
        "SELECT s, count(*) FROM visits GROUP BY s QUALIFY row_number() OVER (ORDER BY x) = 1",
        "SELECT s, count(*) FROM visits GROUP BY s HAVING max(x) > 9",
        "SELECT s, count(*) FROM visits GROUP BY s ORDER BY x",
    ):
        assert refused(pair[0], sql)


def test_attack_26_finishing_touches_that_read_the_data(whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding, clipping, sorting and cutting act on released values alone: here the noise has made them all the same."""
    from dpquery.values.noisy import Noisy

    monkeypatch.setattr("dpquery.release.noise.add", lambda exact, release, priced, bits: Noisy(((0,), (1,), (2,)), ((7, 7, 7),)))
    sql = "SELECT k, round(count(*), -1) AS n FROM visits WHERE k IN (0, 1, 2) GROUP BY k HAVING count(*) = 7 ORDER BY count(*) DESC LIMIT 2"
    assert rows(whole, sql) == [(0, 10), (1, 10)]


def test_attack_27_means_of_nobody(ordinary: Session, whole: Session) -> None:
    """The middle of the bounds, a number in any case, within the bounds: never NULL because nobody is there."""
    assert one(whole, "SELECT avg(age) FROM people WHERE FALSE") == 60
    assert one(whole, "SELECT sum(age) / count(*) FROM people WHERE FALSE") is None, "a quotient of two released zeros"
    values = [one(ordinary, "SELECT avg(age) FROM people WHERE FALSE", epsilon="0.01", delta=0) for _ in range(20)]
    assert all(0 <= value <= 120 for value in values)


def test_attack_28_identifiers(pair: Pair) -> None:
    """The unit itself is no key and no output; what is computed from it is a private key under a threshold."""
    for sql in (
        "SELECT pid, count(*) FROM visits GROUP BY pid",
        "SELECT pid AS p, count(*) FROM (SELECT pid FROM visits) GROUP BY p",
        "SELECT DISTINCT pid FROM visits",
        "SELECT count(*) FROM visits GROUP BY pid",
        "SELECT count(*) FROM visits ORDER BY pid",
        "SELECT v.pid, count(*) FROM items i LEFT JOIN visits v ON i.vid = v.vid AND v.k = 1 GROUP BY v.pid",
    ):
        assert refused(pair[0], sql) == "UNIT_AS_OUTPUT"
    for derived in ("pid % 1000", "pid + 0", "-pid", "CAST(pid AS VARCHAR)"):
        assert shown(pair[0], f"SELECT {derived} AS d, count(*) FROM visits GROUP BY d")["keys"]["rule"] == "threshold"
