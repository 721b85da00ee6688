"""Runs at the start of every Python process of a tortured job, workers of Spark included: bends its clock and its disk.

Python imports a module of this name by itself where it is on the path. What is bent is read from `faults.json` in the
folder that TORTURE_FOLDER names, again and again while the process runs; nothing here knows the product.
"""

import errno
import faulthandler
import json
import os
import random
import signal
import time

_folder = os.environ.get("TORTURE_FOLDER", "")
_monotonic, _sleep = time.monotonic, time.sleep
_write, _fsync, _replace, _rename = os.write, os.fsync, os.replace, os.rename
_time, _time_ns = time.time, time.time_ns
_LOOK_S = 0.02


class _Faults:
    def __init__(self):
        self._read_at = -1.0
        self._found = {}

    def __getitem__(self, name):
        now = _monotonic()
        if now - self._read_at > _LOOK_S:
            self._read_at = now
            try:
                with open(os.path.join(_folder, "faults.json")) as file:
                    self._found = json.load(file)
            except (OSError, ValueError):
                pass  # Not there yet, or not any more.
        return self._found.get(name)


_faults = _Faults()
_chance = random.Random()


def _on_disk(path):
    """Before a file of the job's disk is touched: waits or fails, as told."""
    if not _faults["slow"] and not _faults["errors"]:
        return
    if isinstance(path, int):
        try:
            path = os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            return
    path = os.fspath(path)
    disk = os.path.join(_folder, "disk")
    if not (path if isinstance(path, str) else os.fsdecode(path)).startswith(disk):
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


def _bent_write(descriptor, data):
    _on_disk(descriptor)
    return _write(descriptor, data)


def _bent_fsync(descriptor):
    _on_disk(descriptor if isinstance(descriptor, int) else descriptor.fileno())
    return _fsync(descriptor)


def _bent_replace(source, target, **more):
    _on_disk(target)
    return _replace(source, target, **more)


def _bent_rename(source, target, **more):
    _on_disk(target)
    return _rename(source, target, **more)


def _bent_time():
    return _time() + (_faults["clock_s"] or 0)


def _bent_time_ns():
    return _time_ns() + (_faults["clock_s"] or 0) * 1_000_000_000


if _folder:
    os.write, os.fsync, os.replace, os.rename = _bent_write, _bent_fsync, _bent_replace, _bent_rename
    time.time, time.time_ns = _bent_time, _bent_time_ns
    # A run that hangs is asked where it is.
    faulthandler.register(signal.SIGUSR1, file=open(os.path.join(_folder, f"stack-{os.getpid()}"), "w"))  # noqa: SIM115
