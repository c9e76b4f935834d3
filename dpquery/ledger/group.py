"""Group commit: writers of one process that come at the same time share one durable transaction.

Who comes while nobody writes leads: it opens the transaction, runs its own work and that of all who came meanwhile, each in a savepoint and in the
order in which they came, and commits once. Nobody hears of a work before the commit that holds it is on the disk. Who still waits leads next.

Threads that ask again as soon as they are answered would come one short each time. So where more came together last time, the leader waits for them,
for a small part of the time that a commit takes.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from dpquery.ledger.tables import Lost, Tables
from dpquery.turns import Turn

T = TypeVar("T")
MOST: Final = 64  # works in one transaction
LONGEST: Final = 0.005  # seconds that it waits for others, and no more than a quarter of the last commit


class Busy(Exception):
    """Others write; nothing was done, and trying again may help: after `pause` seconds at least, five times that at most."""

    def __init__(self, pause: float) -> None:
        super().__init__(pause)
        self.pause = pause


class Medium(Protocol):
    """A store's connection, used by one thread at a time."""

    def begin(self) -> Tables:
        """A transaction that no other writes beside. Busy while one does."""
        ...

    def commit(self) -> None:
        """All that the transaction did is on the disk."""
        ...

    def holds(self, entry: str) -> bool:
        """Whether the log holds the line with this id, for good. Called without a transaction, after a commit that did not end well."""
        ...

    def rollback(self) -> None:
        """Nothing of the transaction is left. It raises nothing: a connection that fails here is given up."""
        ...

    def fault(self, error: Exception) -> Exception:
        """What leaves in place of an error: a new one each time."""
        ...

    def give_up(self) -> None:
        """It begins no more: nobody has to wait for it."""
        ...


class Member:
    """One work, until it is answered."""

    def __init__(self, work: Callable[[Tables], Any]) -> None:
        self.work = work
        self.woken = threading.Event()
        self.leads = self.taken = self.done = False
        self.result: Any = None
        self.error: Exception | None = None

    def attempt(self, tx: Tables, fault: Callable[[Exception], Exception]) -> None:
        """Its work is done, or nothing of it. Lost where the whole transaction is."""
        try:
            self.result, self.error = tx.attempted(self.work), None
        except Lost:
            raise
        except Exception as error:
            self.error = fault(error)


class Group:
    """The writers of one process. `turn` is the connection's; `wait` is how many seconds a work waits for other processes."""

    def __init__(self, medium: Medium, turn: Turn, wait: float) -> None:
        self._medium = medium
        self._turn = turn
        self._wait = wait
        self._mutex = threading.Lock()
        self._together = 0  # how many shared the last transaction
        self._patience = 0.0
        self._members: deque[Member] = deque()  # in order; those of an open transaction stay until they are answered

    def run(self, work: Callable[[Tables], T]) -> T:
        """What `work` returns, after all that it did is on the disk. It may be called again, after an interrupt of another's thread.

        An interrupt leaves as it came. Whether the work was done by then has to be looked up.
        """
        me, deadline = Member(work), time.monotonic() + self._wait
        try:
            self._join(me)
            while not me.done:
                if me.leads:
                    self._lead(deadline)
                else:
                    me.woken.wait()
        except BaseException:
            _surely(lambda: self._leave(me))
            raise
        if me.error is not None:
            raise me.error
        result: T = me.result
        return result

    def _join(self, me: Member) -> None:
        with self._mutex:
            me.leads = not self._members
            self._members.append(me)

    def _lead(self, deadline: float) -> None:
        """One transaction, begun at random intervals while others hold the store."""
        busy: Busy | None = Busy(0)
        try:
            while (busy := self._gathered()) is not None:
                if time.monotonic() >= deadline:
                    raise self._medium.fault(busy)
                time.sleep(busy.pause * (1 + secrets.randbelow(1000) / 250))
        finally:
            if busy is not None:
                with self._turn:
                    self._medium.give_up()

    def _gathered(self) -> Busy | None:
        """Why no transaction could begin; None where one did. Then it has ended, and all whose work was in it have their answer."""
        with self._turn:
            try:
                tx = self._medium.begin()
            except Busy as busy:
                return busy
            taken: list[Member] = []
            try:
                self._attempt(tx, taken)
                self._commit(tx, taken)
            except BaseException as error:
                self._end(tx.last, taken, error)
                if not isinstance(error, Exception):
                    raise
        return None

    def _attempt(self, tx: Tables, taken: list[Member]) -> None:
        patient = time.monotonic() + self._patience
        while len(taken) < MOST:
            member = self._take(len(taken))
            if member is not None:
                taken.append(member)
                member.attempt(tx, self._medium.fault)
            elif len(taken) < self._together and time.monotonic() < patient:
                time.sleep(self._patience / 10)
            else:
                break

    def _commit(self, tx: Tables, taken: Sequence[Member]) -> None:
        start = time.monotonic()
        tx.flush()
        self._medium.commit()
        self._together, self._patience = len(taken), min(LONGEST, (time.monotonic() - start) / 4)
        self._answer(taken)

    def _take(self, place: int) -> Member | None:
        """The next who waits; from here on it does not leave before the transaction has ended."""
        with self._mutex:
            if place >= len(self._members):
                return None
            member = self._members[place]
            member.taken = True
            return member

    def _answer(self, taken: Sequence[Member]) -> None:
        """They have what they came for, and whoever waits longest leads next."""
        for member in taken:
            member.done = True
        with self._mutex:
            while self._members and self._members[0].done:
                self._members.popleft()
            self._pass_on()
        for member in taken:
            member.woken.set()

    def _end(self, last: str | None, taken: Sequence[Member], error: BaseException) -> None:
        """After a transaction that did not end well. Where an interrupt undid it, the others' works wait to be done again."""

        def end() -> None:
            self._medium.rollback()
            try:
                stands = last is not None and self._medium.holds(last)
            except Exception as unsure:
                self._fail(taken, unsure)
                return
            if stands:
                self._answer(taken)
            elif isinstance(error, Exception):
                self._fail(taken, error)

        _surely(end)

    def _fail(self, taken: Sequence[Member], error: Exception) -> None:
        error = error.__cause__ if isinstance(error, Lost) and isinstance(error.__cause__, Exception) else error
        for member in taken:
            member.error = self._medium.fault(error)
        self._answer(taken)

    def _leave(self, me: Member) -> None:
        """It waits no longer, and does not lead. Where its work is under way that ends first."""
        while not me.done:
            with self._mutex:
                if me.leads or not me.taken:
                    if me.leads:
                        for member in self._members:
                            member.taken = False
                    with suppress(ValueError):  # if it was interrupted right here, it is gone already
                        self._members.remove(me)
                    if me.leads:
                        self._pass_on()
                    me.leads = False
                    return
            me.woken.wait(0.1)

    def _pass_on(self) -> None:
        if self._members:
            self._members[0].leads = True
            self._members[0].woken.set()


def _surely(work: Callable[[], None]) -> None:
    """Does what must not be left half done, though interrupts come; then they leave. `work` may be called again."""
    interrupt: BaseException | None = None
    while True:
        try:
            work()
        except Exception:
            raise
        except BaseException as error:
            interrupt = error
        else:
            break
    if interrupt is not None:
        raise interrupt
