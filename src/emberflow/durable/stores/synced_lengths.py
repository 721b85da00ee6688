"""How much of its files a process knows to be on disk, written into its lease after every fsync.

A file that was truncated by a crash and one that was damaged later look alike at their end. The difference is what had
been acknowledged: every byte up to there must be readable. Unless the machine itself has crashed, nothing that was written
is lost; the machine's name in the lease shows whether it has.
"""

from __future__ import annotations

import struct
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from emberflow.durable.stores.file_lease import NOTE_AT, same_boot
from emberflow.durable.stores.framing import End, Parsed, frame_follows

_HEAD = struct.Struct("<5sI")
_KIND = b"EFCN\x01"
_PART = struct.Struct("<IQ")
_CHECKSUM = struct.Struct("<I")
_TRIES = 5


@dataclass(frozen=True, slots=True)
class SyncedLengths:
    parts: dict[int, int]
    """number of a file -> number of its bytes that are on disk"""
    same_boot: bool
    """Whether the machine has not rebooted since: then everything that was written is there."""


def pack_lengths(parts: dict[int, int]) -> bytes:
    body = _HEAD.pack(_KIND, len(parts)) + b"".join(_PART.pack(*item) for item in parts.items())
    return body + _CHECKSUM.pack(zlib.crc32(body))


def read_lengths(lease: Path) -> SyncedLengths | None:
    """What the lease's process had on disk; None if the lease is gone or has no such note."""
    for attempt in range(_TRIES):
        try:
            data = lease.read_bytes()
        except OSError:
            return None
        parts = _parsed(data[NOTE_AT:])
        if parts is not None:
            return SyncedLengths(parts, same_boot(data))
        if not any(data[NOTE_AT:]):
            return None
        # It may be in the middle of being written.
        time.sleep(0.001 * attempt)
    return None


def _parsed(note: bytes) -> dict[int, int] | None:
    if len(note) < _HEAD.size:
        return None
    kind, count = _HEAD.unpack_from(note)
    size = _HEAD.size + count * _PART.size
    if kind != _KIND or len(note) < size + _CHECKSUM.size:
        return None
    if _CHECKSUM.unpack_from(note, size)[0] != zlib.crc32(note[:size]):
        return None
    return dict(_PART.iter_unpack(note[_HEAD.size : size]))


def damage(data: bytes, offset: int, parsed: Parsed, number: int, known: SyncedLengths | None) -> str:
    """Why the end of a file cannot be the result of a crash; empty if it can, or if the file is intact. `data` starts at
    `offset`; the file's owner has ended."""
    at = offset + parsed.length
    synced = 0 if known is None else known.parts.get(number, 0)
    if at < synced:
        why = parsed.cause or "it ends there"
        return f"{synced:,} bytes of it were on disk, and from byte {at:,} on it cannot be read: {why}"
    if parsed.end is End.CLEAN:
        return ""
    if parsed.end is End.PARTIAL:
        # Before version 3, the length had no checksum.
        follows = parsed.version < 3 and frame_follows(data, parsed.version, parsed.length)
        return f"from byte {at:,} on it cannot be read, but records follow" if follows else ""
    if (known is not None or at > 0) and not any(data[parsed.length :]):
        return ""  # Space that the file system allocated to the file before a power failure.
    if known is not None and not known.same_boot and not frame_follows(data, parsed.version, parsed.length):
        return ""
    return f"from byte {at:,} on it cannot be read: {parsed.cause}"
