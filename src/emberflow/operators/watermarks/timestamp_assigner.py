"""Timestamps and watermarks of the standard strategies.

Holds the running maximum of one channel. A new instance may continue anywhere in the channel, because receivers never let
a channel's watermark regress. An instance that serves a channel in several micro-batches remembers it for the steps of the
chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from emberflow.event_time.timestamps import NO_TIMESTAMP, checked
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.operators.operator import Operator, Step, close_function, function_behind, open_function


class TimestampsOperator(Operator):
    def __init__(
        self, step: Step, strategy: WatermarkStrategy, *, per_batch: bool = False, batch_mode: bool = False
    ) -> None:
        super().__init__(step)
        self._per_batch = per_batch
        self._batch_mode = batch_mode
        self._assigner = strategy.assigner
        self._delay_ms = strategy.delay_ms
        # The watermark is never below −∞, whatever the delay.
        self._lowest = self._highest = MIN_WATERMARK + (strategy.delay_ms or 0) + 1
        self._channel: int | None = None
        self._known: dict[int, tuple[Any, int, int]] = {}
        """By channel: where its last micro-batch starts, the highest timestamp before it, and up to its end."""
        self.report: Callable[[int], None] = lambda watermark: None
        """Called with the watermark behind each batch, before the batch is passed on."""

    def open(self, context: Any) -> None:
        open_function(function_behind(self._assigner, "extract_timestamp"), context)

    def close(self) -> None:
        close_function(function_behind(self._assigner, "extract_timestamp"))

    def reset(self, channel: int | None = None, start: Any = None) -> None:
        """Another channel or another micro-batch starts: possibly the same again, after an attempt that was given up."""
        if self._channel is not None:
            last_start, before, _ = self._known[self._channel]
            self._known[self._channel] = (last_start, before, self._highest)
        self._channel, self._highest = channel, self._lowest
        if channel is not None:
            last_start, before, highest = self._known.get(channel, (start, self._lowest, self._lowest))
            self._highest = before if last_start == start else highest
            self._known[channel] = (start, self._highest, self._highest)

    def on_batch(self, batch: Batch) -> None:
        timestamps = assign_timestamps(self.step, self._assigner, batch)
        if self._delay_ms is None:
            self.output.batch(Batch(batch.values, timestamps, None, None, batch.origins))
            return
        if self._per_batch or self._batch_mode or self.in_turn:
            self._at_the_end(batch, timestamps, self._delay_ms)
            return
        back, highest, watermarks = self._delay_ms + 1, self._highest, list[int]()
        append = watermarks.append
        current = highest - back
        for timestamp in or_none_yet(timestamps):
            append(current)
            if timestamp > highest:
                highest = timestamp
                current = highest - back
        self._highest = highest
        self.report(current)
        self.output.batch(Batch(batch.values, timestamps, watermarks, None, batch.origins))
        self.output.watermark(current)

    def _at_the_end(self, batch: Batch, timestamps: Sequence[int | None], delay_ms: int) -> None:
        before = self._highest - delay_ms - 1
        self._highest = max(self._highest, max(or_none_yet(timestamps), default=self._lowest))
        self.report(self._highest - delay_ms - 1)
        # In batch mode event time advances at the end only; with groups in turn, its course depends on their order.
        marks = None if self._batch_mode or self.in_turn else [before] * len(batch)
        self.output.batch(Batch(batch.values, timestamps, marks, None, batch.origins))
        self.output.watermark(self._highest - delay_ms - 1)

    def on_watermark(self, watermark: int) -> None:
        # Watermarks of upstream strategies are replaced, except for the end of the input.
        if watermark == MAX_WATERMARK:
            self.output.watermark(watermark)


def assign_timestamps(step: Step, assigner: Any, batch: Batch) -> Sequence[int | None]:
    """Event times of a batch: the assigner's, or those of the source. None where there is neither, or where the assigner
    returns that a record has none, for example because it returns its argument."""
    before = batch.timestamps
    if assigner is None:
        # As in Flink: records without event time do no harm until a step needs it, which then names the missing assigner.
        return [None] * len(batch) if before is None else before
    stamps: list[Any] = []
    given = repeat(NO_TIMESTAMP) if before is None else or_none_yet(before)
    try:
        stamps.extend(map(assigner, batch.values, given))
        if len(stamps) < len(batch.values):
            raise RuntimeError("it raised StopIteration")  # Which ends a map() without an error.
    except BaseException as error:
        # The list contains the results before the record that failed.
        raise step.failed(batch.values[len(stamps)], error) from error
    return checked(stamps, "a timestamp", lambda position, error: step.failed(batch.values[position], error))


def or_none_yet(timestamps: Sequence[int | None]) -> Sequence[int]:
    """NO_TIMESTAMP in place of None."""
    if None in timestamps:
        return [NO_TIMESTAMP if stamp is None else stamp for stamp in timestamps]
    return timestamps  # pyright: ignore[reportReturnType]
