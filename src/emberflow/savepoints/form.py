"""The format of a savepoint on disk; `writer.py` writes it, `reader.py` reads it.

    savepoint.json            manifest, with the length and checksum of every other file
    state/{step}-{n}.state    frames: keyed entries and timers of one step and key group
    prepared.bin              outputs that were prepared but may not be visible yet
    calls/…                   the durable call log, unchanged

A frame is a header and `count` items. An item is a key with the values of all its states, or a timer with its time and
key. Each item is encoded separately, so that one key can be read or changed without decoding the others.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any
from zlib import crc32

from emberflow.errors import CorruptData
from emberflow.events.batch import MIN_WATERMARK

FORMAT_VERSION = 4
"""1 named classes in state and calls by their module path, 2 uses stable names, 3 has the cleanup times of keys, and entries that
all subtasks have, 4 the forms of states."""
MANIFEST = "savepoint.json"
STATE_FOLDER = "state"
PREPARED = "prepared.bin"
CALLS_FOLDER = "calls"
FILE_MAGIC = b"EFSP\x01"

_FRAME = struct.Struct("<BIIQI")
"""kind, key group, number of items, length, checksum"""
_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("<q")


class FrameKind(IntEnum):
    ENTRIES = 1
    EVENT_TIMERS = 2
    PROCESSING_TIMERS = 3
    PARKED = 4
    """Keys with runs in flight; the values are the name of the action to continue with."""
    CLEANUP = 5
    """When to look for expired state of which keys; stored like timers."""
    SHARED = 6
    """Entries that every subtask and key group has: broadcast state."""


TIMER_FRAMES = frozenset({FrameKind.EVENT_TIMERS, FrameKind.PROCESSING_TIMERS, FrameKind.CLEANUP})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePositions:
    """The position of each channel of a source; positions are JSON."""

    positions: list[Any]
    ended: list[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    """What is known about a keyed step without reading its state."""

    kind: str
    watermark: int = MIN_WATERMARK
    ended: bool = False
    channels: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """input (named by the steps it connects) -> watermark of each of its channels"""
    keys: int = 0
    event_timers: int = 0
    processing_timers: int = 0
    parked: int = 0
    bytes: int = 0
    files: list[str] = field(default_factory=list[str])
    states: dict[str, str] | None = None
    """The form of each state by name; None in savepoints of earlier formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointManifest:
    format: int
    job_name: str
    job_id: str
    engine: str
    max_parallelism: int
    epoch: int
    """The last committed epoch; a job that starts from here continues with the next one."""
    created_ms: int
    sources: dict[str, SourcePositions]
    steps: dict[str, StepSummary]
    sinks: list[str]
    files: dict[str, list[int]]
    """name -> [length, checksum] of every other file of the savepoint"""

    @property
    def bytes(self) -> int:
        return sum(size for size, _ in self.files.values())

    @property
    def kinds(self) -> dict[str, str]:
        """uid -> kind of every step that has something to restore."""
        return {
            **dict.fromkeys(self.sources, "source"),
            **{uid: step.kind for uid, step in self.steps.items()},
        }


@dataclass(frozen=True, slots=True)
class Frame:
    """A sequence of items, still encoded."""

    kind: FrameKind
    group: int
    count: int
    body: bytes


def pack_frame(frame: Frame) -> bytes:
    head = _FRAME.pack(frame.kind, frame.group, frame.count, len(frame.body), crc32(frame.body))
    return head + frame.body


def read_frames(data: memoryview, where: str) -> Iterator[Frame]:
    """Yields the frames of a state file and verifies each; raises CorruptData."""
    if bytes(data[: len(FILE_MAGIC)]) != FILE_MAGIC:
        raise CorruptData(f"{where} is not a state file of a savepoint")
    position = len(FILE_MAGIC)
    while position < len(data):
        if position + _FRAME.size > len(data):
            raise damaged(where)
        kind, group, count, length, checksum = _FRAME.unpack_from(data, position)
        position += _FRAME.size
        body = bytes(data[position : position + length])
        if len(body) != length or crc32(body) != checksum:
            raise damaged(where)
        position += length
        try:
            yield Frame(FrameKind(kind), group, count, body)
        except ValueError:
            raise damaged(where) from None


def pack_entry(key: bytes, values: bytes) -> bytes:
    return b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(values)), values))


def unpack_entries(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    while position < len(body):
        key, position = _part(body, position)
        values, position = _part(body, position)
        yield key, values


def pack_timer(time_ms: int, key: bytes) -> bytes:
    return b"".join((_TIME.pack(time_ms), _LENGTH.pack(len(key)), key))


def unpack_timers(body: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(body):
        (time_ms,) = _TIME.unpack_from(body, position)
        key, position = _part(body, position + _TIME.size)
        yield time_ms, key


def _part(body: bytes, position: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(body, position)
    start = position + _LENGTH.size
    return body[start : start + length], start + length


def checksum_of(manifest: dict[str, Any]) -> int:
    """The checksum of a manifest without its own entry; independent of key order and whitespace."""
    return crc32(json.dumps(manifest, sort_keys=True).encode())


def damaged(where: str) -> CorruptData:
    return CorruptData(
        f"{where} is corrupted",
        way_out="take the savepoint again, or use an intact copy of it",
    )
