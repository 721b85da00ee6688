"""The event log of an agent: writes what its operator records to disk, on its own thread.

The agent operator calls `open_log`, `record` for everything that happens, `flush` before a checkpoint and `close` at the
end. `record` only appends to a buffer. The buffer is bounded: when it is full, the caller writes part of it itself, so
nothing is dropped and memory does not grow. A failing disk never stops the job: lost records are counted in `lost`, and
the first failure is reported through `logging`.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from pathlib import Path

from emberflow.errors import describe_cause
from emberflow.observability.event_file import EventFile, safe_name
from emberflow.observability.event_json import EventJson
from emberflow.observability.event_record import EventLogSettings, EventRecord

__all__ = ["EventLog", "EventLogSettings", "EventRecord", "open_log"]

_logger = logging.getLogger(__name__)

CAPACITY = 20_000
"""Maximum number of buffered records: they keep their events alive, so this bounds memory."""
NOTIFY_AT = 1_000
"""Number of records at which the writer is woken before its pause is over."""
PAUSE_S = 0.05
SLICE = 64
LARGEST_WRITE = 1024 * 1024
# After each slice the writer releases the interpreter lock: otherwise the operator, which does I/O, would wait for
# Python's switch interval of 5 ms at every call.
BREATH_S = 0.00005


class EventLog:
    """One agent's log in one process; `record` may be called by any thread."""

    def __init__(self, settings: EventLogSettings, name: str) -> None:
        settings.check()
        self._settings = settings
        self._name = name
        self._users = 1
        self.lost = 0
        """Records that could not be written to disk."""
        self._reset()
        _alive.add(self)

    def record(self, record: EventRecord) -> None:
        """Buffers a record; it is on disk after the next `flush`, or shortly afterwards on its own."""
        buffer = self._buffer
        buffer.append(record)
        if len(buffer) >= self._wake_at:
            self._wake_writer()

    def flush(self) -> None:
        """Passes everything recorded so far to the operating system; returns when that is done."""
        # On the caller's thread: needs no handshake, and works where threads no longer run (interpreter exit).
        while self._write_some(SLICE * 16):
            pass

    def close(self) -> None:
        """Flushes; the last user of the log closes its file. A later record is still written."""
        self.flush()
        if not _leave(self):
            return
        with self._lock:
            self._thread = None
            self._wake_at = 1
            self._wake.set()
            self.flush()
            self._file.close()
        if self.lost:
            _logger.warning("the event log of agent %r lost %d records", self._name, self.lost)

    def _reset(self) -> None:
        """Resets the log, also in a forked child: the parent writes its own buffer, and its thread does not exist here."""
        settings = self._settings
        self._buffer: deque[EventRecord] = deque()
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        # How full the buffer must be for `record` to do more than append: 1 while the writer sleeps or does not exist,
        # NOTIFY_AT while it waits for more records, CAPACITY while it writes.
        self._wake_at = 1
        self._json = EventJson(settings)
        self._file = EventFile(
            Path(settings.directory).expanduser() / safe_name(self._name),
            max_file_bytes=settings.max_file_bytes,
            max_files=settings.max_files,
        )

    def forget_parent(self) -> None:
        """Called in a forked child before any of its code runs."""
        try:
            self._file.close()
        except OSError:
            pass
        self.lost = 0
        self._reset()

    def _wake_writer(self) -> None:
        if self._thread is None and not self._start_writer():
            self.flush()
            return
        if len(self._buffer) >= CAPACITY:
            self._write_some(SLICE)
        # Set before `set()`, so that a writer about to sleep sees either the record or the flag; once is enough.
        self._wake_at = CAPACITY
        self._wake.set()

    def _start_writer(self) -> bool:
        with self._lock:
            if self._thread is None:
                name = f"event-log-{self._name}"
                thread = threading.Thread(target=self._write_until_closed, name=name, daemon=True)
                self._thread = thread
                try:
                    thread.start()
                except RuntimeError:  # The interpreter is shutting down, or the machine has no more threads.
                    self._thread = None
            return self._thread is not None

    def _write_until_closed(self) -> None:
        wake = self._wake
        while self._thread is threading.current_thread():
            wake.clear()
            self._wake_at = 1
            if not self._buffer and self._thread is threading.current_thread():
                wake.wait()
            self._wake_at = NOTIFY_AT
            if len(self._buffer) < NOTIFY_AT:
                wake.clear()
                wake.wait(PAUSE_S)
            self._wake_at = CAPACITY
            while self._write_some(SLICE):
                time.sleep(BREATH_S)

    def _write_some(self, limit: int) -> int:
        """Writes up to `limit` records and returns how many it took; disk errors are counted, not raised."""
        with self._lock:
            buffer = self._buffer
            lines: list[bytes] = []
            size = 0
            while buffer and len(lines) < limit and size < LARGEST_WRITE:
                lines.append(self._json.line(buffer.popleft()))
                size += len(lines[-1])
            if not lines:
                return 0
            before = self._file.written
            try:
                self._file.append(lines)
            except Exception as error:
                self._count_lost(len(lines) - (self._file.written - before), error)
            return len(lines)

    def _count_lost(self, count: int, error: Exception) -> None:
        if not self.lost:
            _logger.warning(
                "the event log of agent %r cannot be written to %s (%s); the job continues, "
                "lost records are counted, and every later write is attempted again",
                self._name,
                self._settings.directory,
                describe_cause(error),
            )
        self.lost += count


_alive: weakref.WeakSet[EventLog] = weakref.WeakSet()
_open: dict[tuple[EventLogSettings, str], EventLog] = {}
_open_lock = threading.Lock()


def open_log(settings: EventLogSettings, name: str) -> EventLog:
    """The log for these settings and this agent in this process; every call needs one `close()`."""
    with _open_lock:
        log = _open.get((settings, name))
        if log is None:
            log = _open[settings, name] = EventLog(settings, name)
        else:
            log._users += 1
        return log


def _leave(log: EventLog) -> bool:
    """Removes one user of the log; returns whether it was the last."""
    with _open_lock:
        if log._users == 0:
            return False
        log._users -= 1
        if log._users:
            return False
        key = (log._settings, log._name)
        if _open.get(key) is log:
            del _open[key]
        return True


def _after_fork_in_child() -> None:
    global _open_lock
    _open_lock = threading.Lock()
    for log in list(_alive):
        log.forget_parent()


def _flush_all() -> None:
    for log in list(_alive):
        log.flush()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_flush_all)
