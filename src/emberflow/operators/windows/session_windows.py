"""Event-time sessions that fire once, when the watermark passes their end.

A session that grows keeps the timer it was begun with. When that is due and the session has not ended, the timer is set
again for the end as it is then: so a record costs no timer, and a session one per gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberflow.event_time.timestamps import MAX_TIMESTAMP
from emberflow.events.batch import Batch, marks_of
from emberflow.operators.operator import Step
from emberflow.operators.windows.adoption import forget_fired
from emberflow.operators.windows.contents import Held
from emberflow.operators.windows.window_operator import WINDOW_TIMERS, WINDOWS, WindowOperator, beyond_time
from emberflow.plan.window_specs import WindowSpec
from emberflow.state.entry import Entry
from emberflow.windowing.windows import TimeWindow

_NONE: dict[TimeWindow, Held] = {}


class SessionWindowOperator(WindowOperator):
    """The sessions of a key are a dictionary of windows that neither overlap nor touch."""

    def __init__(self, step: Step, spec: WindowSpec) -> None:
        super().__init__(step, spec)
        assigner: Any = spec.assigner
        self._gap_of = assigner.gap_of
        self._gap_ms: int | None = getattr(assigner, "gap_ms", None)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, add, gap_ms, gap_of = self.scope, self.contents.add, self._gap_ms, self._gap_of
        known, found = self.known(), scope.entry
        current = scope.watermark
        marks = marks_of(watermarks, batch)
        if batch.timestamps is None:
            raise self.no_timestamp(batch.values[0])
        value: Any = None
        emptied: list[Any] = []
        try:
            for key, value, stamp, mark in zip(
                batch.keys or (), batch.values, batch.timestamps, marks, strict=True
            ):
                if mark > current:
                    self.advance(mark)
                    current = mark
                if stamp is None:
                    raise self.no_timestamp(value)
                entry = known(key)
                if entry is None:
                    entry = found(key)
                if WINDOW_TIMERS in entry:
                    forget_fired(entry, current)
                end = stamp + (gap_ms or gap_of(value))
                sessions: dict[TimeWindow, Held] = entry.get(WINDOWS) or _NONE
                touched = [item for item in sessions if stamp <= item[1] and end >= item[0]]
                if not touched:
                    if end - 1 <= current:
                        self.late(value, stamp, current)
                        if not entry:
                            emptied.append(key)
                        continue
                    self._begin(entry, key, stamp, end, value)
                elif len(touched) == 1:
                    window = touched[0]
                    start = window[0]
                    if start <= stamp and end <= window[1]:
                        sessions[window] = add(sessions[window], value)
                    elif end - 1 > MAX_TIMESTAMP:
                        raise beyond_time(stamp, end)
                    else:
                        if stamp < start:
                            start, end = stamp, max(end, window[1])
                        sessions[TimeWindow(start, end)] = add(sessions.pop(window), value)
                else:
                    self._join(sessions, touched, stamp, end, value)
                entry.dirty = True
        except BaseException as error:
            raise self.step.failed(value, error) from error
        scope.prune(emptied)

    def _begin(self, entry: Entry, key: Any, start: int, end: int, value: Any) -> None:
        if end - 1 > MAX_TIMESTAMP:
            raise beyond_time(start, end)
        sessions = entry.get(WINDOWS)
        if sessions is None:
            sessions = entry[WINDOWS] = {}
        sessions[TimeWindow(start, end)] = self.contents.add(None, value)
        self.scope.event_timers.register(end - 1, key)

    def _join(
        self,
        sessions: dict[TimeWindow, Held],
        touched: list[TimeWindow],
        start: int,
        end: int,
        value: Any,
    ) -> None:
        """A record that closes the gap between sessions. Their timers are all set already."""
        if end - 1 > MAX_TIMESTAMP:
            raise beyond_time(start, end)
        merge, held = self.contents.merge, None
        for window in touched:
            held = merge(held, sessions.pop(window))
            start, end = min(start, window[0]), max(end, window[1])
        sessions[TimeWindow(start, end)] = self.contents.add(held, value)

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        entry = self.cursor.entry
        if WINDOW_TIMERS in entry:
            forget_fired(entry, time_ms - 1)
        sessions: dict[TimeWindow, Held] = entry.get(WINDOWS, {})
        for window in list(sessions):
            if window[1] - 1 > time_ms:
                self.scope.event_timers.register(window[1] - 1, key)
                continue
            held = sessions.pop(window)
            entry.dirty = True
            if not sessions:
                entry.pop(WINDOWS, None)
                entry.pop(WINDOW_TIMERS, None)
            self.emit(key, window, self.contents.result(held), window[1] - 1, watermark)
            self.finish(window)
