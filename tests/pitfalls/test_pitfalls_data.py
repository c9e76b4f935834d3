"""Which data is answered from: registered versions of literal tables, whose invariants the owner had checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import people
import pytest
from people import code, one

from dpquery.engine import check, create_ledger, data, draft_schema, open_session
from dpquery.engine.session import Session
from dpquery.errors import Error, Fault, SchemaError
from dpquery.ledger import open as open_ledger
from dpquery.schema.read import read

TABLES = """
tables:
  people: {unit: pid, max_rows_per_unit: 1, columns: {pid: {type: integer}}}
  visits: {unit: pid, columns: {vid: {type: integer, unique: true}, pid: {type: integer}, s: {type: string}}}
  items: {unit: {via: vid, references: visits.vid}, columns: {vid: {type: integer}, p: {type: string}}}
"""
DATA = """
CREATE TABLE people AS SELECT i::INT AS pid FROM range(1, 21) t(i);
CREATE TABLE visits AS SELECT i::INT AS vid, (1 + i % 20)::INT AS pid, 's' AS s FROM range(100) t(i);
CREATE TABLE items AS SELECT i::INT AS vid, 'p' AS p FROM range(100) t(i);
"""


@pytest.fixture(scope="module")
def unspent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.made(tmp_path_factory.mktemp("unspent"), DATA, TABLES, people.ORDINARY)


@pytest.fixture
def schema(unspent: Path, tmp_path: Path) -> Path:
    return people.copied(unspent, tmp_path / "kept")


def database(schema: Path) -> Path:
    return schema.with_suffix(".duckdb")


def rewrite(schema: Path, change: str) -> None:
    """Another file in the database's place, as an owner's nightly load leaves it: an open session holds a lock on the old one."""
    new = database(schema).with_suffix(".new")
    shutil.copyfile(database(schema), new)
    with duckdb.connect(str(new)) as con:
        con.execute(change)
    new.replace(database(schema))


def test_a10_no_fingerprint_of_private_data_is_written_or_shown(schema: Path) -> None:
    """Who knows all rows but one person's could hash both candidates and compare."""
    import hashlib

    content = database(schema).read_bytes()
    size, mtime = database(schema).stat().st_size, database(schema).stat().st_mtime_ns
    with people.opened(schema) as (session,):
        answer = session.query("SELECT count(*) FROM visits", epsilon="0.1")
    with open_ledger(schema.with_suffix(".ledger"), read(schema)) as ledger:
        public = "".join(ledger.export()) + str(answer.receipt)
    print_of = data.fingerprint(read(schema))
    unkeyed = [hashlib.sha256(text.encode()).hexdigest() for text in (print_of, f"dpquery data version\0{print_of}")]
    marks = [hashlib.sha256(content).hexdigest(), hashlib.md5(content).hexdigest(), str(size), str(mtime), print_of, *unkeyed]
    assert not [mark for mark in marks if mark in public]
    assert answer.receipt["data_version"] == 1


def test_a11_changed_data_is_refused_until_its_owner_registers_it(schema: Path) -> None:
    with people.opened(schema) as (session,):
        assert session.query("SELECT count(*) FROM visits", epsilon="0.1").receipt["data_version"] == 1
        rewrite(schema, "INSERT INTO visits VALUES (1000, 1, 'SECRET-VALUE')")
        assert code(session, "SELECT count(*) FROM visits") == "DATA_NOT_REGISTERED"
        assert check(schema, register=True).version == 2
        assert session.query("SELECT count(*) FROM visits", epsilon="0.1").receipt["data_version"] == 2


def test_a11_a_write_ahead_log_beside_the_file_is_refused(schema: Path) -> None:
    with people.opened(schema) as (session,):
        log = database(schema).with_name(database(schema).name + ".wal")
        log.write_bytes(b"")
        assert code(session, "SELECT count(*) FROM visits") == "DATA_WAL"
        with pytest.raises(Fault, match="write-ahead log"):
            check(schema, register=True)
        log.unlink()
        assert session.query("SELECT count(*) FROM visits", epsilon="0.1").table.num_rows == 1


def test_a11_a_copy_that_keeps_size_and_time_is_seen(schema: Path, tmp_path: Path) -> None:
    other = people.made(tmp_path / "other", DATA.replace("'s' AS s", "'t' AS s"), TABLES, people.ORDINARY)
    times = database(schema).stat()
    shutil.copyfile(database(other), database(schema))
    os.utime(database(schema), ns=(times.st_atime_ns, times.st_mtime_ns))
    with people.opened(schema) as (session,):
        assert code(session, "SELECT count(*) FROM visits") == "DATA_NOT_REGISTERED"


