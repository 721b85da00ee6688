"""The rows that carry packets through Spark, and group ids that are spread evenly over its partitions."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from emberflow.events.batch import MIN_WATERMARK

ROW_SCHEMA = "kg int, dest int, n long, wm long, packet binary"
STATS = -1
"""`dest` of a row that only counts records read."""
PARKED = -2
"""`dest` of a row that only counts the parked runs of a group; sinks follow below it."""


LATE = 2**31 - 1
"""`dest` of a row that only counts records that were dropped because they were late: no stage has that number."""


class PacketRow(NamedTuple):
    """In the order of `ROW_SCHEMA`."""

    kg: int
    """The number of a key group as Spark sees it, or of a task."""
    dest: int
    """The stage or sink (`sink_dest`) that the packet is for, or what the row counts."""
    n: int
    """Records in the packet."""
    wm: int
    """The watermark in the packet, or MIN_WATERMARK."""
    packet: bytes


def count_row(kg: int, dest: int, count: int) -> PacketRow:
    """Reports a number to the driver, such as `STATS`."""
    return PacketRow(kg, dest, count, MIN_WATERMARK, b"")


def sink_dest(number: int) -> int:
    return -3 - number


def sink_number(dest: int) -> int:
    return -3 - dest


def is_for_sink(dest: int) -> bool:
    return dest <= sink_dest(0)


def _murmur3(value: int) -> int:
    """Spark's hash of an int column (Murmur3_x86_32, seed 42), as a signed number."""
    mask = 0xFFFFFFFF
    mixed = value * 0xCC9E2D51 & mask
    mixed = (mixed << 15 | mixed >> 17) & mask
    mixed = mixed * 0x1B873593 & mask
    digest = 42 ^ mixed
    digest = (digest << 13 | digest >> 19) & mask
    digest = (digest * 5 + 0xE6546B64) & mask
    digest ^= 4
    digest ^= digest >> 16
    digest = digest * 0x85EBCA6B & mask
    digest ^= digest >> 13
    digest = digest * 0xC2B2AE35 & mask
    digest ^= digest >> 16
    return digest - (1 << 32) if digest & 0x80000000 else digest


@cache
def group_ids(max_parallelism: int, partitions: int) -> tuple[int, ...]:
    """For every key group the int that Spark sees, chosen so that each partition gets the same number of groups."""
    ids: list[int | None] = [None] * max_parallelism
    waiting: list[list[int]] = [[] for _ in range(partitions)]
    for group in reversed(range(max_parallelism)):
        waiting[group % partitions].append(group)
    candidate = 0
    missing = max_parallelism
    while missing:
        partition = _murmur3(candidate) % partitions
        if waiting[partition]:
            ids[waiting[partition].pop()] = candidate
            missing -= 1
        candidate += 1
    return tuple(number for number in ids if number is not None)
