"""Random statements of which one group is chosen: neighbours within the claims, and with noise off one of the groups with the most, or the least."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from checked import CERTAIN
from inside import Inside
from led import led
from several import prepared, stands
from worlds import MAIN, world

from dpquery.errors import Refused
from dpquery.mechanisms import SystemBits
from dpquery.plan.release import Choosing, ListedKeys
from dpquery.release import answer, noise

SEEDS = 4


@pytest.mark.lemma("C17", "M6")
def test_random_statements_that_choose_a_group() -> None:
    answered = 0
    for seed in range(SEEDS):
        made = world(seed)
        for text, most in led(made, Random(f"led {seed}")):
            try:
                ready = prepared(made, Inside(made, MAIN), text, seed)
            except Refused as refused:
                if refused.code not in ("MISSING_BOUNDS", "UNIT_AS_OUTPUT"):
                    raise AssertionError(f"{refused.code}: {refused.message}\n{text}") from None
                continue
            (release,), (lowered,), (priced,) = ready.releases, ready.lowered, ready.bill.releases
            assert release.aggregates[0].leading is not None, text
            assert {one.mechanism for one in priced.noises} <= {*Choosing}
            stands(made, ready)
            exact = Inside(made, MAIN).run(lowered, [key.type for key in release.table.keys], 1)
            sure = replace(priced, noises=(CERTAIN,))
            columns = {"noisy": answer.columns(noise.add(exact, release, sure, SystemBits()), release)}
            _, table, lost = answer.finished(ready.question.post, columns, {"noisy": release}, made.schema.limits)
            assert not lost
            assert isinstance(release.keys, ListedKeys)
            sums = dict(zip(exact.keys, exact.sums[0], strict=True))
            scores = {row[0]: sums.get(row, 0) for row in release.keys.rows}
            (best,) = table.column(0).to_pylist()
            assert scores[best] == (max if most else min)(scores.values()), text
            answered += 1
    assert answered > 2 * SEEDS
