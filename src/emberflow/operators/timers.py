"""Timers of one scope (a key group on Spark, a subtask locally): deduplicated per (timestamp, key), deletable,
fired in order of timestamp and, within one, of registration."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

_FEW = 8
"""Up to so many keys of one time are taken from a plain dictionary. Its first key is found by a search past those that
were removed, so taking n keys one by one costs n² steps."""


class TimerQueue:
    """Keys by due time. The heap holds each distinct time once; a time whose keys were all deleted stays in the
    heap until it is reached. The keys of a time are an `OrderedDict` while many of them fire, else a plain dictionary,
    which is smaller."""

    __slots__ = ("_by_time", "_heap", "changed")

    def __init__(self, saved: Iterable[tuple[int, Iterable[Any]]] = ()) -> None:
        self._by_time: dict[int, dict[Any, None]] = {time: dict.fromkeys(keys) for time, keys in saved}
        self._heap = list(self._by_time)
        heapify(self._heap)
        self.changed = False

    def register(self, time_ms: int, key: Any) -> None:
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
        keys = self._by_time.get(time_ms)
        if keys is not None and key in keys:
            del keys[key]
            self.changed = True

    def next_time(self) -> int | None:
        """The earliest time with a timer."""
        heap, by_time = self._heap, self._by_time
        while heap:
            if by_time[heap[0]]:
                return heap[0]
            del by_time[heappop(heap)]
        return None

    def pop_due(self, now_ms: int) -> tuple[int, Any] | None:
        """Takes the next timer that is due at `now_ms`, if any."""
        time_ms = self.next_time()
        if time_ms is None or time_ms > now_ms:
            return None
        keys = self._by_time[time_ms]
        if keys.__class__ is dict and len(keys) > _FEW:
            keys = self._by_time[time_ms] = OrderedDict(keys)
        key = next(iter(keys))
        del keys[key]
        self.changed = True
        return time_ms, key

    def saved(self) -> list[tuple[int, list[Any]]]:
        """What `__init__` takes, ordered by time."""
        return [(time, list(self._by_time[time])) for time in sorted(self._by_time) if self._by_time[time]]

    def __len__(self) -> int:
        return sum(map(len, self._by_time.values()))
