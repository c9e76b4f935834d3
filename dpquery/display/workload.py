"""What a workload would cost, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dpquery.display.pages import Lines, amounts
from dpquery.display.text import Column, amount, facts, grid, remaining, safe
from dpquery.ledger.model import Amounts

if TYPE_CHECKING:
    from dpquery.engine import Workload
    from dpquery.engine.workload import Line

STATEMENT = 36  # characters of a statement in a list of them


def workload(found: Workload) -> Lines:
    """A workload for people: a line a statement, then the sums."""
    yield grid(
        [
            Column("", tuple(map(str, range(1, len(found.lines) + 1))), number=True),
            Column("statement", tuple(_start(line.statement) for line in found.lines)),
            Column("price", tuple("" if line.price is None else f"epsilon {amount(line.price['epsilon'])}" for line in found.lines)),
            Column("noise", tuple(", ".join(line.noises) for line in found.lines)),
            Column("", tuple(map(_verdict, found.lines))),
        ]
    )
    for number, line in enumerate(found.lines, 1):
        why = line.refused or line.over
        if why is not None:
            instead = f"; instead: {safe(why.instead)}" if why.instead else ""
            yield Text(f"{number}: {why.code}: {safe(why.message)}{instead}")
        yield from (Text(f"{number}: {safe(warning)}") for warning in line.warnings)
    yield Text("")
    content = found.as_dict()
    rows = [("account", safe(found.account))]
    if found.total != found.charged:
        rows.append(("together", amounts(content["total"])))
    rows.append(("charged", f"{amounts(content['charged'])}: {'all of them' if found.fits else 'those that fit'}"))
    yield facts([*rows, ("then left", remaining(content))])


def _verdict(line: Line) -> str:
    if line.refused is not None:
        return "refused"
    if line.charged == Amounts():
        return "free: stored by then" if line.stored else "free"
    return "fits" if line.fits else "does not fit"


def _start(statement: str) -> str:
    """The beginning of a statement, on one line."""
    line = safe(" ".join(statement.split()))
    return line if len(line) <= STATEMENT else line[: STATEMENT - 2] + " .."
