"""A source belongs to one ledger for life: an id file beside it says to which, so that a second ledger cannot start its budget anew."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dpquery.errors import Fault, Refused
from dpquery.ledger import mark
from dpquery.schema.model import Schema

SUFFIX: Final = ".ledger-id"
_ID = re.compile(rf"dpquery ledger ([0-9a-f]{{32}})\n(?:files (.+)\n)?{mark.LINE}?")
_MAGIC = re.compile(r"[*?\[\]{}]")


def places(schema: Schema) -> tuple[Path, ...]:
    """The id files of the schema's private data: beside the database, or one for each pattern of files."""
    return tuple(_places(schema))


def _places(schema: Schema) -> dict[Path, str]:
    """The id files, each with the pattern that it stands for, from its folder on; empty for one file."""
    if schema.database is not None:
        return {schema.database.with_name(schema.database.name + SUFFIX): ""}
    return dict(_beside(schema.file.parent, pattern) for pattern in _patterns(schema))


def _patterns(schema: Schema) -> list[str]:
    return [p for table in schema.tables.values() if table.files is not None and not table.public for p in table.files.patterns]


def free(schema: Schema) -> None:
    """Nothing, or Refused where some of the data has a ledger already, under whatever pattern its files were named."""
    for place in (*places(schema), *_covering(schema), *_twins(schema)):
        if os.path.lexists(place):
            raise _bound(place)


def _covering(schema: Schema) -> Iterator[Path]:
    """The id files that would bind the schema's files had they been named otherwise: each file's own, and those of patterns that match one."""
    files = {path for pattern in _patterns(schema) for path in _matched(schema.file.parent, pattern)}
    yield from (path.with_name(path.name + SUFFIX) for path in sorted(files))
    for folder in sorted({parent for path in files for parent in path.parents}):
        for place in sorted(folder.glob(f".*{SUFFIX}")):
            _, pattern = _read(place) or ("", "")
            if pattern and not files.isdisjoint(_matched(folder, pattern)):
                yield place


def _twins(schema: Schema) -> Iterator[Path]:
    """The id files, in the folders of the schema's files, of files that are the same as one of those under another name (a hard link)."""
    files = {schema.database} if schema.database is not None else {p for each in _patterns(schema) for p in _matched(schema.file.parent, each)}
    known = {(found.st_dev, found.st_ino) for found in map(_stat, files) if found is not None}
    for folder in sorted({file.parent for file in files}):
        for place in sorted(folder.glob(f"*{SUFFIX}")):
            found = _stat(place.with_name(place.name.removesuffix(SUFFIX)))
            if found is not None and (found.st_dev, found.st_ino) in known:
                yield place


def _stat(file: Path) -> os.stat_result | None:
    with suppress(OSError):
        return file.stat()
    return None


def _matched(folder: Path, pattern: str) -> set[Path]:
    found = glob.glob(os.path.join(glob.escape(str(folder)), pattern), recursive=True)
    return {Path(os.path.realpath(path)) for path in found if os.path.isfile(path)}


def bind(schema: Schema, ledger: str) -> tuple[Path, ...]:
    """The id files, written. Refused where one exists; then none is left behind."""
    written: list[Path] = []
    try:
        for place, pattern in _places(schema).items():
            _write(place, _id(ledger, pattern), written)
    except BaseException:
        unbind(written)
        raise
    return tuple(written)


def _id(ledger: str, pattern: str) -> str:
    return f"dpquery ledger {ledger}\n" + (f"files {pattern}\n" if pattern else "") + mark.written(mark.NONE)


def unbind(written: Sequence[Path]) -> None:
    """The id files of a ledger that did not come to be are gone."""
    for place in written:
        with suppress(OSError):
            place.unlink()


def belongs(schema: Schema, ledger: str) -> None:
    """Nothing, or the Fault LEDGER_FOREIGN where the data is not bound to this ledger."""
    for place in places(schema):
        read = _read(place)
        if read is None:
            message = f"the data is not bound to this ledger: {place.name} is missing beside it"
            raise Fault("LEDGER_FOREIGN", message, instead=f"restore {place} with the line `dpquery ledger {ledger}` if this is the data's ledger")
        found = read[0]
        if found != ledger:
            message = f"the data belongs to another ledger: {place.name} beside it names `{found or 'nothing'}`, this one is `{ledger}`"
            raise Fault("LEDGER_FOREIGN", message, instead="name the ledger that the data was bound to when it was created")


def _beside(folder: Path, pattern: str) -> tuple[Path, str]:
    """The id file of a pattern: beside the file; for many files hidden in the deepest folder named in full, where the pattern cannot match it."""
    if not _MAGIC.search(pattern):
        path = Path(os.path.realpath(folder / pattern))
        return path.with_name(path.name + SUFFIX), ""
    steps = Path(pattern).parts
    fixed = next(i for i, step in enumerate(steps) if _MAGIC.search(step))
    name = _MAGIC.sub("_", "_".join(steps[fixed:]))
    return Path(os.path.realpath(folder.joinpath(*steps[:fixed]))) / f".{name}{SUFFIX}", "/".join(steps[fixed:])


def _write(place: Path, content: str, written: list[Path]) -> None:
    try:
        file = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        written.append(place)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        settled(place.parent)
    except FileExistsError:
        raise _bound(place) from None
    except OSError as error:
        raise Fault(
            "LEDGER_FAILED",
            f"{place} cannot be written: {error.strerror}",
            instead="the data's folder must be writable once, when its ledger is created",
        ) from None


def settled(folder: Path) -> None:
    """What was made or renamed in the folder is on the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _read(place: Path) -> tuple[str, str] | None:
    """The ledger id and the pattern in an id file: empty where it holds none, None where there is no such file."""
    try:
        found = _ID.fullmatch(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return "", ""
    return ("", "") if found is None else (found[1], found[2] or "")


def _bound(place: Path) -> Refused:
    message = f"the data has a ledger already: {place.name} lies beside it; a second ledger would start its budget anew"
    return Refused("SOURCE_BOUND", message, instead="use that ledger (`--ledger PATH`), or restore it from its backup")
