"""Where a ledger is: a file, or a PostgreSQL database named by its URL. What is shown of a URL never holds a user or a password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from dpquery.errors import Refused

SCHEMES: Final = ("postgresql://", "postgres://")
_HOST: Final = r"(?:[\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?"
_URL: Final = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>[^@/?#:]*)(?::(?P<password>[^@/?#]*))?@)?(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<name>[\w.%-]*))?(?:\?(?P<more>[^#]*))?"
)
SHOWN: Final = ("host", "port", "dbname", "options")  # parameters that are no secret
_SECRET: Final = ("password", "sslpassword", "oauth_client_secret")


@dataclass(frozen=True, slots=True)
class Address:
    """A ledger's database. `url` may hold a password; nothing else here does."""

    url: str = field(repr=False)
    shown: str

    def __str__(self) -> str:
        return self.shown


Place: TypeAlias = Path | Address


def place(given: str | Place) -> Place:
    """The file or the database that is meant. Refused for a URL that is none; it is not repeated, as it may hold a password."""
    if isinstance(given, Path | Address):
        return given
    if not given.startswith(SCHEMES):
        return Path(given)
    found = _URL.fullmatch(given)
    if found is None:
        raise Refused("USAGE", "the ledger's URL cannot be read", instead="postgresql://USER@HOST:PORT/DATABASE, an @ within written as %40")
    more = "&".join(f"{name}={value}" for name, value in parse_qsl(found["more"] or "") if name in SHOWN)
    return Address(given, f"postgresql://{found['hosts']}/{found['name'] or ''}" + (f"?{more}" if more else ""))


def holds_password(url: str) -> bool:
    """Whether a URL of a database holds a password."""
    found = _URL.fullmatch(url)
    return found is None or bool(found["password"]) or any(name in _SECRET for name, _ in parse_qsl(found["more"] or ""))
