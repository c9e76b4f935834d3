"""Modules that a process of dpquery's own does without, because what imports them where they are there needs none of them."""

from __future__ import annotations

import sys


class _Without:
    """Finds that a module is not installed."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == self.module:
            raise ModuleNotFoundError(f"this process does without {name}", name=name)


def without(module: str) -> None:
    """From now on importing the module fails in this process, as if it were not installed."""
    sys.meta_path.insert(0, _Without(module))
