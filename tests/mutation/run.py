"""Makes the mutants of the argument and of the accounting, and tries each: `python tests/mutation/run.py [--again] [--quick] [PATTERN ..]`.

mutmut makes the mutants and keeps what became of each; survivors.py holds that against the lists. Trying them is done here, since mutmut starts
pytest anew for each, which takes longer than the tests do. Here one pytest collects once and forks for each mutant. A fork runs the tests of the
mutant's room that reach its function until one fails: first those that found others of that function, then those of its module, then the quickest.
Once a mutant has outlived the quick tests it is looked up, and if it is listed nothing more is spent on it: most of the time would go to those that
are known to live.

A mutant of code that runs before any test does, while they are collected, cannot show in a fork. Where forks did not notice one, a pytest of its own
tries it from the start.

A later run tries the mutants of functions that changed, and trusts what it knows of the rest: after a change of tests `--again` tries those that
lived, and without mutants/ all are tried. A pattern names mutants: 'dpquery.privacy.rows.*'.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from forks import Ended, Job, forked, limit
from mutmut.__main__ import create_mutants
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths
from survivors import listed, named

HERE = Path.cwd()
MADE = HERE / "mutants"
QUICK = 2.0  # seconds of tests that a listed mutant must outlive
START = 60.0  # seconds in which pytest has started on any machine
LIVED, KILLED, NO_TESTS, TIMEOUT = 0, 1, 33, 36  # as mutmut writes them


@dataclass(frozen=True, slots=True)
class Test:
    item: pytest.Item
    seconds: float  # of processor time
    reaches: frozenset[str]  # functions

    @property
    def slowness(self) -> tuple[bool, float]:
        """Made-up examples come last: they search."""
        return hypothesis.is_hypothesis_test(getattr(self.item, "obj", None)), self.seconds


class Trial:
    """The pytest that collects, and forks instead of running what it collected."""

    def __init__(self, wanted: Sequence[str], again: bool, quick: bool, at_once: int) -> None:
        self.wanted, self.again, self.quick, self.at_once = wanted or ["*"], again, quick, at_once
        self.listed = listed().keys()
        self.files = {mutant: data for data in _files() for mutant in data.exit_code_by_key}
        self.early: frozenset[str] = frozenset()  # functions that ran while tests were collected
        self.tests: list[Test] = []
        self.found: dict[str, Counter[str]] = defaultdict(Counter)  # how many mutants of each function each test found
        self.broken: list[str] = []
        self.seconds = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measures each test, then tries each mutant."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self.early = frozenset(state()._stats)
        set_mutant_under_test("")
        gc.freeze()  # what is there already is no garbage in any fork, and looking it over would copy it
        mutants = [mutant for mutant in self.files if self._is_wanted(mutant)]
        rooms = tuple({self._room(mutant) for mutant in mutants})
        self._measure({item.nodeid: item for item in session.items if item.nodeid.startswith(rooms)})
        print(f"{len(self.tests)} tests measured in {self.seconds:.0f} s of processor time, {len(mutants)} mutants to try", flush=True)
        if not self.broken:
            self._try((mutant, self._in_fork(mutant)) for mutant in mutants)
            self._try((mutant, self._from_start(mutant)) for mutant in mutants if not self.quick and self._is_blind(mutant))
        return True

    def _measure(self, items: dict[str, pytest.Item]) -> None:
        """Runs each test alone: how long it takes, and which functions it reaches; unless that is known of the same text."""
        kept = MADE / "reach.json"
        known = json.loads(kept.read_text()) if kept.exists() else {}
        texts = {path: _digest(path) for path in {item.path for item in items.values()}}
        now = {name: known[name] for name, item in items.items() if known.get(name, [""])[0] == texts[item.path]}
        for one in forked(((name, _reach(item)) for name, item in items.items() if name not in now), self.at_once):
            self.seconds += one.seconds
            if one.code:
                self.broken.append(f"{one.name}: {one.said or one.code}")
            else:
                now[one.name] = [texts[items[one.name].path], one.seconds, json.loads(one.said)]
        kept.write_text(json.dumps(known | now))
        self.tests = [Test(items[name], seconds, frozenset(reached)) for name, (_, seconds, reached) in now.items()]

    def _try(self, jobs: Iterable[tuple[str, Job]]) -> None:
        for count, one in enumerate(forked(jobs, self.at_once), 1):
            data = self.files[one.name]
            data.exit_code_by_key[one.name] = _code(one)
            data.durations_by_key[one.name] = one.seconds
            data.save()
            self.seconds += one.seconds
            if one.said:
                self.found[_function(one.name)][one.said] += 1
            if count % 100 == 0:
                print(f"{count} tried, {self.seconds:.0f} s: {one.name}", flush=True)

    def _is_wanted(self, mutant: str) -> bool:
        code = self.files[mutant].exit_code_by_key[mutant]
        open_ = code is None or (self.again and code in (LIVED, NO_TESTS))
        return open_ and any(fnmatch.fnmatch(mutant, pattern) for pattern in self.wanted)

    def _is_blind(self, mutant: str) -> bool:
        alive = self.files[mutant].exit_code_by_key[mutant] in (LIVED, NO_TESTS)
        return alive and _function(mutant) in self.early and not self._is_listed(mutant)

    def _is_listed(self, mutant: str) -> bool:
        with contextlib.chdir(HERE):
            return named(mutant, Path(self.files[mutant].path)) in self.listed

    def _room(self, mutant: str) -> str:
        """Where the mutant's tests are: tests/privacy/ for dpquery/privacy."""
        return "/".join(["tests", *Path(self.files[mutant].path).parts[1:2], ""])

    def _tests_of(self, mutant: str) -> list[Test]:
        return [test for test in self.tests if test.item.nodeid.startswith(self._room(mutant))]

    def _in_fork(self, mutant: str) -> Job:
        function = _function(mutant)
        found = self.found[function]
        tests = [test for test in self._tests_of(mutant) if function in test.reaches]
        own = f"test_{Path(self.files[mutant].path).stem}"
        tests.sort(key=lambda test: (-found[test.item.nodeid], test.item.path.stem != own, test.slowness))

        def job(folder: Path) -> int:
            set_mutant_under_test(mutant)
            quick = QUICK
            for test, after in zip_longest(tests, tests[1:]):
                if 0 <= quick < test.seconds and (self.quick or self._is_listed(mutant)):
                    return LIVED
                quick -= test.seconds
                limit(config().timeout_constant + config().timeout_multiplier * test.seconds)
                if _failures(test.item, after.item if after else None):
                    (folder / "said").write_text(test.item.nodeid)
                    return KILLED
            return LIVED if tests else NO_TESTS

        return job

    def _from_start(self, mutant: str) -> Job:
        tests = self._tests_of(mutant)
        command = [sys.executable, "-m", "pytest", "-q", *config().pytest_add_cli_args, *(test.item.nodeid for test in tests)]

        def job(_: Path) -> int:
            limit(START + config().timeout_multiplier * sum(test.seconds for test in tests))
            code = subprocess.run(command, env=os.environ | {"MUTANT_UNDER_TEST": mutant}, check=False).returncode
            return TIMEOUT if code < 0 else min(code, KILLED)

        return job


