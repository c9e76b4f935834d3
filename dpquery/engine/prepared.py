"""A statement on its way: read, bounded, priced and lowered, before anything was charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpquery.backends.port import BoundedSQL
from dpquery.engine.aim import Aim
from dpquery.plan.draft import Feed, Post, Question
from dpquery.plan.release import Ask, Release
from dpquery.privacy import Bill, Priced
from dpquery.release import answer as answers
from dpquery.values.noisy import Noisy
from dpquery.values.types import Type

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Ready:
    """One release of a statement, bounded, priced and lowered."""

    name: str
    ask: Ask
    release: Release
    priced: Priced
    lowered: BoundedSQL
    feeds: tuple[Feed, ...] = ()
    wider: tuple[tuple[str, str], ...] = ()

    @property
    def key_types(self) -> tuple[Type, ...]:
        return tuple(key.type for key in self.release.table.keys)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement bounded, priced and lowered; no private row was read for it and nothing was charged. `ask` is the statement's own."""

    text: str
    question: Question
    ask: Ask
    blocks: tuple[Ready, ...]
    bill: Bill
    opened: answers.Given = field(default_factory=dict)  # public relations that are read above the noise
    params: Mapping[str, str | None] = field(default_factory=dict)
    aim: Aim | None = None  # where the price was found for an error
    tidy: bool = False  # whether tidied values stand beside released ones

    def columns(self, block: Ready, noisy: Noisy) -> list[answers.NoisyColumn]:
        """The noisy table of a release, with the ends of its error bars that are read above it."""
        bars = answers.bars_read(noisy, block.release, block.priced, self.question.ends_of(block.name), self.ask.confidence)
        return answers.columns(noisy, block.release, bars, block.priced.noises)

    def released(self, how: Post, table: pa.Table, noisy: Mapping[str, Noisy]) -> dict[str, answers.Released]:
        """The releases by their aliases in a finished table, with the row of each that a row of the answer comes from."""
        rows = (table.column(len(how.outputs) + i).to_pylist() for i in range(len(how.rows)))
        blocks = {block.name: block for block in self.blocks}
        levels = {block.name: block.level for block in self.question.blocks}
        return {
            alias: answers.Released(blocks[name].release, noisy[name], blocks[name].priced, one, levels[name])
            for (alias, name), one in zip(how.rows, rows, strict=True)
        }

    @property
    def releases(self) -> Mapping[str, Release]:
        """The bounded releases, by the table that each becomes."""
        return {block.name: block.release for block in self.blocks}
