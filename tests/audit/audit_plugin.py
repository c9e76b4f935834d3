"""A pytest plugin: the tests of this run meet the mutant that the environment names, and say which of them noticed."""

from __future__ import annotations

import os

import audit_mutants
import hypothesis
import pytest

NOTICED = "noticed by "


def pytest_configure() -> None:
    seen = [phase for phase in hypothesis.Phase if phase not in (hypothesis.Phase.shrink, hypothesis.Phase.explain)]
    hypothesis.settings.register_profile("noticed", phases=seen)  # the first example that fails will do
    hypothesis.settings.load_profile("noticed")
    audit_mutants.applied(audit_mutants.MUTANTS[os.environ["DPQUERY_MUTANT"]])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.failed:
        print(f"\n{NOTICED}{report.nodeid}", flush=True)
