"""Statements made of statements, kept where they show something new. A run is a function of its seed and of how many statements it makes."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from grounds import Ground, foreign
from judged import Hang, Judge, judge
from mutants import SNIPPETS, adapted, mutant, words
from ruamel.yaml import YAML

from dpquery.plan.functions import NAMES
from dpquery.sql.dialect import DIALECTS

KEPT = 4000  # statements held in memory
EACH = 100  # statements between two looks at what must not change


@dataclass(frozen=True)
class Finding:
    """A statement that did what none may do. `kind` tells it from others, `error` says what happened."""

    ground: str
    dialect: str
    text: str
    kind: str
    error: str
    place: str


@dataclass
class Pool:
    """What mutants are made of: all statements kept, and those among them that are accepted."""

    all: list[str]
    accepted: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def pick(self, random: Random) -> str:
        return random.choice(self.accepted if self.accepted and random.random() < 0.85 else self.all)

    def keep(self, random: Random, text: str, outcome: str, features: frozenset[str]) -> bool:
        """Whether the statement shows something new."""
        if features <= self.seen:
            return False
        self.seen |= features
        for pool in (self.all, self.accepted) if outcome in ("accepted", "answered") else (self.all,):
            if len(pool) < KEPT:
                pool.append(text)
            else:
                pool[random.randrange(KEPT)] = text
        return True


def run(ground: Ground, seed: str, count: int, more: Callable[[], bool] = lambda: True) -> Iterator[Finding | Counter[str]]:
    """Findings, and in the end how often statements ended how."""
    with judge(ground) as judged:
        pool, ends, known, others = Pool(list(ground.statements)), Counter[str](), _known(ground), foreign()
        for number, text in enumerate(ground.statements):
            yield from _put(judged, pool, ends, Random(f"{seed}/{number}"), ground.name, text, "duckdb")
        for number in range(count):
            if not more():
                break
            random = Random(f"{seed}/{number}")
            donor = pool.pick(random) if random.random() < 0.7 else adapted(random, random.choice(others), known)
            text = mutant(random, pool.pick(random), donor, known)
            yield from _put(judged, pool, ends, random, ground.name, text, random.choice(DIALECTS) if random.random() < 0.4 else "duckdb")
            if number % EACH == EACH - 1:
                yield from _untouched(judged, ground.name, f"{seed}/{number}")
        yield from _untouched(judged, ground.name, seed)
        yield ends


def _known(ground: Ground) -> list[str]:
    """Names of the schema and of functions, numbers and texts of the ground's statements, and some of everything."""
    schema = YAML(typ="safe").load(ground.schema)
    names = [*schema["tables"], *schema["views"], *(column for table in schema["tables"].values() for column in table["columns"])]
    literals = {word: None for text in ground.statements for word in words(text) if (word[:1].isdigit() or word[:1] == "'") and len(word) < 40}
    return [*names * 5, *sorted(NAMES), *literals, *SNIPPETS]


def _put(judged: Judge, pool: Pool, ends: Counter[str], random: Random, ground: str, text: str, dialect: str) -> Iterator[Finding]:
    try:
        outcome, features = judged.outcome(text, dialect, run=random.random() < 0.5)
    except (Exception, Hang) as error:
        ends["FOUND"] += 1
        yield _finding(ground, dialect, text, error)
        return
    ends[outcome] += 1
    pool.keep(random, text, outcome, features)


def _finding(ground: str, dialect: str, text: str, error: BaseException) -> Finding:
    frames = traceback.extract_tb((error.__context__ or error).__traceback__)
    place = next((f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames) if "dpquery/" in f.filename), "")
    said = f"{type(error).__name__}: {error}"
    return Finding(ground, dialect, text, f"{said[:60]} {place}", said[:1000], place)


def _untouched(judged: Judge, ground: str, when: str) -> Iterator[Finding]:
    try:
        judged.check_untouched()
    except AssertionError as error:
        yield _finding(ground, "", f"one of the {EACH} statements up to {when}", error)


def again(judged: Judge, finding: Finding, text: str) -> bool:
    """Whether the text does the same as what was found."""
    try:
        judged.outcome(text, finding.dialect, run=True)
    except (Exception, Hang) as error:
        return _finding(finding.ground, finding.dialect, text, error).kind[:40] == finding.kind[:40]
    return False


def smaller(judged: Judge, finding: Finding) -> str:
    """A shorter statement that does the same: words left out as long as it does."""
    tokens, size = words(finding.text), len(words(finding.text)) // 2
    while size:
        at = 0
        while at < len(tokens):
            rest = tokens[:at] + tokens[at + size :]
            if rest and again(judged, finding, "".join(rest)):
                tokens = rest
            else:
                at += size
        size //= 2
    return "".join(tokens)
