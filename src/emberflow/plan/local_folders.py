"""Folders of jobs that users name: checkpoint directories and savepoints."""

from __future__ import annotations

import os

from emberflow.errors import NotSupported


def local_folder(what: str, path: str | os.PathLike[str]) -> str:
    """A path of this machine; `file:` URLs are accepted, other schemes raise NotSupported."""
    given = os.fspath(path)
    for prefix in ("file://", "file:"):
        if given.startswith(prefix):
            return given[len(prefix) :]
    if "://" in given:
        raise NotSupported(
            f"{what} cannot be {given}", way_out="use a folder of this machine, or one that is mounted there"
        )
    return given
