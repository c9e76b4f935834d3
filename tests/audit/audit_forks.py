"""A process that has read the product and is copied for each mutant: reading it takes longer than most mutants live.

`python audit_forks.py` reads lines of JSON, [mutant, test], and answers each with [status, output] of the test as a copy of it ran it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import NoReturn

import audit_mutants
import hypothesis
import pytest

READ = (audit_mutants, hypothesis)  # before any copy is made


def main() -> None:
    for asked in sys.stdin:
        name, test = json.loads(asked)
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if not child:
                _copy(name, test, said.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps([status, said.read().decode(errors="replace")]), flush=True)


def _copy(name: str, test: str, said: int) -> NoReturn:
    status = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ["DPQUERY_MUTANT"] = name
        status = int(pytest.main(["-n", "0", "-x", "-s", "-p", "audit_plugin", test]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
