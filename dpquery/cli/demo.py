"""The sample shop in a folder: data, schema and ledger."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dpquery.cli import stream
from dpquery.errors import Refused

SCHEMA = "shop.yaml"


def make(folder: Path) -> None:
    """The folder holds shop.duckdb, shop.yaml and shop.ledger. Refused where one of them is there already: a ledger is never replaced."""
    made = [folder / name for name in ("shop.duckdb", SCHEMA, "shop.ledger")]
    there = [path for path in (*made, folder / "shop.duckdb.ledger-id") if os.path.lexists(path)]
    if there:
        raise Refused("DEMO_EXISTS", f"{there[0]} is there already", instead="name another folder, or remove this one with all that was spent")
    import duckdb

    from dpquery.cli import sample
    from dpquery.engine import create_ledger

    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(schema_file(), made[1])
        sample.write(made[0])
    except (OSError, duckdb.Error) as error:
        reason = getattr(error, "strerror", None) or "its disk may be full"
        raise Refused("NO_FILE", f"cannot write to {folder}: {reason}", instead="name a folder that can be written to") from None
    create_ledger(made[1])
    stream.write("".join(f"made {path}\n" for path in made))
    stream.write(f'try: dpquery query "SELECT count(*) AS orders FROM orders" --schema {made[1]}\n')


def schema_file() -> Path:
    """The sample's schema: inside an installed package, or among the schemas of a working copy."""
    installed = Path(__file__).with_name(SCHEMA)
    return installed if installed.exists() else Path(__file__).parents[2] / "schemas" / SCHEMA
