"""EXPLAIN as a statement: recognized in front of the statement that it explains, its explanation as a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpquery.engine.explain import Explanation
from dpquery.errors import Error, Position, Refused
from dpquery.release.answer import Answer, type_names

EXPLAIN = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*+(EXPLAIN)\b\s*", re.IGNORECASE | re.DOTALL)
ANALYZE = re.compile(r"(?:\([^()]*?\b)?ANALY[SZ]E\b", re.IGNORECASE)
OPTION = re.compile(
    r"\(\s*(?:FORMAT|VERBOSE|COSTS|SETTINGS|BUFFERS|TIMING|SUMMARY|TYPE)\b|(?:VERBOSE|USING|PLAN|EXTENDED|FORMATTED|CODEGEN|COST|LOGICAL)\b",
    re.IGNORECASE,
)
QUERY = re.compile(r"\b(?:SELECT|WITH|FROM)\b", re.IGNORECASE)
WITHOUT = {"EXPLAIN_ANALYZE": "without run times, which private rows decide on", "EXPLAIN_OPTION": "as a table of text"}
COLUMNS = ("part", "item", "value")


def asks(text: object) -> bool:
    """Whether the text asks for an explanation."""
    return isinstance(text, str) and EXPLAIN.match(text) is not None


def explained(text: object) -> str | None:
    """The statement after EXPLAIN, at its place in the text; None where the text does not ask for an explanation."""
    found = EXPLAIN.match(text) if isinstance(text, str) else None
    if found is None or not isinstance(text, str):
        return None
    start, end = found.span(1)
    if ANALYZE.match(text, found.end()):
        message = "EXPLAIN ANALYZE runs the statement, and how long that takes depends on private rows"
        raise _refused("EXPLAIN_ANALYZE", message, text, found.end(), "EXPLAIN, which reads no private row")
    if OPTION.match(text, found.end()):
        raise _refused("EXPLAIN_OPTION", "EXPLAIN takes no options here", text, found.end(), "EXPLAIN SELECT ..")
    return text[:start] + " " * (end - start) + text[end:]


def named(refused: Refused, text: str) -> None:
    """The refusal of an explained statement, of the text as it was asked: what it offers is explained, too, and not answered for a price."""
    found = EXPLAIN.match(text) if isinstance(text, str) else None
    refused.source = str(text)
    if found is not None and refused.rewritten is not None:
        refused.rewritten = f"{found[1]} {refused.rewritten.lstrip()}"


def offer(refused: Refused, text: str, attempt: Callable[[str], object]) -> None:
    """Names the statement without its options, where `attempt` takes it, or takes what it names in turn."""
    found = EXPLAIN.match(text) if isinstance(text, str) else None
    bare = None if found is None or refused.code not in WITHOUT else QUERY.search(text, found.end())
    if found is None or bare is None:
        return
    other, differs = text[bare.start() :], WITHOUT[refused.code]
    try:
        attempt(other)
    except Refused as again:
        other, differs = again.rewritten or "", "; ".join(filter(None, (differs, again.differs)))
    except Error:
        return
    if other:
        refused.rewritten, refused.differs = f"{found[1]} {other.lstrip()}", differs


def _refused(code: str, message: str, text: str, offset: int, instead: str) -> Refused:
    before = text[:offset]
    position = Position(before.count("\n") + 1, offset - before.rfind("\n"), len(re.match(r"\(?\s*\w*", text[offset:])[0]))  # type: ignore[index]
    return Refused(code, message, position=position, instead=instead, source=text)


def table(found: Explanation, analyst: str) -> Answer:
    """The explanation as a table of three text columns, in the words and units of its JSON. Nothing was charged for it."""
    import pyarrow as pa

    rows = list(_rows(found))
    made = pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(COLUMNS)})
    return Answer(made, type_names(made), (None,) * len(COLUMNS), Fraction(95, 100), (), {"analyst": analyst, "charged": "nothing"})


def _rows(found: Explanation) -> Iterator[tuple[str, str, str | None]]:
    content = found.as_dict()
    yield from _pairs("price", content["price"])
    yield from _pairs("now", content["now"] or {})
    yield from _pairs("aim", content.get("aim", {}))
    for release in content["releases"]:
        yield from _pairs(str(release["aggregate"]), {name: value for name, value in release.items() if name != "aggregate"})
    yield from _pairs("keys", content["keys"])
    for number, one in enumerate(content.get("tables", ()), 1):
        yield from _pairs(f"release {number}", one)
    for number, warning in enumerate(content["warnings"], 1):
        yield "warning", str(number), warning
    yield from _pairs("statement", {name: content[name] for name in ("columns", "lemmas", "response_quantum", "plan")})
    yield from (("statement", "sql", line) for line in content["sql"].splitlines())


def _pairs(part: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    for name, value in values.items():
        simple = ", ".join(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value
        yield part, name, simple if simple is None or isinstance(simple, str) else json.dumps(simple)
