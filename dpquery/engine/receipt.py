"""What is written down of a release: its record in the ledger, and the receipt that goes with the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any, assert_never

from dpquery.accounting.event import Price
from dpquery.aggregates import leading, mode
from dpquery.aggregates.values import spelled
from dpquery.backends.public import MAX_KEYS
from dpquery.engine import basis
from dpquery.engine.cost import left_open
from dpquery.ledger.amounts import shown_up, text
from dpquery.mechanisms import Noise
from dpquery.numbers import decimal_up, float_near, sqrt_up
from dpquery.plan.release import (
    WEIGHT_BITS,
    Additive,
    Bins,
    Choosing,
    Element,
    GroupCap,
    ListedKeys,
    Mechanism,
    NoKeys,
    One,
    Part,
    PrivateKeys,
    Product,
    Release,
    ReleasedKeys,
    RowWeights,
    Units,
)
from dpquery.privacy import Sensitivity, enforced, lemmas, sensitivities, warnings
from dpquery.schema.model import Schema
from dpquery.values.types import DATE, TIMESTAMP, Type

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready
    from dpquery.ledger import Balance, Entry

JSON = Any
PLAN_VERSION = 1  # counts changes after which the same statement may be bounded, priced or answered otherwise


def record(prepared: Prepared, schema: Schema, version: int) -> Mapping[str, JSON]:
    """The ledger's record of a charge: functions of the statement, the schema and public tables only."""
    return {
        "dataset": schema.dataset,
        "data_version": version,
        "statement": prepared.text[:10_000],
        **({"parameters": {name[:100]: value and value[:1_000] for name, value in prepared.params.items()}} if prepared.params else {}),
        "plan": plan_hash(prepared),
        "schema": schema.digest,
        "adjacency": str(schema.adjacency),
        "releases": releases(prepared, schema),
        "basis": basis.written(prepared),
        "price": price(prepared),
        **key_rules(prepared),
        **public_tables(prepared),
        "lemmas": list(cited(prepared)),
        "software": software(),
    }


def receipt(
    logged: Mapping[str, JSON], prepared: Prepared, schema: Schema, entry: Entry, said: tuple[str, ...], balance: Balance, caps: Sequence[JSON] = ()
) -> Mapping[str, JSON]:
    """What the analyst keeps: enough to say what was paid for which noise under which bounds, in the words that the ledger logged; which `caps` were
    used, and what they cut off, as far as what was released says."""
    return {
        "entry": entry.id,
        "commitment": entry.commitment,
        "dataset": logged["dataset"],
        "analyst": balance.account,
        "data_version": logged["data_version"],
        "time": entry.time,
        "plan": logged["plan"],
        **({"parameters": logged["parameters"]} if "parameters" in logged else {}),
        "price": price(prepared),
        "adjacency": logged["adjacency"],
        "releases": logged["releases"],
        "basis": logged["basis"],
        **{name: logged[name] for name in ("keys", "tables", "public_tables", "stored") if name in logged},
        "lemmas": logged["lemmas"],
        "software": logged["software"],
        "unsafe_testing": schema.unsafe_testing,
        "spent": balance.spent.as_dict(),
        "left": balance.left.as_dict(),
        **({} if balance.period is None else {"period": balance.period.as_dict(), "lifetime": balance.lifetime.as_dict()}),
        **({"caps": list(caps)} if caps else {}),
        "warnings": list(said),
    }


def software() -> str:
    """The name and version of what made the answer."""
    return f"dpquery {installed('dpquery')}"


def plan_hash(prepared: Prepared) -> str:
    """SHA-256 of the bounded plan and what is done above the noise; the salt and the noise are no part of it."""
    content = repr(
        (
            PLAN_VERSION,
            *prepared.releases.values(),
            *(block.feeds for block in prepared.blocks),
            *prepared.question.opened,
            prepared.question.post.sql,
        )
    )
    return hashlib.sha256(content.encode()).hexdigest()


def number(value: Fraction | None, places: int = 24) -> str:
    """A decimal string, rounded up; "infinite" where there is no finite one."""
    if value is None:
        return "infinite"
    return text(decimal_up(value, places) if not 0 < value < Fraction(1, 10**12) else shown_up(value))


def price(prepared: Prepared) -> Mapping[str, str]:
    """The statement's guarantee standing alone, and what the ledger is charged for it."""
    priced, asked = prepared.bill, prepared.ask
    return {
        "epsilon": number(priced.epsilon),
        "delta": number(priced.delta),
        **charged(priced.price),
        "asked": number(asked.epsilon if asked.epsilon is not None else asked.rho),
        "asked_in": "epsilon" if asked.epsilon is not None else "rho",
    }


