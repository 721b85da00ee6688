"""map, flat_map, filter and process without keys: each costs one list comprehension per batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import compress
from typing import Any

from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.events.copies import UNCHANGEABLE
from emberflow.operators.operator import Operator, Step, close_function, open_function


class FunctionOperator(Operator):
    """An operator around a user function object that may have `open` and `close`."""

    def __init__(self, step: Step, function: Any, call: Callable[..., Any]) -> None:
        super().__init__(step)
        self.function = function
        self._call = call

    def open(self, context: Any) -> None:
        open_function(self.function, context)

    def close(self) -> None:
        close_function(self.function)


class MapOperator(FunctionOperator):
    def on_batch(self, batch: Batch) -> None:
        call, results, own = self._call, list[Any](), self.isolation.own
        append = results.append
        value: Any = None
        try:
            for value in batch.values:
                result = call(value)
                # The function may return the same object again, changed.
                append(result if result.__class__ in UNCHANGEABLE else own(result))
        except BaseException as error:
            raise self.step.failed(value, error) from error
        self.output.batch(Batch(results, batch.timestamps, batch.watermarks, None, batch.origins))


class FilterOperator(FunctionOperator):
    def on_batch(self, batch: Batch) -> None:
        call, mask = self._call, list[Any]()
        append = mask.append
        value: Any = None
        try:
            for value in batch.values:
                append(call(value))
        except BaseException as error:
            raise self.step.failed(value, error) from error
        if all(mask):
            self.output.batch(batch)
            return
        timestamps, watermarks, origins = batch.timestamps, batch.watermarks, batch.origins
        self.output.batch(
            Batch(
                list(compress(batch.values, mask)),
                None if timestamps is None else list(compress(timestamps, mask)),
                None if watermarks is None else list(compress(watermarks, mask)),
                None,
                None if origins is None else list(compress(origins, mask)),
            )
        )


class FlatMapOperator(FunctionOperator):
    def on_batch(self, batch: Batch) -> None:
        call, results, counts = self._call, list[Any](), list[int]()
        extend = self.isolation.extend
        value: Any = None
        try:
            for value in batch.values:
                before = len(results)
                found: Iterable[Any] | None = call(value)
                if found is not None:
                    extend(results, found)
                counts.append(len(results) - before)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        self.output.mixed(repeated(batch, results, counts))


class ProcessOperator(FunctionOperator):
    """ProcessFunction on a stream without keys: timestamps, the watermark and side outputs, but no timers or state."""

    def __init__(self, step: Step, function: Any, call: Callable[..., Any], context: Any) -> None:
        super().__init__(step, function, call)
        self._context = context

    def on_batch(self, batch: Batch) -> None:
        call, context, results, counts = self._call, self._context, list[Any](), list[int]()
        extend = self.isolation.extend
        timestamps, watermarks = batch.timestamps, batch.watermarks
        value: Any = None
        try:
            for i, value in enumerate(batch.values):
                context._element_timestamp = None if timestamps is None else timestamps[i]
                # Not one seen earlier: a task may serve several channels or groups of keys in turn.
                context._watermark = MIN_WATERMARK if watermarks is None else watermarks[i]
                before = len(results)
                found: Iterable[Any] | None = call(value, context)
                if found is not None:
                    extend(results, found)
                counts.append(len(results) - before)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        self.output.mixed(repeated(batch, results, counts))


def repeated(batch: Batch, results: list[Any], counts: list[int]) -> Batch:
    """The results of a batch's records; `counts` says how many each record has."""
    return Batch(
        results,
        _repeat_each(batch.timestamps, counts),
        _repeat_each(batch.watermarks, counts),
        None,
        _repeat_each(batch.origins, counts),
    )


def _repeat_each(column: Any, counts: list[int]) -> list[Any] | None:
    """Every item as often as its record produced results."""
    if column is None:
        return None
    return [item for item, count in zip(column, counts, strict=True) for _ in range(count)]
