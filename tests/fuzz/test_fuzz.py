"""Fuzzing by count: the same statements in each run. `make fuzz` goes on from random seeds, by the clock."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzzer import Finding, run
from grounds import ground
from judged import judge


def findings(name: str, seed: str, count: int) -> tuple[list[Finding], Counter[str]]:
    found, ends = list[Finding](), Counter[str]()
    for one in run(ground(name), seed, count):
        if isinstance(one, Counter):
            ends = one
        else:
            found.append(one)
    return found, ends


@pytest.mark.parametrize(("grounds", "count"), [(("lab", "files"), 1000), (("world-1", "world-3"), 800)], ids=str)
def test_fuzzed_statements(grounds: tuple[str, ...], count: int) -> None:
    """Refused or answered; one SELECT over known tables and functions; nothing else touched. Enough of them get far."""
    for name in grounds:
        found, ends = findings(name, "fixed", count)
        assert not found, "\n".join(f"{one.kind} {one.dialect}: {one.error}\n    {one.text!r}" for one in found)
        assert ends["accepted"] + ends["answered"] > 0.08 * sum(ends.values()), ends
        assert len(ends) > 30, ends


def test_trees_that_cannot_be_written_are_refused() -> None:
    """What sqlglot reads and cannot write, or reads without its arguments."""
    with judge(ground("lab")) as judged:
        for dialect, text in (
            ("snowflake", "SELECT (), (date_part(*)) FROM people"),
            ("snowflake", "SELECT MAX(DISTINCT, epsilon => 1) FROM people"),
            ("duckdb", "SELECT count(*) FROM people WHERE uid IN (1 EXCEPT SELECT)"),
        ):
            assert judged.outcome(text, dialect, run=False)[0] == "SYNTAX"
