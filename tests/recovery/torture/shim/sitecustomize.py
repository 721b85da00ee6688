"""Runs at the start of every Python process of a tortured job, workers of Spark included: bends its clock and its disk.

Python imports a module of this name by itself where it is on the path. What is bent is read from `faults.json` in the
folder that TORTURE_FOLDER names, again and again while the process runs; nothing here knows the product.
"""

from __future__ import annotations

import errno
import faulthandler
import json
import os
import random
import signal
import time
from typing import Any

_folder = os.environ.get("TORTURE_FOLDER", "")
_monotonic, _sleep = time.monotonic, time.sleep
_write, _fsync, _replace, _rename = os.write, os.fsync, os.replace, os.rename
_time, _time_ns = time.time, time.time_ns
_LOOK_S = 0.02


class _Faults:
    def __init__(self) -> None:
        self._read_at = -1.0
        self._found: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        now = _monotonic()
        if now - self._read_at > _LOOK_S:
            self._read_at = now
            try:
                with open(os.path.join(_folder, "faults.json")) as file:
                    self._found = json.load(file)
            except (OSError, ValueError, NameError):
                pass  # Not there yet, or not any more; or Python is about to end, and `open` is gone.
        return self._found.get(name, 0)


_faults = _Faults()
_chance = random.Random()


def _on_disk(path: int | str | bytes | os.PathLike[str]) -> None:
    """Before a file of the job's disk is touched: waits or fails, as told."""
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
        line = json.dumps({"t": _monotonic(), "pid": os.getpid(), "path": path, "errno": number})
        descriptor = os.open(os.path.join(_folder, "injected"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        _write(descriptor, line.encode() + b"\n")
        os.close(descriptor)
        raise OSError(number, os.strerror(number), path)


def _bent_write(descriptor: int, data: Any) -> int:
    _on_disk(descriptor)
    return _write(descriptor, data)


def _bent_fsync(descriptor: Any) -> None:
    _on_disk(descriptor if isinstance(descriptor, int) else descriptor.fileno())
    _fsync(descriptor)


def _bent_replace(source: Any, target: Any, **more: Any) -> None:
    _on_disk(target)
    _replace(source, target, **more)


def _bent_rename(source: Any, target: Any, **more: Any) -> None:
    _on_disk(target)
    _rename(source, target, **more)


def _bent_time() -> float:
    return _time() + _faults["clock_s"]


def _bent_time_ns() -> int:
    return _time_ns() + int(_faults["clock_s"]) * 1_000_000_000


if _folder:
    os.write, os.fsync, os.replace, os.rename = _bent_write, _bent_fsync, _bent_replace, _bent_rename
    time.time, time.time_ns = _bent_time, _bent_time_ns
    # A run that hangs is asked where it is.
    faulthandler.register(signal.SIGUSR1, file=open(os.path.join(_folder, f"stack-{os.getpid()}"), "w"))  # noqa: SIM115
