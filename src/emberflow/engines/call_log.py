"""The durable log of calls: what its records mean, and how long they are kept. Where they are kept is a store's business.

An epoch is what is committed at once: a micro-batch, or the time between two local checkpoints. Once an epoch is
committed, its records are not needed any more, but for those of *parked* actions: state holds their beginning, their
calls go on meanwhile. A process *claims* an action while it runs it, so that nobody else does; the claim ends with the
action, or with the process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from emberflow.engines.call_stores.contract import CallStore
from emberflow.errors import CallLogFailed, NotSerializable
from emberflow.events.codecs import decode, encode
from emberflow.operators.durable import CallRecord

CALLS_FOLDER = "calls"
_SMALLEST_PART = 1024 * 1024
_ALIVE_S = 0.5
_KEPT_EPOCHS = 20
"""How long it stays known that an action was resumed, so that no process takes an older record for the newest."""

# Kinds of records.
_EPOCH = "epoch"
_CALL = "call"
_FORGOTTEN = "forgotten"
_PARKED = "parked"
_RESUMED = "resumed"
_CLAIMED = "claimed"
_ENDED = "ended"
_DUE = "due"

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class StoredCallLog:
    """One per process and job. Used from the operator's thread and from the calls' event loop.

    Without `claims` there is no other process that could run an action of the job at the same time.
    """

    def __init__(self, store: CallStore, *, claims: bool = False) -> None:
        self._store = store
        self._claims_actions = claims
        self._known: dict[str, tuple[int, CallRecord]] = {}
        self._parked: dict[str, int] = {}
        self._resumed: dict[str, int] = {}
        """action -> epoch. Parts are read in any order, so the epochs decide which of the two came later."""
        self._behind: dict[str, int] = {}
        """parked action -> inputs of its key that wait behind it in state."""
        self._claims: dict[str, str] = {}
        self._due: dict[str, int | None] = {}
        self._epochs: dict[str, int] = {}
        self._alive: dict[str, tuple[bool, float]] = {}
        self._epoch = -1
        self._marked_epoch = -1
        self._part_limit = _SMALLEST_PART
        # Whoever holds it may write, and finds what is stored and what is known in step.
        self._lock = threading.RLock()
        self._pending: list[tuple[CallRecord | None, bytes, Waiter | None]] = []
        self._wake = threading.Event()
        self._writer: threading.Thread | None = None
        self._closed = False

    # calls

    def find(self, call_id: str) -> CallRecord | None:
        found = self._known.get(call_id)
        return None if found is None else found[1]

    async def write(self, record: CallRecord) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._enqueue(record, _encoded(record), (loop, future))
        await future

    def write_now(self, record: CallRecord) -> None:
        data = _encoded(record)
        with self._lock:
            self._append([data], sync=True)
            self._known[record.call_id] = self._epoch, record

    def forget(self, call_ids: Iterable[str]) -> None:
        with self._lock:
            gone = [call_id for call_id in call_ids if call_id in self._known]
            if gone:
                self._append([encode((_FORGOTTEN, call_id)) for call_id in gone], sync=True)
                for call_id in gone:
                    del self._known[call_id]

    # actions

    def claim(self, action: str) -> bool:
        """Whether this process is to run the action: False if another run of it goes on somewhere."""
        if not self._claims_actions:
            return True
        if self.running(action):
            return False
        self._claims[action] = self._store.owner
        self._enqueue(None, encode((_CLAIMED, action)), None)
        return True

    def ended(self, action: str) -> None:
        """The action that this process claimed has ended; what it leaves behind is in the log."""
        if self._claims_actions:
            self._claims.pop(action, None)
            self._enqueue(None, encode((_ENDED, action)), None)

    def running(self, action: str) -> bool:
        """Whether a process that is alive runs the action."""
        owner = self._claims.get(action)
        if owner is None:
            return False
        if owner == self._store.owner or self._is_alive(owner):
            return True
        # First judged lost, then looked at once more: it may have ended just before its process did.
        self.refresh()
        with self._lock:
            if self._claims.get(action) == owner:
                del self._claims[action]
        return False

    def park(self, actions: Mapping[str, int]) -> None:
        """State that is about to be committed holds the beginning of these actions, with so many inputs behind each.
        Durable when it returns. Said again in every epoch that touches them: in a repeated batch, an attempt before may
        have resumed them."""
        with self._lock:
            new = {item: count for item, count in actions.items() if self._parked.get(item) != self._epoch}
            if new:
                # Claims first: whoever sees that an action is parked must see that it runs.
                self._write_pending()
                self._append([encode((_PARKED, self._epoch, new))], sync=True)
                self._note_parked(self._epoch, new)

    def resumed(self, action: str) -> None:
        """State no longer holds the action, once the epoch is committed."""
        if action in self._parked:
            self._resumed[action] = self._epoch
            self._enqueue(None, encode((_RESUMED, self._epoch, action)), None)

    # epochs

    def begin(self, epoch: int) -> None:
        """An epoch begins, perhaps once more. Earlier ones are committed: what only they needed goes."""
        with self._lock:
            self.refresh()
            if epoch == self._epoch:
                return
            self._epoch = epoch
            dead = [owner for owner in self._store.owners() if not self._store.alive(owner)]
            if dead:
                self.refresh()
            for action, end in [*self._resumed.items()]:
                if end < epoch and not self._is_parked(action):
                    self._parked.pop(action, None)
                    self._behind.pop(action, None)
                    if end < epoch - _KEPT_EPOCHS:
                        del self._resumed[action]
            self._known = {
                call_id: (written, record)
                for call_id, (written, record) in self._known.items()
                if written >= epoch or _action_of(call_id) in self._parked
            }
            if dead or self._store.size > self._part_limit:
                self._rewrite()
            for owner in dead:
                self._store.remove(owner)
                self._epochs.pop(owner, None)
                for action in [action for action, by in self._claims.items() if by == owner]:
                    del self._claims[action]

    def _rewrite(self) -> None:
        """Only what is still needed stays in this process's part."""
        kept: list[bytes] = [encode((_EPOCH, self._epoch))]
        for action, at in self._parked.items():
            kept.append(encode((_PARKED, at, {action: self._behind.get(action, 0)})))
        kept.extend(encode((_RESUMED, end, action)) for action, end in self._resumed.items())
        mine = self._store.owner
        kept.extend(encode((_CLAIMED, action)) for action, owner in self._claims.items() if owner == mine)
        kept.extend(encode((_DUE, name, at_ms)) for name, at_ms in self._due.items() if at_ms is not None)
        kept.extend(encode((_CALL, record)) for _, record in self._known.values())
        self._store.replace(kept if len(kept) > 1 else [])
        self._marked_epoch = self._epoch if len(kept) > 1 else -1
        self._part_limit = max(_SMALLEST_PART, 2 * self._store.size)

    def refresh(self) -> None:
        """Takes in what other processes wrote."""
        with self._lock:
            for owner, records in self._store.read_new():
                for data in records:
                    self._apply(owner, decode(data))

    def _apply(self, owner: str, record: tuple[Any, ...]) -> None:
        kind = record[0]
        if kind == _CALL:
            call: CallRecord = record[1]
            self._known[call.call_id] = self._epochs.get(owner, -1), call
        elif kind == _CLAIMED:
            self._claims[record[1]] = owner
        elif kind == _ENDED:
            if self._claims.get(record[1]) == owner:
                del self._claims[record[1]]
        elif kind == _EPOCH:
            self._epochs[owner] = record[1]
        elif kind == _FORGOTTEN:
            self._known.pop(record[1], None)
        elif kind == _PARKED:
            # The first version had a list, without what waits behind.
            given: Any = record[2]
            self._note_parked(record[1], dict.fromkeys(given, 0) if isinstance(given, list) else given)  # pyright: ignore[reportUnknownArgumentType]
        elif kind == _RESUMED:
            self._resumed[record[2]] = max(record[1], self._resumed.get(record[2], -1))
        elif kind == _DUE:
            self._due[record[1]] = record[2]

    def _note_parked(self, epoch: int, actions: Mapping[str, int]) -> None:
        for action, behind in actions.items():
            if epoch >= self._parked.get(action, -1):
                self._parked[action] = epoch
                self._behind[action] = behind

    def _is_parked(self, action: str) -> bool:
        """Of an action that was resumed and parked in one epoch, a repeated batch has parked it last."""
        at = self._parked.get(action)
        return at is not None and self._resumed.get(action, -1) <= at

    # what there is to do, for whoever decides when the next batch runs

    def set_due(self, name: str, at_ms: int | None) -> None:
        """The earliest time at which something is to be done in a task's state, if any."""
        if self._due.get(name) != at_ms:
            self._due[name] = at_ms
            self._enqueue(None, encode((_DUE, name, at_ms)), None)

    def next_due_ms(self) -> int | None:
        return min((at_ms for at_ms in self._due.values() if at_ms is not None), default=None)

    def parked(self) -> list[str]:
        """Actions whose beginning is in state."""
        return [action for action in self._parked if self._is_parked(action)]

    def held_inputs(self) -> Counter[str]:
        """step -> inputs that state holds unfinished, as far as other processes have said."""
        return Counter(
            {
                step: sum(1 + self._behind.get(action, 0) for action in actions)
                for step, actions in groupby(sorted(self.parked(), key=_step_of), key=_step_of)
            }
        )

    # writing

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        if self._writer is not None:
            self._writer.join()
        with self._lock:
            self._store.close()

    def _is_alive(self, owner: str) -> bool:
        now_s = time.monotonic()
        alive, until_s = self._alive.get(owner, (False, 0.0))
        if now_s >= until_s:
            alive = self._store.alive(owner)
            self._alive[owner] = alive, now_s + _ALIVE_S
        return alive

    def _enqueue(self, record: CallRecord | None, data: bytes, waiter: Waiter | None) -> None:
        self._pending.append((record, data, waiter))
        if self._writer is None:
            self._start_writer()
        self._wake.set()

    def _start_writer(self) -> None:
        with self._lock:
            if self._writer is None:
                self._writer = threading.Thread(target=self._work, name="emberflow-call-log", daemon=True)
                self._writer.start()

    def _work(self) -> None:
        while not self._closed or self._pending:
            self._wake.wait()
            self._wake.clear()
            self._write_pending()

    def _write_pending(self) -> None:
        with self._lock:
            group = self._pending[:]
            if not group:
                return
            # Taken from the front under the lock only; others append at the end.
            del self._pending[: len(group)]
            waiters = [waiter for _, _, waiter in group if waiter is not None]
            error: Exception | None = None
            try:
                self._append([data for _, data, _ in group], sync=bool(waiters))
                for record, _, _ in group:
                    if record is not None:
                        self._known[record.call_id] = self._epoch, record
            except CallLogFailed as failure:
                # Claims and the like may be lost: a call may then be made twice, but none goes missing.
                error = failure
        _release(waiters, error)

    def _append(self, records: list[bytes], *, sync: bool) -> None:
        """The caller holds the lock."""
        if self._marked_epoch != self._epoch:
            records = [encode((_EPOCH, self._epoch)), *records]
        self._store.append(records, sync=sync)
        self._marked_epoch = self._epoch


