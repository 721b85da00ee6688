"""Event-time windows over keyed streams.

Per key, the state maps windows to what they hold: a running value where the function is incremental, else the
list of elements. One event-time timer per window, at its last millisecond, fires it and forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Protocol

from emberflow.errors import StepFailed, shorten
from emberflow.event_time.timestamps import MAX_TIMESTAMP
from emberflow.event_time.windows import TimeWindow, WindowAssigner
from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, open_function

WINDOWS = "$windows"
_FEW = 16
"""Up to so many open windows of a key are searched for those that end; more are indexed first."""


class WindowContents(Protocol):
    """How a window's contents grow."""

    def add(self, held: Any, value: Any) -> Any:
        """The contents with one more value; `held` is None for a new window."""
        ...

    def result(self, held: Any) -> Iterable[Any]:
        """What the window function is given when the window fires."""
        ...


class ElementContents:
    """Every element is kept."""

    def add(self, held: Any, value: Any) -> Any:
        if held is None:
            return [value]
        held.append(value)
        return held

    def result(self, held: Any) -> Iterable[Any]:
        return held


class ReducedContents:
    """One running value."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine

    def add(self, held: Any, value: Any) -> Any:
        # A one-element list, so that a value of None is told from an empty window.
        return [value] if held is None else [self._combine(held[0], value)]

    def result(self, held: Any) -> Iterable[Any]:
        return held


class AggregatedContents:
    """One running accumulator."""

    def __init__(self, aggregate: Any) -> None:
        self._aggregate = aggregate

    def add(self, held: Any, value: Any) -> Any:
        accumulator = self._aggregate.create_accumulator() if held is None else held[0]
        return [self._aggregate.add(value, accumulator)]

    def result(self, held: Any) -> Iterable[Any]:
        return [self._aggregate.get_result(held[0])]


class WindowOperator(KeyedOperator):
    """`emit(key, window, contents, operator)` turns a fired window's contents into results."""

    def __init__(
        self,
        step: Step,
        assigner: WindowAssigner[TimeWindow],
        contents: WindowContents,
        emit: Callable[[Any, TimeWindow, Iterable[Any], WindowOperator], Any],
        function: Any = None,
    ) -> None:
        super().__init__(step)
        self._assign = assigner.assign
        self._contents = contents
        self._emit = emit
        self._function = function
        self._ending: dict[Any, dict[int, list[TimeWindow]]] = {}
        """key -> last millisecond -> windows; for keys with many open windows, while one watermark fires them"""
        self.late_records = 0

    def open(self, context: Any) -> None:
        open_function(self._function, context)

    def close(self) -> None:
        close_function(self._function)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, assign, add = self.scope, self._assign, self._contents.add
        known, found, register = scope.entries.get, scope.entry, scope.event_timers.register
        current = scope.watermark
        marks = repeat(MIN_WATERMARK) if watermarks is None else watermarks
        if batch.timestamps is None:
            raise self._no_timestamp(batch.values[0])
        value: Any = None
        try:
            for key, value, stamp, mark in zip(
                batch.keys or (), batch.values, batch.timestamps, marks, strict=False
            ):
                if mark > current:
                    self.advance(mark)
                    current = mark
                if stamp is None:
                    raise self._no_timestamp(value)
                for window in assign(stamp):
                    last = window[1] - 1
                    if last <= current:
                        self.late_records += 1
                        continue
                    entry = known(key)
                    if entry is None:
                        entry = found(key)
                    windows: dict[TimeWindow, Any] | None = entry.get(WINDOWS)
                    if windows is None:
                        windows = entry[WINDOWS] = {}
                    held = windows.get(window)
                    if held is None:
                        if last > MAX_TIMESTAMP:
                            raise _beyond_time(window)
                        register(last, key)
                    windows[window] = add(held, value)
                    entry.dirty = True
        except BaseException as error:
            raise self.step.failed(value, error) from error

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        entry = self.cursor.entry
        windows: dict[TimeWindow, Any] = entry.get(WINDOWS, {})
        for window in self._due(windows, key, time_ms):
            held = windows.pop(window)
            entry.dirty = True
            if not windows:
                entry.pop(WINDOWS, None)
            results = self._emit(key, TimeWindow(*window), self._contents.result(held), self)
            if results is not None:
                self.collect(results, time_ms, watermark)

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

    def _no_timestamp(self, value: Any) -> Exception:
        where = f" ({self.step.location})" if self.step.location else ""
        return StepFailed(
            f"step {self.step.name!r}{where} got the value {shorten(value)}, which has no event time",
            way_out="call assign_timestamps_and_watermarks() before window()",
        )


def _beyond_time(window: TimeWindow) -> ValueError:
    return ValueError(
        f"its window [{window[0]}, {window[1]}) ends after the last timestamp, 2**63-1, so it would never fire"
    )
