"""The built-in store of durable calls: append-only files in a directory that all processes of the job reach.

A process appends to one file at a time, `<owner>.<number>.calls`. A record is its length, a checksum and its bytes; a
torn tail, which a crash leaves behind, is dropped when the file is read. How a process shows that it is alive is in
`file_lease.py`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path

from emberflow.engines.call_stores.file_lease import LEASE_S, FileLeases
from emberflow.engines.call_stores.moving import until_whole
from emberflow.errors import CallLogFailed, describe_cause
from emberflow.events.private_files import make_private_folder, open_private

PART = ".calls"
_HEADER = struct.Struct("<II")
_MAGIC = b"EFCL\x02"
_LARGEST = 256 * 1024 * 1024
_GONE = (errno.ENOENT, errno.ESTALE)


class FileCallStore:
    pause_s = 0.0

    def __init__(self, directory: Path, *, lease_s: float = LEASE_S) -> None:
        self.owner = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._directory = directory
        self._leases = FileLeases(directory, lease_s)
        self._number = 0
        self._file: int | None = None
        self._size = 0
        self._read_to: dict[Path, int] = {}

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
        self._leases.take(self.owner)
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
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._leases.give_up()

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
        return owner == self.owner or self._leases.alive(owner)

    def remove(self, owner: str) -> None:
        for path in self._directory.glob(f"{owner}.*.calls"):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._leases.remove(owner)

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
