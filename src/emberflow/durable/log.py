"""The durable call log: writes records to a store, and tracks what all processes of the job have written.

What records mean and when they are dropped is in `index.py`; where they are kept is the store's concern. An epoch is the
unit of commit: a micro-batch, or the time between two local checkpoints. A process *claims* an action while it runs it,
so that no other process does; the claim ends with the action or with the process.
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
"""For how long a call made by a process of an earlier start counts as in flight."""


class StoredCallLog:
    """One per process and job. Used from the operator's thread and from the calls' event loop.

    Without `claims`, no other process can run an action of the job at the same time.
    """

    def __init__(self, store: CallStore, *, claims: bool = False, fence: Fence = NO_FENCE) -> None:
        self._store = store
        self._fence = fence
        self._claims_actions = claims
        self._index = CallIndex()
        self._alive: dict[str, tuple[bool, float]] = {}
        self._replaced: dict[str, float] = {}
        """worker of an earlier start -> since when it is known"""
        self._settled = -1
        self._now = Began(-1, "", 0)
        """The current attempt at an epoch."""
        self._notes: list[Note] = []
        self.touched = False
        """Whether the current attempt at the epoch has written or dropped answers."""
        self._part_limit = _SMALLEST_PART
        self._follow_s = 0.0
        # Holding it allows writing and guarantees that the store and the index agree.
        self._lock = threading.RLock()
        self._writer = GroupWriter(
            store, self._lock, check_owner=self._check_owner, durable=partial(self._index.apply, store.owner)
        )
        self._damage: CheckpointError | None = None
        self._numbers = itertools.count()

    # calls

    def find(self, call_id: str) -> CallRecord | None:
        return self._index.calls.get(call_id)

    def is_empty(self) -> bool:
        return not self._index.calls

    async def write(self, record: CallRecord) -> None:
        self.touched = True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        written = self._marked(record)
        self._writer.add(written, _encoded(written), (loop, future))
        await future

    def write_first(self, record: CallRecord) -> None:
        self.touched = True
        written = self._marked(record)
        data = _encoded(written)
        with self._lock:
            self._index.apply(self._store.owner, written)
        self._writer.add(written, data)

    def write_now(self, record: CallRecord) -> None:
        self.touched = True
        written = self._marked(record)
        data = _encoded(written)
        with self._lock:
            self._writer.flush()
            self._store.append([data], sync=True)
            self._index.apply(self._store.owner, written)

    def _marked(self, record: CallRecord) -> Call:
        return Call(record, marked(self._fence.epoch, f"{self._store.owner}.{next(self._numbers)}"))

    def belongs_to(self, fence: Fence) -> None:
        """This process now also serves a later start of the job: actions in flight continue."""
        if fence.epoch > self._fence.epoch:
            with self._lock:
                self._fence = fence
                self._writer.forget_lost_ownership()

    def _check_owner(self) -> None:
        """Raises if this process was replaced: it must neither drop records nor report actions as done or running. It may
        still record answers: if the later start has its own answer to a call, that one counts."""
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
        """Claims the action for this process; returns False if it is already running somewhere."""
        if not self._claims_actions:
            return True
        if self.running(action):
            return False
        self._write_soon(Claimed(action, self._fence.epoch))
        return True

    def ended(self, action: str) -> None:
        """An action claimed by this process has ended; its outcome is in the log."""
        if self._claims_actions:
            self._write_soon(Ended(action))

    def running(self, action: str) -> bool:
        """Whether a live process runs the action."""
        claims = self._index.claims
        while owners := claims.owners(action):
            if self._store.owner in owners or any(map(self._is_alive, owners)):
                return True
            # Read again after its process was found dead: the action may have ended just before that.
            with self._lock:
                self.refresh()
                for owner in owners:
                    claims.drop(owner)
        return False

    def park(self, actions: Mapping[str, int]) -> None:
        """State that is about to be committed holds these started actions and, for each, the number of inputs queued."""
        now = self._now.epoch, self._now.attempt
        new = {item: count for item, count in actions.items() if self._index.parked_in(item) != now}
        if new:
            self._note(Parked(*now, new))
        self.flush()

    def done(self, action: str) -> None:
        """The action is done as soon as the epoch is committed."""
        if self._index.is_known(action):
            self._note(Done(*self._now, action))

    def gave_up(self, action: str) -> None:
        """The action's run has failed permanently as soon as the epoch is committed."""
        last = self._index.last_behind(action)
        if last is not None:
            self.done(last)

    def notes(self) -> list[Note]:
        """What the current attempt has noted, for an attempt that replaces it."""
        return self._notes

    def note_again(self, notes: Iterable[Note]) -> None:
        """Repeats in the current attempt what an earlier one has noted."""
        for note in notes:
            self._write_soon(noted_by(self._now, note))

    def _note(self, note: Note) -> None:
        self._write_soon(note)
        if self._claims_actions:
            self._notes.append(note)

    def flush(self) -> None:
        """Writes everything noted so far to the store. Raises the failure of an earlier background write, if any."""
        self._writer.flush()

    def publish(self) -> None:
        """Makes everything noted visible to other processes; called before an epoch is committed or copied."""
        self.flush()
        with self._lock:
            self._store.publish()

    # epochs

    def begin(self, epoch: int, place: str = "", attempt: int = 0) -> None:
        """Starts an epoch, possibly again: earlier ones are committed. What is done from now on belongs to this attempt at
        the epoch; if one place makes several attempts, the highest one counts."""
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
        """What is done from now on belongs to this epoch. The previous epoch may or may not be committed."""
        self._now = Began(epoch, place, attempt)
        self._notes, self.touched = [], False
        self._write_soon(self._now)

    def _rewrite(self) -> None:
        """Rewrites this process's part with only the records that are still needed."""
        self._writer.write_pending()
        self._check_owner()
        kept = self._index.records(self._store.owner)
        self._store.replace([encode(to_stored(record)) for record in kept])
        self._part_limit = max(_SMALLEST_PART, 2 * self._store.size)

    def refresh(self) -> None:
        """Reads what other processes have written since the last time."""
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
            # These records are not returned again: a retry must not conclude that there are none.
            error.message = f"the durable call log cannot be read: {error.message}"
            error.cause = f"{error.cause} (written by process {owner})"
            self._damage = error
            raise

    def follow(self, *, at_once: bool = False) -> None:
        """Like `refresh`, for a process that only reads: drops what is done according to the workers' epochs. Polls no more
        often than the store's polling interval, unless `at_once`."""
        with self._lock:
            now_s = time.monotonic()
            if now_s < self._follow_s and not at_once:
                return
            self._follow_s = now_s + self._store.pause_s
            self.refresh()
            self._index.settle(self._index.latest_epoch())

    # pending work, for the code that decides when the next batch runs

    def set_due(self, name: str, at_ms: int | None) -> None:
        """Records the earliest time at which a task's state has something to do, if any."""
        if self._index.due.get(name) != at_ms:
            self._note(Due(name, at_ms, self._now.epoch, self._now.attempt))

    def next_due_ms(self) -> int | None:
        return min((at_ms for at_ms in self._index.due.values() if at_ms is not None), default=None)

    def parked(self) -> list[str]:
        """Actions that have started and are parked in state."""
        return self._index.parked()

    def held_inputs(self) -> Counter[str]:
        """step -> number of unfinished inputs held in state, as reported by other processes."""
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
                # A worker of an earlier start ends or answers soon. Do not wait for one that hangs.
                alive = now_s - self._replaced.setdefault(owner, now_s) < _REPLACED_S
            self._alive[owner] = alive, now_s + _ALIVE_S
        return alive

    def _write_soon(self, record: Record) -> None:
        """Applied here at once, written soon. A crash of the machine may lose the record: a call may then be made twice,
        or a record kept longer than needed, but no answer is lost."""
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