def charged(price: Price) -> dict[str, str]:
    """What the ledger is charged, as a receipt writes it."""
    return {"rho": number(price.rho), "charged_epsilon": number(price.epsilon), "charged_delta": number(price.delta)}


def unit_of(part: Part) -> Fraction:
    """What one grid unit of a part is worth in the value's own units; in rows, where the part counts them in bins."""
    if isinstance(part.cell, Bins):
        return Fraction(1, (1 if part.cell.rank is None else part.cell.rank.denominator) << WEIGHT_BITS)
    match part.row:
        case One() | Element():
            unit = Fraction(1)
        case Units(step=step, centred=centred):
            unit = step / 2 if centred else step
        case Product(left=left, right=right):
            unit = left.step * right.step / 4
        case _:
            assert_never(part.row)
    return unit / 2**WEIGHT_BITS if isinstance(part.cell, Additive) else unit


@dataclass(frozen=True, slots=True)
class Measured:
    """One part as it is released: its noise and sensitivity, in the value's own units."""

    noise: Noise
    sensitivity: Sensitivity
    unit: Fraction
    share: Fraction

    def as_dict(self) -> dict[str, JSON]:
        """The fields of the JSON contract; lengths in the value's own units."""
        s, unit = self.sensitivity, self.unit
        return {
            "l0": s.l0,
            "linf": plain(s.linf * unit),
            "l1": plain(s.l1 * unit),
            "l2_squared": plain(s.l2_squared * unit**2),
            "noise": str(self.noise.mechanism),
            "scale": scale(self.noise, unit),
            "step": plain(unit),
            "share": plain(self.share),
            "lemma": s.lemma,
        }


def plain(value: Fraction) -> int | float:
    """A number for people and JSON."""
    return int(value) if value.denominator == 1 and abs(value) < 2**53 else float_near(value)


def scale(noise: Noise, unit: Fraction) -> float:
    """The scale b of Laplace noise, the sigma of Gaussian noise or the scale of a choice's scores, in the value's own units."""
    match noise.mechanism:
        case Mechanism.LAPLACE | Choosing.PERMUTE_AND_FLIP | Choosing.EXPONENTIAL:
            return float_near(noise.parameter * unit)
        case Mechanism.GAUSSIAN:
            return float_near(sqrt_up(noise.parameter) * unit)
        case _:
            assert_never(noise.mechanism)


def measured(block: Ready, schema: Schema) -> tuple[Measured, ...]:
    """Every part of a release, in order."""
    release, priced = block.release, block.priced
    found = sensitivities(enforced(release), schema.adjacency)
    return tuple(
        Measured(noise, sensitivity, unit_of(part), share)
        for part, noise, sensitivity, share in zip(release.table.parts, priced.noises, found, priced.shares, strict=True)
    )


def releases(prepared: Prepared, schema: Schema) -> list[JSON]:
    """Per aggregate: bounds, caps, and noise and sensitivity of its parts (the first one's fields stand for the aggregate).

    Where a statement makes several releases, `table` says of which one it is.
    """
    several = len(prepared.blocks) > 1
    return [{**row, **({"table": block.name} if several else {})} for block in prepared.blocks for row in _released(block, schema)]


def _released(block: Ready, schema: Schema) -> Iterator[dict[str, JSON]]:
    parts = measured(block, schema)
    yield from _aggregates(block.release, parts)
    hidden = hidden_count(block.release)
    if hidden is not None:
        yield {"aggregate": "(units per group, not shown: decides which groups appear)", **parts[hidden].as_dict()}


def _aggregates(release: Release, parts: tuple[Measured, ...]) -> Iterator[dict[str, JSON]]:
    caps = bounding(release)
    for aggregate in release.aggregates:
        own = [parts[i].as_dict() for i in aggregate.parts]
        bounds = None if aggregate.bounds is None else [_bound(end, aggregate.type) for end in (aggregate.bounds.low, aggregate.bounds.high)]
        row = {"aggregate": aggregate.label, **own[0], "bounds": bounds, **caps, "lemmas": sorted({p["lemma"] for p in own})}
        if len(own) > 1:
            row["parts"] = own
        if aggregate.notes:
            row["notes"] = list(aggregate.notes)
        yield row


def _bound(end: Fraction, type: Type) -> JSON:
    """A bound of a column: a number, of dates and timestamps a text."""
    return spelled(end, type) if type.element in (DATE, TIMESTAMP) else plain(end)


