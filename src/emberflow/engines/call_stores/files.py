"""The built-in store of durable calls: append-only files in a directory that all processes of the job reach.

A process appends to one file at a time, `<owner>.<number>.calls`. A record is its length, a checksum and its bytes; a
torn tail, which a crash leaves behind, is dropped when the file is read. The lease of a process is a locked file that it
touches again and again: a lock goes with the process, at once; a process that stands still stops touching.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path

from emberflow.engines.call_stores.moving import until_whole
from emberflow.errors import CallLogFailed, describe_cause
from emberflow.events.private_files import make_private_folder, open_private

PART = ".calls"
_HEADER = struct.Struct("<II")
_MAGIC = b"EFCL\x02"
_LARGEST = 256 * 1024 * 1024
_BEAT_S = 1.0
_LEASE_S = 10.0
_GONE = (errno.ENOENT, errno.ESTALE)


class FileCallStore:
    pause_s = 0.0

    def __init__(self, directory: Path, *, lease_s: float = _LEASE_S) -> None:
        self.owner = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._directory = directory
        self._lease_s = lease_s
        self._number = 0
        self._file: int | None = None
        self._lease: int | None = None
        self._size = 0
        self._read_to: dict[Path, int] = {}
        self._beats: dict[str, tuple[int, float]] = {}
        self._closed = threading.Event()

    # writing

    def append(self, records: Sequence[bytes], *, sync: bool) -> None:
        try:
            if self._file is None:
                self._file = self._open()
                self._write(_MAGIC)
            if any(len(record) > _LARGEST for record in records):
                raise OSError(errno.EFBIG, f"a record is larger than {_LARGEST:,} bytes")
            self._write(b"".join(map(framed, records)))
            if sync:
                os.fsync(self._file)
            if os.fstat(self._file).st_nlink == 0:
                raise OSError(errno.ESTALE, "another process took this one for dead and removed its part")
        except OSError as error:
            raise self._failed("cannot be written", error) from error

    def publish(self) -> None:
        pass  # Other processes of the machine see what is written at once.

    def replace(self, records: Sequence[bytes]) -> None:
        before = [path for path in self._files() if _owner_of(path) == self.owner]
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._number += 1
        self._size = 0
        if records:
            self.append(records, sync=True)
        for path in before:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _open(self) -> int:
        make_private_folder(self._directory)
        if self._lease is None:
            self._take_lease()
        return open_private(self._path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        rest = memoryview(data)
        before = self._size
        try:
            while rest:
                written = os.write(self._file, rest)
                rest = rest[written:]
                self._size += written
        except OSError:
            # What follows a torn record would never be read: the next one goes to another file.
            self._size = before
            os.close(self._file)
            self._file = None
            self._number += 1
            raise

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        self._closed.set()
        for name in ("_file", "_lease"):
            descriptor: int | None = getattr(self, name)
            if descriptor is not None:
                os.close(descriptor)
                setattr(self, name, None)

    # reading

    def read_new(self) -> list[tuple[str, list[bytes]]]:
        found: list[tuple[str, list[bytes]]] = []
        # What has gone was replaced or taken over: its records stand in a file that the listing did not show yet.
        until_whole(lambda: self._read_listed(found), str(self._directory))
        return found

    def _read_listed(self, found: list[tuple[str, list[bytes]]]) -> bool:
        """Adds what is new in the files of one listing; False if one of them has gone meanwhile."""
        complete = True
        paths = self._files()
        for path in paths:
            owner = _owner_of(path)
            if owner == self.owner:
                continue
            start = self._read_to.get(path, 0)
            try:
                if path.stat().st_size <= start:
                    continue
                with path.open("rb") as file:
                    file.seek(start)
                    data = file.read()
            except OSError as error:
                if error.errno not in _GONE:
                    raise self._failed("cannot be read", error) from error
                complete = False
                continue
            records, length = read_records(data, at_start=start == 0)
            self._read_to[path] = start + length
            if records:
                found.append((owner, records))
        for gone in self._read_to.keys() - set(paths):
            del self._read_to[gone]
        return complete

    def owners(self) -> list[str]:
        return sorted({_owner_of(path) for path in self._files()} - {self.owner})

    def alive(self, owner: str) -> bool:
        if owner == self.owner:
            return True
        path = self._directory / f"{owner}.lease"
        try:
            with path.open("rb") as file:
                beat = os.fstat(file.fileno()).st_mtime_ns
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    pass
                else:
                    return False
        except FileNotFoundError:
            return False
        except OSError:
            # Too many open files, say: no reason to take another process for dead.
            return True
        # By this process's own clock: two machines, or the same one after its clock was set, may not agree.
        now_s = time.monotonic()
        seen, since_s = self._beats.get(owner, (None, now_s))
        if seen != beat:
            self._beats[owner] = beat, now_s
            return True
        return now_s - since_s < self._lease_s

    def remove(self, owner: str) -> None:
        for path in [*self._directory.glob(f"{owner}.*.calls"), self._directory / f"{owner}.lease"]:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._beats.pop(owner, None)

    # lease

    def _take_lease(self) -> None:
        # Locked before anybody can see it: a lease without a lock means that its process has ended.
        hidden = self._directory / f".{self.owner}.lease"
        self._lease = open_private(hidden, os.O_WRONLY | os.O_CREAT)
        fcntl.flock(self._lease, fcntl.LOCK_EX)
        os.rename(hidden, self._directory / f"{self.owner}.lease")
        threading.Thread(target=self._beat, name="emberflow-lease", daemon=True).start()

    def _beat(self) -> None:
        path = self._directory / f"{self.owner}.lease"
        while not self._closed.wait(_BEAT_S):
            with contextlib.suppress(OSError):
                os.utime(path)

    def _path(self) -> Path:
        return self._directory / f"{self.owner}.{self._number:06d}.calls"

    def _files(self) -> list[Path]:
        """What was moved while it was listed is shown at one of its places."""
        found = self._list_once()
        while not found <= (again := self._list_once()):
            found = again
        return sorted(self._directory / name for name in again)

    def _list_once(self) -> set[str]:
        try:
            with os.scandir(self._directory) as entries:
                return {entry.name for entry in entries if entry.name.endswith(PART)}
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise self._failed("cannot be read", error) from error

    def _failed(self, what: str, error: OSError) -> CallLogFailed:
        return CallLogFailed(
            f"the log of durable calls in {self._directory} {what}",
            cause=describe_cause(error),
            way_out="free space or mend the disk, then start the job again",
            committed="calls whose answer was not written are made again",
        )


def _owner_of(path: Path) -> str:
    return path.name.partition(".")[0]


def framed(body: bytes) -> bytes:
    return _HEADER.pack(len(body), zlib.crc32(body)) + body


def as_part(records: Sequence[bytes]) -> bytes:
    """Records as a file holds them."""
    return _MAGIC + b"".join(map(framed, records))


def read_records(data: bytes, *, at_start: bool = True) -> tuple[list[bytes], int]:
    """The whole records at the beginning of some bytes, and how many bytes they take; the rest is torn or not yet
    written."""
    position = 0
    if at_start:
        if not data.startswith(_MAGIC):
            return [], 0
        position = len(_MAGIC)
    records: list[bytes] = []
    while position + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, position)
        body = data[position + _HEADER.size : position + _HEADER.size + length]
        if length > _LARGEST or len(body) < length or zlib.crc32(body) != checksum:
            break
        records.append(body)
        position += _HEADER.size + length
    return records, position
