"""Holds the mutants that no test kills against the lists of those that may live: `python tests/mutation/survivors.py [privacy|accounting]`, after
run.py.

The .toml files beside it say of each why no test can or need tell it from the product. A mutant is named by its function and by what the change makes
of which line, so that the list outlives other changes of the file. Ends with 1 where a survivor is not listed, a listed one is killed or gone, or
some mutant was not tried.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

LISTS = sorted(Path(__file__).parent.glob("*.toml"))
DEAD = frozenset({"killed", "timeout", "caught by type check", "segfault"})
UNTRIED = "not checked"


def named(mutant: str, path: Path) -> str:
    """A mutant as the list writes it."""
    lines = get_diff_for_mutant(mutant, path=path).splitlines()
    was = " ".join(line[1:].strip() for line in lines if line.startswith("-") and not line.startswith("---"))
    now = " ".join(line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++"))
    function = mutant.rpartition("__mutmut_")[0].removeprefix("dpquery.").replace(".x_", ".").replace("xǁ", "").replace("ǁ", ".")
    return f"{function}: {was} -> {now}"


def tried() -> Iterator[tuple[str, Path, str]]:
    """Each mutant, its file and what became of it."""
    for meta in sorted(Path("mutants").rglob("*.py.meta")):
        path = meta.relative_to("mutants").with_suffix("")
        data = SourceFileMutationData(path=path)
        data.load()
        yield from ((mutant, path, status_by_exit_code[code]) for mutant, code in data.exit_code_by_key.items())


def listed() -> dict[str, str]:
    """Why each listed mutant may live."""
    groups = [group for path in LISTS for group in tomllib.loads(path.read_text())["group"]]
    return {mutant: group["why"] for group in groups for mutant in group["mutants"]}


def main(only: str = "") -> int:
    """Prints what differs from the list; `only` of the functions that begin so."""
    found = [one for one in tried() if one[0].removeprefix("dpquery.").startswith(only)]
    count = Counter(status for _, _, status in found)
    alive = {named(mutant, path) for mutant, path, status in found if status not in DEAD | {UNTRIED}}
    reasons = {mutant: why for mutant, why in listed().items() if mutant.startswith(only)}
    fresh, gone = sorted(alive - reasons.keys()), sorted(reasons.keys() - alive)
    print(f"{len(found)} mutants: " + ", ".join(f"{n} {status}" for status, n in count.most_common()))
    print(f"{len(alive & reasons.keys())} live with a reason")
    for title, mutants in (("live without a reason", fresh), ("are listed but dead, or no longer made", gone)):
        if mutants:
            print(f"\n{len(mutants)} {title}:", *mutants, sep="\n  ")
    return 1 if fresh or gone or count[UNTRIED] or not found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
