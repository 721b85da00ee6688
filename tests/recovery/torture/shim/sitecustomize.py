"""Runs at the start of every Python process of a tortured job, including Spark's workers: manipulates its clock and its
disk, and kills it at the planned step.

Python imports a module of this name automatically if it is on the path. The manipulations are read from `faults.json` in
the folder named by TORTURE_FOLDER, repeatedly while the process runs; nothing here knows the product.
"""

from __future__ import annotations

import builtins
import errno
import faulthandler
import io
import json
import os
import random
import re
import signal
import sqlite3
import time
from typing import Any

_folder = os.environ.get("TORTURE_FOLDER", "")
_monotonic, _sleep = time.monotonic, time.sleep
_write, _fsync, _replace, _rename = os.write, os.fsync, os.replace, os.rename
_open, _os_open, _unlink, _link, _connect = io.open, os.open, os.unlink, os.link, sqlite3.connect
_time, _time_ns = time.time, time.time_ns
_LOOK_S = 0.02


class _Faults:
    def __init__(self) -> None:
        self._read_at = -1.0
        self._found: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        now = _monotonic()
        if now - self._read_at > _LOOK_S:
            self._read_at = now
            try:
                with _open(os.path.join(_folder, "faults.json")) as file:
                    self._found = json.load(file)
            except (OSError, ValueError, NameError):
                pass  # It does not exist yet, or no longer; or Python is shutting down, and `open` is gone.
        return self._found.get(name, 0)


_faults = _Faults()
_chance = random.Random()


class _Aim:
    """Kills at a step: the n-th time that an operation on a file with a matching name happens in this process."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def passes(self, what: str, path: Any, when: str) -> None:
        """Called after, or before, the operation `what` on the file."""
        aims = _faults["aims"]
        if not aims and not _faults["trace"]:
            return
        name = _name_of(path)
        if name is None:
            return
        if _faults["trace"] and when == "after":
            _note("trace", {"step": f"{what} {name}"})
        for aim in aims or ():
            if aim["when"] == when and re.search(aim["step"], f"{what} {name}"):
                number = aim["number"]
                self._seen[number] = self._seen.get(number, 0) + 1
                if self._seen[number] == aim["nth"]:
                    self._strike(aim, f"{when} {what} {name}")

    def _strike(self, aim: dict[str, Any], step: str) -> None:
        _note("aimed", {"number": aim["number"], "step": step})
        if aim["victims"] == "all":
            _kill_session()
        os.kill(os.getpid(), signal.SIGKILL)


def _name_of(path: Any) -> str | None:
    """A file's name below the job's disk; None if it is elsewhere."""
    if isinstance(path, int):
        try:
            path = os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            return None
    name, disk = os.path.abspath(os.fsdecode(path)), os.path.join(_folder, "disk") + os.sep
    return name[len(disk) :] if name.startswith(disk) else None


def _kill_session() -> None:
    """Kills all processes of the job at once, this process last."""
    own, session = os.getpid(), os.getsid(0)
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(name) != own and os.getsid(int(name)) == session:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue


def _note(file: str, entry: dict[str, Any]) -> None:
    line = json.dumps({"t": _monotonic(), "pid": os.getpid(), **entry})
    descriptor = _os_open(os.path.join(_folder, file), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    _write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


_aim = _Aim()


def _on_disk(path: int | str | bytes | os.PathLike[str]) -> None:
    """Called before a file of the job's disk is accessed: waits or fails, as configured."""
    if not _faults["slow"] and not _faults["errors"]:
        return
    if isinstance(path, int):
        try:
            path = os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            return
    path = os.fsdecode(path)
    if not path.startswith(os.path.join(_folder, "disk")):
        return
    if _faults["slow"]:
        _sleep(_chance.uniform(0.0, _faults["slow"]))
    if _faults["errors"] and _chance.random() < _faults["errors"]:
        number = _chance.choice([errno.EIO, errno.ENOSPC])
        _note("injected", {"path": path, "errno": number})
        raise OSError(number, os.strerror(number), path)


def _bent_write(descriptor: int, data: Any) -> int:
    _on_disk(descriptor)
    _aim.passes("write", descriptor, "before")
    written = _write(descriptor, data)
    _aim.passes("write", descriptor, "after")
    return written


def _bent_fsync(descriptor: Any) -> None:
    number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
    _on_disk(number)
    _aim.passes("sync", number, "before")
    _fsync(descriptor)
    _aim.passes("sync", number, "after")


def _bent_replace(source: Any, target: Any, **more: Any) -> None:
    _on_disk(target)
    _aim.passes("rename", target, "before")
    _replace(source, target, **more)
    _aim.passes("rename", target, "after")


def _bent_rename(source: Any, target: Any, **more: Any) -> None:
    _on_disk(target)
    _aim.passes("rename", target, "before")
    _rename(source, target, **more)
    _aim.passes("rename", target, "after")


def _bent_unlink(path: Any, **more: Any) -> None:
    _aim.passes("remove", path, "before")
    _unlink(path, **more)
    _aim.passes("remove", path, "after")


def _bent_link(source: Any, target: Any, **more: Any) -> None:
    _on_disk(target)
    _aim.passes("rename", target, "before")
    _link(source, target, **more)
    _aim.passes("rename", target, "after")


def _bent_open(file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
    what = "open" if set(mode) & set("wax+") else "read"
    if not isinstance(file, int):
        _aim.passes(what, file, "before")
    opened = _open(file, mode, *args, **more)
    if not isinstance(file, int):
        _aim.passes(what, file, "after")
    return opened


def _bent_os_open(path: Any, flags: int, *args: Any, **more: Any) -> int:
    what = "open" if flags & (os.O_WRONLY | os.O_RDWR) else "read"
    _aim.passes(what, path, "before")
    descriptor = _os_open(path, flags, *args, **more)
    _aim.passes(what, path, "after")
    return descriptor


class _BentConnection(sqlite3.Connection):
    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql.strip().lower() != "commit":
            return super().execute(sql, *args)
        path = os.path.join(_folder, "disk", "state.db")
        _aim.passes("commit", path, "before")
        done = super().execute(sql, *args)
        _aim.passes("commit", path, "after")
        return done


def _bent_connect(database: Any, *args: Any, **more: Any) -> sqlite3.Connection:
    _aim.passes("read", database, "before")
    _aim.passes("read", database, "after")
    return _connect(database, *args, **{"factory": _BentConnection, **more})


def _bent_time() -> float:
    return _time() + _faults["clock_s"]


def _bent_time_ns() -> int:
    return _time_ns() + int(_faults["clock_s"]) * 1_000_000_000


if _folder:
    os.write, os.fsync, os.replace, os.rename = _bent_write, _bent_fsync, _bent_replace, _bent_rename
    os.unlink = os.remove = _bent_unlink
    os.link = _bent_link
    builtins.open = io.open = _bent_open
    os.open = _bent_os_open
    sqlite3.connect = _bent_connect
    time.time, time.time_ns = _bent_time, _bent_time_ns
    # For the stacks of a run that hangs.
    faulthandler.register(signal.SIGUSR1, file=open(os.path.join(_folder, f"stack-{os.getpid()}"), "w"))  # noqa: SIM115
