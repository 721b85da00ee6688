"""How much of its files a process knows to be on disk, written into its lease after every fsync.

A file that a crash has cut off and a file that was damaged later look alike at their end. The difference is what had been
acknowledged: up to there every byte must be readable. Without a crash of the machine nothing is lost that was written at
all, which the machine's name in the lease tells.
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
    """number of a file -> bytes of it that are on disk"""
    same_boot: bool
    """Whether the machine has run on since: then what was written at all is there."""


def pack_lengths(parts: dict[int, int]) -> bytes:
    body = _HEAD.pack(_KIND, len(parts)) + b"".join(_PART.pack(*item) for item in parts.items())
    return body + _CHECKSUM.pack(zlib.crc32(body))


def read_lengths(lease: Path) -> SyncedLengths | None:
    """What the process of a lease had on disk; None if its lease is gone, or does not say."""
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
        # Perhaps it was being written.
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
    """Why the end of a file cannot come from a crash; empty if it can, or if nothing is wrong with it. `data` begins at
    `offset`; its owner has ended."""
    at = offset + parsed.length
    synced = 0 if known is None else known.parts.get(number, 0)
    if at < synced:
        why = parsed.cause or "it ends there"
        return f"{synced:,} bytes of it were on disk, and from byte {at:,} on it cannot be read: {why}"
    if parsed.end is End.CLEAN:
        return ""
    if parsed.end is End.PARTIAL:
        # Before version 3 a length was believed that might have been damaged.
        follows = parsed.version < 3 and frame_follows(data, parsed.version, parsed.length)
        return f"from byte {at:,} on it cannot be read, but records follow" if follows else ""
    if (known is not None or at > 0) and not any(data[parsed.length :]):
        return ""  # Space that the file system gave to the file before a power failure.
    if known is not None and not known.same_boot and not frame_follows(data, parsed.version, parsed.length):
        return ""
    return f"from byte {at:,} on it cannot be read: {parsed.cause}"
