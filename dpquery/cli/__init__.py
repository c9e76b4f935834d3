"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs one command and ends the process with its exit status. An interrupt while it starts or ends is told as one, without a traceback."""
    try:
        from dpquery.cli.main import run

        status = run()
    except KeyboardInterrupt:
        sys.stderr.write("Error: INTERRUPTED: interrupted; `dpquery budget` shows whether anything was charged\n")
        status = 5
    raise SystemExit(status)
