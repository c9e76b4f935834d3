"""The argument for people: the list of its lemmas, and one lemma with its proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from dpquery.display.text import Column, facts, grid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dpquery.engine.proofs import Lemma


def listed(found: Sequence[Lemma]) -> Iterator[RenderableType]:
    """All lemmas, a line or a few each: what the function promises, where it stands, how many tests there are."""
    yield grid(
        [
            Column("id", tuple(lemma.id for lemma in found)),
            Column("what is proved", tuple(lemma.title for lemma in found)),
            Column("function", tuple(".".join(lemma.function.split(".")[-2:]) for lemma in found)),
            Column("tests", tuple(str(len(lemma.tests)) for lemma in found), number=True),
        ]
    )
    yield Text("\n`dpquery proofs C6` shows one of them with its proof. How they chain: dpquery/privacy/README.md")


def whole(lemma: Lemma) -> Iterator[RenderableType]:
    """One lemma: its five parts, its function, and its tests as pytest takes them."""
    yield Text(f"{lemma.id}. {lemma.title}\n")
    yield facts(
        (
            ("given", lemma.given),
            ("claim", lemma.claim),
            ("proof", lemma.proof),
            ("tight", lemma.tight),
            ("source", lemma.source),
            ("function", lemma.function),
        )
    )
    yield Text("\nTests, for `python -m pytest` in a clone of the project:")
    yield from map(Text, lemma.tests)
