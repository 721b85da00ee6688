"""The built-in store of durable calls: append-only files in a directory shared by all processes of the job.

A process appends frames (`framing.py`) to one file at a time, `<owner>.<number>.calls`. A truncated tail, as a crash
leaves it, is dropped when the file is read; any other damage is CorruptData, and nothing is removed. How a process
shows that it is alive is in `file_lease.py`; its lease also records how much of each file is on disk
(`synced_lengths.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from emberflow.durable.stores.file_lease import LEASE_S, FileLeases
from emberflow.durable.stores.framing import LARGEST, first_bytes, framed
from emberflow.durable.stores.part_files import PartFiles, owner_of
from emberflow.durable.stores.synced_lengths import pack_lengths
from emberflow.events.private_files import make_private_folder, open_private
from emberflow.events.stored_files import sync_folder, write_json


class FileCallStore:
    pause_s = 0.0

    def __init__(self, directory: Path, *, lease_s: float = LEASE_S) -> None:
        self.owner = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._directory = directory
        self._files = PartFiles(directory, self.owner)
        self._leases = FileLeases(directory, lease_s)
        self._number = 0
        self._file: int | None = None
        self._closed = False
        self._size = 0
        self._synced: dict[int, int] = {}
        """number of a file of this process -> number of its bytes that are on disk"""

    # writing

    def append(self, records: Sequence[bytes], *, sync: bool) -> None:
        try:
            if self._closed:
                # Opening it again would take the lease again, and this process would count as alive forever.
                raise OSError(errno.EBADF, "the log was closed before")
            if self._file is None:
                self._file = self._open()
                self._write(first_bytes())
            if any(len(record) > LARGEST for record in records):
                raise OSError(errno.EFBIG, f"a record is larger than {LARGEST:,} bytes")
            self._write(b"".join(map(framed, records)))
            if sync:
                self._sync()
            if os.fstat(self._file).st_nlink == 0:
                raise OSError(errno.ESTALE, "another process declared this one dead and removed its part")
        except OSError as error:
            raise self._files.failed("cannot be written", error) from error

    def publish(self) -> None:
        pass  # Other processes of the machine see written data at once.

    def replace(self, records: Sequence[bytes]) -> None:
        before = [path for path in self._files.parts() if owner_of(path) == self.owner]
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._number += 1
        self._size = 0
        if records:
            self.append(records, sync=True)
        self._synced = {at: size for at, size in self._synced.items() if at == self._number}
        self._leases.note(pack_lengths(self._synced))
        for path in before:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _open(self) -> int:
        make_private_folder(self._directory)
        self._leases.take(self.owner)
        self._leases.note(pack_lengths(self._synced))
        part = self._files.part(self.owner, self._number)
        descriptor = open_private(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        # Syncing the file does not make its name durable.
        sync_folder(self._directory)
        if not self._files.marker.exists():
            write_json(self._files.marker, {"format": 1, "calls": self._directory.name})
        return descriptor

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
            self._size = before
            self._give_up_file()
            raise

    def _sync(self) -> None:
        assert self._file is not None
        try:
            os.fsync(self._file)
        except OSError:
            # Data that was not written now may never be, and the next fsync would not report it.
            self._give_up_file()
            raise
        self._synced[self._number] = os.fstat(self._file).st_size
        self._leases.note(pack_lengths(self._synced))

    def _give_up_file(self) -> None:
        """Continues in another file: what follows a truncated record would never be read."""
        assert self._file is not None
        os.close(self._file)
        self._file = None
        self._number += 1

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        self._closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._leases.give_up()

    # reading

    def read_new(self) -> list[tuple[str, list[bytes]]]:
        return self._files.read_new(self.alive)

    def owners(self) -> list[str]:
        return sorted(self._files.owners() - {self.owner})

    def alive(self, owner: str) -> bool:
        return owner == self.owner or self._leases.alive(owner)

    def remove(self, owner: str) -> None:
        paths = self._files.check(owner, self.alive)
        # The lease first: while it exists, the files that it lists must exist.
        self._leases.remove(owner)
        for path in paths:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