@cache
def _shared(room: Path) -> bytes:
    """All that may change what a test reaches, but its own file: the product, and what the room's tests share."""
    tests = [path for path in [*room.parent.glob("*.py"), *room.glob("*.py")] if not path.name.startswith("test_")]
    product = [path for folder in config().source_paths for path in (MADE / folder).rglob("*.py")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(tests) + sorted(product))).digest()


def _digest(test: Path) -> str:
    return hashlib.sha256(_shared(test.parent) + test.read_bytes()).hexdigest()


def _reach(item: pytest.Item) -> Job:
    def job(folder: Path) -> int:
        set_mutant_under_test("stats")
        state()._stats.clear()
        failures = _failures(item, None)
        (folder / "said").write_text("\n".join(failures) or json.dumps(sorted(state()._stats)))
        return len(failures)

    return job


def _failures(item: pytest.Item, after: pytest.Item | None) -> list[str]:
    try:
        return [report.longreprtext or report.when for report in runtestprotocol(item, log=False, nextitem=after) if report.failed]
    except BaseException as stop:  # what stops pytest itself: a mutant may exit, or break what pytest tells of it
        return [repr(stop)]


def _code(one: Ended) -> int:
    """What mutmut would write."""
    return TIMEOUT if one.code == -signal.SIGALRM else one.code


def _function(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


def _files() -> Iterator[SourceFileMutationData]:
    for meta in sorted(Path("mutants").rglob("*.py.meta")):
        data = SourceFileMutationData(path=meta.relative_to("mutants").with_suffix(""))
        data.load()
        data.meta_path = data.meta_path.absolute()
        yield data


def generate() -> None:
    """Makes mutants/: a copy of the repository in which each function can be told to be one of its mutants."""
    MADE.mkdir(exist_ok=True)
    for gone in [path for path in MADE.rglob("*") if path.suffix in (".py", ".meta", ".spans") and not _source(path).exists()]:
        gone.unlink()
    shutil.rmtree(MADE / "tests", ignore_errors=True)
    set_mutant_under_test("mutant_generation")
    with contextlib.redirect_stdout(None):
        copy_src_dir()
        copy_also_copy_files()
        create_mutants(1)


def _source(made: Path) -> Path:
    path = HERE / made.relative_to(MADE)
    return path if path.suffix == ".py" else path.with_suffix("")


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 1 where a test fails without any change."""
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--again", action="store_true", help="try those that lived, too")
    parser.add_argument("--quick", action="store_true", help="hold each against the quick tests only: for a first look")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args(arguments)
    generate()
    trial = Trial(asked.patterns, asked.again, asked.quick, asked.processes)
    setup_source_paths()
    os.environ["PYTHONPATH"] = str(MADE)
    os.chdir(MADE)
    hypothesis.settings.register_profile("mutants", derandomize=True, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
    hypothesis.settings.load_profile("mutants")
    set_mutant_under_test("stats")
    start = time.monotonic()
    code = pytest.main(
        ["--rootdir=.", "-q", "-s", "--tb=native", *config().pytest_add_cli_args, *config().pytest_add_cli_args_test_selection], plugins=[trial]
    )
    print(f"{trial.seconds:.0f} s of processor time, {time.monotonic() - start:.0f} s", *trial.broken, sep="\n")
    return 1 if code or trial.broken else 0


if __name__ == "__main__":
    sys.exit(main())
