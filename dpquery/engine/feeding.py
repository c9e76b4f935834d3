"""What is done between two releases of a statement: the relations that stand for released values are filled, by what was released so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpquery.backends.port import Backend, BoundedSQL
from dpquery.backends.public import fanout, filled, released_list, standing
from dpquery.engine import capping
from dpquery.errors import Fault
from dpquery.plan.draft import Feed
from dpquery.plan.extent import numbers
from dpquery.plan.rel import Lookup, Public, publics, walk
from dpquery.plan.release import ListedKeys, Release, ReleasedKeys
from dpquery.privacy.resolve import MOST_NUMBERS
from dpquery.release import answer, post
from dpquery.schema.model import Limits
from dpquery.values.noisy import Noisy

if TYPE_CHECKING:
    from dpquery.engine.prepared import Prepared, Ready


@dataclass(frozen=True, slots=True)
class Fed:
    """A release as it is run: its statement is the one that was priced, its key list known by now. `said` is what was left out."""

    lowered: BoundedSQL
    release: Release
    said: tuple[str, ...] = ()


def fed(prepared: Prepared, block: Ready, noisy: Mapping[str, Noisy], backend: Backend, limits: Limits) -> Fed:
    """The release once the relations that it reads hold what was released before it."""
    if not block.feeds:
        return Fed(block.lowered, block.release)
    tables = {**prepared.opened, **{one.name: prepared.columns(one, noisy[one.name]) for one in prepared.blocks if one.name in noisy}}
    capped = {feed: capping.cap(feed, block, prepared, noisy) for feed in block.feeds if feed.cap is not None}
    found = {feed: ([(float(capped[feed].value),)], True) if feed in capped else post.rows(feed, tables, limits) for feed in block.feeds}
    given = {public.name: public for public in standing([one.draft for one in prepared.question.blocks])}
    given |= {feed.public: filled(given[feed.public], rows) for feed, (rows, _) in found.items()}
    backend.prepare(list(given.values()))
    _check(block, backend)
    said = [*answer.unfed({feed: rows for feed, (rows, _) in found.items()})]
    said += [capping.said(_label(block, feed), one) for feed, one in capped.items()]
    if not all(whole for _, whole in found.values()):
        said.append(f"A list of released values has more than {post.MOST_FED:,} rows: the first of them are read.")
    if not isinstance(block.release.keys, ReleasedKeys):
        return Fed(block.lowered, block.release, tuple(said))
    return _with_keys(prepared, block, block.release.keys, given, backend, said)


def _label(block: Ready, feed: Feed) -> str:
    return next(one.label for one in block.release.aggregates if one.cap == feed.public)


def _with_keys(prepared: Prepared, block: Ready, keys: ReleasedKeys, given: Mapping[str, Public], backend: Backend, said: list[str]) -> Fed:
    draft = next(one.draft for one in prepared.question.blocks if one.name == block.name)
    rows, cut = released_list(draft, backend, MOST_NUMBERS // numbers(block.release, 1))
    if cut:
        said.append(f"The groups are more than {len(rows):,}: those of the first released keys are shown.")
    listed = filled(keys.public, [(place, *row) for place, row in enumerate(rows)])
    backend.prepare([*(public for name, public in given.items() if name != listed.name), listed])
    release = replace(block.release, keys=ListedKeys(rows, keys.origin))
    return Fed(replace(block.lowered, listed=rows), release, tuple(said))


def _check(block: Ready, backend: Backend) -> None:
    """Nothing, where no private row can meet more of the filled relations' rows than the plan reckons with."""
    own = {feed.public for feed in block.feeds} & {public.name for public in publics(block.release.table.input)}
    for rel in walk(block.release.table.input):
        if isinstance(rel, Lookup) and rel.public.name in own and fanout(rel, backend) > (rel.fanout or 1):
            raise Fault("PLAN_BROKEN", "a list of released values has a row twice")
