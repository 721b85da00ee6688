"""The records that one input of an interval join remembers for a key, in buckets of time.

A bucket is one entry of a map in the key's state. A large map is stored in pages, so a record rewrites its bucket, not
everything that the key has. When event time has passed the interval of its last record, a bucket is dropped as a whole.
"""

from __future__ import annotations

from typing import Any

from emberflow.events.batch import MAX_WATERMARK
from emberflow.state.entry import PAGED, Cursor

_PER_INTERVAL = 16
"""Buckets per interval. More: a record changes less of its key's state, and memory is closer to the interval. Fewer: less
to look up."""

Kept = list[Any]
"""[event time, value, whether it has found a partner]"""
STAMP, VALUE, MATCHED = 0, 1, 2


class TimeBuckets:
    """How one input's records are kept. Holds no records itself: they are in the entry of the cursor's key."""

    __slots__ = ("_cursor", "_keeps_ms", "_prefix", "name", "width_ms")

    def __init__(self, cursor: Cursor, side: str, lower_ms: int, upper_ms: int, keeps_ms: int) -> None:
        self._cursor = cursor
        self.width_ms = max(1, (upper_ms - lower_ms + 1) // _PER_INTERVAL)
        self._prefix = f"${side}["
        self.name = f"{self._prefix}{lower_ms},{upper_ms}]"
        """Of the state. A program with another interval finds what the earlier one stored under another name."""
        cursor.pageable.add(self.name)
        self._keeps_ms = keeps_ms
        """A record may find partners as long as event time is at most so far behind it."""

    def due(self, stamp: int) -> int:
        """When the bucket of this time is dropped: event time is then behind the interval of all its records."""
        return min((stamp // self.width_ms + 1) * self.width_ms + self._keeps_ms, MAX_WATERMARK)

    def add(self, stamp: int, value: Any, matched: bool) -> bool:
        """Remembers a record; returns whether its bucket is new."""
        entry = self._cursor.entry
        buckets: Any = entry.get(self.name)
        if buckets is None:
            buckets = entry[self.name] = {}
        number = stamp // self.width_ms
        bucket: list[Kept] | None = buckets.get(number)
        entry.dirty = True
        if bucket is None:
            buckets[number] = [[stamp, value, matched]]
            return True
        bucket.append([stamp, value, matched])
        # Also if it is the same list: a map that is stored in pages learns that this one has changed.
        buckets[number] = bucket
        return False

    def between(self, low: int, high: int) -> list[Kept]:
        """The records with low <= event time <= high, in order of time as far as buckets tell."""
        found: list[Kept] = []
        buckets: Any = self._cursor.entry.get(self.name)
        if buckets is None:
            return found
        first, last = low // self.width_ms, high // self.width_ms
        if last - first < len(buckets) or buckets.__class__ in PAGED:
            numbers = range(first, last + 1)
        else:
            numbers = sorted(number for number in buckets if first <= number <= last)
        for number in numbers:
            bucket: list[Kept] | None = buckets.get(number)
            if bucket is None:
                continue
            if first < number < last:
                found += bucket
            else:
                found += [kept for kept in bucket if low <= kept[0] <= high]
        return found

    def mark_matched(self, found: list[Kept]) -> None:
        """Notes that these records, found by `between`, have a partner."""
        entry = self._cursor.entry
        buckets: Any = entry[self.name]
        for kept in found:
            if not kept[MATCHED]:
                kept[MATCHED] = True
                number = kept[STAMP] // self.width_ms
                buckets[number] = buckets[number]
                entry.dirty = True

    def drop_due(self, time_ms: int) -> list[Kept]:
        """Forgets the bucket that is due at `time_ms`; returns its records."""
        entry = self._cursor.entry
        buckets: Any = entry.get(self.name)
        if buckets is None:
            return []
        if time_ms == MAX_WATERMARK:
            numbers = [number for number in buckets if self.due(number * self.width_ms) == MAX_WATERMARK]
        else:
            number, rest = divmod(time_ms - self._keeps_ms, self.width_ms)
            numbers = [] if rest else [number - 1]
        dropped: list[Kept] = []
        for number in numbers:
            bucket: list[Kept] | None = buckets.pop(number, None)
            if bucket is not None:
                dropped += bucket
                entry.dirty = True
        if not len(buckets):
            self._remove(self.name)
        return dropped

    def take_over(self) -> list[Kept]:
        """Removes what a program with another interval has stored and returns it."""
        entry = self._cursor.entry
        found: list[Kept] = []
        for name in [name for name in entry if name.startswith(self._prefix) and name != self.name]:
            for bucket in entry[name].values():
                found += bucket
            self._remove(name)
        return found

    def _remove(self, name: str) -> None:
        entry = self._cursor.entry
        buckets = entry.pop(name)
        entry.dirty = True
        if buckets.__class__ in PAGED:
            self._cursor.dropped.append(buckets)
