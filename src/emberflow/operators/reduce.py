"""Keyed reduce: one running value per key, emitted after every record in streaming mode, once per key in batch mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from emberflow.events.batch import MAX_WATERMARK, Batch, marks_of
from emberflow.events.copies import UNCHANGEABLE
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, open_function
from emberflow.state.entry import Entry

ACCUMULATOR = "$reduce"


class ReduceOperator(KeyedOperator):
    """Emits the value so far after every record."""

    def __init__(self, step: Step, function: Any, combine: Callable[[Any, Any], Any]) -> None:
        super().__init__(step)
        self._function = function
        self._combine = combine
        self._has_state = hasattr(function, "open")
        self._check_first = getattr(combine, "check_first", None)

    def open(self, context: Any) -> None:
        open_function(self._function, context)

    def close(self) -> None:
        close_function(self._function)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, combine, check_first = self.scope, self._combine, self._check_first
        known, found, out, marks_out = self._known(), scope.entry, self._values, self._watermarks
        current, own = scope.watermark, self.isolation.own
        marks = marks_of(watermarks, batch)
        value: Any = None
        try:
            for key, value, mark in zip(batch.keys or (), batch.values, marks, strict=True):
                if mark > current:
                    scope.watermark = current = mark
                entry = known(key)
                if entry is None:
                    entry = found(key)
                seen = entry.get(ACCUMULATOR)
                if seen is not None:
                    result = combine(seen, value)
                else:
                    if check_first is not None:
                        check_first(value)
                    result = value
                entry[ACCUMULATOR] = result
                entry.dirty = True
                # The state keeps its own: the function may change it with the next record.
                out.append(result if result.__class__ in UNCHANGEABLE else own(result))
                marks_out.append(current)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        self._timestamps.extend(repeat(None, len(batch)) if batch.timestamps is None else batch.timestamps)

    def _known(self) -> Callable[[Any], Entry | None]:
        """How a record finds its key's entry. Only a function that may have its own state pays for the cursor."""
        return self._pointed if self._has_state else self.scope.entries.get

    def _pointed(self, key: Any) -> Entry:
        cursor = self.cursor
        cursor.key = key
        cursor.entry = entry = self.scope.entry(key)
        return entry


class FinalReduceOperator(ReduceOperator):
    """Emits one value per key when the input has ended, with the last timestamp there is, as Flink's batch mode does."""

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, combine, check_first = self.scope, self._combine, self._check_first
        known, found, register = self._known(), scope.entry, scope.event_timers.register
        value: Any = None
        try:
            for key, value in zip(batch.keys or (), batch.values, strict=True):
                entry = known(key)
                if entry is None:
                    entry = found(key)
                seen = entry.get(ACCUMULATOR)
                if seen is None:
                    if check_first is not None:
                        check_first(value)
                    register(MAX_WATERMARK, key)
                    entry[ACCUMULATOR] = value
                else:
                    entry[ACCUMULATOR] = combine(seen, value)
                entry.dirty = True
        except BaseException as error:
            raise self.step.failed(value, error) from error

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self.collect_owned((self.cursor.entry.pop(ACCUMULATOR),), time_ms, watermark)
