"""The allow-list: typing rules, refusals of what has no type, and the page that lists it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from scalars import column, scalar

from dpquery.plan.coerce import Mismatch, common, convert, fold, parse
from dpquery.plan.functions import FORBIDDEN, FUNCTIONS, NAMES, call, choose, reference
from dpquery.plan.scalar import Cast, Literal
from dpquery.values.types import BOOLEAN, DATE, FLOAT, INTEGER, NULL, STRING, TIMESTAMP, UUID, Kind, Type

ROOT = Path(__file__).parents[2]


def test_the_documentation_lists_every_function() -> None:
    """Generated: `python -c "from dpquery.plan.functions import reference; print(reference(), end='')" > docs/functions.md`."""
    assert (ROOT / "docs" / "functions.md").read_text() == reference()


def test_what_is_allowed_is_not_forbidden() -> None:
    assert not NAMES & set(FORBIDDEN)
    assert all(name == entry.name and entry.least <= entry.most for name, entry in FUNCTIONS.items())


D0, D1, D2, D4 = (Type(Kind.DECIMAL, scale) for scale in (0, 1, 2, 4))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + j", INTEGER),
        ("i + 1.5", D1),
        ("p + q", D4),
        ("p * q", Type(Kind.DECIMAL, 6)),
        ("p + x", FLOAT),
        ("i / j", FLOAT),
        ("p / q", FLOAT),
        ("i // j", INTEGER),
        ("p % 3", D2),
        ("floor(p)", D0),
        ("round(p, 1)", D1),
        ("round(p, 9)", D2),
        ("sign(x)", INTEGER),
        ("i > x", BOOLEAN),
        ("CASE WHEN f THEN i ELSE 1.5 END", D1),
        ("CASE WHEN f THEN NULL END", INTEGER),
        ("coalesce(d, ts)", TIMESTAMP),
        ("coalesce(d, '2024-01-01')", DATE),
        ("s || i", STRING),
        ("d + 1", DATE),
        ("d + INTERVAL 1 DAY", TIMESTAMP),
        ("d - e", INTEGER),
        ("date_trunc('month', d)", TIMESTAMP),
        ("year(d)", INTEGER),
        ("epoch(ts)", FLOAT),
        ("last_day(ts)", DATE),
        ("9223372036854775807", INTEGER),
        ("9223372036854775808", D0),
        ("-9223372036854775808", INTEGER),
        ("1e0", FLOAT),
        ("NULL", NULL),
        ("CAST(s AS UUID)", UUID),
    ],
)
def test_types(text: str, kind: Type) -> None:
    assert scalar(text).type == kind


def test_literals_are_converted_at_once_and_columns_by_a_total_cast() -> None:
    one = Literal(1, INTEGER)
    assert convert(one, FLOAT) == Literal(1.0, FLOAT)
    assert convert(one, D2) == Literal(Decimal("1.00"), D2)
    assert convert(column("i"), D2) == Cast(column("i"), D2)
    assert convert(Literal("2024-02-29", STRING), DATE) == Literal(parse("2024-02-29", DATE), DATE)
    assert fold(Literal(Decimal("1.5"), D1), INTEGER) == Cast(Literal(Decimal("1.5"), D1), INTEGER)
    assert call("eq", column("d"), Literal("2024-02-29", STRING)).args[1].type == DATE
    assert common([column("i"), Literal(None, NULL), column("p")]) == D2


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("2024-02-30", DATE), ("infinity", DATE), ("2024-01-01 10:00:00", DATE), ("20240101", DATE), ("0000-01-01", DATE)),
        *(
            ("2024-01-01 25:00:00", TIMESTAMP),
            ("2024-01-01 10:00:00+02", TIMESTAMP),
            ("epoch", TIMESTAMP),
            ("2024-01-01 10:00:00.1234567", TIMESTAMP),
        ),
        *(
            ("1.5", INTEGER),
            ("9223372036854775808", INTEGER),
            ("", INTEGER),
            ("١", D0),
            ("nan", FLOAT),
            ("inf", FLOAT),
            ("1e999", FLOAT),
            ("0x10", FLOAT),
        ),
        *(("1e99", D2), ("1e37", D2), ("maybe", BOOLEAN), ("123", UUID), ("1_000", INTEGER)),
    ],
)
def test_texts_that_are_no_values(text: str, kind: Type) -> None:
    with pytest.raises(Mismatch) as mismatch:
        parse(text, kind)
    assert mismatch.value.code == "BAD_LITERAL"


def test_wrong_arguments() -> None:
    with pytest.raises(Mismatch) as mismatch:
        call("round", column("x"), column("i"))
    assert (mismatch.value.code, mismatch.value.message) == ("LITERAL_NEEDED", "round(x [, digits]): takes the number of digits as a literal")
    with pytest.raises(Mismatch) as mismatch:
        call("lower", column("s"), column("s"))
    assert mismatch.value.code == "WRONG_ARGUMENTS"
    with pytest.raises(Mismatch):
        choose([(column("i"), column("i"))], None)
