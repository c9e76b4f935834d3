"""The report of `make audit`, from what the tests recorded: `python tests/audit/report.py RESULTS.xml...` prints it."""

from __future__ import annotations

import json
import platform
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

TABLES_OF_MUTANTS = {"test_mutants": "neighbours of plans", "test_statement_mutants": "statements"}  # those that tests elsewhere make themselves

TESTERS = ("likelihood", "histogram", "components")
ON_AUDITS = """\
Exact sums of two neighbouring data sets by the engine, in which one adversarial unit differs, and noise by the product. Each claim is held against
a lower bound on epsilon at its delta, from events that were chosen on one half of the releases and counted on the other, by Clopper-Pearson; all
bounds hold at once with probability 1 - 10^-6. The tester by likelihood knows the noise and the sums; those by histogram, of the columns and of their
principal components, know neither. `: alone` is the pair in which the unit is alone in groups: what is at stake there is delta. `sees` is the power:
the least change that the same audit notices, of those tried. Of a choice (MODE, quantiles by rank) the place that is shown is all that there is to
see, and the noise is that of the scores: `of the scale` is the multiple of theirs."""
ON_MUTANTS = """\
Each is the product with a few words of its source changed, in a process of its own, and must fail the named test of the named layer; the product as
it is passes them all. Seconds are from the start of the process to the first test that fails. An answer that
outlives its data is tried as an engine that answers from an earlier version, and as a session that does not look at the data again."""
ON_OTHERS = """\
Wrong rules and wrong texts, put in by tests of the neighbour machine and of random statements themselves; each is noticed by the checks that the
right ones pass."""


@dataclass(frozen=True)
class Case:
    """A test that was run."""

    module: str
    name: str
    seconds: float
    passed: bool
    skipped: bool
    recorded: dict[str, str]


def cases(files: Sequence[Path]) -> list[Case]:
    """All tests of the result files that are there."""
    return [_case(node) for file in files if file.exists() for node in ElementTree.parse(file).iter("testcase")]


def _case(node: ElementTree.Element) -> Case:
    failed = any(node.find(kind) is not None for kind in ("failure", "error"))
    recorded = {p.get("name", ""): p.get("value", "") for p in node.iter("property")}
    module = node.get("classname", "").rpartition(".")[2]
    return Case(module, node.get("name", ""), float(node.get("time", 0)), not failed, node.find("skipped") is not None, recorded)


