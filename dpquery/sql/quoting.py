"""Names as a statement has to write them: in quotation marks where they are not plain words, so that what a refusal names can be pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from sqlglot.dialects import Dialect

from dpquery.errors import Refused
from dpquery.schema.model import Schema

WORDS = """all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default deferrable desc describe
distinct do else end except false fetch for foreign from group having in initially intersect into lambda lateral leading limit not null offset on
only or order pivot placing primary qualify references returning select show some summarize symmetric table then to trailing true union unique
unpivot using variadic when where window with"""
RESERVED: Final = frozenset(WORDS.split())
PLAIN = re.compile(r"[A-Za-z_]\w*")
NAME: Final = r"""(?:\w+|"(?:[^"]|"")+"|`[^`]+`)"""
"""A name in a text, as a pattern."""
MARKED = re.compile(r'"((?:[^"]|"")+)"')
TEXT = re.compile(r"'([^']+)' is not ")


def written(name: str) -> str:
    """The name as a statement has it."""
    return name if PLAIN.fullmatch(name) and name.lower() not in RESERVED else '"' + name.replace('"', '""') + '"'


def bare(text: str) -> str:
    """The last part of a dotted name without quotation marks, in small letters; of anything else the text itself."""
    found = re.fullmatch(rf"(?:{NAME}\.)*({NAME})", text)
    return text.lower() if found is None else found[1].strip('"`').lower()


def near_name(name: str, known: Iterable[str]) -> str:
    """A hint at the names of columns or tables that look like `name`, as they are written; nothing where none does."""
    by_folded = {other.lower(): other for other in known}
    close = [by_folded[other] for other in get_close_matches(name.lower(), list(by_folded), n=3, cutoff=0.6)]
    shown = [repr(other) if written(other) == other else written(other) for other in close]
    return f" (did you mean {' or '.join(shown)}?)" if shown else ""


def mended(refused: Refused, text: str, schema: Schema, dialect: str) -> None:
    """Nothing; the refusal hints at quotation marks where they are what is missing, and has those of the dialect."""
    names = {name.lower(): name for table in schema.tables.values() for name in table.columns}
    said = TEXT.search(refused.message)
    if said is not None and said[1].lower() in names and f"'{said[1]}'" in text:
        refused.instead = f"{written(names[said[1].lower()])}, if the column is meant: single quotes make a text; else {refused.instead}"
    if refused.code == "SYNTAX":
        words = [names[word] for word in RESERVED & names.keys() if re.search(rf"[(,]\s*{word}\b|\b{word}\s*(?:[),=<>]|\Z)", text, re.IGNORECASE)]
        if re.match(r"\s*SELECT\s+(?:DISTINCT\s+)?TOP\s*\(?\s*\d", text, re.IGNORECASE):
            refused.instead = "ORDER BY .. LIMIT 3 at the end of the statement, in place of TOP 3"
        if words:
            refused.instead = f"{written(words[0])}, if the column is meant: {words[0]} is a word of SQL; else {refused.instead}"
    if refused.instead and refused.code != "DIALECT" and Dialect.get_or_raise(dialect.lower()).IDENTIFIER_START == "`":
        refused.instead = MARKED.sub(r"`\1`", refused.instead)
        refused.message = re.sub(r"\(did you mean .*", lambda found: MARKED.sub(r"`\1`", found[0]), refused.message)
