"""The lock pins everything that the project declares, and nothing but versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PINNED = dict(line.split("==") for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#"))


def test_the_lock_holds_versions_only() -> None:
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        assert re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line), line


def test_what_is_declared_is_pinned_within_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    declared = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras["test"], *extras["dev"]]
    for requirement in map(Requirement, declared):
        pinned = {name.lower(): version for name, version in PINNED.items()}.get(requirement.name.lower())
        assert pinned is not None, requirement
        assert requirement.specifier.contains(pinned), requirement