def report(found: Sequence[Case], when: datetime) -> str:
    """The whole page."""
    parts = [_head(found, when), _failures(found), _audits(found), _mutants(found), _others(found), _pairs(found), _samplers(found), _rest(found)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(found: Sequence[Case], when: datetime) -> str:
    failed = sum(not one.passed for one in found)
    verdict = f"**{failed} of {len(found)} tests failed.**" if failed else f"All {len(found)} tests passed."
    cpu = sum(one.seconds for one in found) / 60
    return (
        f"# Audit report\n\nWritten by `make audit` on {when:%Y-%m-%d} with dpquery {version('dpquery')}, Python {platform.python_version()} on "
        f"{platform.system()} ({platform.machine()}). {verdict} Tests took {cpu:.0f} minutes in all, in two processes half of that.\n\n"
        "To check it, run `make audit`: it writes this page to `build/audit.md`. What each part shows and cannot show stands above its table."
    )


def _failures(found: Sequence[Case]) -> str:
    return "\n".join(f"- FAILED: {one.module}::{one.name}" for one in found if not one.passed)


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


# ---- audits --------------------------------------------------------------------------------------------------------------------------


def _audits(found: Sequence[Case]) -> str:
    rows = [json.loads(one.recorded["audit"]) for one in found if "audit" in one.recorded]
    lines = [line for row in rows for line in _lines(row)]
    head = ["shape", "adjacency", "claim", "epsilon", "delta", "by likelihood", "by histogram", "by components", "releases", "sees", "seconds"]
    refuted = sum(_bound(claim.get(how), claim).startswith("**") for row in rows for claim in row["claims"] for how in TESTERS)
    return f"## End to end: {len(rows)} audits\n\n{ON_AUDITS} Claims refuted: {refuted}.\n\n" + _table(head, lines)


def _lines(row: dict[str, Any]) -> Iterator[list[str]]:
    for i, claim in enumerate(row["claims"]):
        first = i == 0
        bounds = [_bound(claim.get(how), claim) for how in TESTERS]
        said = [f"{claim['epsilon']:.3f}", f"{claim['delta']:.2g}", *bounds]
        end = [f"{row['releases']:,}", row["power"] or "**nothing**", f"{row['seconds']:g}"] if first else ["", "", ""]
        yield [row["shape"] if first else "", row["adjacency"] if first else "", claim["name"], *said, *end]


def _bound(found: list[float] | None, claim: dict[str, Any]) -> str:
    if found is None:
        return "-"
    epsilon, delta = found
    shown = "none" if epsilon <= 0 else f"{epsilon:.3f}"
    if delta > 0:
        shown += f", delta {delta:.2g}"
    return f"**{shown}**" if epsilon > claim["epsilon"] or delta > claim["delta"] else shown


# ---- mutants -------------------------------------------------------------------------------------------------------------------------


def _mutants(found: Sequence[Case]) -> str:
    rows = [json.loads(one.recorded["mutant"]) for one in found if "mutant" in one.recorded]
    lines = [
        [
            row["mutant"],
            ", ".join(f"`{name.removeprefix('dpquery.')}`" for name in row["changed"]),
            row["layer"],
            f"`{row['test'].removeprefix('tests/')}`",
            f"{row['seconds']:g}" if row["noticed"] else "**survives**",
        ]
        for row in rows
    ]
    title = f"## Mutants of the product: {sum(row['noticed'] for row in rows)} of {len(rows)} noticed"
    return f"{title}\n\n{ON_MUTANTS}\n\n" + _table(["mutant", "function", "layer", "test", "seconds"], lines)


def _others(found: Sequence[Case]) -> str:
    lines = [
        [one.name.partition("[")[2].rstrip("]") or one.name, TABLES_OF_MUTANTS[one.module], f"`{one.module}`", _noticed(one)]
        for one in found
        if one.module in TABLES_OF_MUTANTS and one.name.endswith("]")
    ]
    head = ["mutant", "layer", "test", "seconds"]
    return f"## Mutants of plans and statements: {len(lines)}\n\n{ON_OTHERS}\n\n" + _table(head, lines) if lines else ""


def _noticed(one: Case) -> str:
    return f"{one.seconds:.1f}" if one.passed else "**survives**"


# ---- the rest ------------------------------------------------------------------------------------------------------------------------


def _pairs(found: Sequence[Case]) -> str:
    counted: dict[str, list[Case]] = defaultdict(list)
    for one in found:
        if "pairs" in one.recorded:
            counted[one.module].append(one)
    lines = [
        [f"`{module}`", f"{sum(int(one.recorded['pairs']) for one in ones):,}", f"{sum(one.seconds for one in ones):.0f}"]
        for module, ones in sorted(counted.items())
    ]
    text = (
        "Random plans over random data: a unit removed or replaced moves the exact sums by no more than is claimed, and loses no more than the price."
    )
    return f"## Neighbours\n\n{text}\n\n" + _table(["test", "pairs", "seconds"], lines) if lines else ""


def _samplers(found: Sequence[Case]) -> str:
    by_test: dict[str, list[Case]] = defaultdict(list)
    for one in found:
        if one.module.startswith(("test_sampler", "test_bits", "test_tails", "test_threshold")):
            by_test[f"{one.module}::{one.name.partition('[')[0]}"].append(one)
    lines = [[f"`{name}`", str(len(ones)), _outcome(ones), f"{sum(one.seconds for one in ones):.1f}"] for name, ones in by_test.items()]
    return "## Samplers and their laws\n\n" + _table(["test", "cases", "outcome", "seconds"], lines) if lines else ""


def _outcome(ones: Sequence[Case]) -> str:
    if not all(one.passed for one in ones):
        return "**failed**"
    return "skipped" if all(one.skipped for one in ones) else "passed"


def _rest(found: Sequence[Case]) -> str:
    known = {"audit", "mutant", "pairs"}
    lines = [
        [f"`{one.module}::{one.name}`", ", ".join(f"{k} {v}" for k, v in one.recorded.items()), _outcome([one]), f"{one.seconds:.1f}"]
        for one in found
        if one.recorded and not known & one.recorded.keys()
    ]
    return "## Measured besides\n\n" + _table(["test", "measured", "outcome", "seconds"], lines) if lines else ""


if __name__ == "__main__":
    print(report(cases([Path(name) for name in sys.argv[1:]]), datetime.now(UTC)), end="")
