"""The engine's process: what ends in it, what leaves it, and that nothing of it stays."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from shop_files import write

from dpquery.backends import duckdb as door
from dpquery.backends import process, wire, worker
from dpquery.backends.duckdb import DuckDB
from dpquery.backends.port import BoundedSQL
from dpquery.errors import Fault
from dpquery.plan.release import Enforced, GroupCap
from dpquery.schema.model import Schema
from dpquery.values.types import INTEGER

Opened = Callable[[Schema], DuckDB]
CROSS = "SELECT count(*) FROM range(1000000) a(x), range(1000000) b(y) WHERE hash(x) > hash(y)"


def lowered(sql: str) -> BoundedSQL:
    return BoundedSQL(sql, Enforced(GroupCap(1), (), None, keyed=False))


def ask(backend: DuckDB, sql: str) -> int:
    return backend.run(lowered(sql), (), 1).sums[0][0]


def pid(backend: DuckDB) -> int:
    return backend._worker.pid


def gone(process: int) -> bool:
    """Whether the process ends within some seconds."""
    for _ in range(200):
        try:
            with open(f"/proc/{process}/stat", encoding="ascii") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_it_answers(kept: DuckDB) -> None:
    assert ask(kept, 'SELECT count(*) FROM data.main."orders"') == 300


def test_integers_beyond_64_bits_arrive_whole(kept: DuckDB) -> None:
    for value in (2**62, -(2**62), 2**63, -(2**63) - 1, 2**100 + 1, -(2**100) - 1, 0, -1):
        assert ask(kept, f"SELECT ({value})::HUGEINT") == value


def test_a5_a_runaway_join_stops_at_the_time_limit_with_constant_words(tmp_path: Path, opened: Opened) -> None:
    backend = opened(write(tmp_path, "{timeout: 0.3, memory: 512MB, threads: 2}"))
    assert ask(backend, "SELECT 1") == 1
    with pytest.raises(Fault) as stopped:
        ask(backend, CROSS)
    assert stopped.value.code == "ENGINE_TIMEOUT"
    assert "1000000" not in str(stopped.value)
    assert ask(backend, "SELECT 2") == 2


def test_a_worker_that_does_not_heed_the_interrupt_is_killed(shop: Schema, opened: Opened) -> None:
    backend = opened(shop)
    assert ask(backend, "SELECT 1") == 1
    stuck = pid(backend)
    os.kill(stuck, signal.SIGSTOP)
    with pytest.raises(Fault) as stopped:
        backend._worker.ask({"do": "rows", "sql": "SELECT 1"}, timeout=-1.5)
    assert stopped.value.code == "ENGINE_TIMEOUT"
    assert gone(stuck)
    assert ask(backend, "SELECT 2") == 2


def test_an_engine_that_starts_too_late_is_not_the_questions_fault(shop: Schema, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask for less would not help."""
    monkeypatch.setattr(process, "START", 0.0)
    with pytest.raises(Fault) as late:
        ask(opened(shop), "SELECT 1")
    assert (late.value.code, str(late.value.instead).startswith("ask again")) == ("ENGINE_FAILED", True)
    assert late.value.message == "the engine did not start within 30 seconds"


def test_memory_is_limited_by_the_engine(tmp_path: Path, opened: Opened) -> None:
    backend = opened(write(tmp_path, "{timeout: 60, memory: 64MB, threads: 2}"))
    with pytest.raises(Fault) as stopped:
        ask(backend, "SELECT len(list(x)) FROM range(100000000) t(x)")
    assert stopped.value.code == "ENGINE_MEMORY"
    assert ask(backend, "SELECT 2") == 2


def test_memory_that_the_engine_does_not_count_is_limited_by_the_operating_system(tmp_path: Path, opened: Opened) -> None:
    backend = opened(write(tmp_path, "{timeout: 60, memory: 64MB, threads: 2}"))
    with pytest.raises(Fault) as stopped:
        ask(backend, "SELECT sum(length(repeat('x', 500000000 + x))) FROM range(1000) t(x)")
    assert stopped.value.code == "ENGINE_MEMORY"
    assert ask(backend, "SELECT 2") == 2


def test_a_statement_that_spills_has_room_for_addresses_that_it_no_longer_uses() -> None:
    """COUNT(DISTINCT) by 30 keys over 50 million rows kept to 2 GB and mapped 3,123 MB beyond the open engine (benchmarks/spill.py)."""
    assert 3_123_000_000 * 5 // 4 < worker._room(2 * 10**9) < 3 * 2 * 10**9


def test_a_killed_worker_is_a_fault_and_another_takes_its_place(shop: Schema, opened: Opened) -> None:
    backend = opened(shop)
    assert ask(backend, "SELECT 1") == 1
    first = pid(backend)
    threading.Timer(0.3, os.kill, (first, signal.SIGKILL)).start()
    with pytest.raises(Fault) as broken:
        ask(backend, CROSS)
    assert broken.value.code == "ENGINE_FAILED"
    assert ask(backend, "SELECT 2") == 2
    assert pid(backend) != first


