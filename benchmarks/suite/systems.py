"""The systems as processes: each in its own environment, asked one at a time over pipes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
PLACE = HERE.parent / "build" / "bench"  # environments and data; .gitignore names build/
QUIET = {"OMP_NUM_THREADS", "POLARS_MAX_THREADS"}


@dataclass(frozen=True, slots=True)
class System:
    """`peer` names a file of benchmarks/peers/ with pinned requirements; without it the system runs in the environment of the suite."""

    name: str
    title: str
    adapter: str
    peer: str | None = None
    floor: bool = False  # is asked for the floor


SYSTEMS = (
    System("dpquery", "dpquery", "dpquery_itself.py"),
    System("duckdb", "DuckDB, no privacy", "plain_duckdb.py"),
    System("floor", "floor F, no privacy", "plain_duckdb.py", floor=True),
    System("smartnoise", "SmartNoise SQL", "peer_smartnoise.py", "smartnoise"),
    System("qrlew", "Qrlew", "peer_qrlew.py", "qrlew"),
    System("opendp", "OpenDP with Polars", "peer_opendp.py", "opendp"),
    System("pipelinedp", "PipelineDP", "peer_pipelinedp.py", "pipelinedp"),
    System("tumult", "Tumult Analytics", "peer_tumult.py", "tumult"),
)


def installed(system: System) -> str | None:
    """The system's Python, in an environment made now if need be; None, after a message, where that fails."""
    if system.peer is None:
        return sys.executable
    home = PLACE / "peers" / system.peer
    wanted = HERE / "peers" / f"{system.peer}.txt"
    python, mark = home / "bin" / "python", home / ".ready"
    if mark.exists() and mark.read_text() == wanted.read_text():
        return str(python)
    print(f"installing {system.title} into {home}", file=sys.stderr, flush=True)
    log = PLACE / "peers" / f"{system.peer}.log"
    home.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        for command in ([sys.executable, "-m", "venv", "--clear", str(home)], [str(python), "-m", "pip", "install", "-q", "-r", str(wanted)]):
            if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
                print(f"{system.title} does not install here, and is left out: {log}", file=sys.stderr, flush=True)
                return None
    mark.write_text(wanted.read_text())
    return str(python)


class Broken(Exception):
    """The process has ended, or took too long, and was ended."""


@dataclass(slots=True)
class Running:
    """A system's process, started when it is first asked, and again after it broke."""

    system: System
    python: str
    folder: Path
    told: Mapping[str, Any]
    patience: float
    version: str = ""
    _process: subprocess.Popen[bytes] | None = None
    _left: bytearray = field(default_factory=bytearray)

    def ask(self, workload: str, sql: str | None, keys: int) -> dict[str, Any]:
        """Its reply: `rows`, `cpu`, `wall`, `peak`, or why it `cannot`."""
        try:
            if self._process is None:
                self._start()
            return self._exchange({"workload": workload, "keys": keys, "sql": sql}, self.patience)
        except Broken as why:
            self.end()
            return {"cannot": str(why)}

    def _start(self) -> None:
        log = (PLACE / f"{self.system.name}.log").open("ab")
        threads = str(self.told["threads"])
        environment = {**os.environ, **dict.fromkeys(QUIET, threads), "PYTHONUNBUFFERED": "1"}
        command = [self.python, str(HERE / "adapters" / self.system.adapter)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True)
        self._left.clear()
        reply = self._exchange({"folder": str(self.folder), "told": dict(self.told)}, max(self.patience, 600.0))
        if "cannot" in reply:
            raise Broken(f"does not start: {reply['cannot']}")
        self.version = reply["version"]

    def _exchange(self, message: Mapping[str, Any], patience: float) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise Broken("its process ended") from None
        while b"\n" not in self._left:
            ready, _, _ = select.select([process.stdout], [], [], patience)
            if not ready:
                raise Broken(f"takes longer than {patience:.0f} s")
            block = os.read(process.stdout.fileno(), 1 << 20)
            if not block:
                raise Broken("its process ended (out of memory?)")
            self._left += block
        line, _, rest = bytes(self._left).partition(b"\n")
        self._left[:] = rest
        reply: dict[str, Any] = json.loads(line)
        return reply

    def end(self) -> None:
        """The process, and those that it started, end."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
