"""The event log of an agent: what its operator records becomes lines on disk, on a thread of the log's own.

The agent operator calls `open_log`, `record` for everything that happens, `flush` before a checkpoint is taken and
`close` at its end. `record` only appends to a buffer. The buffer is bounded: when it is full, the caller writes a part
of it itself, so nothing is dropped and memory does not grow. A disk that fails never stops the job: what could not be
written is counted in `lost`, and the first time is said through `logging`.
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
"""Records that wait at most: they keep their events alive, so this is memory."""
NOTIFY_AT = 1_000
"""Records that are worth waking the writer before its pause is over."""
PAUSE_S = 0.05
SLICE = 64
LARGEST_WRITE = 1024 * 1024
# After each slice the writer gives the interpreter away: the operator, which does I/O, would otherwise wait for it
# by Python's switch interval of 5 ms at every call.
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
        self._start_anew()
        _alive.add(self)

    def record(self, record: EventRecord) -> None:
        """Takes a record; it is on disk after the next `flush`, or a moment later by itself."""
        buffer = self._buffer
        buffer.append(record)
        if len(buffer) >= self._wake_at:
            self._wake_writer()

    def flush(self) -> None:
        """Hands everything recorded so far to the operating system; returns when that is done."""
        # On the caller's thread: no handshake, and it works where threads do not run any more (interpreter exit).
        while self._write_some(SLICE * 16):
            pass

    def close(self) -> None:
        """Flushes; the last of those who opened the log closes its file. A record that comes later is still written."""
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

    def _start_anew(self) -> None:
        """Also after a fork, in the child: the parent's buffer is the parent's to write, its thread is not here."""
        settings = self._settings
        self._buffer: deque[EventRecord] = deque()
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        # How full the buffer must be for `record` to do more than append. Three values: 1 while the writer sleeps
        # or there is none, NOTIFY_AT while it lets records gather, CAPACITY while it writes.
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
        self._start_anew()

    def _wake_writer(self) -> None:
        if self._thread is None and not self._start_writer():
            self.flush()
            return
        if len(self._buffer) >= CAPACITY:
            self._write_some(SLICE)
        # Once is enough; before `set`, so that a writer about to sleep sees either the record or the flag.
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
                except RuntimeError:  # The interpreter is about to end, or the machine has no more threads.
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
        """Writes up to `limit` records and says how many it took; never raises for the disk's reasons."""
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
                "the event log of agent %r cannot be written to %s (%s); the job goes on, "
                "lost records are counted, and every later write is tried again",
                self._name,
                self._settings.directory,
                describe_cause(error),
            )
        self.lost += count


_alive: weakref.WeakSet[EventLog] = weakref.WeakSet()
_open: dict[tuple[EventLogSettings, str], EventLog] = {}
_open_lock = threading.Lock()


def open_log(settings: EventLogSettings, name: str) -> EventLog:
    """The log of these settings and this agent in this process; every call wants one `close()`."""
    with _open_lock:
        log = _open.get((settings, name))
        if log is None:
            log = _open[settings, name] = EventLog(settings, name)
        else:
            log._users += 1
        return log


def _leave(log: EventLog) -> bool:
    """Whether this was the last user."""
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
