"""The command line."""

from __future__ import annotations


def main() -> None:
    """Runs one command and ends the process with its exit status."""
    from dpquery.cli.main import run

    raise SystemExit(run())
