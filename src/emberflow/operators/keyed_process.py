"""Keyed functions: process, map, flat_map, filter and their two-input forms.

A keyed map is a process function that yields one value; so there is one loop for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from emberflow.events.batch import Batch, marks_of
from emberflow.events.copies import UNCHANGEABLE
from emberflow.operators.contexts import ElementContext, TimeDomain
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, open_function

Process = Callable[[Any, Any], Any]
"""(value, context) -> iterable of results or None"""


class KeyedProcessOperator(KeyedOperator):
    """Hosts one function per input; `on_timer` is shared."""

    def __init__(self, step: Step, function: Any, calls: Sequence[Process], on_timer: Any = None) -> None:
        super().__init__(step)
        self._function = function
        self._calls = calls
        self._on_timer = on_timer
        self._context: ElementContext[Any] = ElementContext(self)

    def open(self, context: Any) -> None:
        open_function(self._function, context)

    def close(self) -> None:
        close_function(self._function)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        if watermarks is None and batch.timestamps is None:
            self._process_untimed(batch, self._calls[input_index])
        else:
            self._process_timed(batch, watermarks, self._calls[input_index])

    def _process_untimed(self, batch: Batch, call: Process) -> None:
        scope, cursor, context = self.scope, self.cursor, self._context
        known, found, out, append = scope.entries.get, scope.entry, self._values, self._values.append
        own, context._element_timestamp = self.isolation.own, None
        emptied: list[Any] = []
        start = len(out)
        key: Any = None
        value: Any = None
        try:
            for key, value in zip(batch.keys or (), batch.values, strict=True):
                entry = known(key)
                if entry is None:
                    entry = found(key)
                cursor.key = key
                cursor.entry = entry
                results = call(value, context)
                if results is not None:
                    # As `collect`, without a call per record.
                    for result in results:
                        append(result if result.__class__ in UNCHANGEABLE else own(result))
                if not entry:
                    emptied.append(key)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        count = len(out) - start
        self._timestamps.extend(repeat(None, count))
        self._watermarks.extend(repeat(scope.watermark, count))
        scope.prune(emptied)

    def _process_timed(self, batch: Batch, watermarks: Sequence[int] | None, call: Process) -> None:
        scope, cursor, context = self.scope, self.cursor, self._context
        known, found, current = scope.entries.get, scope.entry, scope.watermark
        emptied: list[Any] = []
        value: Any = None
        stamps = batch.stamps()
        marks = marks_of(watermarks, batch)
        try:
            for key, value, stamp, mark in zip(batch.keys or (), batch.values, stamps, marks, strict=True):
                if mark > current:
                    self.advance(mark)
                    current = mark
                entry = known(key)
                if entry is None:
                    entry = found(key)
                cursor.key = key
                cursor.entry = entry
                context._element_timestamp = stamp
                results = call(value, context)
                if results is not None:
                    self.collect(results, stamp, current)
                if not entry:
                    emptied.append(key)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        scope.prune(emptied)

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self._timer(time_ms, TimeDomain.EVENT_TIME, time_ms, watermark)

    def on_processing_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        # As in Flink, what a processing-time timer emits has no event time.
        self._timer(time_ms, TimeDomain.PROCESSING_TIME, None, watermark)

    def _timer(self, time_ms: int, domain: TimeDomain, stamp: int | None, watermark: int) -> None:
        if self._on_timer is None:
            return
        self._context._set_timer(time_ms, domain)
        results = self._on_timer(time_ms, self._context)
        if results is not None:
            self.collect(results, stamp, watermark)
