"""What the session hands to the noise: the very noises and threshold that were charged, and the operating system's bits.

Below the session the audits draw as the session should. Here statements go through `Session.query`, and what it draws by is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from audit_shapes import SHAPES, made

from dpquery.accounting.event import Price
from dpquery.engine import asking, open_session
from dpquery.engine.session import Session
from dpquery.ledger import Ledger
from dpquery.mechanisms import SystemBits
from dpquery.plan.release import Mechanism, Release
from dpquery.privacy import enforced, reprice
from dpquery.privacy.cost import Priced
from dpquery.release import noise
from dpquery.values.exact import Exact
from dpquery.values.noisy import Noisy

ASKED = (
    "count",
    "Gaussian",
    "Laplace priced in rho",
    "explicit shares",
    "public keys, some empty",
    "private keys, Laplace",
    "private keys, both noises",
)


@dataclass
class Seen:
    """In order: what was charged; by what noise was drawn, and of which plan; what came of it; what was released."""

    charged: list[Price] = field(default_factory=list)
    drawn: list[tuple[Release, Priced, object]] = field(default_factory=list)
    noisy: list[Noisy] = field(default_factory=list)
    released: list[Mapping[str, Noisy]] = field(default_factory=list)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    opened = open_session(made(tmp_path_factory.mktemp("drawn") / "data", "add_remove", "high"))
    yield opened
    opened.close()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    add, charge, finish = noise.add, Ledger.charge, Session._finish

    def drawing(exact: Exact, release: Release, priced: Priced, bits: Any) -> Noisy:
        found.drawn.append((release, priced, bits))
        found.noisy.append(add(exact, release, priced, bits))
        return found.noisy[-1]

    def charging(ledger: Ledger, analyst: str, price: Price, *given: Any) -> Any:
        found.charged.append(price)
        return charge(ledger, analyst, price, *given)

    def finishing(session: Session, noisy: Mapping[str, Noisy], *given: Any) -> Any:
        found.released.append(noisy)
        return finish(session, noisy, *given)

    monkeypatch.setattr(noise, "add", drawing)
    monkeypatch.setattr(Ledger, "charge", charging)
    monkeypatch.setattr(Session, "_finish", finishing)
    return found


@pytest.mark.parametrize("shape", ASKED)
def test_noise_is_drawn_once_by_what_was_charged(session: Session, seen: Seen, shape: str) -> None:
    """The price of what it is drawn by, derived here from the plan, is the one that went to the ledger; what came of it is what is released."""
    session.query(SHAPES[shape])
    ((release, drawn, bits),), (price,) = seen.drawn, seen.charged
    assert drawn.price == price
    assert reprice(enforced(release), drawn, session.schema.adjacency) == price
    assert type(bits) is SystemBits
    assert len(seen.released) == 1
    assert [*seen.released[0].values()] == seen.noisy


def test_every_kind_of_noise_is_looked_at(session: Session) -> None:
    asked = [session._prepare(SHAPES[shape], asking.call(), "duckdb").blocks[0].priced for shape in ASKED]
    assert {one.mechanism for priced in asked for one in priced.noises} == set(Mechanism)
    assert {priced.threshold is None for priced in asked} == {True, False}
