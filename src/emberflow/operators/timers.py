"""Timers of one scope (a key group on Spark, a subtask locally): deduplicated per (timestamp, key), deletable,
fired in order of timestamp and, within one, of registration.

Where the scope's store has pages, only the timers that come first are in memory and stored with the scope; the others are
in pages (`far_timers.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

from emberflow.events.batch import MIN_WATERMARK
from emberflow.operators.far_timers import NEVER, FarTimers, Timers, split_off
from emberflow.state.pages import PageStore

_FEW = 8
"""Up to so many keys of one time are taken from a plain dictionary. Its first key is found by a search past those that
were removed, so taking n keys one by one costs n² steps."""


class TimerQueue:
    """Keys by due time. The heap holds each distinct time once; a time whose keys were all deleted stays in the
    heap until it is reached. The keys of a time are an `OrderedDict` while many of them fire, else a plain dictionary,
    which is smaller."""

    __slots__ = ("_by_time", "_far", "_heap", "_horizon", "_limit", "changed")

    def __init__(
        self,
        saved: Iterable[tuple[int, Iterable[Any]]] = (),
        far: FarTimers | None = None,
        limit: int = NEVER,
    ) -> None:
        """`limit` says about how many timers are kept in memory and stored with the scope."""
        self._by_time: Timers = {time: dict.fromkeys(keys) for time, keys in saved}
        self._heap = list(self._by_time)
        heapify(self._heap)
        self._far = far
        self._horizon = NEVER if far is None else far.start
        """Timers from here on are in `_far`."""
        self._limit = limit
        self.changed = False

    def register(self, time_ms: int, key: Any) -> None:
        if time_ms >= self._horizon:
            assert self._far is not None
            self._far.register(time_ms, key)
            self.changed = True
            return
        keys = self._by_time.get(time_ms)
        if keys is None:
            self._by_time[time_ms] = {key: None}
            heappush(self._heap, time_ms)
        elif key in keys:
            return
        else:
            keys[key] = None
        self.changed = True

    def delete(self, time_ms: int, key: Any) -> None:
        if time_ms >= self._horizon:
            assert self._far is not None
            self._far.delete(time_ms, key)
            self.changed = True
            return
        keys = self._by_time.get(time_ms)
        if keys is not None and key in keys:
            del keys[key]
            self.changed = True

    def next_time(self) -> int | None:
        """The earliest time with a timer. A little early if all timers are in pages and the first one was deleted."""
        heap, by_time = self._heap, self._by_time
        while heap:
            if by_time[heap[0]]:
                return heap[0]
            del by_time[heappop(heap)]
        return None if self._far is None else self._far.earliest

    def pop_due(self, now_ms: int) -> tuple[int, Any] | None:
        """Takes the next timer that is due at `now_ms`, if any."""
        time_ms = self.next_time()
        if time_ms is None or time_ms > now_ms:
            return None
        if not self._heap:
            time_ms = self._read_on(now_ms)
            if time_ms is None:
                return None
        keys = self._by_time[time_ms]
        if keys.__class__ is dict and len(keys) > _FEW:
            keys = self._by_time[time_ms] = OrderedDict(keys)
        key = next(iter(keys))
        del keys[key]
        self.changed = True
        return time_ms, key

    def saved(self) -> list[tuple[int, list[Any]]]:
        """What `__init__` takes, ordered by time: the timers in memory."""
        return [(time, list(self._by_time[time])) for time in sorted(self._by_time) if self._by_time[time]]

    @property
    def far(self) -> FarTimers | None:
        """The timers in pages, as `__init__` takes them."""
        return self._far

    def pending(self) -> list[tuple[int, list[Any]]]:
        """All timers, ordered by time. Reads all pages."""
        return self.saved() if self._far is None else [*self.saved(), *self._far.all()]

    def flush(self, store: PageStore) -> None:
        """Moves timers to pages where there are too many; before the scope is stored."""
        far = self._far
        if len(self) > self._limit:
            rest = split_off(self._by_time, self._limit // 2, MIN_WATERMARK)
            self._heap = list(self._by_time)
            heapify(self._heap)
            if far is None:
                far = self._far = FarTimers()
            far.put_back(rest)
        if far is not None:
            far.flush(store, self._limit // 2)
            self._horizon = far.start
            if not len(far):
                self._far = None

    def _read_on(self, now_ms: int) -> int | None:
        """Takes timers from pages; returns the time of the next one if it is due."""
        far = self._far
        assert far is not None
        self.changed = True
        time_ms = far.earliest
        while not self._heap and time_ms is not None and time_ms <= now_ms:
            self._by_time.update(far.take_first(now_ms, max(1, self._limit // 2)))
            self._heap = list(self._by_time)
            heapify(self._heap)
            self._horizon = far.start
            time_ms = self.next_time()
        return time_ms if time_ms is not None and time_ms <= now_ms else None

    def __len__(self) -> int:
        """The number of timers in memory."""
        return sum(map(len, self._by_time.values()))