def hidden_count(release: Release) -> int | None:
    """The part that only decides which groups appear, where no aggregate shows it."""
    if isinstance(release.keys, PrivateKeys) and all(release.keys.count not in a.parts for a in release.aggregates):
        return release.keys.count
    return None


def bounding(release: Release) -> dict[str, JSON]:
    """The caps in force: groups per unit or row weights."""
    match release.table.bounding:
        case GroupCap(groups=groups, idle=None):
            return {"max_groups_contributed": groups}
        case GroupCap(groups=groups, idle=idle):
            return {"max_groups_contributed": groups, "cap_skipped": str(idle)}
        case RowWeights(rows=rows):
            return {"max_rows_contributed": rows}
        case _:
            assert_never(release.table.bounding)


def public_tables(prepared: Prepared) -> Mapping[str, JSON]:
    """The declared public tables that are read above the noise, if any; their version is the data's."""
    found = sorted({table for one in prepared.question.opened for table in one.tables})
    return {"public_tables": found} if found else {}


def key_rules(prepared: Prepared) -> Mapping[str, JSON]:
    """`keys`: the rule by which groups appear. Several releases: `tables` has each one's rule and price instead."""
    if len(prepared.blocks) == 1:
        return {"keys": keys(prepared.blocks[0])}
    return {"keys": {"rule": "several", "names": []}, "tables": [_table(block) for block in prepared.blocks]}


def _table(block: Ready) -> Mapping[str, JSON]:
    spent = block.priced.price
    charged = {"charged_epsilon": number(spent.epsilon), "charged_delta": number(spent.delta), "rho": number(spent.rho)}
    reads = dict.fromkeys(table for feed in block.feeds for table in feed.tables)
    return {"table": block.name, **({"reads": [*reads]} if reads else {}), "keys": keys(block), **charged}


def keys(block: Ready) -> Mapping[str, JSON]:
    """The rule by which groups appear in a release."""
    release, priced = block.release, block.priced
    names = [key.name for key in release.table.keys]
    match release.keys:
        case NoKeys():
            return {"rule": "none", "names": names}
        case ListedKeys(rows=rows, origin=origin):
            return {"rule": "listed", "names": names, "count": len(rows), "origin": origin}
        case ReleasedKeys(origin=origin):
            return {"rule": "released", "names": names, "most": MAX_KEYS, "origin": origin}
        case PrivateKeys(minimum=minimum):
            return {"rule": "threshold", "names": names, "threshold": priced.threshold, "min_units": minimum, "delta": number(priced.price.delta)}
        case _:
            assert_never(release.keys)


def plan_warnings(prepared: Prepared, schema: Schema) -> tuple[str, ...]:
    """What the plan itself gives reason to say, before any data was read."""
    unsafe = ("UNSAFE TESTING: the schema lifts the limits; this answer protects nobody.",) if schema.unsafe_testing else ()
    free = prepared.bill.price.epsilon is None and left_open(prepared)
    by_rho = free and prepared.ask.rho is None
    drawn = {noise.mechanism for one in prepared.bill.releases for noise in one.noises}
    what = "Gaussian noise" if Mechanism.GAUSSIAN in drawn else "The exponential mechanism"
    charged = (f"{what} errs least here and is charged in rho: an account that has any adds up epsilons no longer. noise='laplace' avoids it.",)
    said = dict.fromkeys(warning for release in prepared.releases.values() for warning in warnings(release))
    return (*unsafe, *(charged if by_rho else ()), *(() if prepared.aim is None else (prepared.aim.said,)), *said, *_assured(prepared))


def _assured(prepared: Prepared) -> Iterator[str]:
    """How sure each mode is, and each group that was chosen: no error bar can say it."""
    for block in prepared.blocks:
        for one in block.release.aggregates:
            if one.leading is not None:
                yield leading.assured(one, [block.priced.noises[i] for i in one.parts], prepared.ask.confidence)
            if one.values:
                yield mode.assured(one.label, one, [block.priced.noises[i] for i in one.parts], prepared.ask.confidence)


def cited(prepared: Prepared) -> tuple[str, ...]:
    """The ids of the lemmas that the statement's argument uses."""
    found = {lemma for release in prepared.releases.values() for lemma in lemmas(release)}
    if len(prepared.blocks) > 1:
        found.update(("P8", "P9", "P10"))
    elif prepared.bill.conversion and prepared.bill.price.delta:
        found.add("P11")
    return tuple(sorted(found, key=lambda lemma: (lemma[0], int(lemma[1:]))))
