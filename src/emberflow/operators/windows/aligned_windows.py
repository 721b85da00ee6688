"""Tumbling and sliding event-time windows that fire once, when the watermark passes their end.

Per key, the state maps windows to what they hold. One event-time timer per window, at its last millisecond, fires it
and removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberflow.event_time.timestamps import MAX_TIMESTAMP
from emberflow.events.batch import Batch, marks_of
from emberflow.operators.operator import Step
from emberflow.operators.windows.adoption import panes_as_windows
from emberflow.operators.windows.window_operator import (
    PANES,
    WINDOW_TIMERS,
    WINDOWS,
    WindowOperator,
    beyond_time,
)
from emberflow.plan.window_specs import WindowSpec
from emberflow.state.entry import Entry
from emberflow.windowing.assigners import SlidingEventTimeWindows
from emberflow.windowing.windows import TimeWindow

_FEW = 16
"""Up to so many open windows of a key are searched for those that end; more are indexed first."""


class AlignedWindowOperator(WindowOperator):
    """The assigner must return the latest window first."""

    def __init__(self, step: Step, spec: WindowSpec) -> None:
        super().__init__(step, spec)
        assigner: Any = spec.assigner
        self._assign = assigner.assign
        self._overlapping = isinstance(assigner, SlidingEventTimeWindows)
        self._ending: dict[Any, dict[int, list[TimeWindow]]] = {}
        """key -> last millisecond -> windows; for keys with many open windows, while one watermark fires them"""

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, assign, add = self.scope, self._assign, self.contents.add
        known, found, register = self.known(), scope.entry, scope.event_timers.register
        current, overlapping = scope.watermark, self._overlapping
        needs_copies, copied = self.isolation.needs_copies, self.isolation.copied
        marks = marks_of(watermarks, batch)
        if batch.timestamps is None:
            raise self.no_timestamp(batch.values[0])
        value: Any = None
        try:
            for key, value, stamp, mark in zip(
                batch.keys or (), batch.values, batch.timestamps, marks, strict=True
            ):
                if mark > current:
                    self.advance(mark)
                    current = mark
                if stamp is None:
                    raise self.no_timestamp(value)
                last = current
                # A record that can be changed is copied for each of its windows.
                shared = overlapping and needs_copies(value)
                for window in assign(stamp):
                    last = window[1] - 1
                    if last <= current:
                        break
                    entry = known(key)
                    if entry is None:
                        entry = found(key)
                    windows: dict[TimeWindow, Any] | None = entry.get(WINDOWS)
                    if windows is None:
                        windows = self._first_windows(entry, key)
                    held = windows.get(window)
                    if held is None:
                        if last > MAX_TIMESTAMP:
                            raise beyond_time(*window)
                        register(last, key)
                    windows[window] = add(held, copied(value) if shared else value)
                    entry.dirty = True
                if last <= current and stamp <= current and self._is_late(stamp, current):
                    self.late(value, stamp, current)
        except BaseException as error:
            raise self.step.failed(value, error) from error

    def _is_late(self, stamp: int, watermark: int) -> bool:
        """Whether all windows of a record have fired: one that is late for some of them only is not."""
        return all(window[1] - 1 <= watermark for window in self._assign(stamp))

    def _first_windows(self, entry: Entry, key: Any) -> dict[TimeWindow, Any]:
        if PANES in entry:
            for window in panes_as_windows(entry, self._assign, self.contents, self.scope.watermark):
                self.scope.event_timers.register(window[1] - 1, key)
        return entry.setdefault(WINDOWS, {})

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        entry = self.cursor.entry
        if PANES in entry:
            # The timer is that of a window over panes, which has not fired yet.
            scope = self.scope
            for window in panes_as_windows(entry, self._assign, self.contents, time_ms - 1):
                scope.event_timers.register(window[1] - 1, key)
        windows: dict[TimeWindow, Any] = entry.get(WINDOWS, {})
        for window in self._due(windows, key, time_ms):
            held = windows.pop(window)
            entry.dirty = True
            if not windows:
                entry.pop(WINDOWS, None)
                entry.pop(WINDOW_TIMERS, None)
            self.emit(key, window, self.contents.result(held), time_ms, watermark)
            self.finish(window)

    def advance(self, watermark: int) -> None:
        super().advance(watermark)
        self._ending.clear()

    def _due(self, windows: dict[TimeWindow, Any], key: Any, time_ms: int) -> list[TimeWindow]:
        """A key's windows that end with `time_ms`. A state may hold windows of another size: the program's may change."""
        if len(windows) <= _FEW:
            return [window for window in windows if window[1] - 1 == time_ms]
        ending = self._ending.get(key)
        if ending is None:
            ending = self._ending[key] = {}
            for window in windows:
                ending.setdefault(window[1] - 1, []).append(window)
        return ending.pop(time_ms, [])
