"""Everything but answers, for people: tables to ask of, explanations, budgets, the ledger's log, the owner's check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_UP
from typing import TYPE_CHECKING, Any

from rich.text import Text

from dpquery.display.text import Column, amount, bounds, facts, grid, priced, safe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dpquery.engine import Aim, Explanation, Finding, Now, Report, TableInfo

Lines = Iterator["RenderableType"]
MANY = 1_000_000  # as far as it is counted how often a price fits


def explanation(found: Explanation) -> Lines:
    """An explanation for people: price, releases, keys, warnings, and the bounded statement at the end."""
    yield facts([*_price(found.price), *_now(found.now), *_aim(found.aim)])
    yield Text("")
    yield grid(list(_releases(found.releases)))
    yield from _by_rows(found.releases)
    yield from (Text(f"Note: {safe(note)}.") for note in bounds({"releases": found.releases}))
    yield Text("")
    yield facts([*(_tables(found.tables) if found.tables else _keys(found.keys)), *_reply(found.response_quantum)])
    yield from (Text(f"Warning: {safe(warning)}") for warning in found.warnings)
    yield Text("\nWhat would run (before noise):")
    yield from (Text(f"-- {safe(way)}") for way in found.plan)
    yield from map(safe, found.sql.splitlines())


def _price(price: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "price", priced(price)
    yield "charged", amounts({"epsilon": price["charged_epsilon"], "rho": price["rho"], "delta": price["charged_delta"]})


def _now(found: Now | None) -> Iterator[tuple[str, str]]:
    """What it costs the account at this time, and what would fit where it does not."""
    if found is None:
        return
    content = found.as_dict()
    name, fits = safe(content["account"]), content["fits"]
    if found.stored:
        yield "now", f"nothing: {name} was shown the answer"
    elif fits:
        times = "a million times or more" if fits >= MANY else f"{fits:,} {'time' if fits == 1 else 'times'}"
        yield "now", f"fits into the account of {name} {times}"
    else:
        yield "now", f"does not fit into what {name} has left{_at_most(content['largest'])}"
        yield "", safe(content["instead"] or "")


def _aim(found: Aim | None) -> Iterator[tuple[str, str]]:
    """What was tried to meet an error, a kind of noise a line."""
    for one in [] if found is None else found.as_dict()["tried"]:
        noise = one["noise"] or "noise as named"
        if one["epsilon"] is None:
            yield "tried", f"{noise}: no price that the schema allows meets the error"
        else:
            yield "tried", f"{noise}: epsilon {one['epsilon']} meets the error{'' if one['fits'] else ', but does not fit'}"


def _at_most(largest: Mapping[str, Any] | None) -> str:
    return "" if largest is None else "; with the same noise it fits at " + ", ".join(f"{unit} {amount}" for unit, amount in largest.items())


def _releases(releases: Sequence[Mapping[str, Any]]) -> Iterator[Column]:
    """One line an aggregate; lengths in the value's own units."""
    yield Column("aggregate", tuple(_label(r) for r in releases))
    yield Column("noise", tuple(f"{r['noise']} {_size(r['scale'])}{_in(r)}" for r in releases))
    yield Column("groups", tuple(_size(r["l0"]) for r in releases), number=True)
    yield Column("per group", tuple(_size(r["linf"]) + _in(r) for r in releases), number=True)
    yield Column(
        "expected error", tuple("by rows, below" if isinstance(r["expected_error"], dict) else _error(r["expected_error"]) + _in(r) for r in releases)
    )
    yield Column("lemmas", tuple(", ".join(r.get("lemmas") or [str(r.get("lemma", ""))]) for r in releases))


def _by_rows(releases: Sequence[Mapping[str, Any]]) -> Lines:
    """The errors that depend on how many rows there are, which is private: one for each of some numbers."""
    for r in releases:
        if isinstance(r["expected_error"], dict):
            errors = ", ".join(f"{_error(error)}{_in(r)} where {rows.replace('n=', '')} rows" for rows, error in r["expected_error"].items())
            yield Text(f"Expected error of {_label(r)}: {errors}.")


def _label(release: Mapping[str, Any]) -> str:
    """The aggregate as written; of the count that only decides which groups appear, its name alone."""
    label = safe(str(release["aggregate"]))
    return label.split(",")[0] + ")" if label.startswith("(") else label


def _in(release: Mapping[str, Any]) -> str:
    """What the lengths of an aggregate are in, where that is not its own units."""
    return f" × {release['lengths_in']}" if "lengths_in" in release else ""


def _error(error: object) -> str:
    return "" if error is None else f"± {_size(error)}"


def _size(number: object) -> str:
    """A length in three digits or, from a thousand on, whole."""
    match number:
        case int() | float():
            return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
        case _:
            return safe(str(number))


def _tables(tables: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The releases in the order in which they are made: what they read of each other, and which groups each has."""
    for number, one in enumerate(tables, 1):
        reads = f"; reads {', '.join(one['reads'])}" if "reads" in one else ""
        yield f"release {number}", f"{one['table']}{reads}"
        yield from _keys(one["keys"])


def _keys(keys: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names = ", ".join(keys["names"])
    match keys["rule"]:
        case "none":
            yield "groups", "none: exactly one row"
        case "listed":
            yield "groups", f"{keys['count']} of {names}, known beforehand ({keys['origin']}); every one appears"
        case "released":
            yield "groups", f"at most {keys['most']:,} of {names}, not known yet ({keys['origin']}); every one appears"
        case _:
            units = f"units, less {keys['min_units'] - 1}," if keys["min_units"] > 1 else "units"
            yield "groups", f"those of {names} whose noisy number of {units} reaches {keys['threshold']}"


def _reply(quantum: str | None) -> Iterator[tuple[str, str]]:
    if quantum is not None:
        yield "reply", f"leaves a whole multiple of {quantum} s after it is asked"


def verified(found: Sequence[Finding], signed: bool) -> Lines:
    """What is wrong with a ledger, for people; `signed`: it was held against a checkpoint."""
    yield from (Text(safe(str(finding))) for finding in found)
    if found:
        yield Text("The ledger does not hold.")
    elif signed:
        yield Text("The ledger holds: chain, order and sums, and all that the checkpoint stands for.")
    else:
        yield Text("The ledger holds: chain, order and sums. Whether its end was cut off shows only against a checkpoint (--checkpoint FILE).")


def verified_receipt(found: Sequence[Finding], entry: bool, proof: bool, unchecked: Sequence[str]) -> Lines:
    """What is wrong with a receipt, for people; `entry`, `proof`: it was held against these; `unchecked` stands in its file and was not."""
    yield from (Text(safe(str(finding))) for finding in found)
    if found:
        yield Text("The receipt does not hold.")
    else:
        held = ["the price of its noises under its bounds", *(["its entry in the ledger"] if entry else []), *(["its proof"] if proof else [])]
        yield Text(f"The receipt holds: {', '.join(held)}.")
    if unchecked:
        yield Text(f"Not checked: {', '.join(map(safe, unchecked))}.")


def tables(found: Iterable[TableInfo]) -> Lines:
    """The declared tables for people: a line a column."""
    for table in found:
        if table.view is not None:
            yield Text(f"{safe(table.name)} (view)\n{safe(' '.join(table.view.split()))}\n")
            continue
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


def amounts(given: Mapping[str, Any], rounding: str = ROUND_UP) -> str:
    """Names and amounts in one phrase."""
    return ", ".join(f"{name} {amount(value, rounding)}" for name, value in given.items())
