"""The noise line: what of the engine's result shows in what is released."""

from __future__ import annotations

from dpquery.release import noise


def test_groups_come_by_key_however_the_engine_found_them() -> None:
    keys, columns = [("b", 2), (None, 1), ("b", None), ("a", 9), ("b", 1)], [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50]]
    found = noise.in_order(keys, [*columns, [1, -1, 2, -2, 3, -3, 4, -4, 5, -5]], [1, 1, 2])
    assert found.keys == (("a", 9), ("b", 1), ("b", 2), ("b", None), (None, 1))
    assert found.sums == ((4, 5, 1, 3, 2), (40, 50, 10, 30, 20), (4, -4, 5, -5, 1, -1, 3, -3, 2, -2))
