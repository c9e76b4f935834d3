"""Everything but answers, for people: tables to ask of, explanations, budgets, the ledger's log, the owner's check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from dpquery.display.text import Column, cell, facts, grid, priced, safe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dpquery.engine import Balance, Explanation, Report, TableInfo

Lines = Iterator["RenderableType"]
QUERIES = ("0.1", "0.5", "1")  # prices for which `budget` says how many more queries fit


def explanation(found: Explanation) -> Lines:
    """An explanation for people: price, releases, keys, warnings, and the bounded statement at the end."""
    yield facts(_price(found.price))
    yield Text("")
    yield grid(list(_releases(found.releases)))
    yield from _notes(found.releases)
    yield Text("")
    yield facts(_keys(found.keys))
    yield from (Text(f"Warning: {safe(warning)}") for warning in found.warnings)
    yield Text("\nWhat would run (before noise):")
    yield Text(found.sql)


def _price(price: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "price", priced(price)
    yield "charged", f"epsilon {price['charged_epsilon']}, rho {price['rho']}, delta {price['charged_delta']}"


def _releases(releases: Sequence[Mapping[str, Any]]) -> Iterator[Column]:
    """One line an aggregate; lengths in the value's own units."""
    yield Column("aggregate", tuple(safe(str(r["aggregate"])) for r in releases))
    yield Column("noise", tuple(f"{r['noise']} {cell(float(r['scale']))}" for r in releases))
    for heading, field in (("groups", "l0"), ("per group", "linf")):
        yield Column(heading, tuple(cell(r[field]) for r in releases), number=True)
    yield Column("expected error", tuple(_error(r.get("expected_error")) for r in releases))
    yield Column("lemmas", tuple(", ".join(r.get("lemmas") or [str(r.get("lemma", ""))]) for r in releases))


def _error(error: object) -> str:
    """An expected error; where it depends on the number of rows, one for each of some numbers."""
    match error:
        case None:
            return ""
        case dict():
            return "; ".join(f"{_error(value)} at {key}" for key, value in error.items())
        case int() | float():
            return f"± {cell(float(error))}"
        case _:
            return safe(str(error))


def _notes(releases: Sequence[Mapping[str, Any]]) -> Lines:
    for release in releases:
        for note in release.get("notes", ()):
            yield Text(f"{safe(str(release['aggregate']))}: {safe(note)}")


def _keys(keys: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names = ", ".join(keys["names"])
    match keys["rule"]:
        case "none":
            yield "groups", "none: exactly one row"
        case "listed":
            yield "groups", f"{keys['count']} of {names}, known beforehand ({keys['origin']}); every one appears"
        case _:
            least = f", at least {keys['min_units']} asked for" if keys["min_units"] > 1 else ""
            yield "groups", f"those of {names} whose noisy number of units reaches {keys['threshold']}{least}"


def budget(found: Balance) -> Lines:
    """A budget for people: raw sums, the cap and what it promises, the ladder, and how many queries more would fit."""
    content = found.as_dict()
    cap, spent, left = content["cap"], content["spent"], content["left"]
    yield facts(
        [
            ("data set", content["dataset"]),
            ("account", content["analyst"]),
            ("spent", f"epsilon {spent['epsilon']}, rho {spent['rho']}, delta {spent['delta']} in {content['entries']} entries"),
            ("cap", f"epsilon {cap['epsilon']}, delta {cap['delta']}: what is promised of all answers together, however they are chosen"),
            ("left", f"epsilon {left['epsilon']}, or rho {left['rho']}; delta {left['delta']} for private groups"),
        ]
    )
    if content["locked"]:
        yield Text("The account is locked: too many time-outs. The data owner can unlock it.")
    if content["unsafe_testing"]:
        yield Text("UNSAFE TESTING: the schema lifts the limits; answers protect nobody.")
    yield from _ladder(content["ladder"])


def _ladder(rungs: Sequence[Mapping[str, Any]]) -> Lines:
    if not rungs:
        return
    yield Text("\nThe ladder, fixed in advance: while rho is at most the first, the loss is at most the second, but for delta.")
    yield grid(
        [
            Column("rho up to", tuple(r["rho"] for r in rungs), number=True),
            Column("epsilon", tuple(r["epsilon"] for r in rungs), number=True),
            Column("delta", tuple(r["delta"] for r in rungs), number=True),
            Column("", tuple("passed" if r["reached"] else "" for r in rungs)),
        ]
    )


def tables(found: Iterable[TableInfo]) -> Lines:
    """The declared tables for people: a line a column."""
    for table in found:
        whose = "public" if table.public else f"private, unit: {safe(str(table.unit))}"
        yield Text(f"{safe(table.name)} ({whose})")
        headings = ("column", "type", "bounds", "keys")
        cells = [Column(heading, tuple(map(safe, texts))) for heading, texts in zip(headings, zip(*table.columns, strict=True), strict=False)]
        yield grid([column for column in cells if any(column.cells)])
        yield Text("")


def report(found: Report) -> Lines:
    """How the data fits the schema, for the owner."""
    for finding in found.findings:
        instead = f" Instead: {finding.instead}" if finding.instead else ""
        yield Text(safe(f"{finding.severity}: {finding.message}.{instead}"))
    yield Text("The data fits the schema." if found.ok else "The data does not fit the schema.")
    if found.version is not None:
        yield Text(f"Registered as data version {found.version}.")
