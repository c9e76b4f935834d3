"""Fuzzing by the clock: `make fuzz`, for FUZZ_SECONDS, in FUZZ_PROCESSES processes. What is found is made short and printed with its seed.

`python tests/fuzz/campaign.py GROUND SEED COUNT` repeats a run; `python tests/fuzz/campaign.py GROUND DIALECT STATEMENT` puts one statement.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from multiprocessing import get_context
from random import SystemRandom

from fuzzer import Finding, again, run, smaller
from grounds import NAMED, ground
from judged import judge

from dpquery.sql.dialect import DIALECTS

COUNT = 5000  # statements on one ground before the next


def campaign(seconds: float) -> int:
    """How many kinds of findings there were."""
    ends, found = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        name, seed = SystemRandom().choice(sorted(NAMED)), f"{SystemRandom().getrandbits(64):x}"
        print(f"{name} {seed} {COUNT}", flush=True)
        found += repeat(name, seed, COUNT, ends)
    return found


def repeat(name: str, seed: str, count: int, ends: float = float("inf")) -> int:
    """The same for one run."""
    kinds: dict[str, Finding] = {}
    for one in run(ground(name), seed, count, lambda: time.monotonic() < ends):
        if isinstance(one, Counter):
            print(f"{name} {seed}: {', '.join(f'{end} {times}' for end, times in one.most_common(12))}", flush=True)
        elif one.kind not in kinds:
            kinds[one.kind] = one
            print(f"FOUND {name} {seed} {one.dialect}: {one.error}\n    {one.text[:4000]!r}", flush=True)
    for one in kinds.values():
        if one.dialect:
            with judge(ground(name)) as judged:
                if again(judged, one, one.text):
                    print(f"SHORT {one.kind}\n    python tests/fuzz/campaign.py {name} {one.dialect} {smaller(judged, one)!r}", flush=True)
    return len(kinds)


def put(name: str, dialect: str, text: str) -> int:
    """One statement, its end printed; an error is not caught."""
    with judge(ground(name)) as judged:
        print(judged.outcome(text, dialect, run=True)[0])
        judged.check_untouched()
    return 0


def main(arguments: list[str]) -> int:
    """The exit status: 1 where something was found."""
    match arguments:
        case []:
            processes, seconds = int(os.environ.get("FUZZ_PROCESSES", "2")), float(os.environ.get("FUZZ_SECONDS", "3600"))
            with get_context("spawn").Pool(processes) as pool:
                return int(any(pool.map(campaign, [seconds] * processes)))
        case [name, dialect, text] if dialect in DIALECTS:
            return put(name, dialect, text)
        case [name, seed, count]:
            return int(repeat(name, seed, int(count)) > 0)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
