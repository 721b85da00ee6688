"""How processes that share a directory detect whether the others are alive. Used by `file_store.py`.

The lease of a process is a file that it keeps locked and touches regularly; it contains the name of its machine and a
note of the process. An unlocked lease means that the process has ended: the kernel releases the lock at that moment,
however the process ended. A lock that is held on this machine means that the process is alive, however late its
heartbeat is: on a busy machine, heartbeats are delayed. Only the lock of a process on *another* machine may outlive it (a
network file system learns late that a machine is gone), so there the heartbeat decides.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import threading
import time
import uuid
import weakref
from functools import cache
from pathlib import Path

from emberflow.events.fence import NO_LOCKS
from emberflow.events.private_files import open_private

LEASE_S = 10.0
NOTE_AT = 256
"""The offset of the note in a lease: the name of the machine comes first, padded."""
_NOTE_SPACE = 512
_BEAT_S = 1.0


class FileLeases:
    """The lease of this process in a directory, and the state of the others'."""

    def __init__(self, directory: Path, lease_s: float = LEASE_S) -> None:
        self._directory = directory
        self._lease_s = lease_s
        self._own: int | None = None
        self._noted = False
        self._beats: dict[str, tuple[int, float]] = {}
        self._closed = threading.Event()

    def take(self, owner: str) -> None:
        """Does nothing if the lease is already held."""
        if self._own is not None:
            return
        # Locked and complete before it becomes visible: an unlocked lease means that its process has ended.
        hidden = self._directory / f".{owner}.lease"
        lease = open_private(hidden, os.O_WRONLY | os.O_CREAT)
        try:
            _lock(lease)
            # With space for the note, so that a full disk cannot prevent it from being written later.
            os.write(lease, this_machine().ljust(NOTE_AT)[:NOTE_AT] + bytes(_NOTE_SPACE))
            os.rename(hidden, self._path(owner))
        except OSError:
            os.close(lease)
            raise
        self._own = lease
        _HELD.add(self)
        threading.Thread(target=self._beat, args=(owner,), name="emberflow-lease", daemon=True).start()

    def note(self, data: bytes) -> None:
        """Replaces the note in the lease. It survives a crash of the process; after a crash of the machine it may be up to
        a second old."""
        if self._own is not None:
            # Without the note, less is known about what a crash may have truncated; that is not worth failing for.
            with contextlib.suppress(OSError):
                os.pwrite(self._own, data, NOTE_AT)
            self._noted = True

    def give_up(self) -> None:
        self._closed.set()
        self._sync_note()
        if self._own is not None:
            os.close(self._own)
            self._own = None

    def alive(self, owner: str) -> bool:
        try:
            with self._path(owner).open("rb") as file:
                beat = os.fstat(file.fileno()).st_mtime_ns
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError as error:
                    known = machine_in(file.read(NOTE_AT))
                    if error.errno not in NO_LOCKS and known == this_machine():
                        return True
                else:
                    return False
        except FileNotFoundError:
            return False
        except OSError:
            # For example, too many open files: not a reason to consider another process dead.
            return True
        # By this process's own clock: the clocks of two machines may differ.
        now_s = time.monotonic()
        seen, since_s = self._beats.get(owner, (None, now_s))
        if seen != beat:
            self._beats[owner] = beat, now_s
            return True
        return now_s - since_s < self._lease_s

    def remove(self, owner: str) -> None:
        with contextlib.suppress(OSError):
            self._path(owner).unlink(missing_ok=True)
        self._beats.pop(owner, None)

    def _beat(self, owner: str) -> None:
        while not self._closed.wait(_BEAT_S):
            with contextlib.suppress(OSError):
                os.utime(self._path(owner))
            self._sync_note()

    def _sync_note(self) -> None:
        descriptor = self._own
        if self._noted and descriptor is not None:
            self._noted = False
            with contextlib.suppress(OSError):
                os.fsync(descriptor)

    def _path(self, owner: str) -> Path:
        return self._directory / f"{owner}.lease"


def machine_in(lease: bytes) -> bytes:
    return lease[:NOTE_AT].strip(b"\0 ")


def _lock(lease: int) -> None:
    try:
        fcntl.flock(lease, fcntl.LOCK_EX)
    except OSError as error:
        # On a file system without locks, rely on the heartbeat.
        if error.errno not in NO_LOCKS:
            raise


@cache
def this_machine() -> bytes:
    """The same for all processes under one running kernel, different for all others."""
    try:
        return _BOOT.read_bytes().strip()
    except OSError:
        return f"{platform.node()}-{uuid.getnode():x}".encode()


def same_boot(lease: bytes) -> bool:
    """Whether the lease was taken on this machine since it was last booted."""
    return machine_in(lease) == this_machine() and _BOOT.exists()


_BOOT = Path("/proc/sys/kernel/random/boot_id")
_HELD: weakref.WeakSet[FileLeases] = weakref.WeakSet()


def _close_in_child() -> None:
    """In a forked child: it must not hold its parent's locks after the parent has died."""
    for leases in [*_HELD]:
        leases.give_up()
    _HELD.clear()


os.register_at_fork(after_in_child=_close_in_child)