def test_a_worker_that_died_idle_is_replaced_unnoticed_with_its_public_relations(shop: Schema, opened: Opened) -> None:
    from plan_bench import public

    backend = opened(shop)
    backend.prepare([public("p0", 'SELECT "country" AS c0 FROM "regions"', country="string")])
    os.kill(pid(backend), signal.SIGKILL)
    backend._worker._process.wait()
    assert backend.public_rows("SELECT count(*) FROM memory.main.p0", [INTEGER]) == [(3,)]


def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    write(tmp_path)
    script = f"""
        import os, signal, sys
        from dpquery.backends.duckdb import DuckDB
        from dpquery.schema.read import read
        backend = DuckDB(read({str(tmp_path / "shop.yaml")!r}))
        backend.owner_rows("SELECT 1")
        print(backend._worker.pid, backend._worker.folder, flush=True)
        if sys.argv[1] == "busy":
            import threading
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            backend.owner_rows({CROSS!r})
        os.kill(os.getpid(), signal.SIGKILL)
    """
    for how in ("idle", "busy"):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), how], capture_output=True, text=True, check=False)
        process, folder = done.stdout.split()
        assert gone(int(process)), how
        assert not Path(folder).exists()


def test_nothing_is_left_after_close(shop: Schema, opened: Opened) -> None:
    backend = opened(shop)
    process, folder = pid(backend), Path(backend._worker.folder)
    assert folder.stat().st_mode & 0o077 == 0
    backend.close()
    assert gone(process)
    assert not folder.exists()


def test_a_forked_child_neither_uses_nor_ends_its_parents_worker(shop: Schema, opened: Opened) -> None:
    backend = opened(shop)
    assert ask(backend, "SELECT 1") == 1
    assert backend._worker.alive
    backend._worker.owner += 1  # as it looks from a child
    assert not backend._worker.alive
    backend._worker.owner -= 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "COPY (SELECT 1) TO '/tmp/dpquery_never.csv'",
        "ATTACH '/tmp/dpquery_never.duckdb' AS other",
        "SET threads = 8",
        "SET memory_limit = '100GB'",
        "RESET enable_external_access",
        "PRAGMA threads = 8",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE data.main.x AS SELECT 1",
        "DROP TABLE data.main.orders",
        "SELECT 1; SELECT 2",
        "SELECT * FROM os",
    ],
)
def test_nothing_outside_is_within_reach(kept: DuckDB, sql: str) -> None:
    for do in ("rows", "execute"):
        with pytest.raises(Fault) as refused:
            kept._ask({"do": do, "sql": sql, "statements": [sql]})
        assert refused.value.code == "ENGINE_FAILED"
        assert "passwd" not in str(refused.value)
    assert not Path("/tmp/dpquery_never.csv").exists()


def test_only_a_single_select_is_run_or_bound(kept: DuckDB) -> None:
    for sql in (
        "CREATE TABLE memory.main.mine AS SELECT 1",
        "SET VARIABLE x = 1",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT 1; DROP TABLE data.main.users",
    ):
        with pytest.raises(Fault):
            kept.run(lowered(sql), (), 1)
        with pytest.raises(Fault):
            kept.bind(lowered(sql))


def test_binding_runs_nothing(tmp_path: Path, opened: Opened) -> None:
    backend = opened(write(tmp_path, "{timeout: 1, memory: 512MB, threads: 2}"))
    backend.bind(lowered(CROSS))
    with pytest.raises(Fault) as refused:
        backend.bind(lowered("SELECT nothing FROM nowhere"))
    assert refused.value.code == "ENGINE_FAILED"


def test_an_engines_message_never_leaves(kept: DuckDB, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Fault) as broken:
        ask(kept, "SELECT CAST(country AS BIGINT) FROM data.main.users")
    said = f"{broken.value} {broken.value.as_dict()} {broken.value.__cause__} {broken.value.__context__}"
    assert "US" not in said
    assert "DE" not in said
    assert capfd.readouterr() == ("", "")


def test_an_exact_result_hides_its_rows(kept: DuckDB) -> None:
    assert "300" not in repr(kept.run(lowered('SELECT count(*) FROM data.main."orders"'), (), 1))


def test_the_callers_environment_stays_out(monkeypatch: pytest.MonkeyPatch, shop: Schema, opened: Opened) -> None:
    monkeypatch.setenv("DPQUERY_SECRET", "secret")
    monkeypatch.setenv("PYTHONSTARTUP", "/nonexistent")
    backend = opened(shop)
    assert ask(backend, "SELECT 1") == 1
    environment = Path(f"/proc/{pid(backend)}/environ")
    if environment.exists() and os.access(environment, os.R_OK):
        assert b"secret" not in environment.read_bytes()


