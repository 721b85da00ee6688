"""Records of durable calls as bytes: frames with checksums, and how to interpret an end that cannot be read.

A frame of version 3 is the record's length, the checksum of its bytes, the checksum of these two, then the bytes. So a
damaged length is never trusted: a frame whose header is valid and whose bytes are missing was being written when the file
ended; a header that is complete and invalid was damaged, or has never reached the disk. Version 2 had no checksum of the
header.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

KIND = b"EFCL"
NEWEST = 3
OLDEST = 2
LARGEST = 256 * 1024 * 1024
_START = struct.Struct("<4sB")
_HEADER = struct.Struct("<III")
_HEADER_2 = struct.Struct("<II")
_NUMBERS = struct.Struct("<II")


class End(Enum):
    """Where reading stopped."""

    CLEAN = "clean"
    PARTIAL = "partial"
    """In the middle of a frame: truncated by a crash, or still being written."""
    BAD = "bad"
    """At bytes that are not a frame."""


@dataclass(frozen=True, slots=True)
class Parsed:
    records: list[bytes]
    length: int
    """The number of bytes taken by whole frames, including the file header."""
    end: End
    version: int
    cause: str = ""
    """Why the end is invalid."""


def first_bytes() -> bytes:
    return _START.pack(KIND, NEWEST)


def framed(body: bytes) -> bytes:
    numbers = _NUMBERS.pack(len(body), zlib.crc32(body))
    return b"".join((numbers, zlib.crc32(numbers).to_bytes(4, "little"), body))


def as_part(records: Sequence[bytes]) -> bytes:
    """The contents of a file with these records."""
    return first_bytes() + b"".join(map(framed, records))


def parse_part(data: bytes) -> Parsed:
    """Parses a file from its beginning."""
    if len(data) < _START.size:
        torn = first_bytes().startswith(data)
        end = End.PARTIAL if torn and data else End.CLEAN if torn else End.BAD
        return Parsed([], 0, end, NEWEST, f"it begins with {data!r}")
    kind, version = _START.unpack_from(data)
    if kind != KIND or not OLDEST <= version <= NEWEST:
        cause = f"it begins with {data[: _START.size]!r}, which no version up to this one writes"
        return Parsed([], 0, End.BAD, NEWEST, cause)
    return parse_frames(data, version, _START.size)


def parse_frames(data: bytes, version: int = NEWEST, position: int = 0) -> Parsed:
    """Parses the whole frames that start at a position."""
    header = _HEADER if version > OLDEST else _HEADER_2
    records: list[bytes] = []
    end, cause = End.CLEAN, ""
    while position < len(data):
        if position + header.size > len(data):
            end = End.PARTIAL
            break
        length = _length_at(data, position, version)
        if length is None:
            end, cause = (
                End.BAD,
                f"the header of record {len(records) + 1} from there does not match its checksum",
            )
            break
        start = position + header.size
        body = data[start : start + length]
        if len(body) < length:
            end = End.PARTIAL
            break
        if zlib.crc32(body) != int.from_bytes(data[position + 4 : position + 8], "little"):
            end, cause = End.BAD, f"record {len(records) + 1} from there does not match its checksum"
            break
        records.append(body)
        position = start + length
    return Parsed(records, position, end, version, cause)


def frame_follows(data: bytes, version: int, position: int) -> bool:
    """Whether a whole frame exists anywhere after a position."""
    header = _HEADER if version > OLDEST else _HEADER_2
    for at in range(position + 1, len(data) - header.size + 1):
        length = _length_at(data, at, version)
        if length and at + header.size + length <= len(data):
            body = data[at + header.size : at + header.size + length]
            if zlib.crc32(body) == int.from_bytes(data[at + 4 : at + 8], "little"):
                return True
    return False


def _length_at(data: bytes, position: int, version: int) -> int | None:
    """The length stored in a header; None if the header is invalid."""
    if version == OLDEST:
        length, _ = _HEADER_2.unpack_from(data, position)
        # Records are never empty: zeros are space that was allocated but never written.
        return length if 0 < length <= LARGEST else None
    length, _, checksum = _HEADER.unpack_from(data, position)
    if checksum != zlib.crc32(data[position : position + _NUMBERS.size]) or length > LARGEST:
        return None
    return length
