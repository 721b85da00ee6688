"""Keyed reduce: one running value per key, emitted after every record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step

ACCUMULATOR = "$reduce"


class ReduceOperator(KeyedOperator):
    def __init__(self, step: Step, combine: Callable[[Any, Any], Any]) -> None:
        super().__init__(step)
        self._combine = combine

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, combine = self.scope, self._combine
        known, found, out, marks_out = scope.entries.get, scope.entry, self._values, self._watermarks
        current = scope.watermark
        marks = repeat(MIN_WATERMARK) if watermarks is None else watermarks
        value: Any = None
        try:
            for key, value, mark in zip(batch.keys or (), batch.values, marks, strict=False):
                if mark > current:
                    scope.watermark = current = mark
                entry = known(key)
                if entry is None:
                    entry = found(key)
                seen = entry.get(ACCUMULATOR)
                result = entry[ACCUMULATOR] = value if seen is None else combine(seen, value)
                entry.dirty = True
                out.append(result)
                marks_out.append(current)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        self._timestamps.extend(repeat(None, len(batch)) if batch.timestamps is None else batch.timestamps)
