"""The timers of a scope that are not due for long: in pages by ranges of time, so that a commit does not rewrite them.

A range is a log of registrations and deletions, in pages and a short list of those that are still pending; nothing of it
is read until the range is the next one. Deleting a timer appends to the log, as registering does. When the log of a range
has grown to several times the timers in it, the log is compacted. `timers.py` holds the timers that come first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from emberflow.events.stored_types import stored_type
from emberflow.state.page_run import PageRun
from emberflow.state.pages import PageStore

NEVER = 2**63
"""Later than every timer."""
_REGISTER, _DELETE, _MOVE = 1, 2, 3
"""What a log says of a timer. A timer that is deleted and registered again moves to the end of its time."""
_PAGE_TIMERS = 256
_MOST_RANGES = 48
_COMPACT_ABOVE = 1_024
_CLOSE_ABOVE = 2_048

Timers = dict[int, dict[Any, None]]
"""time -> keys in the order of registration"""


class _Range:
    """The log of all timers from `start` to the start of the next range."""

    __slots__ = ("earliest", "latest", "logged", "pending", "run", "size", "start")

    def __init__(
        self,
        start: int,
        earliest: int = NEVER,
        latest: int = -NEVER,
        bases: tuple[int, ...] = (),
        pages: int = 0,
        logged: int = 0,
        size: int = 0,
        pending: list[tuple[int, Any, int]] | None = None,
    ) -> None:
        self.start = start
        self.earliest = earliest
        """No timer is earlier; it may have been deleted since."""
        self.latest = latest
        self.run = PageRun(bases, pages)
        self.logged = logged
        """The number of log entries in pages."""
        self.size = size
        """The number of timers when the log was last compacted."""
        self.pending: dict[tuple[int, Any], int] = {(time, key): what for time, key, what in pending or ()}

    def record(self) -> tuple[Any, ...]:
        pending = [(time, key, what) for (time, key), what in self.pending.items()]
        run = self.run
        return (
            self.start,
            self.earliest,
            self.latest,
            run.bases,
            run.length,
            self.logged,
            self.size,
            pending,
        )

    def register(self, time_ms: int, key: Any) -> None:
        known = self.pending.get((time_ms, key))
        if known is None:
            self.pending[(time_ms, key)] = _REGISTER
        elif known == _DELETE:
            del self.pending[(time_ms, key)]
            self.pending[(time_ms, key)] = _MOVE
        else:
            return
        self.earliest = min(self.earliest, time_ms)
        self.latest = max(self.latest, time_ms)

    def delete(self, time_ms: int, key: Any) -> None:
        self.pending.pop((time_ms, key), None)
        if self.run.length:
            self.pending[(time_ms, key)] = _DELETE

    def timers(self, store: PageStore | None) -> Timers:
        """What the log amounts to."""
        found: Timers = {}
        for index in range(self.run.length):
            for time_ms, key, what in self.run.read(store, index, "timers"):
                _apply(found, time_ms, key, what)
        for (time_ms, key), what in self.pending.items():
            _apply(found, time_ms, key, what)
        return {time_ms: keys for time_ms, keys in found.items() if keys}

    def write(self, store: PageStore) -> None:
        """Moves what is pending to pages."""
        entries = [(time_ms, key, what) for (time_ms, key), what in self.pending.items()]
        for start in range(0, len(entries), _PAGE_TIMERS):
            self.run.append(store, entries[start : start + _PAGE_TIMERS])
        self.logged += len(entries)
        self.pending.clear()


def _apply(timers: Timers, time_ms: int, key: Any, what: int) -> None:
    keys = timers.get(time_ms)
    if keys is None:
        keys = timers[time_ms] = {}
    if what != _REGISTER:
        keys.pop(key, None)
    if what != _DELETE:
        keys.setdefault(key)


@stored_type(write=lambda far: far.record(), read=lambda _, record: FarTimers(record))
class FarTimers:
    """Ranges in order of time; together they cover everything from the start of the first one."""

    __slots__ = ("_dropped", "_ranges", "_starts", "store")

    def __init__(self, ranges: list[tuple[Any, ...]] | None = None) -> None:
        self._ranges = [_Range(*fields) for fields in ranges or ()]
        self._starts = [item.start for item in self._ranges]
        self._dropped: list[PageRun] = []
        """Pages that are removed with the next flush."""
        self.store: PageStore | None = None

    def record(self) -> list[tuple[Any, ...]]:
        return [item.record() for item in self._ranges]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FarTimers) and self.record() == other.record()

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._ranges)

    @property
    def start(self) -> int:
        """Timers before this time are not here."""
        return self._starts[0] if self._starts else NEVER

    @property
    def earliest(self) -> int | None:
        """No timer here is earlier; None if there is none."""
        return next((item.earliest for item in self._ranges if item.earliest != NEVER), None)

    def register(self, time_ms: int, key: Any) -> None:
        self._ranges[bisect_right(self._starts, time_ms) - 1].register(time_ms, key)

    def delete(self, time_ms: int, key: Any) -> None:
        self._ranges[bisect_right(self._starts, time_ms) - 1].delete(time_ms, key)

    def take_first(self, now_ms: int, limit: int) -> Timers:
        """Removes and returns the timers of the first range; of a large one only about `limit` timers, and all that are
        due."""
        first = self._ranges.pop(0)
        self._starts.pop(0)
        timers = first.timers(self.store)
        if first.run.length:
            self._dropped.append(first.run)
        if sum(map(len, timers.values())) > 2 * limit:
            rest = split_off(timers, limit, now_ms)
            if rest:
                self.put_back(rest)
        return timers

    def put_back(self, timers: Timers) -> None:
        """Adds timers before the first range, in several ranges if there are many."""
        size = sum(map(len, timers.values()))
        pieces = 8 if size > _CLOSE_ABOVE else 1
        made: list[_Range] = []
        for time_ms in sorted(timers):
            if not made or len(made[-1].pending) >= size / pieces:
                made.append(_Range(time_ms))
            for key in timers[time_ms]:
                made[-1].register(time_ms, key)
        for item in made:
            item.size = len(item.pending)
        self._ranges[:0] = made
        self._starts[:0] = [item.start for item in made]

    def all(self) -> Iterator[tuple[int, list[Any]]]:
        """Every timer in order of time; changes nothing."""
        for item in self._ranges:
            timers = item.timers(self.store)
            yield from ((time_ms, list(timers[time_ms])) for time_ms in sorted(timers))

    # storing

    def remove_pages(self, store: PageStore) -> None:
        for item in self._ranges:
            item.run.remove(store)

    def flush(self, store: PageStore, limit: int) -> None:
        """Writes what is pending, if it is more than `limit`; before the scope is stored."""
        self.store = store
        for run in self._dropped:
            run.remove(store)
        self._dropped.clear()
        self._merge(store)
        pending = sum(len(item.pending) for item in self._ranges)
        for item in self._ranges:
            if item.logged + len(item.pending) >= 4 * item.size + _COMPACT_ABOVE and item.run.length:
                self._compact(store, item)
            if pending > limit or len(item.pending) > _PAGE_TIMERS:
                item.write(store)
        self._close_last()

    def _compact(self, store: PageStore, item: _Range) -> None:
        timers = item.timers(store)
        item.run.remove(store)
        item.run, item.logged, item.earliest, item.latest = PageRun(), 0, NEVER, -NEVER
        item.pending = {}
        for time_ms in sorted(timers):
            for key in timers[time_ms]:
                item.register(time_ms, key)
        item.size = len(item.pending)
        item.write(store)

    def _close_last(self) -> None:
        """Starts another range behind a last one that is large: timers that are registered from now on are later, as a
        rule, so they do not have to be told apart from these again."""
        last = self._ranges[-1] if self._ranges else None
        if last is not None and last.logged >= _CLOSE_ABOVE and last.latest < NEVER - 2:
            self._ranges.append(_Range(last.latest + 1))
            self._starts.append(last.latest + 1)

    def _merge(self, store: PageStore) -> None:
        """Joins the two neighbours that hold least, while there are too many ranges to be listed with every commit."""
        while len(self._ranges) > _MOST_RANGES:
            sizes = [item.logged + len(item.pending) for item in self._ranges]
            at = min(range(1, len(sizes) - 1), key=lambda index: sizes[index] + sizes[index + 1])
            left, right = self._ranges[at], self._ranges[at + 1]
            joined = _Range(left.start)
            for item in (left, right):
                timers = item.timers(store)
                for time_ms in sorted(timers):
                    for key in timers[time_ms]:
                        joined.register(time_ms, key)
                item.run.remove(store)
            joined.size = len(joined.pending)
            self._ranges[at : at + 2] = [joined]
            del self._starts[at + 1]


def split_off(timers: Timers, limit: int, now_ms: int) -> Timers:
    """Removes and returns all but the first `limit` timers, and those that are due."""
    count, rest = 0, list[int]()
    for time_ms in sorted(timers):
        count += len(timers[time_ms])
        if count > limit and time_ms > now_ms:
            rest.append(time_ms)
    return {time_ms: timers.pop(time_ms) for time_ms in rest}
