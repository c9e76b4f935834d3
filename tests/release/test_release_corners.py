"""Corners of the noise line and of what follows it: what broke is told, and what was paid for is kept."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import date
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest
from test_bars import COUNT, EXACT, MEAN, NOISES

from dpquery.errors import Fault
from dpquery.mechanisms import SystemBits
from dpquery.plan.draft import Affine, Either, Feed, Output, Post, Ratio
from dpquery.plan.rel import Filling, Public
from dpquery.plan.release import Key, NoKeys, PrivateKeys, ReleasedKeys
from dpquery.plan.scalar import Column
from dpquery.release import answer, bars, edges, noise, post
from dpquery.schema.model import Limits
from dpquery.values.exact import Exact
from dpquery.values.noisy import Noisy
from dpquery.values.types import INTEGER, STRING

C95 = Fraction(95, 100)
NOISY = Noisy((("a",), ("b",)), tuple((x, x) for x in EXACT))
RELEASE = cast(Any, SimpleNamespace(aggregates=(COUNT, MEAN), keys=NoKeys(), table=SimpleNamespace(keys=(Key("k", Column(1, "k", STRING), STRING),))))
CELLS = [("k0", STRING, ["a", "b"]), ("a0", INTEGER, [3, 4]), ("a2", INTEGER, [5, 6]), ("__row", INTEGER, [0, 1])]
PRICED = cast(Any, SimpleNamespace(noises=NOISES))


def test_merged_rows_have_no_bars_and_no_word_on_them() -> None:
    outputs = (Output("n", Affine("a0"), True), Output("k"))
    assert bars.intervals(outputs, {}, C95) == (None, None)
    assert answer.valueless(outputs, cast(Any, None), {}) == ()


def test_a_ratio_of_more_than_two_noises_has_no_bar() -> None:
    """Fieller's interval is for one noise over another; a mean is two."""
    for ratio in (Ratio("a2", "a0"), Ratio("a0", "a2")):
        assert bars.intervals((Output("r", ratio, True),), {"t": bars.Released(RELEASE, NOISY, PRICED, [0, 1])}, C95) == ((None, None),)


def test_the_root_of_what_no_double_holds_ends_at_the_value_itself() -> None:
    huge = Fraction(10) ** 700
    assert bars._root(huge) == huge
    assert bars._root(Fraction(16)) == 4


def test_moments_that_are_computed_with_have_no_bar() -> None:
    """They are no numbers: shown as they are they keep their bar, scaled or moved they have none."""
    bar = date(2024, 1, 1), date(2024, 2, 1)
    assert bars._affine(bar, Fraction(1), Fraction(0)) == bar
    for factor, offset in ((1, 1), (2, 0)):
        assert bars._affine(bar, Fraction(factor), Fraction(offset)) is None


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine above the noise that fails where a statement says so."""
    run = post.run

    def broken(how: Post, columns: Any, limits: Limits) -> Any:
        if "broken" in how.sql:
            raise Fault("POST_FAILED", "it failed")
        return run(how, columns, limits)

    monkeypatch.setattr(post, "run", broken)


@pytest.mark.usefixtures("breaking")
def test_an_upper_part_that_breaks_leaves_what_was_released() -> None:
    how, table, said = answer.finished(Post("SELECT broken", (Output("x"),)), {"noisy": CELLS}, {"noisy": RELEASE}, Limits())
    assert [output.name for output in how.outputs] == ["k", "COUNT(*)", "AVG(x)"]
    assert [output.noisy for output in how.outputs] == [False, True, True]
    assert [column.to_pylist() for column in table.columns] == [["a", "b"], [3, 4], [5, 6], [0, 1]]
    assert said == ("What the statement does with the released values failed; here are the released values themselves.",)


def test_private_keys_without_a_threshold_are_never_shown() -> None:
    exact = Exact((("a",),), ((5,),))
    release = cast(Any, SimpleNamespace(keys=PrivateKeys(0), table=SimpleNamespace(parts=(SimpleNamespace(numbers=1, cell=None),))))
    with pytest.raises(AssertionError, match="without a threshold"):
        noise.add(exact, release, cast(Any, SimpleNamespace(noises=NOISES[:1], threshold=None)), SystemBits())


def test_a_failure_that_is_no_interrupt_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="something else"), post._keyboard():
        raise RuntimeError("something else")
    with pytest.raises(KeyboardInterrupt), post._keyboard():
        raise RuntimeError("Query interrupted")


def test_what_a_forked_child_does_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Done here: the engine is forgotten, not ended; its lock is free."""
    monkeypatch.setattr(post, "_ABANDONED", [])
    engine = SimpleNamespace(con=object(), lock=threading.RLock())
    monkeypatch.setattr(post, "_ENGINE", engine)
    held = engine.con
    post._after_fork()
    assert (engine.con, post._ABANDONED) == (None, [held])


@pytest.mark.usefixtures("breaking")
def test_an_upper_part_over_several_tables_that_breaks_leaves_all_of_their_cells() -> None:
    given, releases = {"noisy": CELLS, "noisy_1": CELLS}, {"noisy": RELEASE, "noisy_1": RELEASE}
    how, table, said = answer.finished(Post("SELECT broken", (Output("x"),)), given, releases, Limits())
    assert [output.name for output in how.outputs] == ["table", "row", "column", "value"]
    assert table.num_rows == 12
    assert [row[3] for row in zip(*table.to_pydict().values(), strict=True) if row[0] == "noisy_1" and row[2] == "k"] == ["a", "b"]
    assert said


def test_released_values_that_cannot_be_had_feed_nothing() -> None:
    """A row of NULLs where one row is read, no row where a list is; which is said."""
    given = {"noisy": [("a0", STRING, ["x"]), ("__row", INTEGER, [0])]}
    for filling, rows in ((Filling.ROW, [(None,)]), (Filling.KEYS, [])):
        feed = Feed("public_0", "SELECT CAST(a0 AS INTEGER) AS c0 FROM noisy", (INTEGER,), filling)
        assert post.rows(feed, given, Limits()) == (rows, False)


def test_a_list_that_is_released_is_known_before_noise_is_drawn() -> None:
    release = cast(Any, SimpleNamespace(keys=ReleasedKeys(Public("p", "SELECT 1", ()), ""), table=SimpleNamespace(parts=())))
    with pytest.raises(AssertionError):
        noise.add(Exact((), ()), release, cast(Any, SimpleNamespace(noises=())), SystemBits())


def test_a_report_tells_what_is_known_alone() -> None:
    assert edges._report(None, None, {}, C95) is None
    released = bars.Released(RELEASE, NOISY, PRICED, [0, 1])
    known = edges._known(Output("m", Affine("a2"), True), {"t": replace(released, release=_unbounded())})
    assert known == {}
    stacked = Output("m", Either((Affine("a0"), Affine("a0"))), True)
    assert edges._known(stacked, {"t": released}) == {}, "rows of several branches have no bounds in common"
    assert "standard_deviation" not in str(edges._report(1, None, {}, C95))


def _unbounded() -> Any:
    return cast(Any, SimpleNamespace(aggregates=(COUNT, replace(MEAN, bounds=None)), keys=RELEASE.keys, table=RELEASE.table))
