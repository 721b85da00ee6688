"""The files of one event log in one process: `events-<host>-<pid>-<start>-<number>.jsonl`; the newest one grows.

Written without a Python buffer: `append` passes everything to the operating system, so a process that dies or forks
leaves nothing behind that could be written twice.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import socket
from collections import deque
from pathlib import Path

from emberflow.events.identity import text_identity
from emberflow.events.private_files import make_private_folder, open_private

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80
_KEPT = 60


def safe_name(name: str) -> str:
    """A name that is a valid folder name on every system; changed names are kept distinct by a hash."""
    safe = _UNSAFE.sub("_", name).lstrip(".")[:_LONGEST]
    if safe == name and safe:
        return safe
    return f"{safe[:_KEPT] or 'agent'}-{text_identity(name)}"


class EventFile:
    """Appends lines, starts a new file when one is full, keeps the last `max_files`.

    Opens the first file with the first line. Raises OSError if a line cannot be written; `written` is the number of
    lines written, and the next call tries again.
    """

    def __init__(self, directory: Path, *, max_file_bytes: int, max_files: int) -> None:
        self._directory = directory
        self._max_file_bytes = max_file_bytes
        self._max_files = max_files
        start = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
        host = _UNSAFE.sub("_", socket.gethostname().partition(".")[0])[:40] or "host"
        self._stem = f"events-{host}-{os.getpid()}-{start}"
        self._number = 0
        self._paths: deque[Path] = deque()
        self._descriptor = -1
        self._size = 0
        self.written = 0
        """Lines written so far."""

    def append(self, lines: list[bytes]) -> None:
        ready: list[bytes] = []
        ready_bytes = 0
        if self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0:
            # The file was deleted: without a new one, all further lines would be lost with it.
            self.close()
        for line in lines:
            filled = self._size + ready_bytes
            if filled and filled + len(line) > self._max_file_bytes:
                self._write(ready)
                self.close()
                ready, ready_bytes = [], 0
            ready.append(line)
            ready_bytes += len(line)
        self._write(ready)

    def close(self) -> None:
        """Closes the file; the next line goes to a new one."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            self._size = 0
            os.close(descriptor)

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._descriptor < 0:
            self._open()
        left = memoryview(b"".join(lines))
        total = len(left)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            self._cut_half_line()
            raise
        self._size += total
        self.written += len(lines)

    def _cut_half_line(self) -> None:
        # A full disk may accept only part of a write; the next line must not be appended to the fragment.
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self.close()

    def _open(self) -> None:
        make_private_folder(self._directory)
        while True:
            self._number += 1
            path = self._directory / f"{self._stem}-{self._number:06d}.jsonl"
            try:
                self._descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
                break
            except FileExistsError:
                # Another log of this process was started in the same millisecond.
                continue
        self._size = 0
        self._paths.append(path)
        while len(self._paths) > self._max_files:
            self._paths.popleft().unlink(missing_ok=True)
