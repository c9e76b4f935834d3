"""The public names, pinned: adding one is a decision, dropping one breaks people."""

import subprocess
import sys

import pytest

import dpquery
from dpquery import errors

NAMES = ["Connection", "Error", "Result", "connect", "create_ledger", "errors"]


def test_public_names() -> None:
    assert dpquery.__all__ == NAMES
    for name in NAMES:
        assert getattr(dpquery, name) is not None
    assert dpquery.Error is errors.Error
    assert dpquery.__version__


def test_four_kinds_of_error_with_their_exit_status() -> None:
    kinds = {kind.__name__: kind.exit_status for kind in errors.Error.__subclasses__()}
    assert kinds == {"SchemaError": 4, "Refused": 2, "OverBudget": 3, "Fault": 5}


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'conect'"):
        _ = dpquery.conect


@pytest.mark.parametrize("module", ["duckdb", "sqlglot", "pyarrow", "numpy", "pandas", "pydantic"])
def test_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, dpquery, dpquery.cli.main; print({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
