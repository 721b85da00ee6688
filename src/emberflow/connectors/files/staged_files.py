"""What a file sink knows about a staged file: its final name, size and checksum.

A file staged by an earlier start of the job is read again before it becomes visible. For a file of the same start only
the length is compared: its process has just written it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from emberflow.events.stored_files import corrupt

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class StagedFile:
    name: str
    """Name in the staging folder."""
    final: str
    """Path below the base path."""
    size: int | None = None
    checksum: int | None = None
    """Size and checksum are None in data that version 1 has prepared or decided."""
    fence: int | None = None
    """The start of the job that wrote it; None if unknown."""

    @classmethod
    def decided(cls, parts: Sequence[Any]) -> StagedFile:
        """From a ledger's entry. Raises TypeError or ValueError if it is malformed."""
        name, final, size, checksum = parts if len(parts) == 4 else (*parts, None, None)
        return cls(str(name), str(final), size, checksum)

    def as_decided(self) -> list[Any]:
        return [self.name, self.final, self.size, self.checksum]

    def check(self, path: Path, way_out: str, *, content: bool) -> None:
        """Raises CorruptData if the file differs from what was written; FileNotFoundError if there is none."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            raise corrupt(path, f"it has {size:,} bytes instead of {self.size:,}", way_out)
        if content and self.checksum is not None and checksum_of_file(path) != self.checksum:
            raise corrupt(path, "its checksum does not match", way_out)


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """What a writer prepares for the commit; it may be stored in between, in a checkpoint or savepoint."""

    staged: StagedFile
    base_path: str | None = None
    """Where it was staged. The first version did not store this."""

    def to_stored(self) -> list[Any]:
        staged = self.staged
        return [staged.name, staged.final, self.base_path, staged.size, staged.checksum, staged.fence]

    @classmethod
    def from_stored(cls, stored: Sequence[Any]) -> PreparedFile:
        name, final, *rest = stored
        return cls(StagedFile(name, final, *rest[1:]), rest[0] if rest else None)


def checksum_of_file(path: Path) -> int:
    found = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found = crc32(block, found)
    return found
