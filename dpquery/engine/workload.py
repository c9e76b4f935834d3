"""What a whole workload would cost an account, statement by statement, before the first is asked. Nothing is charged, no private row is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpquery.engine import recall, receipt
from dpquery.engine.cost import FREE, beforehand
from dpquery.engine.explained import explained, named
from dpquery.errors import OverBudget, Refused
from dpquery.ledger import Amounts, Left, Room
from dpquery.schema.model import Schema

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared

JSON = Any


@dataclass(frozen=True, slots=True)
class Line:
    """One statement: its guarantee standing alone (`price`), what it would be charged, and whether that fits after those before it that do.

    `stored`: the account has seen an answer that serves, or will have by then. EXPLAIN costs nothing. `refused` is why it has no price, `over`
    why its price does not fit; `warnings` say what to know of it before it is paid.
    """

    statement: str
    price: dict[str, str] | None = None
    charged: Amounts | None = None
    noises: tuple[str, ...] = ()
    fits: bool = False
    stored: bool = False
    refused: Refused | None = None
    warnings: tuple[str, ...] = ()
    over: OverBudget | None = None

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        charged = None if self.charged is None else self.charged.as_dict()
        why = self.refused or self.over
        error = None if why is None else {"code": why.code, "message": why.message}
        said = {"noises": list(self.noises), "fits": self.fits, "stored": self.stored, "error": error, "warnings": list(self.warnings)}
        return {"statement": self.statement, "price": self.price, "charged": charged, **said}


@dataclass(frozen=True, slots=True)
class Workload:
    """`total` is what all statements with a price cost together, `charged` those of them that fit, in order.

    `spent` is what the account has spent after these, and `left` what is left of it.
    """

    account: str
    lines: tuple[Line, ...]
    total: Amounts
    charged: Amounts
    spent: Amounts
    left: Left

    @property
    def fits(self) -> bool:
        """Whether every statement has a price and fits."""
        return all(line.fits for line in self.lines)

    def as_dict(self) -> dict[str, JSON]:
        """JSON-ready."""
        sums = {"total": self.total.as_dict(), "charged": self.charged.as_dict(), "spent": self.spent.as_dict(), "left": self.left.as_dict()}
        return {"account": self.account, "statements": [line.as_dict() for line in self.lines], "fits": self.fits, **sums}


def workload(texts: Sequence[str], prepared: Callable[[str, Room], tuple[Prepared, bool]], room: Room, schema: Schema) -> Workload:
    """Each statement in order, on what those before it that fit leave of the room. One that does not fit costs nothing, as when it is asked.

    `prepared` says of a statement, and of the room by then, what it is and whether a stored answer serves.
    """
    lines: list[Line] = []
    shown: list[recall.Noises] = []
    total, charged = Amounts(), Amounts()
    for text in texts:
        try:
            inside = explained(text)
            one, stored = prepared(inside or text, room)
        except Refused as refused:
            named(refused, text)
            lines.append(Line(text, refused=refused))
            continue
        if inside is not None:
            lines.append(Line(text, {"epsilon": "0", "delta": "0"}, FREE, fits=True))
            continue
        noises = recall.noises(one, schema)
        stored = stored or (not schema.unsafe_testing and any(recall.serves(before, noises) for before in shown))
        price = FREE if stored else Amounts.of(one.bill.price)
        line = _line(text, one, price, room, stored)
        lines.append(line)
        total += price
        if line.fits:
            room, charged = room.after(price), charged + price
            shown.append(noises)
    return Workload(room.name, tuple(lines), total, charged, room.account.spent, room.left)


def _line(text: str, one: Prepared, price: Amounts, room: Room, stored: bool) -> Line:
    alone = receipt.price(one)
    kinds = dict.fromkeys(str(noise.mechanism) for released in one.bill.releases for noise in released.noises)
    said = () if stored else tuple(beforehand(one, room))
    over = None if stored else room.refusal(price)
    return Line(text, {"epsilon": alone["epsilon"], "delta": alone["delta"]}, price, tuple(kinds), over is None, stored, warnings=said, over=over)
