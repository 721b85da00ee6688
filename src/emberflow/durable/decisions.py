"""Where the tasks of a micro-batch record their decisions, so that a repeated attempt decides the same.

Stored next to the durable call log. A decision is written once: the first one under a name wins, and all other attempts
follow it.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from emberflow.errors import CallLogFailed, CorruptData, describe_cause
from emberflow.events.stored_files import create_once

DECISIONS_FOLDER = "decisions"
_HEADER = struct.Struct("<5sIQ")
_MAGIC = b"EFBD\x01"
_RESTORE = (
    "restore the file from a copy of the checkpoint directory. Without it the batch would decide again, and lose or repeat "
    "output if a sink has already committed it"
)


class DecisionStore(Protocol):
    """Raises `CallLogFailed` on failures and `CorruptData` on corruption."""

    def find(self, name: str) -> bytes | None:
        """The decision recorded under this name, or None."""
        ...

    def decide(self, name: str, data: bytes) -> bool:
        """Stores a decision durably; returns False if one exists already, which is kept."""
        ...

    def forget(self, name: str) -> None:
        """Removes a decision whose batch is committed and will not be repeated. Does nothing if it does not exist."""
        ...


class FileDecisions:
    """One file per decision, linked into place: it appears complete and exactly once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / DECISIONS_FOLDER

    def find(self, name: str) -> bytes | None:
        path = self._directory / name
        try:
            return unframed(path.read_bytes(), str(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(path, "read", error) from error

    def names(self, epoch: int) -> list[str]:
        """The names of a micro-batch's decisions, each `query.epoch.place`."""
        try:
            found = [name.split(".") for name in os.listdir(self._directory)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(self._directory, "read", error) from error
        return sorted(".".join(parts) for parts in found if len(parts) > 2 and parts[1] == str(epoch))

    def check(self, names: Collection[str]) -> None:
        """Raises CorruptData unless all of these decisions exist."""
        missing = [self._directory / name for name in names if not (self._directory / name).exists()]
        if missing:
            raise CorruptData(
                f"decisions of a micro-batch whose output was being committed are gone: {missing[0]}",
                cause=f"{len(missing)} of {len(names)} files were deleted",
                way_out=_RESTORE,
            )

    def decide(self, name: str, data: bytes) -> bool:
        path = self._directory / name
        try:
            return create_once(path, framed(data))
        except OSError as error:
            raise _failed(path, "written", error) from error

    def forget(self, name: str) -> None:
        # A leftover file is never looked up again.
        with contextlib.suppress(OSError):
            (self._directory / name).unlink(missing_ok=True)


def framed(data: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, zlib.crc32(data), len(data)) + data


def unframed(stored: bytes, place: str) -> bytes:
    """The decision without its header; raises CorruptData if its checksum does not match."""
    body = stored[_HEADER.size :]
    if len(stored) < _HEADER.size or _HEADER.unpack_from(stored) != (_MAGIC, zlib.crc32(body), len(body)):
        raise CorruptData(
            f"the decisions of a micro-batch in {place} are corrupted",
            cause="length or checksum does not match",
            way_out=_RESTORE,
        )
    return body


def _failed(path: Path, what: str, error: OSError) -> CallLogFailed:
    return CallLogFailed(
        f"the decisions of a micro-batch in {path} cannot be {what}",
        cause=describe_cause(error),
        way_out="free space or give this user write permission, then start the job again",
        committed="nothing of the current batch was committed",
    )
