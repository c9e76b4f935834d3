"""The command line."""

from __future__ import annotations

import sys


class _Without:
    """Imports fail for a module, as if it were not installed."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == self.module:
            raise ModuleNotFoundError(f"the command line does without {name}", name=name)


def main() -> None:
    """Runs one command and ends the process with its exit status. An interrupt while it starts or ends is told as one, without a traceback."""
    sys.meta_path.insert(0, _Without("pandas"))  # pyarrow imports it to make an array of a list: a fifth of a query's time, for no command
    try:
        from dpquery.cli.main import run

        status = run()
    except KeyboardInterrupt:
        sys.stderr.write("Error: INTERRUPTED: interrupted; `dpquery budget` shows whether anything was charged\n")
        status = 5
    raise SystemExit(status)
