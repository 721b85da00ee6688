"""The durable log of calls: writes what happens into a store, and knows what all processes of the job have written.

What the records mean, and when they go, is in `index.py`; where they are kept is a store's business. An epoch is what
is committed at once: a micro-batch, or the time between two local checkpoints. A process *claims* an action while it runs
it, so that nobody else does; the claim ends with the action, or with the process.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from emberflow.durable.group_writer import GroupWriter
from emberflow.durable.index import CallIndex
from emberflow.durable.records import (
    Began,
    Call,
    Claimed,
    Done,
    Due,
    Ended,
    Forgotten,
    Note,
    Parked,
    Record,
    from_stored,
    marked,
    noted_by,
    to_stored,
)
from emberflow.durable.stores.contract import CallStore
from emberflow.errors import CallLogFailed, CheckpointError, NotSerializable, OwnershipLost
from emberflow.events.codecs import decode, encode
from emberflow.events.fence import NO_FENCE, Fence
from emberflow.events.run_ids import action_of
from emberflow.operators.agents.calls.durable_calls import CallRecord

_SMALLEST_PART = 1024 * 1024
_ALIVE_S = 0.5
_REPLACED_S = 10.0
"""How long a call counts as under way that a process of an earlier start makes."""


class StoredCallLog:
    """One per process and job. Used from the operator's thread and from the calls' event loop.

    Without `claims` there is no other process that could run an action of the job at the same time.
    """

    def __init__(self, store: CallStore, *, claims: bool = False, fence: Fence = NO_FENCE) -> None:
        self._store = store
        self._fence = fence
        self._claims_actions = claims
        self._index = CallIndex()
        self._alive: dict[str, tuple[bool, float]] = {}
        self._replaced: dict[str, float] = {}
        """since when workers of earlier starts are known"""
        self._settled = -1
        self._now = Began(-1, "", 0)
        """The present attempt at an epoch."""
        self._notes: list[Note] = []
        self.touched = False
        """Whether the epoch's present attempt has written or dropped answers."""
        self._part_limit = _SMALLEST_PART
        self._follow_s = 0.0
        # Whoever holds it may write, and finds what is stored and what is known in step.
        self._lock = threading.RLock()
        self._writer = GroupWriter(
            store, self._lock, check_owner=self._check_owner, durable=partial(self._index.apply, store.owner)
        )
        self._damage: CheckpointError | None = None
        self._numbers = itertools.count()

    # calls

    def find(self, call_id: str) -> CallRecord | None:
        return self._index.calls.get(call_id)

    async def write(self, record: CallRecord) -> None:
        self.touched = True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        written = self._marked(record)
        self._writer.add(written, _encoded(written), (loop, future))
        await future

    def write_now(self, record: CallRecord) -> None:
        self.touched = True
        written = self._marked(record)
        data = _encoded(written)
        with self._lock:
            self._store.append([data], sync=True)
            self._index.apply(self._store.owner, written)

    def _marked(self, record: CallRecord) -> Call:
        return Call(record, marked(self._fence.epoch, f"{self._store.owner}.{next(self._numbers)}"))

    def belongs_to(self, fence: Fence) -> None:
        """This process serves a later start of the job as well: what it has begun goes on."""
        if fence.epoch > self._fence.epoch:
            with self._lock:
                self._fence = fence
                self._writer.forget_lost_ownership()

    def _check_owner(self) -> None:
        """A process that was replaced neither clears anything nor says what is done or running. Answers it may still give:
        where the later start has one of its own, that one counts."""
        try:
            self._fence.check_if_reachable()
        except OwnershipLost as error:
            raise CallLogFailed(
                error.message, cause=error.cause, way_out=error.way_out, committed=error.committed
            ) from error

    def forget(self, call_ids: Iterable[str]) -> None:
        self.touched = True
        with self._lock:
            gone = [
                Forgotten(action_of(item), self._index.mark_of(item))
                for item in call_ids
                if item in self._index.calls
            ]
            if gone:
                self._check_owner()
                self._store.append([encode(to_stored(record)) for record in gone], sync=True)
                for record in gone:
                    self._index.apply(self._store.owner, record)

    # actions

    def claim(self, action: str) -> bool:
        """Whether this process is to run the action: False if another run of it goes on somewhere."""
        if not self._claims_actions:
            return True
        if self.running(action):
            return False
        self._write_soon(Claimed(action, self._fence.epoch))
        return True

    def ended(self, action: str) -> None:
        """The action that this process claimed has ended; what it leaves behind is in the log."""
        if self._claims_actions:
            self._write_soon(Ended(action))

    def running(self, action: str) -> bool:
        """Whether a process that is alive runs the action."""
        claims = self._index.claims
        while owners := claims.owners(action):
            if self._store.owner in owners or any(map(self._is_alive, owners)):
                return True
            # First judged lost, then looked at once more: it may have ended just before its process did.
            with self._lock:
                self.refresh()
                for owner in owners:
                    claims.drop(owner)
        return False

    def park(self, actions: Mapping[str, int]) -> None:
        """State that is about to be committed holds the beginning of these actions, with so many inputs behind each."""
        now = self._now.epoch, self._now.attempt
        new = {item: count for item, count in actions.items() if self._index.parked_in(item) != now}
        if new:
            self._note(Parked(*now, new))
        self.flush()

    def done(self, action: str) -> None:
        """The action has ended for good, once the epoch is committed."""
        if self._index.is_known(action):
            self._note(Done(*self._now, action))

    def gave_up(self, action: str) -> None:
        """The action's run has failed for good, once the epoch is committed."""
        last = self._index.last_behind(action)
        if last is not None:
            self.done(last)

    def notes(self) -> list[Note]:
        """What the present attempt has noted, for one that takes its place."""
        return self._notes

    def note_again(self, notes: Iterable[Note]) -> None:
        """The present attempt repeats what an earlier one has noted."""
        for note in notes:
            self._write_soon(noted_by(self._now, note))

    def _note(self, note: Note) -> None:
        self._write_soon(note)
        if self._claims_actions:
            self._notes.append(note)

    def flush(self) -> None:
        """What was noted is with the store. Raises what has kept the log from being written in the background."""
        self._writer.flush()

    def publish(self) -> None:
        """Before an epoch is committed, or copied: other processes can see what was noted when it returns."""
        self.flush()
        with self._lock:
            self._store.publish()

    # epochs

    def begin(self, epoch: int, place: str = "", attempt: int = 0) -> None:
        """An epoch begins, perhaps once more: earlier ones are committed. What is done from here on belongs to this
        attempt at the epoch; where one place makes several attempts, the highest is the one that counts."""
        with self._lock:
            self.refresh()
            self.count_for(epoch, place, attempt)
            self.flush()
            if epoch == self._settled:
                return
            self._settled = epoch
            dead = [owner for owner in self._store.owners() if not self._store.alive(owner)]
            if dead:
                self.refresh()
                self._index.take_over(dead, self._store.owner)
            self._index.settle(epoch)
            if dead or self._store.size > self._part_limit:
                self._rewrite()
            if dead:
                self._check_owner()
            for owner in dead:
                self._store.remove(owner)

    def count_for(self, epoch: int, place: str = "", attempt: int = 0) -> None:
        """What is done from here on belongs to this epoch. Whether the one before is committed remains to be seen."""
        self._now = Began(epoch, place, attempt)
        self._notes, self.touched = [], False
        self._write_soon(self._now)

    def _rewrite(self) -> None:
        """Only what is still needed stays in this process's part."""
        self._writer.write_pending()
        self._check_owner()
        kept = self._index.records(self._store.owner)
        self._store.replace([encode(to_stored(record)) for record in kept])
        self._part_limit = max(_SMALLEST_PART, 2 * self._store.size)

    def refresh(self) -> None:
        """Takes in what other processes wrote."""
        with self._lock:
            if self._damage is not None:
                raise self._damage
            for owner, records in self._store.read_new():
                for record in self._decoded(owner, records):
                    self._index.apply(owner, record)

    def _decoded(self, owner: str, records: list[bytes]) -> list[Record]:
        try:
            return [from_stored(decode(data)) for data in records]
        except CheckpointError as error:
            # They are not given again: whoever asks again must not believe that there is nothing.
            error.message = f"the durable call log cannot be read: {error.message}"
            error.cause = f"{error.cause} (written by process {owner})"
            self._damage = error
            raise

    def follow(self, *, at_once: bool = False) -> None:
        """The same for a process that only reads: what is done goes, as far as the workers' epochs tell. Not more often
        than the store likes to be asked, unless `at_once`."""
        with self._lock:
            now_s = time.monotonic()
            if now_s < self._follow_s and not at_once:
                return
            self._follow_s = now_s + self._store.pause_s
            self.refresh()
            self._index.settle(self._index.latest_epoch())

    # what there is to do, for whoever decides when the next batch runs

    def set_due(self, name: str, at_ms: int | None) -> None:
        """The earliest time at which something is to be done in a task's state, if any."""
        if self._index.due.get(name) != at_ms:
            self._note(Due(name, at_ms, self._now.epoch, self._now.attempt))

    def next_due_ms(self) -> int | None:
        return min((at_ms for at_ms in self._index.due.values() if at_ms is not None), default=None)

    def parked(self) -> list[str]:
        """Actions whose beginning is in state."""
        return self._index.parked()

    def held_inputs(self) -> Counter[str]:
        """step -> inputs that state holds unfinished, as far as other processes have said."""
        return self._index.held_inputs()

    # writing

    def close(self) -> None:
        self._writer.close()
        with self._lock:
            self._store.close()

    def _is_alive(self, owner: str) -> bool:
        now_s = time.monotonic()
        alive, until_s = self._alive.get(owner, (False, 0.0))
        if now_s >= until_s:
            with self._lock:
                alive = self._store.alive(owner)
            if alive and self._index.fence_of(owner) < self._fence.epoch:
                # A worker of an earlier start ends soon, or has an answer soon. One that stands still is not waited for.
                alive = now_s - self._replaced.setdefault(owner, now_s) < _REPLACED_S
            self._alive[owner] = alive, now_s + _ALIVE_S
        return alive

    def _write_soon(self, record: Record) -> None:
        """Known here at once, and to others soon. A crash of the machine may lose it: a call may then be made twice, or a
        record be kept for longer than needed, but nothing goes missing."""
        with self._lock:
            self._index.apply(self._store.owner, record)
        self._writer.add(record, encode(to_stored(record)))


def _encoded(record: Call) -> bytes:
    try:
        return encode(to_stored(record))
    except NotSerializable as error:
        raise NotSerializable(
            f"the answer of the durable call {record.call.shown} cannot be stored",
            cause=error.cause,
            way_out="return plain data from functions given to durable_execute",
        ) from error
