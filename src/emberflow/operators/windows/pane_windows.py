"""Sliding event-time windows that share panes.

A pane is the largest piece of time that no window cuts. A record is added to one pane, however many windows cover it; a
window that fires merges its panes, in order of time. Each key has one timer, for the end of its next window.

Windows fire one after another, each without the oldest panes of the one before it, so what has been merged is used
again: `MergedPanes` keeps it while the stage lives. It is never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberflow.event_time.timestamps import MAX_TIMESTAMP
from emberflow.events.batch import Batch, marks_of
from emberflow.operators.operator import Step
from emberflow.operators.scope import Scope
from emberflow.operators.windows.contents import Held
from emberflow.operators.windows.merged_panes import MergedPanes, Panes
from emberflow.operators.windows.window_operator import (
    NEXT_WINDOW,
    PANES,
    WINDOW_TIMERS,
    WINDOWS,
    WindowOperator,
    beyond_time,
)
from emberflow.plan.window_specs import WindowSpec, pane_size
from emberflow.state.entry import Entry
from emberflow.windowing.assigners import SlidingEventTimeWindows
from emberflow.windowing.windows import TimeWindow


class PaneWindowOperator(WindowOperator):
    """The panes of a key are a dictionary in order of time."""

    def __init__(self, step: Step, spec: WindowSpec) -> None:
        super().__init__(step, spec)
        assigner = spec.assigner
        assert isinstance(assigner, SlidingEventTimeWindows)
        self._size, self._slide = assigner.size_ms, assigner.slide_ms
        self._offset, self._pane = assigner.offset_ms, pane_size(assigner)
        self._pure = bool(getattr(spec.reduce, "leaves_arguments", False))
        self._merged: dict[Any, MergedPanes] = {}

    def enter(self, scope: Scope) -> None:
        super().enter(scope)
        # The state may have been read again, or be that of an attempt that was given up.
        self._merged.clear()

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, add, merged = self.scope, self.contents.add, self._merged
        known, found = self.known(), scope.entry
        size, slide, pane_ms, offset = self._size, self._slide, self._pane, self._offset
        current = scope.watermark
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
                if stamp - (stamp - offset) % slide + size - 1 <= current:
                    self.late(value, stamp, current)
                    continue
                pane = stamp - (stamp - offset) % pane_ms
                entry = known(key)
                if entry is None:
                    entry = found(key)
                panes: Panes | None = entry.get(PANES)
                held = None if panes is None else panes.get(pane)
                if held is None:
                    self._begin(entry, key, pane, current, add(None, value))
                else:
                    panes[pane] = add(held, value)  # pyright: ignore[reportOptionalSubscript]
                if pane <= current and key in merged and pane < merged[key].end:
                    # Windows over the pane have fired already: what was merged of it is no longer true.
                    del merged[key]
                entry.dirty = True
        except BaseException as error:
            raise self.step.failed(value, error) from error

    def _begin(self, entry: Entry, key: Any, pane: int, watermark: int, held: Held) -> None:
        """A pane of a key that has none for this time; the timer must be set for the first window over it."""
        last_start = pane - (pane - self._offset) % self._slide
        if last_start + self._size - 1 > MAX_TIMESTAMP:
            raise beyond_time(last_start, last_start + self._size)
        panes: Panes = entry.get(PANES) or {}
        in_order = not panes or pane > next(reversed(panes))
        panes[pane] = held
        entry[PANES] = panes if in_order else dict(sorted(panes.items()))
        first = self._first_end(pane, watermark) - 1
        planned = entry.get(NEXT_WINDOW)
        if planned is None or first < planned:
            timers = self.scope.event_timers
            if planned is not None and TimeWindow(planned + 1 - self._size, planned + 1) not in (
                entry.get(WINDOWS) or ()
            ):
                timers.delete(planned, key)
            timers.register(first, key)
            entry[NEXT_WINDOW] = first

    def _first_end(self, pane: int, watermark: int) -> int:
        """The end of the first window over a pane that has not fired."""
        # Windows end at offset + size, and every slide before and after that.
        shift = (pane + self._pane - self._offset - self._size) % -self._slide
        end = pane + self._pane - shift
        if end - 1 <= watermark:
            end += (watermark + 1 - end) // self._slide * self._slide + self._slide
        return end

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        entry = self.cursor.entry
        window = TimeWindow(time_ms + 1 - self._size, time_ms + 1)
        held: Held | None = None
        if time_ms == entry.get(NEXT_WINDOW):
            held = self._merge(entry, key, window)
            self._plan(entry, key, window)
        if WINDOWS in entry:
            held = self._with_stored(entry, key, window, held, watermark)
        if held:
            self.emit(key, window, self.contents.result(held), time_ms, watermark)
            if self._process is not None:
                self.finish(window)

    def _with_stored(
        self, entry: Entry, key: Any, window: TimeWindow, held: Held | None, watermark: int
    ) -> Held | None:
        """The window together with what a job has stored that ran before windows shared panes: windows, with a timer
        each. Those of another size fire by themselves."""
        stored: dict[TimeWindow, Held] = entry[WINDOWS]
        for before in [item for item in stored if item[1] == window[1]]:
            found = stored.pop(before)
            entry.dirty = True
            if before == window:
                held = self.contents.merge(found, held)
            else:
                self.emit(key, before, self.contents.result(found), before[1] - 1, watermark)
                self.finish(before)
        if not stored:
            del entry[WINDOWS]
            entry.pop(WINDOW_TIMERS, None)
        return held

    def _merge(self, entry: Entry, key: Any, window: TimeWindow) -> Held | None:
        merged = self._merged.get(key)
        if merged is None:
            merged = self._merged[key] = MergedPanes(self.contents.merge, pure=self._pure)
        return merged.over(window, entry[PANES])

    def _plan(self, entry: Entry, key: Any, fired: TimeWindow) -> None:
        """Removes panes that no further window covers, and sets the timer for the next window."""
        entry.dirty = True
        panes: Panes = entry[PANES]
        start, end = fired[0] + self._slide, fired[1] + self._slide
        oldest = next(iter(panes))
        while oldest < start:
            del panes[oldest]
            if not panes:
                del entry[PANES], entry[NEXT_WINDOW]
                del self._merged[key]
                return
            oldest = next(iter(panes))
        if oldest >= end:
            end = self._first_end(oldest, fired[1] - 1)
        entry[NEXT_WINDOW] = end - 1
        self.scope.event_timers.register(end - 1, key)
