"""dpquery: differentially private SQL.

Public names are loaded on first use, so that `import dpquery` and `dpquery --help` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpquery import errors as errors
    from dpquery.client import Connection, Result, connect, create_ledger
    from dpquery.errors import Error

__all__ = ["Connection", "Error", "Result", "connect", "create_ledger", "errors"]

_HOME = {"Connection": "client", "Result": "client", "connect": "client", "create_ledger": "client", "Error": "errors"}


def __getattr__(name: str) -> Any:
    """A public name from the module that holds it."""
    if name == "errors":
        return import_module("dpquery.errors")
    if name == "__version__":
        return import_module("importlib.metadata").version("dpquery")
    if name in _HOME:
        return getattr(import_module(f"dpquery.{_HOME[name]}"), name)
    raise AttributeError(f"module 'dpquery' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
