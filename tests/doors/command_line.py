"""What a command line prints, and how tests call one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Told(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Told]
