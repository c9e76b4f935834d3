"""Answers that were released before: found again by what is asked, and by whom; and how an answer of now is stored, to be found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import error

from dpquery.engine import receipt
from dpquery.ledger import Amounts, Entry, Kept, Ledger, Stored
from dpquery.ledger.chain import MALFORMED
from dpquery.mechanisms import Noise
from dpquery.plan.release import Ask, Choosing, Mechanism, PrivateKeys, Release
from dpquery.plan.sameness import Measured, Same, same
from dpquery.privacy import Bill, Priced
from dpquery.release.stored import Released, packed, unpacked
from dpquery.schema.model import Schema
from dpquery.values.noisy import Noisy

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared

JSON = Any


@dataclass(frozen=True, slots=True)
class Asked:
    """What a statement asks for: the hash of its question, and how its releases stand in the order that all spellings share."""

    question: str
    same: Same


@dataclass(frozen=True, slots=True)
class Again:
    """A stored answer as this statement shows it: with the noise that was drawn then, under the entry by which the account has seen it."""

    prepared: Prepared
    noisy: Mapping[str, Noisy]
    said: tuple[str, ...]
    entry: Entry
    record: Mapping[str, JSON]


def asked(prepared: Prepared, schema: Schema, version: int) -> Asked:
    """The question: what is released, of which data, under which schema, by which software's plan. Neither spelling nor price is in it.

    Public tables are part of the data version.
    """
    drafts = {block.name: block.draft for block in prepared.question.blocks}
    found = same([Measured(block.name, block.release, drafts[block.name], block.feeds) for block in prepared.blocks], prepared.question.opened)
    content = json.dumps(["question", receipt.PLAN_VERSION, schema.digest, version, found.digest])
    return Asked(hashlib.sha256(content.encode()).hexdigest(), found)


def kept(wanted: Asked, prepared: Prepared, noisy: Mapping[str, Noisy], said: Mapping[str, None], schema: Schema) -> Kept | None:
    """The answer of now, to be stored; None where none is: in testing without limits, or because it is too large."""
    if schema.unsafe_testing:
        return None
    content = packed(Released(tuple(noisy[block.name] for block in prepared.blocks), prepared.bill, tuple(said)), wanted.same)
    return None if content is None else Kept(wanted.question, content)


def again(wanted: Asked, prepared: Prepared, schema: Schema, version: int, ledger: Ledger, analyst: str) -> Again | None:
    """The stored answer that the account is shown, None where there is none: a function of the question and of what the log says of it.

    One that the account has seen serves for nothing where it is nowhere noisier than what is asked; of several the dearest, then the latest. One that
    it has not seen serves under `share_answers`, at exactly the price that is asked, which is charged: OverBudget where it does not fit.
    """
    found = _found(wanted, prepared, schema, ledger, analyst)
    if found is None:
        return None
    one, released = found
    then = _then(prepared, released)
    record = receipt.record(then, schema, version)
    if one.seen is not None:
        entry = Entry(one.seen.id, one.seen.commitment, one.seen.time, ledger.balance(analyst).left)
    else:
        entry = ledger.charge(analyst, prepared.bill.price, record, of=one.charge)
    how = "and was seen before: nothing was charged" if one.seen is not None else "to another account: its price was charged, but not to the data set"
    said = (*released.said, f"This is a stored answer. It was released at {one.time} {how}.")
    noisy = {block.name: table for block, table in zip(prepared.blocks, released.noisy, strict=True)}
    return Again(then, noisy, said, entry, {**record, "stored": {"time": one.time, "charged": one.seen is None}})


def free(wanted: Asked, prepared: Prepared, schema: Schema, ledger: Ledger, analyst: str) -> bool:
    """Whether the statement would cost the account nothing, as it has seen a stored answer that serves."""
    found = _found(wanted, prepared, schema, ledger, analyst)
    return found is not None and found[0].seen is not None


def _found(wanted: Asked, prepared: Prepared, schema: Schema, ledger: Ledger, analyst: str) -> tuple[Stored, Released] | None:
    for one in () if schema.unsafe_testing else ledger.stored(analyst, wanted.question):
        if one.seen is None and not schema.share_answers:
            return None
        released = _released(one, wanted, prepared, ledger)
        if released is not None and _serves(one, released.bill, prepared):
            return one, released
    return None


def _released(one: Stored, wanted: Asked, prepared: Prepared, ledger: Ledger) -> Released | None:
    content = ledger.content(one)
    try:
        return None if content is None else unpacked(content, wanted.same, [block.release for block in prepared.blocks])
    except (*MALFORMED, error):  # as another version of the software wrote it: the question is asked anew
        return None


def _then(prepared: Prepared, released: Released) -> Prepared:
    """The statement at the price that was paid for the answer, with the noises that were drawn then."""
    paired = zip(prepared.blocks, released.bill.releases, strict=True)
    return replace(prepared, bill=released.bill, blocks=tuple(replace(block, priced=priced) for block, priced in paired))


# ---- the same question twice in a workload that was not asked yet --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Noises:
    """A question with the noises and the threshold of each release, in the order that all its spellings share."""

    question: str
    releases: tuple[tuple[tuple[Noise, ...], int], ...]


def noises(prepared: Prepared, schema: Schema) -> Noises:
    """What a statement asks for, and how precisely; of whatever data version is at hand."""
    wanted = asked(prepared, schema, 0)
    priced = [prepared.blocks[i].priced for i in wanted.same.order]
    releases = tuple((tuple(p.noises[i] for i in form.parts), p.threshold or 0) for p, form in zip(priced, wanted.same.forms, strict=True))
    return Noises(wanted.question, releases)


def serves(before: Noises, wanted: Noises) -> bool:
    """Whether an answer with these noises will serve for what is asked: of the same mechanisms and nowhere noisier."""
    if before.question != wanted.question:
        return False
    releases = zip(before.releases, wanted.releases, strict=True)
    return all(
        threshold <= most and all(_no_noisier(one, other, named=True) for one, other in zip(those, these, strict=True))
        for (those, threshold), (these, most) in releases
    )


# ---- whether a stored answer is as good as what is asked -----------------------------------------------------------------------------


def _serves(one: Stored, stored: Bill, prepared: Prepared) -> bool:
    """Whether the stored noise is nowhere larger, nor a threshold higher, than what is asked and would be charged; for who has not seen it, equal.

    Where an error was asked for, whether the stored noise stays within it.
    """
    blocks = list(zip(stored.releases, prepared.blocks, strict=True))
    if one.seen is not None and prepared.aim is not None:
        thresholds = ((priced.threshold or 0) <= (block.priced.threshold or 0) for priced, block in blocks)
        return prepared.aim.met(stored) and all(thresholds)
    if one.seen is not None:
        return all(_covers(priced, block.priced, block.release, block.ask) for priced, block in blocks)
    equal = all((priced.noises, priced.threshold) == (block.priced.noises, block.priced.threshold) for priced, block in blocks)
    return equal and one.amounts == Amounts.of(prepared.bill.price)


def _covers(stored: Priced, wanted: Priced, release: Release, ask: Ask) -> bool:
    selecting = release.keys.count if isinstance(release.keys, PrivateKeys) else None
    named = [ask.noise is not None or (i == selecting and ask.selection is not None) for i in range(len(wanted.noises))]
    parts = zip(stored.noises, wanted.noises, named, strict=True)
    return (stored.threshold or 0) <= (wanted.threshold or 0) and all(_no_noisier(*part) for part in parts)


def _no_noisier(stored: Noise, wanted: Noise, named: bool) -> bool:
    """Of two mechanisms the variances are compared, unless the statement names its own."""
    if stored.mechanism is wanted.mechanism:
        return stored.parameter <= wanted.parameter
    if named or isinstance(stored.mechanism, Choosing) or isinstance(wanted.mechanism, Choosing):
        return False
    return (2 * stored.parameter**2 if stored.mechanism is Mechanism.LAPLACE else stored.parameter) <= (
        2 * wanted.parameter**2 if wanted.mechanism is Mechanism.LAPLACE else wanted.parameter
    )
