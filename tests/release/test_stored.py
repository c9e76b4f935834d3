"""Stored answers as bytes: what is packed comes back exactly, and nothing of another format or shape is taken for an answer."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID as Uuid

import pytest

from dpquery.accounting.event import Price
from dpquery.mechanisms import Noise
from dpquery.plan.release import Bins, Choosing, Clamp, Key, Mechanism, One, Part
from dpquery.plan.sameness import Form, Same
from dpquery.plan.scalar import Column
from dpquery.privacy import Bill, Priced
from dpquery.release import stored
from dpquery.release.stored import Released, packed, unpacked
from dpquery.values.noisy import Noisy
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, INTERVAL, NULL, STRING, TIMESTAMP, UUID, Kind, Type, Value

# of each type two values, in order
VALUES: dict[Type, tuple[Value, Value]] = {
    BOOLEAN: (False, True),
    INTEGER: (-(2**62), 7),
    Type(Kind.DECIMAL, 2): (Decimal("-0.10"), Decimal("99999999999999999999.99")),
    FLOAT: (-5e-324, 0.1),
    STRING: ("", "é\0'"),
    DATE: (date(1, 1, 1), date(2024, 2, 29)),
    TIMESTAMP: (datetime(1999, 12, 31, 23, 59, 59, 1), datetime(2024, 2, 29)),
    UUID: (Uuid(int=1), Uuid(int=2**128 - 1)),
}
KEYS = tuple(Key(f"k{i}", Column(i, f"k{i}", kind), kind) for i, kind in enumerate(VALUES))
ROWS = (*zip(*VALUES.values(), strict=True), (None,) * len(KEYS))
SHAPE: Any = SimpleNamespace(table=SimpleNamespace(keys=KEYS, parts=(Part(One(), Clamp(0, 9)), Part(One(), Bins(1, 1, 2)))))
WHOLE: Any = SimpleNamespace(table=SimpleNamespace(keys=(), parts=(Part(One(), Clamp(0, 9)),)))
RELEASED = Released(
    (Noisy(ROWS, ((2**70, -1, 0), (1, 2, 3, 4, 5, 6))), Noisy(((),), ((-3,),))),
    Bill(
        (
            Priced(
                (Noise(Mechanism.LAPLACE, Fraction(10, 3)), Noise(Choosing.EXPONENTIAL, Fraction(7))),
                12,
                Price(Fraction(1, 3), Fraction(1, 9), Fraction(1, 10**6)),
                (Fraction(1, 4), Fraction(3, 4)),
                Fraction(1, 3),
                Fraction(1, 10**6),
                Fraction(0),
            ),
            Priced(
                (Noise(Mechanism.GAUSSIAN, Fraction(5)),), None, Price(None, Fraction(1, 8), Fraction(0)), (Fraction(1),), None, *[Fraction(0)] * 2
            ),
        ),
        Price(None, Fraction(1, 2), Fraction(1, 10**6)),
        Fraction(2),
        Fraction(1, 10**5),
        Fraction(9, 10**6),
    ),
    ("said on the way",),
)
PLACES = tuple(range(len(KEYS)))
SAME = Same("digest", (1, 0), (Form("one", (), (0,)), Form("two", PLACES[::-1], (1, 0))))


def content(change: Callable[[Any], object] = lambda _: None) -> bytes:
    """The packed answer after a change of what it says."""
    made = packed(RELEASED, SAME)
    assert made is not None
    said = json.loads(zlib.decompress(made))
    change(said)
    return zlib.compress(json.dumps(said).encode())


def test_what_is_packed_comes_back_exactly() -> None:
    """Keys of every type, NULL too, each as a value of its own type; whichever order keys, parts and releases are kept in."""
    for order in (SAME, Same("digest", (0, 1), (Form("two", PLACES, (0, 1)), Form("one", (), (0,))))):
        made = packed(RELEASED, order)
        assert made is not None
        found = unpacked(made, order, (SHAPE, WHOLE))
        assert found == RELEASED
        assert [[type(value) for value in row] for row in found.noisy[0].keys] == [[type(value) for value in row] for row in ROWS]


def test_another_spelling_reads_it_in_its_own_order() -> None:
    """What one spelling kept, another reads whose keys, parts and releases stand the other way round."""
    shape = SimpleNamespace(table=SimpleNamespace(keys=KEYS[::-1], parts=SHAPE.table.parts[::-1]))
    theirs = Same("digest", (0, 1), (Form("one", (), (0,)), Form("two", PLACES, (0, 1))))
    whole, found = unpacked(content(), theirs, (WHOLE, cast(Any, shape))).noisy
    assert whole == RELEASED.noisy[1]
    of_key = {row[::-1]: (found.sums[1][i], found.sums[0][2 * i : 2 * i + 2]) for i, row in enumerate(found.keys)}
    assert of_key == {ROWS[0]: (2**70, (1, 2)), ROWS[1]: (-1, (3, 4)), ROWS[2]: (0, (5, 6))}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda said: said.update(format=stored.FORMAT + 1), "another format"),
        (lambda said: said["tables"][1]["sums"][0].pop(), "another shape"),
        (lambda said: said["tables"][1]["keys"].pop(), "another shape"),
        (lambda said: said["tables"][1]["keys"][0].pop(), "shorter|longer"),
        (lambda said: said["tables"].pop(), "shorter|longer"),
        (lambda said: said["tables"][1]["shares"].pop(), "shorter|longer"),
        (lambda said: said["tables"][1]["noises"][0].__setitem__(0, "none"), "none"),
        (lambda said: said["tables"][1]["keys"][0].__setitem__(0, "no uuid"), "UUID"),
    ],
)
def test_what_is_of_another_format_or_shape_is_no_answer(change: Callable[[Any], object], words: str) -> None:
    assert unpacked(content(), SAME, (SHAPE, WHOLE)) == RELEASED
    with pytest.raises(ValueError, match=words):
        unpacked(content(change), SAME, (SHAPE, WHOLE))


@pytest.mark.parametrize("kind", [INTERVAL, NULL, INTEGER.listed])
def test_no_key_is_of_a_type_that_columns_do_not_have(kind: Type) -> None:
    shape = SimpleNamespace(table=SimpleNamespace(keys=(Key("k", Column(1, "k", kind), kind), *KEYS[1:]), parts=SHAPE.table.parts))
    with pytest.raises(ValueError, match="no key is of such a type"):
        unpacked(content(), SAME, (cast(Any, shape), WHOLE))


def test_an_answer_that_is_too_large_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LARGEST", 10)
    assert packed(RELEASED, SAME) is None
