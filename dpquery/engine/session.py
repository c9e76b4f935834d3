"""The corridor: what happens to one statement, in order. The only module with effects in sequence."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from dpquery.backends import duckdb as backend_door
from dpquery.backends.lower import lower
from dpquery.backends.port import Backend, BoundedSQL
from dpquery.backends.process import GRACE
from dpquery.backends.public import check_products, facts, handed_over
from dpquery.backends.source import Identity
from dpquery.engine import aim, asking, capping, cost, data, ending, explained, feeding, losing, pace, recall, receipt
from dpquery.engine.explain import Explanation, explanation
from dpquery.engine.goal import allowed
from dpquery.engine.pace import Clock, Pace
from dpquery.engine.prepared import Prepared as Prepared
from dpquery.engine.prepared import Ready as Ready
from dpquery.engine.progress import Progress, ticking
from dpquery.engine.recall import Again, Asked
from dpquery.engine.receipt import JSON
from dpquery.engine.workload import Workload, workload
from dpquery.errors import Error, Fault, OverBudget, Refused, SchemaError
from dpquery.ledger import Balance, Entry, Kept, Ledger, Place, Room
from dpquery.ledger import open as open_ledger
from dpquery.mechanisms import SystemBits
from dpquery.plan.draft import Post
from dpquery.plan.release import Release
from dpquery.privacy import bill, price, settled
from dpquery.release import answer as answers
from dpquery.release import bars, noise, post, tidy
from dpquery.release.answer import Answer
from dpquery.schema.describe import TableInfo, tables_info
from dpquery.schema.model import Schema
from dpquery.sql import offered, plainly
from dpquery.sql.parameters import Given, written
from dpquery.sql.workload import statements
from dpquery.turns import Turn
from dpquery.values.noisy import Noisy

if TYPE_CHECKING:
    import pyarrow as pa

Notice = Callable[[str], None]

ANY = Fraction(1, 10**9)  # an epsilon so small that whatever was stored is more precise
LATE = GRACE + 1.0  # seconds after its time limit within which a statement that runs into it has ended: its reply leaves after them, in any case


class Session:
    """One analyst's door to one data set. Threads take turns."""

    def __init__(self, schema: Schema, analyst: str | None, ledger: Place | None = None, clock: Clock = pace.SYSTEM) -> None:
        self.schema = schema
        self._clock = clock
        self.analyst = analyst or "default"
        self.ledger_path = ledger or schema.default_ledger
        self._ledger: Ledger | None = None
        self._backend: Backend | None = None
        self._turn = Turn()

    def query(
        self,
        sql: str,
        *,
        dialect: str = "duckdb",
        params: Given | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
        notice: Notice | None = None,
        **price: Unpack[asking.Wanted],
    ) -> Answer:
        """The noisy answer, after its price was charged; of EXPLAIN the explanation, for nothing.

        A question that was answered before is answered from the store, for nothing to who has seen it; `fresh` draws and pays anew.
        Raises Refused, OverBudget, SchemaError or Fault; only a Fault may have been charged. `notice` is told what to know before that.

        Replies after the charge leave on the schema's time grid, this session's turn with them; those before it know nothing of private rows.
        """
        if explained.asks(sql):
            return explained.table(self.explain(sql, dialect=dialect, params=params, **price), self.analyst)
        grid = pace.begin(self.schema.limits, self._clock)
        with self._turn, self.ledger.attended():
            ledger = self.ledger
            try:
                files = self._files()
                version = self._admitted(ledger)
                with ending.foreseen():
                    prepared = self._prepare(sql, asking.call(**price), dialect, params)
                    record = receipt.record(prepared, self.schema, version)
                    asked = recall.asked(prepared, self.schema, version)
                self._check_same(files)
                again = None if fresh else recall.again(asked, prepared, self.schema, version, ledger, self.analyst)
                if again is None and notice is not None:
                    for word in cost.beforehand(prepared, ledger.room(self.analyst)):
                        notice(word)
                entry = ledger.charge(self.analyst, prepared.bill.price, record) if again is None else again.entry
            except OverBudget as over:
                over.instead = (prepared.aim and prepared.aim.instead) or over.instead
                raise
            except (Refused, SchemaError, Fault) as failure:
                failure.source = failure.source or str(sql)
                if not ending.of_ledger(failure) and getattr(failure, "entry", None) is None:  # else the ledger knows of it
                    ledger.refused(self.analyst, {"statement": str(sql)[:10_000], "code": failure.code})
                raise
            with ticking(progress, grid):
                if again is not None:
                    return self._again(again, ledger, grid)
                return self._release(prepared, entry, record, asked, ledger, grid, files)

    def explain(self, sql: str, *, dialect: str = "duckdb", params: Given | None = None, **price: Unpack[asking.Wanted]) -> Explanation:
        """Price, split, sensitivity, noise and expected error of a statement, and what it would cost the account now.

        No private row is read, nothing is charged.
        """
        with self._turn, ending.foreseen():
            try:
                text = explained.explained(sql) or sql
                prepared = self._prepare(text, asking.call(**price), dialect, params)
            except Refused as refused:
                explained.named(refused, sql)
                explained.offer(refused, sql, lambda other: self._prepare(other, asking.call(**price), dialect, params))
                raise
            return explanation(prepared, self.schema, *self._now(prepared))

    def _now(self, prepared: Prepared) -> tuple[cost.Now | None, tuple[str, ...]]:
        """What a statement would cost the account now, and what its holder should know; of a ledger that cannot be read, that it cannot."""
        room = self._room()
        if room is None:
            return None, ("What it would cost now is not known: the ledger cannot be read.",)
        stored = self._stored(prepared)
        found = cost.now(prepared, room, self.schema.adjacency, stored)
        if prepared.aim is not None and prepared.aim.instead is not None and not stored:
            found = replace(found, instead=prepared.aim.instead)
        return found, () if stored else tuple(cost.beforehand(prepared, room))

    def _room(self) -> Room | None:
        """What fits into the account now; None where the ledger does not say."""
        try:
            return self.ledger.room(self.analyst)
        except Error:
            return None

    def _stored(self, prepared: Prepared) -> bool:
        """Whether the account has seen an answer that serves; not where the data is out of reach, or was not looked at yet."""
        try:
            version = self.ledger.looked_at(self._looked_at())
        except Error:
            return False
        return version is not None and recall.free(recall.asked(prepared, self.schema, version), prepared, self.schema, self.ledger, self.analyst)

    def _seen(self, sql: str, dialect: str) -> pa.Table | None:
        """The answer to a statement, at whatever price, that the account has seen; None where it has seen none. Nothing is charged or run."""
        version = self.ledger.looked_at(self._looked_at())
        one = self._prepare(sql, asking.Call(epsilon=ANY), dialect)
        if version is None or not self._stored(one):
            return None
        again = recall.again(recall.asked(one, self.schema, version), one, self.schema, version, self.ledger, self.analyst)
        return None if again is None else self._finish(again.noisy, {}, again.prepared, again.entry, again.record, self.ledger).table

    def what_if(self, text: str, *, dialect: str = "duckdb", **price: Unpack[asking.Wanted]) -> Workload:
        """What the statements of a text, with `;` between them, would cost the account in this order. No private row is read, nothing is charged."""
        call = asking.call(**price)

        def prepared(sql: str, room: Room) -> tuple[Prepared, bool]:
            with ending.foreseen():
                one = self._prepare(sql, call, dialect, None, room)
                return one, self._stored(one)

        with self._turn:
            return workload(statements(text, dialect), prepared, self.ledger.room(self.analyst), self.schema)

    def budget(self) -> Balance:
        """What this analyst's account has spent and has left."""
        with self._turn:
            return self.ledger.balance(self.analyst)

    def keeps(self, path: Path) -> bool:
        """Whether a file is one that the data set lives by: the schema, the ledger, the data."""
        return data.keeps(self.schema, self.ledger_path, path)

    def tables(self) -> tuple[TableInfo, ...]:
        """What an analyst may ask of: declared tables and columns, from the schema alone."""
        return tables_info(self.schema)

    def _prepare(self, sql: str, call: asking.Call, dialect: str, params: Given | None = None, room: Room | None = None) -> Prepared:
        """Everything before the charge. Reads public tables only. What refuses it offers a statement that went all the way to the charge."""
        if not isinstance(sql, str) or not isinstance(dialect, str):
            raise Refused("NOT_A_TEXT", "a statement and its dialect are texts", instead="con.query('SELECT COUNT(*) FROM ..')")

        def prepared(other: str) -> Prepared:
            with ending.foreseen():
                return self._prepared(other, call, dialect, params, room)

        with offered(sql, dialect, prepared):
            return prepared(sql)

    def _prepared(self, sql: str, call: asking.Call, dialect: str, params: Given | None, room: Room | None) -> Prepared:
        question = plainly(sql, self.schema, dialect, datetime.now(UTC), params, call.auto)
        whole, asks = asking.asks(question, aim.first(call, question, self.schema) if call.error else call, self.schema)
        goals = {one.column: allowed(one, self.schema, lambda scale: self._seen(scale, dialect)) for one in call.error}
        drafts = [block.draft for block in question.blocks]
        together = bars.together(question.post.outputs)
        check_products(question.products, self.backend)
        found = zip(drafts, facts(drafts, self.backend), asks, strict=True)
        with asking.placed(question, asks):
            releases = tuple(settled(draft, known, one, self.schema.adjacency, together) for draft, known, one in found)
        aimed = aim.hit(question, releases, (whole, asks), goals, room or self._room(), self.schema) if goals else None
        if aimed is not None:
            whole, asks = aimed.whole, aimed.asks
        with asking.placed(question, asks):
            billed = bill(releases, asks, whole, self.schema.adjacency)
            asking.within_policy(billed.epsilon, self.schema)
        opened = handed_over(question.opened, drafts, self.backend)
        tables = opened | {
            block.name: answers.known_columns(release, question.ends_of(block.name)) for block, release in zip(question.blocks, releases, strict=True)
        }
        for how in (question.post, *(Post(feed.sql, (), rows=()) for block in question.blocks for feed in block.feeds)):
            post.check(how, tables, self.schema.limits)
        post.check_pairs(question.paired, tables, self.schema.limits)
        parts = zip(question.blocks, asks, releases, billed.releases, strict=True)
        blocks = tuple(
            Ready(block.name, ask, release, priced, self._lowered(release), block.feeds, block.wider) for block, ask, release, priced in parts
        )
        return Prepared(sql, question, whole, blocks, billed, opened, dict(written(params)), aimed, call.tidy)

    def _lowered(self, release: Release) -> BoundedSQL:
        """The release's one statement, which the engine takes."""
        lowered = lower(release, secrets.randbits(63))
        self.backend.bind(lowered)
        return lowered

    def _again(self, again: Again, ledger: Ledger, grid: Pace) -> Answer:
        """A stored answer, finished as this statement wants it. No private row is read; it leaves on the grid like any other."""
        try:
            answer = self._finish(again.noisy, dict.fromkeys(again.said), again.prepared, again.entry, again.record, ledger)
        except Exception:
            raise Fault("INTERNAL", "the stored answer cannot be shown", instead="fresh=True", entry=again.entry.id) from None
        grid.wait()
        return answer

    def _release(
        self, prepared: Prepared, entry: Entry, record: Mapping[str, JSON], asked: Asked, ledger: Ledger, grid: Pace, files: Identity
    ) -> Answer:
        """Everything after the charge: run, re-derive the price, add noise, finish, wait. Whatever breaks here stays charged.

        An interrupt leaves at once: whoever makes it chooses its moment, which so tells nothing. That there was no reply before it may.
        """
        limit = grid.clock.now() + len(prepared.blocks) * float(self.schema.limits.timeout) + LATE
        kept: Kept | None = None
        try:
            reply, kept = self._reply(prepared, entry, record, asked, ledger, files)
            self._let_go(grid)
            grid.wait(limit if isinstance(reply, Fault) and reply.code == "ENGINE_TIMEOUT" else 0.0)
            outcome = ending.outcome(reply)
        except KeyboardInterrupt:
            self._drop_backend()
            outcome = "failed" if grid.silent else "interrupted"
            counted = "" if grid.silent else ", and it counts as a time-out"
            reply, kept = Fault("INTERRUPTED", f"the query was interrupted (the price stays charged{counted})", entry=entry.id), None
        ending.settle(ledger, entry, outcome, kept)
        if isinstance(reply, Fault):
            raise reply
        return reply

    def _reply(
        self, prepared: Prepared, entry: Entry, record: Mapping[str, JSON], asked: Asked, ledger: Ledger, files: Identity
    ) -> tuple[Answer, Kept | None] | tuple[Fault, None]:
        """The answer and what is stored of it, or what the analyst is told instead; an interrupt alone is raised."""
        try:
            noisy, said = self._noisy(prepared, files)
            kept = recall.kept(asked, prepared, noisy, said, self.schema)
            return self._finish(noisy, said, prepared, entry, record, ledger), kept
        except KeyboardInterrupt:
            raise
        except BaseException as broken:
            return ending.told(broken, entry), None

    def _noisy(self, prepared: Prepared, files: Identity) -> tuple[dict[str, Noisy], dict[str, None]]:
        """The noisy sums of each release, and what is to be said of what they read of each other. Exact ones do not leave this function."""
        if price([block.lowered.enforced for block in prepared.blocks], prepared.bill, self.schema.adjacency) != prepared.bill.price:
            raise Fault("PRICE_DIFFERS", "the price of what was run differs from what was charged; the answer is withheld")
        bits, noisy, said = SystemBits(), dict[str, Noisy](), dict[str, None]()
        for block in prepared.blocks:
            fed = feeding.fed(prepared, block, noisy, self.backend, self.schema.limits)
            exact = self.backend.run(fed.lowered, block.key_types, len(block.release.table.parts))
            noisy[block.name] = noise.add(exact, fed.release, block.priced, bits)
            said |= dict.fromkeys(fed.said)
        self._check_same(files)
        return noisy, said

    def _files(self) -> Identity:
        return backend_door.identity(self.schema)

    def _check_same(self, files: Identity) -> None:
        """Nothing, where the files are those of a moment ago, and the engine has no others open: one that was started again on other files, be they
        gone by now, answered from a version that nobody charged for."""
        if self._files() != files or self.backend.opened != files:
            message = "the data changed while the query ran; the answer is withheld"
            raise Fault("DATA_CHANGED", message, instead="register the new version and ask again")

    def _finish(
        self, noisy: Mapping[str, Noisy], told: Mapping[str, None], prepared: Prepared, entry: Entry, record: Mapping[str, JSON], ledger: Ledger
    ) -> Answer:
        prepared = replace(prepared, blocks=tuple(capping.fitted(block, prepared, noisy, told) for block in prepared.blocks))
        columns = {**prepared.opened, **{block.name: prepared.columns(block, noisy[block.name]) for block in prepared.blocks}}
        how, table, lost = answers.finished(prepared.question.post, columns, prepared.releases, self.schema.limits)
        places, caps = prepared.released(how, table, noisy), losing.caps(prepared, noisy)
        table = answers.told_apart(table.select(range(len(how.outputs))))
        bars = answers.intervals(how.outputs, places, prepared.ask.confidence)
        words = (
            *prepared.question.warnings,
            *receipt.plan_warnings(prepared, self.schema),
            *told,
            *losing.said(caps, prepared.ask.confidence),
            *lost,
            *answers.valueless(how.outputs, table, places),
            *answers.doubtful(places, prepared.ask.confidence),
            *answers.warnings(how.outputs, table, bars, [(block.release, noisy[block.name]) for block in prepared.blocks]),
        )
        said = capping.loud_first(words)
        table, bars = tidy.completed(how.outputs, table, bars, places, prepared.ask.confidence, prepared.tidy)
        paper = receipt.receipt(record, prepared, self.schema, entry, said, ledger.balance(self.analyst), caps)
        return Answer(table, answers.type_names(table), bars, prepared.ask.confidence, said, paper)

    # ---- what is opened on first use ---------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The open ledger; a missing one is a Fault."""
        if self._ledger is None:
            self._ledger = open_ledger(self.ledger_path, self.schema)
        return self._ledger

    @property
    def backend(self) -> Backend:
        """The engine, started on first use."""
        if self._backend is None:
            self._backend = backend_door.open(self.schema)
        return self._backend

    def _version(self, ledger: Ledger) -> int | None:
        return ledger.version_of(data.identity(self.schema), lambda: data.fingerprint(self.schema))

    def _admitted(self, ledger: Ledger) -> int:
        """The number of the data version at hand; a version that the owner has not registered is refused."""
        version = self._version(ledger)
        if version is None:
            raise SchemaError(
                "DATA_NOT_REGISTERED",
                "the data, as this schema describes it, is not a version that its owner registered",
                instead="the owner runs `dpquery check --register`",
            )
        own = self._looked_at()
        if ledger.looked_at(own) is None:
            ledger.remember(own, version)
        return version

    def _looked_at(self) -> JSON:
        """The data at hand as this account knows it, by questions of its own: what others look at must not show in what it is told."""
        return [data.identity(self.schema), self.analyst if self.analyst in self.schema.analysts else "default"]

    def _let_go(self, grid: Pace) -> None:
        """On a grid the engine has ended before the reply leaves: neither its end nor what it still holds of the data shows in what follows."""
        if grid.quantum is not None:
            self._drop_backend()

    def _drop_backend(self) -> None:
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    def __reduce__(self) -> tuple[type[Session], tuple[Schema, str, Place]]:
        """In another process it opens engine and ledger anew."""
        return Session, (self.schema, self.analyst, self.ledger_path)

    def close(self) -> None:
        """Nothing is left open: engine and ledger are closed."""
        with self._turn:
            self._drop_backend()
            if self._ledger is not None:
                self._ledger.close()
                self._ledger = None
