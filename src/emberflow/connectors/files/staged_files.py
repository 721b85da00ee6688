"""What a file sink knows of a file that it has staged: where it goes, and what is in it.

A part that was written by an earlier start of the job is read once more before it becomes visible. One of the same start
is only asked for its length: its process has just written it.
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
    """In the staging folder."""
    final: str
    """Below the base path."""
    size: int | None = None
    checksum: int | None = None
    """Both are None in what the first version has prepared or decided."""
    fence: int | None = None
    """The start of the job that wrote it; None if that is not known."""

    @classmethod
    def prepared(cls, parts: Sequence[Any]) -> StagedFile:
        """Of what a writer has returned: name, final path, base path, then size, checksum and start."""
        return cls(*parts[:2], *parts[3:])

    @classmethod
    def decided(cls, parts: Sequence[Any]) -> StagedFile:
        """Of what a ledger's entry holds. Raises TypeError and ValueError for what is none."""
        name, final, size, checksum = parts if len(parts) == 4 else (*parts, None, None)
        return cls(str(name), str(final), size, checksum)

    def as_decided(self) -> list[Any]:
        return [self.name, self.final, self.size, self.checksum]

    def check(self, path: Path, way_out: str, *, content: bool) -> None:
        """Raises CorruptData if the file at a path is not as it was written; FileNotFoundError if there is none."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            raise corrupt(path, f"it has {size:,} bytes instead of {self.size:,}", way_out)
        if content and self.checksum is not None and checksum_of_file(path) != self.checksum:
            raise corrupt(path, "its checksum does not match", way_out)


def checksum_of_file(path: Path) -> int:
    found = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found = crc32(block, found)
    return found
