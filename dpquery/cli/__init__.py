"""The command line."""

from __future__ import annotations

import sys

from dpquery.without import without


def main() -> None:
    """Runs one command and ends the process with its exit status. An interrupt while it starts or ends is told as one, without a traceback."""
    without("pandas")  # pyarrow imports it to make an array of a list: a fifth of a query's time, for no command
    try:
        from dpquery.cli.main import run

        status = run()
    except KeyboardInterrupt:
        sys.stderr.write("Error: INTERRUPTED: interrupted; `dpquery budget` shows whether anything was charged\n")
        status = 5
    raise SystemExit(status)
