"""The durable log of calls as files: one segment per process and epoch, appended to in groups.

An epoch is what is committed at once: a micro-batch, or the time between two local checkpoints. When an epoch is
committed its segments are not needed any more. A record is its length, a checksum and its bytes; a torn tail, which a
crash leaves behind, is dropped when the segment is read.
"""

from __future__ import annotations

import asyncio
import os
import struct
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from emberflow.errors import CallLogFailed, NotSerializable, describe_cause
from emberflow.events.codecs import decode, encode
from emberflow.operators.durable import CallRecord

CALLS_FOLDER = "calls"
_HEADER = struct.Struct("<II")
_MAGIC = b"EFCL\x01"
_LARGEST = 256 * 1024 * 1024

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class FileCallLog:
    """One per process and job. Used from the operator's thread and from the calls' event loop."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._known: dict[str, CallRecord] = {}
        self._read_to: dict[Path, int] = {}
        self._epoch = -1
        self._file: int | None = None
        # Whoever holds it may write, and finds what is on disk and what is known in step.
        self._disk = threading.Lock()
        self._pending: list[tuple[CallRecord, bytes, Waiter]] = []
        self._wake = threading.Event()
        self._writer: threading.Thread | None = None
        self._closed = False

    # what operators call

    def find(self, call_id: str) -> CallRecord | None:
        return self._known.get(call_id)

    async def write(self, record: CallRecord) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._pending.append((record, _framed(record), (loop, future)))
        if self._writer is None:
            self._writer = threading.Thread(target=self._work, name="emberflow-call-log", daemon=True)
            self._writer.start()
        self._wake.set()
        await future

    def write_now(self, record: CallRecord) -> None:
        data = _framed(record)
        with self._disk:
            self._append([data])
            self._known[record.call_id] = record

    def forget(self, call_ids: Iterable[str]) -> None:
        with self._disk:
            gone = [call_id for call_id in call_ids if call_id in self._known]
            if gone:
                self._append([_framed(call_id) for call_id in gone])
                for call_id in gone:
                    del self._known[call_id]

    # what engines call

    def resume(self, epoch: int) -> None:
        """After a start: whatever any process before this one has left is known."""
        self._read_others()
        self.begin(epoch, lambda call_id: True)

    def begin(self, epoch: int, live: Callable[[str], bool]) -> None:
        """A new epoch: what was committed before it goes, but for the `live` calls of runs in flight; what other
        processes wrote in it is read."""
        if epoch != self._epoch:
            with self._disk:
                self._close_file()
                self._epoch = epoch
                self._known = {call_id: record for call_id, record in self._known.items() if live(call_id)}
                if self._known:
                    self._append([_framed(record) for record in self._known.values()])
            for path in self._segments():
                if _epoch_of(path) < epoch:
                    path.unlink(missing_ok=True)
                    self._read_to.pop(path, None)
        self._read_others()

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        if self._writer is not None:
            self._writer.join()
        with self._disk:
            self._close_file()

    # files

    def _segments(self) -> list[Path]:
        return sorted(self._directory.glob("*.calls"))

    def _read_others(self) -> None:
        for path in self._segments():
            if self._owner in path.name:
                continue
            start = self._read_to.get(path, 0)
            try:
                with path.open("rb") as file:
                    file.seek(start)
                    data = file.read()
            except OSError:
                continue  # Another process has just removed it: its epoch is committed.
            records, length = read_records(data, at_start=start == 0)
            self._read_to[path] = start + length
            for record in records:
                if isinstance(record, CallRecord):
                    self._known[record.call_id] = record
                else:
                    self._known.pop(record, None)

    def _work(self) -> None:
        while not self._closed or self._pending:
            self._wake.wait()
            self._wake.clear()
            group = self._pending[:]
            if not group:
                continue
            # Only this thread takes from the front; others append at the end.
            del self._pending[: len(group)]
            error: Exception | None = None
            try:
                with self._disk:
                    self._append([data for _, data, _ in group])
                    for record, _, _ in group:
                        self._known[record.call_id] = record
            except CallLogFailed as failure:
                error = failure
            _release([waiter for _, _, waiter in group], error)

    def _append(self, records: list[bytes]) -> None:
        """Durable when it returns. The caller holds the lock."""
        try:
            if self._file is None:
                self._directory.mkdir(parents=True, exist_ok=True)
                path = self._directory / f"{max(self._epoch, 0):012d}-{self._owner}.calls"
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
                if os.fstat(self._file).st_size == 0:
                    records = [_MAGIC, *records]
            data = memoryview(b"".join(records))
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise CallLogFailed(
                f"the log of durable calls in {self._directory} cannot be written",
                cause=describe_cause(error),
                way_out="free space or mend the disk, then start the job again",
                committed="calls whose answer was not written are made again",
            ) from error

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _framed(record: CallRecord | str) -> bytes:
    try:
        body = encode(record)
    except NotSerializable as error:
        assert isinstance(record, CallRecord)
        raise NotSerializable(
            f"the answer of the durable call {record.shown} cannot be stored",
            cause=error.cause,
            way_out="return plain data from functions given to durable_execute",
        ) from error
    return _HEADER.pack(len(body), zlib.crc32(body)) + body


def read_records(data: bytes, *, at_start: bool = True) -> tuple[list[CallRecord | str], int]:
    """The whole records at the beginning of some bytes, and how many bytes they take; the rest is torn or not yet
    written. A text is the id of a call to be forgotten."""
    position = 0
    if at_start:
        if not data.startswith(_MAGIC):
            return [], 0
        position = len(_MAGIC)
    records: list[CallRecord | str] = []
    while position + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, position)
        body = data[position + _HEADER.size : position + _HEADER.size + length]
        if length > _LARGEST or len(body) < length or zlib.crc32(body) != checksum:
            break
        records.append(decode(body))
        position += _HEADER.size + length
    return records, position


def _epoch_of(path: Path) -> int:
    try:
        return int(path.name.partition("-")[0])
    except ValueError:
        return 0


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