def carried_over(data: bytes) -> bytes | None:
    """A record as another job takes it over, before its first epoch: what is parked stays so, with its calls; processes,
    key groups and epochs of the job before mean nothing any more."""
    kind, *rest = decode(data)
    if kind == _EPOCH:
        return encode((_EPOCH, -1))
    if kind == _PARKED:
        return encode((_PARKED, -1, rest[1]))
    return data if kind in (_CALL, _FORGOTTEN) else None


def _encoded(record: CallRecord) -> bytes:
    try:
        return encode((_CALL, record))
    except NotSerializable as error:
        raise NotSerializable(
            f"the answer of the durable call {record.shown} cannot be stored",
            cause=error.cause,
            way_out="return plain data from functions given to durable_execute",
        ) from error


def _action_of(call_id: str) -> str:
    """A call's id is that of its action and a number."""
    return call_id[: call_id.rfind("/") + 1]


def _step_of(action: str) -> str:
    """An action's id begins with the uid of its step; run and number follow."""
    return action.rsplit("/", 3)[0]


def _release(waiters: list[Waiter], error: Exception | None) -> None:
    """Wakes all callers of a group, one hand-over per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for loop, future in waiters:
        by_loop.setdefault(loop, []).append(future)
    for loop, futures in by_loop.items():

        def settle(futures: list[asyncio.Future[None]] = futures) -> None:
            for future in futures:
                if future.done():
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass  # The loop has ended, and with it everybody who waited.
