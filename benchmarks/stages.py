"""Where the time of a warm question goes: python benchmarks/stages.py [--rows 1000] [--runs 60]

Median CPU milliseconds of each step of the session, without those in it that have a line of their own; last what the engine's process takes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from suite import data
from suite.workloads import told

from dpquery.backends import process
from dpquery.engine import cost, create_ledger, open_session, recall, receipt, session
from dpquery.ledger import Ledger
from dpquery.release import answer, noise, post

SQL = "SELECT country, count(*) AS n, avg(age) AS m FROM users GROUP BY country"
STEPS: dict[str, tuple[Any, ...]] = {
    "plainly facts settled bill lower price": (session,),
    "_admitted _files": (session.Session,),
    "check run": (post,),
    "record receipt": (receipt,),
    "asked again kept": (recall,),
    "beforehand": (cost,),
    "charge settle balance": (Ledger,),
    "add": (noise,),
    "finished intervals": (answer,),
    "ask": (process.Worker,),
}
spent: Counter[str] = Counter()
inner: list[int] = []


def timed(owner: Any, name: str) -> None:
    """From now on the step's own CPU time is added up under its name."""
    run: Callable[..., Any] = getattr(owner, name)
    label = f"{owner.__name__.rpartition('.')[2]}.{name}"

    def step(*args: Any, **named: Any) -> Any:
        inner.append(0)
        start = time.process_time_ns()
        try:
            return run(*args, **named)
        finally:
            taken = time.process_time_ns() - start
            spent[label] += taken - inner.pop()
            if inner:
                inner[-1] += taken

    setattr(owner, name, step)


def of(pid: int) -> int:
    """CPU nanoseconds of a process (Linux)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1000)
    parser.add_argument("--runs", type=int, default=60)
    args = parser.parse_args()
    sys.path.append(str(Path(__file__).parent / "adapters"))
    from dpquery_itself import schema

    for names, (owner,) in STEPS.items():
        for name in names.split():
            timed(owner, name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data.make(folder, args.rows)
        (folder / "events.yaml").write_text(schema(told(args.rows, 2)))
        create_ledger(folder / "events.yaml")
        con = open_session(folder / "events.yaml")
        found: list[Counter[str]] = []
        for _ in range(args.runs + 5):
            spent.clear()
            backend: Any = con.backend
            own, engine = time.process_time_ns(), of(backend._worker.pid)
            con.query(SQL, fresh=True)
            spent["all of it"] = (own := time.process_time_ns() - own) + (engine := of(backend._worker.pid) - engine)
            spent["the engine's process"], spent["this process"] = engine, own
            found.append(Counter(spent))
        con.close()
    for name in sorted({name for one in found for name in one}, key=lambda name: median(one[name] for one in found[5:])):
        print(f"{name:30} {median(one[name] for one in found[5:]) / 1e6:8.2f} ms")


if __name__ == "__main__":
    main()