def test_no_foreign_exception_escapes_where_no_process_can_be_started(shop: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(Fault) as broken:
        DuckDB(shop)
    assert broken.value.code == "ENGINE_FAILED"


def test_an_interrupt_from_the_keyboard_ends_the_query_and_not_the_backend(tmp_path: Path) -> None:
    write(tmp_path)
    script = f"""
        import os, signal, threading
        from dpquery.backends.duckdb import DuckDB
        from dpquery.schema.read import read
        backend = DuckDB(read({str(tmp_path / "shop.yaml")!r}))
        backend.owner_rows("SELECT 1")
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            backend.owner_rows({CROSS!r})
        except KeyboardInterrupt:
            print("interrupted", backend.owner_rows("SELECT 2"))
        backend.close()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted [(2,)]\n"


def test_a_worker_outlives_the_thread_that_started_it(shop: Schema, opened: Opened) -> None:
    made: list[DuckDB] = []
    thread = threading.Thread(target=lambda: made.append(opened(shop)))
    thread.start()
    thread.join()
    first = pid(made[0])
    time.sleep(0.2)
    assert ask(made[0], "SELECT 1") == 1
    assert pid(made[0]) == first


def test_a_missing_database_is_said_at_once(shop: Schema) -> None:
    assert shop.database is not None
    shop.database.unlink()
    with pytest.raises(Fault) as missing:
        DuckDB(shop)
    assert missing.value.code == "DATA_MISSING"


def test_a11_a_write_ahead_log_beside_the_database_is_refused(shop: Schema) -> None:
    assert shop.database is not None
    Path(f"{shop.database}.wal").write_bytes(b"")
    with pytest.raises(Fault) as refused:
        DuckDB(shop)
    assert refused.value.code == "DATA_WAL"


def test_a_database_open_for_writing_elsewhere_is_locked(shop: Schema, opened: Opened) -> None:
    assert shop.database is not None
    writer = "import duckdb, sys; con = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", writer, str(shop.database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Fault) as locked:
            ask(opened(shop), "SELECT 1")
        assert locked.value.code == "DATA_LOCKED"
        other.communicate(b"")


def test_a_file_that_is_no_database_is_unreadable(shop: Schema, opened: Opened) -> None:
    assert shop.database is not None
    shop.database.write_bytes(b"no database" * 1000)
    with pytest.raises(Fault) as broken:
        ask(opened(shop), "SELECT 1")
    assert broken.value.code == "DATA_UNREADABLE"


def test_a_replaced_database_is_opened_anew(shop: Schema, opened: Opened) -> None:
    backend = opened(shop)
    assert ask(backend, "SELECT count(*) FROM data.main.users") == 30
    assert shop.database is not None
    shop.database.unlink()
    with duckdb.connect(str(shop.database)) as con:
        con.execute("CREATE TABLE users AS SELECT 1 AS uid, 'US' AS country")
    assert ask(backend, "SELECT count(*) FROM data.main.users") == 1


def test_a_worker_does_without_numpy(shop: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would start threads, and take a fifth of the time until the first answer."""
    given: list[dict[str, object]] = []
    monkeypatch.setattr(door, "Worker", given.append)
    DuckDB(shop)
    first = wire.packed({**given[0], "parent": os.getpid(), "folder": str(tmp_path / "spilt")})
    command = [sys.executable, "-X", "importtime", "-m", "dpquery.backends.worker"]
    done = subprocess.run(command, input=first, capture_output=True, check=True)
    imported = {line.rpartition(b"|")[2].strip() for line in done.stderr.splitlines()}
    assert wire.unpacked(io.BytesIO(done.stdout).read)[0] == {"ok": True}
    assert b"pyarrow" in imported
    assert not [name for name in imported if name.startswith(b"numpy.")]


def test_a_statement_is_bound_once_under_all_its_salts_until_what_it_reads_changes(
    shop: Schema, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plan_bench import public

    backend, asked = opened(shop), list[str]()
    ask_worker = process.Worker.ask
    monkeypatch.setattr(process.Worker, "ask", lambda self, request, timeout: asked.append(request["do"]) or ask_worker(self, request, timeout))

    def bound(salt: int, more: str = "") -> list[str]:
        asked.clear()
        text = f"SELECT count(c0){more} FROM memory.main.p0 WHERE hash(c0) > {salt}::UBIGINT"
        backend.bind(BoundedSQL(text, Enforced(GroupCap(1), (), None, keyed=False), salt=salt))
        return [*asked]

    backend.prepare([public("p0", 'SELECT "country" AS c0 FROM "regions"', country="string")])
    assert (bound(1), bound(2), bound(2, " + 1")) == (["bind"], [], ["bind"])
    backend.prepare([public("p0", "SELECT 1 AS c0", one="integer")])
    assert bound(2) == ["bind"]
    os.kill(pid(backend), signal.SIGKILL)
    backend._worker._process.wait()
    assert bound(2) == ["execute", "bind"]
    backend.prepare([])
    with pytest.raises(Fault):
        bound(2)


def test_a_text_that_was_read_before_reads_what_stands_there_now(shop: Schema, opened: Opened) -> None:
    from plan_bench import public

    backend, sql = opened(shop), "SELECT count(*) FROM memory.main.p0"
    backend.prepare([public("p0", 'SELECT "country" AS c0 FROM "regions"', country="string")])
    assert backend.public_rows(sql, [INTEGER]) == [(3,)]
    backend.prepare([public("p0", "SELECT 1 AS c0", one="integer")])
    assert (backend.public_rows(sql, [INTEGER]), ask(backend, sql)) == ([(1,)], 1)
