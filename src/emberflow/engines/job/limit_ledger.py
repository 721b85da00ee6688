"""Limits of models, shared by all processes of a job on one machine: one small file per model, under a lock.

Nothing in it has to survive a reboot: it is not synced, and an unreadable file counts as a new one. What a process
held is released when it dies.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from emberflow.events.identity import text_identity
from emberflow.events.private_files import make_private_folder, open_private
from emberflow.operators.admission.limit_share import Ledger
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.admission.rate_limits import LimitState

LIMITS_FOLDER = "limits"
T = TypeVar("T")


class FileLedger:
    """One per process and model. An update takes tens of microseconds, so it is made synchronously."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pids: dict[str, int] = {}
        self._file: int | None = None

    def change(self, step: Callable[[LimitState], T]) -> T:
        if self._file is None:
            make_private_folder(self._path.parent)
            self._file = open_private(self._path, os.O_RDWR | os.O_CREAT)
        file = self._file
        # The kernel releases the lock if the process dies here.
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            state = self._read(file)
            before = set(state.members)
            result = step(state)
            for owner in set(state.members) - before:
                self._pids[owner] = os.getpid()
            self._write(file, state)
            return result
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _read(self, file: int) -> LimitState:
        data = os.pread(file, os.fstat(file).st_size, 0)
        head, _, body = data.partition(b"\n")
        if not body or head != b"%08x" % zlib.crc32(body):
            # New, or truncated by a process that was killed while writing: limits start over.
            return LimitState()
        stored = cast("dict[str, Any]", json.loads(body))
        if stored.pop("boot", "") != boot_id():
            # Its times are those of a clock that has been reset since.
            return LimitState()
        self._pids = stored.pop("pids")
        state = LimitState.from_json(stored)
        for owner in [name for name in state.members if not _alive(self._pids.get(name, 0))]:
            state.leave(owner)
        return state

    def _write(self, file: int, state: LimitState) -> None:
        pids = {name: self._pids[name] for name in state.members if name in self._pids}
        body = json.dumps({**state.to_json(), "pids": pids, "boot": boot_id()}).encode()
        data = b"%08x\n" % zlib.crc32(body) + body
        os.pwrite(file, data, 0)
        os.ftruncate(file, len(data))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class FileLedgers:
    """The ledgers of a job in one directory of this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, name: str, limits: ModelLimits) -> tuple[Ledger, ModelLimits]:
        return FileLedger(self._directory / f"{_file_name(name)}.json"), limits


def _file_name(name: str) -> str:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)[:60]
    return f"{plain}-{text_identity(name)}"


@functools.cache
def boot_id() -> str:
    """Changes with every boot of the machine; empty if the system does not provide it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
