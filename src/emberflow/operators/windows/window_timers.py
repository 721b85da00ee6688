"""Timers of windows: a key has one timer per time, and its state says which windows it is for."""

from __future__ import annotations

from typing import Any

from emberflow.event_time.timestamps import MAX_TIMESTAMP, to_timestamp
from emberflow.operators.contexts import TimeDomain
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.timers import TimerQueue
from emberflow.operators.windows.window_operator import WINDOW_TIMERS

_EVENT = TimeDomain.EVENT_TIME
_Timers = dict[tuple[int, int], list[Any]]


class WindowTimers:
    """The timers of the current key's windows. Domains are stored as 0 (event time) and 1 (processing time)."""

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator
        self._cursor = operator.cursor

    def register(self, domain: TimeDomain, time_ms: int, window: Any) -> None:
        entry = self._cursor.entry
        timers: _Timers | None = entry.get(WINDOW_TIMERS)
        if timers is None:
            timers = entry[WINDOW_TIMERS] = {}
        at = (0 if domain is _EVENT else 1, time_ms)
        windows = timers.get(at)
        if windows is None:
            timers[at] = [window]
            self._queue(domain).register(_due(domain, time_ms), self._cursor.key)
        elif window in windows:
            return
        else:
            windows.append(window)
        entry.dirty = True

    def delete(self, domain: TimeDomain, time_ms: int, window: Any) -> None:
        entry = self._cursor.entry
        timers: _Timers = entry.get(WINDOW_TIMERS) or {}
        at = (0 if domain is _EVENT else 1, time_ms)
        windows = timers.get(at)
        if windows is None or window not in windows:
            return
        windows.remove(window)
        entry.dirty = True
        if not windows:
            del timers[at]
            self._queue(domain).delete(_due(domain, time_ms), self._cursor.key)
            if not timers:
                del entry[WINDOW_TIMERS]

    def take(self, domain: TimeDomain, due_ms: int) -> list[tuple[int, Any]]:
        """The timers that are due, each with its time and window; they are gone."""
        entry = self._cursor.entry
        timers: _Timers = entry.get(WINDOW_TIMERS) or {}
        number = 0 if domain is _EVENT else 1
        found: list[tuple[int, Any]] = []
        for time_ms in (due_ms - number, due_ms):
            if _due(domain, time_ms) == due_ms:
                found += [(time_ms, window) for window in timers.pop((number, time_ms), ())]
        if found:
            entry.dirty = True
            if not timers:
                del entry[WINDOW_TIMERS]
        return found

    def forget(self, window: Any) -> None:
        """Removes timers that the trigger of a removed window left behind."""
        timers: _Timers = self._cursor.entry.get(WINDOW_TIMERS) or {}
        for number, time_ms in [at for at, windows in timers.items() if window in windows]:
            self.delete(TimeDomain.PROCESSING_TIME if number else _EVENT, time_ms, window)

    def _queue(self, domain: TimeDomain) -> TimerQueue:
        scope = self._operator.scope
        return scope.event_timers if domain is _EVENT else scope.processing_timers


def _due(domain: TimeDomain, time_ms: int) -> int:
    """When the operator is called. A clock that shows the last millisecond of a window is still within the window, while
    a watermark is past it; so timers of processing time are due one millisecond later, as in Flink."""
    time_ms = to_timestamp(time_ms, "the time of a timer")
    return time_ms if domain is _EVENT or time_ms == MAX_TIMESTAMP else time_ms + 1
