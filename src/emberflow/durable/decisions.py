"""Where the tasks of a micro-batch write down what they decided, so that a repetition decides the same.

Kept beside the durable call log, wherever that is. A decision is written once: the first one under a name stays, and
everybody else follows it.
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
    """Failures are raised as `CallLogFailed`, damage as `CorruptData`."""

    def find(self, name: str) -> bytes | None:
        """What was decided under this name."""
        ...

    def decide(self, name: str, data: bytes) -> bool:
        """Stores a decision, durably; False if there is one already, which stays."""
        ...

    def forget(self, name: str) -> None:
        """The batch is committed and will not be repeated; nothing happens if there is no such decision."""
        ...


class FileDecisions:
    """One file each, linked into place: it appears whole, and once."""

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
        """What was decided in a micro-batch: `query.epoch.place` each."""
        try:
            found = [name.split(".") for name in os.listdir(self._directory)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(self._directory, "read", error) from error
        return sorted(".".join(parts) for parts in found if len(parts) > 2 and parts[1] == str(epoch))

    def check(self, names: Collection[str]) -> None:
        """Raises CorruptData unless they are all there."""
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
        # One that stays behind is never asked for again.
        with contextlib.suppress(OSError):
            (self._directory / name).unlink(missing_ok=True)


def framed(data: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, zlib.crc32(data), len(data)) + data


def unframed(stored: bytes, place: str) -> bytes:
    """The decision behind its header; raises CorruptData if it is not as it was written."""
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
