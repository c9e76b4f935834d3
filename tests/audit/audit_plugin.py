"""A pytest plugin: the tests of this run meet the mutant that the environment names, and say which of them noticed."""

from __future__ import annotations

import os

import audit_mutants
import pytest

NOTICED = "noticed by "


def pytest_configure() -> None:
    audit_mutants.applied(audit_mutants.MUTANTS[os.environ["DPQUERY_MUTANT"]])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.failed:
        print(f"\n{NOTICED}{report.nodeid}", flush=True)
