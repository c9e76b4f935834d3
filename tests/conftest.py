from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest

if threading.current_thread() is threading.main_thread():
    # A shell without job control starts its background commands with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

CASES = Path(__file__).parent / "cases"
DURABLE = {"test_crash", "test_ledger_store", "test_ledger_group", "test_ledger_processes", "test_robust_processes", "test_robust_ledger"}
MEMORY, DISK = Path("/dev/shm"), Path("/var/tmp")


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder for the test: in memory where `make test` puts all of them, but on a disk for tests of what has to last."""
    if request.path.stem not in DURABLE or MEMORY not in tmp_path.parents:
        yield tmp_path
        return
    with TemporaryDirectory(dir=DISK, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The schema file of a case fixture (base, wide, silent), with its DuckDB file and a fresh ledger beside it; made once per process."""
    from dpquery.engine import create_ledger

    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            with duckdb.connect(str(folder / f"{name}.duckdb")) as con:
                con.execute((CASES / f"{name}.sql").read_text())
            schema = folder / f"{name}.yaml"
            shutil.copy(CASES / f"{name}.yaml", schema)
            create_ledger(schema)
            made[name] = schema
        return made[name]

    return make


@pytest.fixture(scope="session")
def session(dataset: Callable[[str], Path]) -> Iterator[Callable[[str], object]]:
    """An open session on a case fixture, kept for the whole process."""
    from dpquery.engine import open_session
    from dpquery.engine.session import Session

    opened: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in opened:
            opened[name] = open_session(dataset(name))
        return opened[name]

    yield get
    for one in opened.values():
        one.close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Makes the sample shop in a folder of its own, with an unspent ledger; its schema file. It is made once per process, and copied."""
    from dpquery.cli import demo, sample
    from dpquery.engine import create_ledger

    first = tmp_path_factory.mktemp("first") / "shop"

    def make(folder: Path) -> Path:
        if not first.exists():
            first.mkdir()
            sample.write(first / "shop.duckdb")
            create_ledger(shutil.copy(demo.schema_file(), first))
        return Path(shutil.copytree(first, folder)) / demo.schema_file().name

    return make