@pytest.mark.parametrize("registered", [False, True])
def test_a11_data_that_changes_while_a_query_runs_is_charged_and_withheld(schema: Path, registered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a version that its owner registered as well: what was charged names the one before."""
    with people.opened(schema) as (session,):
        run = session.backend.run

        def meanwhile(*given: object) -> object:
            found = run(*given)  # type: ignore[arg-type]
            rewrite(schema, "INSERT INTO visits VALUES (1000, 1, 'SECRET-VALUE')")
            if registered:
                assert check(schema, register=True).version == 2
            return found

        monkeypatch.setattr(session.backend, "run", meanwhile)
        with pytest.raises(Fault) as withheld:
            session.query("SELECT count(*) FROM visits", epsilon="0.25")
        assert withheld.value.code == "DATA_CHANGED"
        assert withheld.value.entry
        balance = session.budget()
        assert (str(balance.spent.epsilon), balance.timeouts) == ("0.25", 0)


@pytest.mark.parametrize("step", ["prepare", "run"])
def test_a11_data_that_is_there_for_a_moment_only_is_not_answered_from(schema: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine starts again on other files, and those that were registered are back before anybody looks."""
    with people.opened(schema) as (session,):
        step_of = getattr(session.backend, step)

        def meanwhile(*given: object) -> object:
            kept = database(schema).with_suffix(".kept")
            shutil.copyfile(database(schema), kept)
            rewrite(schema, "DELETE FROM visits")
            found = step_of(*given)
            kept.replace(database(schema))
            return found

        monkeypatch.setattr(session.backend, step, meanwhile)
        with pytest.raises(Fault) as withheld:
            session.query("SELECT count(*) FROM visits", epsilon="0.25")
        assert (withheld.value.code, bool(withheld.value.entry)) == ("DATA_CHANGED", step == "run")
        assert str(session.budget().spent.epsilon) == ("0.25" if step == "run" else "0")


def test_a11_an_engine_that_has_other_files_open_is_not_answered_from(schema: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever files are there: those that it opened are asked for, too."""
    with people.opened(schema) as (session,):
        run = session.backend.run

        def meanwhile(*given: object) -> object:
            found = run(*given)
            session.backend._opened = ()
            return found

        monkeypatch.setattr(session.backend, "run", meanwhile)
        with pytest.raises(Fault) as withheld:
            session.query("SELECT count(*) FROM visits", epsilon="0.25")
        assert withheld.value.code == "DATA_CHANGED"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("INSERT INTO visits VALUES (NULL, 1, 's'), (NULL, 2, 's')", "NOT_UNIQUE"),
        ("INSERT INTO visits VALUES (1, 5, 's')", "NOT_UNIQUE"),
        ("INSERT INTO people VALUES (1)", "ROWS_PER_UNIT"),
        ("ALTER TABLE visits ALTER pid TYPE VARCHAR", "TYPE_MISMATCH"),
        ("ALTER TABLE items ALTER vid TYPE BIGINT", "PATH_TYPE"),
        ("ALTER TABLE visits ALTER pid TYPE BIGINT", "UNIT_TYPE"),
        ("DROP TABLE visits; CREATE TABLE visits AS SELECT 1 AS vid, 1.5::DOUBLE AS pid, 's' AS s", "TYPE_MISMATCH"),
        ("ALTER TABLE visits RENAME TO rows; CREATE VIEW visits AS SELECT *, row_number() OVER (ORDER BY vid) AS n FROM rows", "NOT_A_TABLE"),
        ("DROP TABLE visits; CREATE MACRO visits() AS TABLE SELECT 1 AS vid, 1 AS pid, 's' AS s", "TABLE_MISSING"),
        ("DROP TABLE items; CREATE TABLE items(vid INT, p VARCHAR AS (random()::VARCHAR))", "GENERATED_COLUMN"),
        ("DROP TABLE items; CREATE TABLE items(vid INT, p VARCHAR COLLATE NOCASE)", "COLLATION"),
        ("DROP TABLE items; CREATE TABLE items(vid INT, p INTERVAL)", "TYPE_MISMATCH"),
        ("DROP TABLE items; CREATE TABLE items(vid INT, p VARCHAR[])", "TYPE_MISMATCH"),
    ],
)
def test_a11_a12_n5_what_no_query_can_enforce_is_checked_at_registration(change: str, refusal: str, tmp_path: Path) -> None:
    """Unique and not NULL, one row a unit, one physical type for all units, plain columns of plain tables; a UNIQUE constraint admits many NULLs."""
    found = check(people.write(tmp_path, DATA + change + ";", TABLES, people.ORDINARY))
    assert not found.ok
    assert {finding.code for finding in found.findings} == {refusal}


def test_a11_data_that_does_not_fit_gets_no_ledger_and_no_version(tmp_path: Path, schema: Path) -> None:
    unfit = people.write(tmp_path, DATA + "INSERT INTO people VALUES (1);", TABLES, people.ORDINARY)
    with pytest.raises(SchemaError) as refused:
        create_ledger(unfit)
    assert refused.value.code == "DATA_UNFIT"
    assert not unfit.with_suffix(".ledger").exists()
    rewrite(schema, "INSERT INTO people VALUES (1)")
    with pytest.raises(SchemaError) as refused:
        check(schema, register=True)
    assert refused.value.code == "DATA_UNFIT"


def test_w13_a_unit_is_an_integer_a_uuid_or_a_text(tmp_path: Path) -> None:
    schema = people.write(tmp_path, DATA, TABLES.replace("{pid: {type: integer}}", "{pid: {type: float}}"), people.ORDINARY)
    with pytest.raises(SchemaError) as refused:
        create_ledger(schema)
    assert refused.value.code == "BAD_UNIT"


def test_n5_undeclared_columns_are_invisible(tmp_path: Path) -> None:
    data = DATA + "ALTER TABLE visits ADD COLUMN diagnosis VARCHAR DEFAULT 'SECRET-VALUE';"
    with people.opened(people.made(tmp_path, data, TABLES)) as (session,):
        assert code(session, "SELECT diagnosis, count(*) FROM visits GROUP BY diagnosis") == "UNKNOWN_COLUMN"
        assert code(session, "SELECT count(*) FROM visits WHERE rowid > 3") == "UNKNOWN_COLUMN"
        assert len(session.tables()[1].columns) == 3


def test_w10_drafts_and_lists_show_no_value(tmp_path: Path) -> None:
    """An ENUM's own list, a minimum, a count: nothing of it stands in a draft or in what an analyst may list."""
    data = DATA + "CREATE TABLE odd AS SELECT 'SECRET-VALUE'::ENUM('SECRET-VALUE', 'SECRET-OTHER') AS e, 987654 AS n;"
    schema = people.made(tmp_path, data, TABLES)
    draft = draft_schema([database(schema)])
    assert "\n  odd:\n" in draft
    assert "\n      e: {type: string}" in draft
    assert '\n      "n": {type: integer}' in draft
    with people.opened(schema) as (session,):
        listed = str([table.as_dict() for table in session.tables()])
    assert "visits" in listed
    assert not [mark for mark in ("SECRET", "987654") if mark in draft + listed]


def test_w12_public_tables_are_looked_at_in_the_version_that_is_answered_from(tmp_path: Path) -> None:
    schema = people.made(tmp_path)
    with people.opened(schema) as (session,):
        joined = "SELECT count(*) FROM people JOIN regions USING (country)"
        assert one(session, joined) == 40 + 13
        rewrite(schema, "INSERT INTO regions VALUES ('DE', 'EU2')")
        assert code(session, joined) == "DATA_NOT_REGISTERED"
        check(schema, register=True)
        assert one(session, joined) == 40 + 13 + 14, "the fan-out, and with it the bounds, are those of the new version"


def test_c18_a_copied_schema_starts_no_new_budget(schema: Path) -> None:
    renamed = schema.with_name("again.yaml")
    shutil.copy(schema, renamed)
    with pytest.raises(Error) as refused:
        create_ledger(renamed)
    assert refused.value.code == "SOURCE_BOUND"
    renamed.write_text(schema.read_text().replace("dataset: people", "dataset: another"))
    with pytest.raises(Error) as refused:
        create_ledger(renamed)
    assert refused.value.code == "SOURCE_BOUND"
    with people.opened(renamed) as (session,):
        assert failing(session) == "LEDGER_MISSING"


def failing(session: Session) -> str:
    with pytest.raises(Error) as failed:
        session.query("SELECT count(*) FROM visits")
    return failed.value.code


@pytest.fixture(scope="module")
def spent(unspent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one analyst has spent the whole of a reserved cap."""
    schema = people.copied(unspent, tmp_path_factory.mktemp("spent") / "kept")
    with people.opened(schema, analyst="bob") as (session,):
        session.query("SELECT count(*) FROM visits", epsilon=2)
    return schema


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda text: text.replace("dataset: people", "dataset: crowd"), "LEDGER_FOREIGN"),
        (lambda text: text + "adjacency: replace_one\n", "LEDGER_MISMATCH"),
        (lambda text: text.replace("privacy_unit: people.pid", "privacy_unit: others.pid").replace("  people:", "  others:"), "LEDGER_MISMATCH"),
        (lambda text: text + "unsafe_testing: true\n", "LEDGER_MISMATCH"),
        (lambda text: text + "oversubscribe: true\n", "LEDGER_MISMATCH"),
        (lambda text: text.replace("bob: {epsilon: 2,", "carol: {epsilon: 2,"), "CAPS_EXCEED_BUDGET"),
        (
            lambda text: text.replace("default: {epsilon: 2,", "default: {epsilon: 2.5,").replace("bob: {epsilon: 2,", "bob: {epsilon: 1.5,"),
            "CAPS_EXCEED_BUDGET",
        ),
    ],
)
def test_n3_w11_what_was_fixed_at_creation_stays(change: Callable[[str], str], refusal: str, spent: Path, tmp_path: Path) -> None:
    """Another unit, adjacency or reserve mode, a removed account's share, noise turned off on the real ledger: none of them buys new budget."""
    schema = people.copied(spent, tmp_path / "kept")
    schema.write_text(change(schema.read_text()))
    with people.opened(schema) as (session,), pytest.raises(Error) as refused:
        session.query("SELECT count(*) FROM visits")
    assert refused.value.code == refusal


def test_e_a_new_session_has_no_new_budget(schema: Path) -> None:
    for spent in ("0.75", "1.5"):
        with people.opened(schema) as (session,):
            session.query("SELECT count(*) FROM visits", epsilon="0.75", fresh=True)
            assert str(session.budget().spent.epsilon) == spent
    with people.opened(schema) as (session,):
        assert code(session, "SELECT count(*) FROM visits", epsilon="0.75", fresh=True) == "OVER_BUDGET"
    assert open_session(schema).budget().entries == 2


KINDS = {
    "f": "{type: float, lower: -10, upper: 10}",
    "i": "{type: integer, lower: -10, upper: 10}",
    "c": '{type: "decimal(18,2)", lower: -10, upper: 10}',
    "b": "{type: boolean}",
    "d": "{type: date}",
    "t": "{type: timestamp}",
    "g": "{type: uuid}",
}
LINE = "1.5,2,3.25,true,2024-01-01,2024-01-01 10:00:00,00000000-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Session]]:
    """CSV files, without and with a person whose line holds a text in place of every value."""
    made = []
    for name in ("plain", "odd"):
        folder = tmp_path_factory.mktemp(name)
        given = [f"{i % 20},{LINE}" for i in range(100)]
        if name == "odd":
            given.insert(50, "77," + ",".join(["SECRET-VALUE"] * len(KINDS)))
        (folder / "people.csv").write_text("pid\n" + "\n".join(str(i) for i in [*range(20), 77]) + "\n")
        (folder / "rows.csv").write_text(f"pid,{','.join(KINDS)}\n" + "\n".join(given) + "\n")
        columns = ", ".join(["pid: {type: integer}", *(f"{key}: {kind}" for key, kind in KINDS.items())])
        people_ = "people: {unit: pid, path: people.csv, max_rows_per_unit: 1, columns: {pid: {type: integer}}}"
        tables = f"tables:\n  {people_}\n  rows: {{unit: pid, path: rows.csv, columns: {{{columns}}}}}\n"
        (folder / "rows.yaml").write_text(f"dataset: rows\nprivacy_unit: people.pid\n{people.NOISELESS}{tables}")
        create_ledger(folder / "rows.yaml")
        made.append(folder / "rows.yaml")
    with people.opened(*made) as (plain, odd):
        yield plain, odd


@pytest.mark.parametrize("column", KINDS)
def test_n5_a_text_that_is_no_value_is_null_in_every_statement(column: str, lines: tuple[Session, Session]) -> None:
    """Whatever the engine makes of the casts: it may not move them into the reader of the file, where they would fail for all."""
    shapes = [
        f"SELECT count({column}), count(*) FROM rows",
        f"SELECT {column}, count(*) FROM rows GROUP BY {column}",
        f"SELECT count(*) FROM rows WHERE {column} IS NULL",
        f"SELECT count(*) FROM rows a JOIN rows b USING (pid) WHERE a.{column} = b.{column}",
        f"SELECT sum(CAST(CAST({column} AS VARCHAR) AS DOUBLE), contribution_bounds_per_row => (0, 1)) FROM rows",
    ]
    if column in "fic":
        shapes.append(f"SELECT sum({column}), avg({column}) FROM rows")
    for sql in shapes:
        plain, odd = (people.rows(each, sql) for each in lines)
        assert len(odd) <= len(plain) + 1
    assert people.rows(lines[1], shapes[0]) == [(100, 101)]
