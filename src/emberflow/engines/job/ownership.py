"""Ownership of a checkpoint directory: one job at a time.

Two mechanisms enforce it. A *lock* (`flock` on `owners/lock`) ends with its process, so a second job is rejected while the
first is alive. A *fencing epoch* is a number that only grows; an owner takes the next one by creating
`owners/{epoch}.json`, which exactly one process can do. It is checked wherever something becomes visible. So a process
that was replaced while it hung, or on a file system without locks, can no longer commit anything.

Engines call `lock_directory` when a job is submitted and `Ownership.next_epoch` at each start; the `Fence` that it
returns (`events/fence.py`) is sent to workers.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import socket
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

from emberflow.engines.job.manifest import last_start, write_starts
from emberflow.errors import (
    CheckpointInUse,
    CheckpointUnusable,
    InvalidArgument,
    describe_cause,
)
from emberflow.events.fence import (
    FOLDER,
    NO_LOCKS,
    Fence,
    claim_path,
    claims,
    describe_owner,
    newest_claim,
    read_owner,
)
from emberflow.events.private_files import make_private_folder, open_private
from emberflow.events.stored_files import sync_folder
from emberflow.plan.job_contract import JobConfig

_log = logging.getLogger("emberflow")
LOCK = "lock"
_KEPT = 3
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


class Ownership:
    """A directory that this job holds until `release`."""

    def __init__(self, directory: Path, descriptor: int | None) -> None:
        self._directory = directory
        self._descriptor = descriptor
        self.fence = Fence()
        _owned.add(self)

    def next_epoch(self, above: int = 0) -> Fence:
        """Takes the next fencing epoch for a start, one larger than `above`. Raises OwnershipLost if another process has
        taken it."""
        try:
            if self.fence.epoch:
                self.fence.check()
                number = self.fence.epoch + 1
                if not _create(self._directory, number):
                    raise self.fence.lost()
            else:
                number = 1 + max(last_start(self._directory), newest_claim(self._directory), above)
                while not _create(self._directory, number):
                    number += 1
            write_starts(self._directory, number)
            before = [old for old in claims(self._directory) if old < number]
            # An owner looks for its own number and for the next one: if that was skipped, its own must be removed.
            left_out = bool(before) and max(before) < number - 1
            for old in before:
                if left_out or old <= number - _KEPT:
                    Path(claim_path(str(self._directory), old)).unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(self._directory, error) from error
        self.fence = Fence(str(self._directory), number)
        return self.fence

    def release(self) -> None:
        """Lets the next job start."""
        _owned.discard(self)
        self.forget()

    def forget(self) -> None:
        """Closes this process's copy of the lock. In a forked child, the parent keeps its lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def holds(self, directory: Path) -> bool:
        return self._directory == directory


_owned: set[Ownership] = set()


def _forget_in_child() -> None:
    # A lock is held as long as any copy of its descriptor is open: a forked child must not keep it.
    for ownership in list(_owned):
        ownership.forget()
    _owned.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def lock_directory(directory: str | Path, *, take_over: bool = False) -> Ownership:
    """Becomes the owner of a directory, which is created if it does not exist. Raises CheckpointInUse if another job owns
    it, unless `take_over`."""
    home = Path(directory).resolve()
    folder = home / FOLDER
    try:
        make_private_folder(folder)
        descriptor = _lock(home, take_over=take_over)
    except OSError as error:
        raise _unusable(home, error) from error
    return Ownership(home, descriptor)


def own_directory(config: JobConfig) -> Ownership | None:
    """Locks the job's checkpoint directory, if any. The option `take_over` replaces an owner that cannot be stopped."""
    if config.checkpoint_dir is None:
        return None
    wanted = config.options.get("take_over", False)
    if not isinstance(wanted, bool):
        raise InvalidArgument(f"the option 'take_over' must be True or False, not {wanted!r}")
    return lock_directory(
        config.checkpoint_dir, take_over=wanted or bool(os.environ.get("EMBERFLOW_TAKE_OVER"))
    )


@contextlib.contextmanager
def reading(directory: str | Path) -> Generator[None]:
    """Prevents jobs from starting while an unowned directory is read. Raises CheckpointInUse."""
    folder = Path(directory) / FOLDER
    if not os.access(folder, os.W_OK):
        yield  # Of the previous version, or read-only: it cannot be locked.
        return
    held = lock_directory(directory)
    try:
        yield
    finally:
        held.release()


def _lock(home: Path, *, take_over: bool) -> int | None:
    path = home / FOLDER / LOCK
    while True:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in NO_LOCKS:
                _without_lock(home, descriptor, error, take_over=take_over)
                return None
            os.close(descriptor)
            if error.errno not in _HELD:
                raise
            if not take_over:
                _refuse(home)
            return _replace_lock(path)
        # A lock that was replaced in the meantime protects nothing.
        if _same_file(descriptor, path):
            _sign(descriptor)
            return descriptor
        os.close(descriptor)


def _replace_lock(path: Path) -> int:
    """Replaces the lock that the old owner holds by one that it does not hold."""
    fresh = path.with_name(f".{LOCK}-{uuid.uuid4().hex}")
    descriptor = open_private(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _sign(descriptor)
    _log.warning("taking over %s from %s", path.parent.parent, describe_owner(read_owner(path)))
    os.replace(fresh, path)
    return descriptor


def _without_lock(home: Path, descriptor: int, error: OSError, *, take_over: bool) -> None:
    with open(descriptor, "r+b"):
        if not take_over and any(other.holds(home) for other in _owned):
            _refuse(home)
        _sign(descriptor)
    _log.warning(
        "the file system of %s has no locks (%s): a second job on this directory replaces the first one, which then stops",
        home,
        describe_cause(error),
    )


def _refuse(home: Path) -> NoReturn:
    owner = read_owner(home / FOLDER / LOCK)
    here = owner.get("host") == socket.gethostname()
    own = here and owner.get("pid") == os.getpid()
    stop = f"stop it (kill {owner['pid']})" if here and "pid" in owner and not own else "stop it"
    raise CheckpointInUse(
        f"the checkpoint directory {home} is in use by {'another job of ' if own else ''}{describe_owner(owner)}",
        way_out=f"wait until that job has ended, or {stop}; jobs that run at the same time need a directory each. To replace "
        'an owner that cannot be stopped: env.set_option("take_over", True) or --take-over',
        committed="nothing was started",
    )


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, _signature(), 0)


def _signature() -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since_ms": now_ms}).encode()


def _create(home: Path, number: int) -> bool:
    """Returns False if the number is taken."""
    path = claim_path(str(home), number)
    try:
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, _signature())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(home / FOLDER)
    return True


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _unusable(home: Path, error: OSError) -> CheckpointUnusable:
    return CheckpointUnusable(
        f"the checkpoint directory {home} cannot be used",
        cause=describe_cause(error),
        way_out="choose a directory that this user may read and write (checkpoint_dir=, --checkpoint-dir)",
    )
