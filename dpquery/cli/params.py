"""Values of parameters, and prices, as words of a command line."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING
from uuid import UUID

from dpquery.errors import Refused

if TYPE_CHECKING:
    from dpquery.engine import Wanted

WORD = re.compile(r"(?P<name>\w*)(:(?P<type>\w+))?=(?P<value>.*)", re.DOTALL)
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+", re.ASCII)
TRUTHS = {"true": True, "false": False}
INSTEAD = "--param name=30, --param name:date=2024-01-31, or for a `?` --param =30"


def _truth(text: str) -> bool:
    return TRUTHS[text.lower()]


TYPES: Mapping[str, Callable[[str], object]] = {
    "integer": int,
    "decimal": Decimal,
    "float": float,
    "string": str,
    "boolean": _truth,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "uuid": UUID,
}
"""How the text of each type is read; the schema file's names of types."""


def given(words: Sequence[str] | None) -> dict[str, object] | list[object] | None:
    """The values by name, or in order where they have no names. Refused where the words are neither."""
    if not words:
        return None
    pairs = [_pair(word) for word in words]
    named = {name: value for name, value in pairs if name}
    if not named:
        return [value for _, value in pairs]
    if len(named) < len(pairs):
        raise Refused("PARAMETER", "each parameter has a name of its own, or none has one", instead=INSTEAD)
    return named


def _pair(word: str) -> tuple[str, object]:
    found = WORD.fullmatch(word)
    if found is None:
        raise Refused("PARAMETER", f"{word[:40]!r} is no name=value", instead=INSTEAD)
    kind, text = found["type"], found["value"]
    return found["name"], _guessed(text) if kind is None else _typed(kind.lower(), text)


def _typed(kind: str, text: str) -> object:
    if kind not in TYPES:
        raise Refused("PARAMETER", f"no type {kind[:40]!r}", instead="one of " + ", ".join(TYPES))
    try:
        return TYPES[kind](text)
    except (ValueError, KeyError, InvalidOperation):
        raise Refused(
            "PARAMETER_VALUE", f"{text[:40]!r} is no {kind}", instead="a value of that type, dates and times as in 2024-01-31 12:30:00"
        ) from None


def _guessed(text: str) -> object:
    """A number, true, false or null where the text is one, as SQL reads it; else the text, without quotation marks around it."""
    if text.lower() == "null":
        return None
    if text.lower() in TRUTHS:
        return _truth(text)
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 400:
        return text
    return int(text) if INTEGER.fullmatch(text) else Decimal(text) if NUMBER.fullmatch(text) else float(text) if REAL.fullmatch(text) else text


def wanted(
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    confidence: str | None,
    noise: str | None,
    errors: Sequence[str] | None,
    bounds: str | None = None,
    tidy: bool = False,
) -> Wanted:
    """What the options of a price say, and of what is shown. Refused where errors are none."""
    found: Wanted = {"epsilon": epsilon, "delta": delta, "rho": rho, "confidence": confidence, "noise": noise, "error": _goals(errors)}
    return {**found, "bounds": bounds, "tidy": tidy}


def _goals(words: Sequence[str] | None) -> str | dict[str, str] | None:
    """The error for all columns, or those of columns by name. Refused where the words are neither."""
    if not words:
        return None
    pairs = [word.rpartition("=") for word in words]
    if len(words) == 1 and not pairs[0][1]:
        return words[0]
    found = {name.strip(): error.strip() for name, mark, error in pairs if mark}
    if len(found) < len(words):
        raise Refused("BAD_ERROR", "one error is for all columns, or each is for a column of its own", instead="--error 50, or --error n=50 for each")
    return found
