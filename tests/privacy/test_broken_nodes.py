"""Plans that no reader of SQL makes: each lemma refuses the node whose precondition fails."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpquery.errors import Fault
from dpquery.plan.inside import Frame, Reduce, Reduction
from dpquery.plan.rel import Group, Merge, Scan, Stack, UnitPath, Windowed
from dpquery.plan.release import Ask
from dpquery.plan.scalar import Column
from dpquery.privacy import locality, together
from dpquery.values.types import INTEGER

OWN, OTHER = Column(0, "x", INTEGER), Column(9, "y", INTEGER)
SCAN = Scan("t", "t", (), UnitPath("u", INTEGER))


def test_groups_have_keys_of_their_relation() -> None:
    with pytest.raises(Fault, match="a key is no column"):
        locality.group(Group(SCAN, (OTHER,), ()))


def test_frames_of_range_begin_at_the_first_row() -> None:
    total = Reduction(next(iter(Reduce)), OWN, INTEGER)
    with pytest.raises(Fault, match="RANGE"):
        locality.windowed(Windowed(SCAN, OTHER, total, (), (), Frame(rows=False, preceding=2)))


def test_branches_of_a_stack_have_columns_alike() -> None:
    with pytest.raises(Fault, match="differ in their numbers"):
        locality.stack(Stack(SCAN, SCAN, (OTHER,), (OWN,), (), next(iter(Merge))))


def test_releases_are_priced_in_the_unit_of_their_statement() -> None:
    with pytest.raises(AssertionError, match="priced as its statement"):
        together._share(Ask(Fraction(0), epsilon=Fraction(1)), Ask(Fraction(0), rho=Fraction(1)))
