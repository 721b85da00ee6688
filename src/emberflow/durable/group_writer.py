"""Writes the records of a call log in the background, in groups of all that are pending.

Records are added from the operator's thread and from the calls' event loop. A caller that passes a waiter is woken when
its record is durable; records without a waiter are written soon after.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from emberflow.durable.records import Call, Ended, Record
from emberflow.durable.stores.contract import CallStore
from emberflow.errors import CallLogFailed, OwnershipLost

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


_Pending = tuple[Record, bytes, Waiter | None]


class GroupWriter:
    """Starts its thread with the first record. The store may be used only while holding `lock`."""

    def __init__(
        self,
        store: CallStore,
        lock: threading.RLock,
        *,
        check_owner: Callable[[], None],
        durable: Callable[[Record], None],
    ) -> None:
        """`check_owner` raises CallLogFailed once a later start of the job has taken over. `durable` is called, under the
        lock, with every record that has a waiter."""
        self._store = store
        self._lock = lock
        self._check_owner = check_owner
        self._durable = durable
        self._pending: list[_Pending] = []
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._failure: CallLogFailed | None = None

    def add(self, record: Record, data: bytes, waiter: Waiter | None = None) -> None:
        if self._closed:
            # The job has ended; the record would never be written.
            raise CallLogFailed("the durable call log is closed", way_out="start the job again")
        self._pending.append((record, data, waiter))
        if self._thread is None:
            self._start()
        if not self._wake.is_set():
            self._wake.set()

    def flush(self) -> None:
        """Writes all pending records to the store. Raises the failure of an earlier background write, if any."""
        self.write_pending()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def write_pending(self) -> None:
        with self._lock:
            group = self._pending[:]
            if not group:
                return
            # Removed from the front under the lock only; other threads append at the end.
            del self._pending[: len(group)]
            waiters = [waiter for _, _, waiter in group if waiter is not None]
            error: Exception | None = None
            try:
                group = self._writable(group)
                self._store.append([data for _, data, _ in group], sync=bool(waiters))
                for record, _, waiter in group:
                    if waiter is not None:
                        self._durable(record)
            except CallLogFailed as failure:
                error = self._failure = failure
        _release(waiters, error)

    def forget_lost_ownership(self) -> None:
        """Discards a failure caused by an earlier start; this process now serves a later one."""
        if self._failure is not None and isinstance(self._failure.__cause__, OwnershipLost):
            self._failure = None

    def close(self) -> None:
        """Returns after everything has been written."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="emberflow-call-log", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while not self._closed or self._pending:
            self._wake.wait()
            self._wake.clear()
            self.write_pending()

    def _writable(self, group: list[_Pending]) -> list[_Pending]:
        """The whole group, or only answers and ends if a later start has taken over."""
        try:
            self._check_owner()
        except CallLogFailed as lost:
            self._failure = lost
            return [item for item in group if isinstance(item[0], Call | Ended)]
        return group


def _release(waiters: list[Waiter], error: Exception | None) -> None:
    """Wakes all waiters of a group, with one call per event loop."""
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
            pass  # The loop has ended, so no caller is waiting.
