"""The directories in which the commands of one call work, and their removal, whatever the commands have made of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Scratch:
    """The directories of one call. Redirects reach `work` only: programs read their settings, which may name other programs
    to run, from `home`."""

    work: str
    home: str


@asynccontextmanager
async def scratch_directories() -> AsyncGenerator[Scratch]:
    """New directories for this user only, removed with everything in them."""
    made = [_new_directory(), _new_directory()]
    try:
        yield Scratch(*made)
    finally:
        await to_its_end(asyncio.to_thread(lambda: [remove(folder) for folder in made]))


def remove(folder: str) -> None:
    """Also if directories lack permissions, or are nested deeper than paths or recursion could be. Links are not followed."""
    with contextlib.suppress(OSError):
        if os.path.islink(folder):
            os.unlink(folder)
            return
        os.chmod(folder, 0o700)
        _empty(os.open(folder, _FOLDER))
        os.rmdir(folder)


def _empty(folder: int) -> None:
    """Keeps one directory open at a time, and closes it."""
    waiting = [_without_files(folder)]
    try:
        while waiting[-1] or len(waiting) > 1:
            if waiting[-1]:
                folder = _moved(folder, waiting[-1][-1])
                waiting.append(_without_files(folder))
            else:
                folder = _moved(folder, "..")
                waiting.pop()
                os.rmdir(waiting[-1].pop(), dir_fd=folder)
    finally:
        os.close(folder)


def _moved(folder: int, to: str) -> int:
    found = os.open(to, _FOLDER, dir_fd=folder)
    os.close(folder)
    return found


def _without_files(folder: int) -> list[str]:
    """The names of the subdirectories; everything else has been removed."""
    return [name for name in os.listdir(folder) if not _is_unlinked(name, folder)]


def _is_unlinked(name: str, folder: int) -> bool:
    """False for a directory, which is made accessible."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        os.chmod(name, 0o700, dir_fd=folder)
        return False
    return True


async def to_its_end(work: Any) -> None:
    """Awaits something that must not be interrupted, however often the call is canceled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _new_directory() -> str:
    return os.path.realpath(tempfile.mkdtemp(prefix="emberflow-shell-"))
