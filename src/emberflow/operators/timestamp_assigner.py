"""Timestamps and watermarks of the standard strategies.

Holds the running maximum of one channel. A new instance may continue anywhere in the channel, because receivers never let
a channel's watermark regress.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.timestamps import NO_TIMESTAMP, checked
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.operators.operator import Operator, Step, close_function, function_behind, open_function


class TimestampsOperator(Operator):
    def __init__(self, step: Step, strategy: WatermarkStrategy, *, per_batch: bool = False) -> None:
        super().__init__(step)
        self._per_batch = per_batch
        self._assigner = strategy.assigner
        self._delay_ms = strategy.delay_ms
        # The watermark is never below −∞, whatever the delay.
        self._lowest = self._highest = MIN_WATERMARK + (strategy.delay_ms or 0) + 1

    def open(self, context: Any) -> None:
        open_function(function_behind(self._assigner, "extract_timestamp"), context)

    def close(self) -> None:
        close_function(function_behind(self._assigner, "extract_timestamp"))

    def reset(self) -> None:
        """Another channel or another micro-batch starts."""
        self._highest = self._lowest

    def on_batch(self, batch: Batch) -> None:
        timestamps = assign_timestamps(self.step, self._assigner, batch)
        if self._delay_ms is None:
            self.output.batch(Batch(batch.values, timestamps, None))
            return
        if self._per_batch:
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
        self.output.batch(Batch(batch.values, timestamps, watermarks))
        self.output.watermark(current)

    def _at_the_end(self, batch: Batch, timestamps: Sequence[int | None], delay_ms: int) -> None:
        before = self._highest - delay_ms - 1
        self._highest = max(self._highest, max(or_none_yet(timestamps), default=self._lowest))
        self.output.batch(Batch(batch.values, timestamps, [before] * len(batch)))
        self.output.watermark(self._highest - delay_ms - 1)

    def on_watermark(self, watermark: int) -> None:
        # Watermarks of upstream strategies are replaced, except for the end of the input.
        if watermark == MAX_WATERMARK:
            self.output.watermark(watermark)


def assign_timestamps(step: Step, assigner: Any, batch: Batch) -> Sequence[int | None]:
    """Event times of a batch: the assigner's, or those of the source. None where the assigner returns that a record has
    none, for example because it returns its argument."""
    before = batch.timestamps
    if assigner is None:
        if before is None or None in before:
            raise InvalidArgument(
                f"step {step.name!r} has no timestamp assigner and its records have no event time",
                way_out="add .with_timestamp_assigner(lambda value, timestamp: …) to the watermark strategy",
            )
        return before
    stamps: list[Any] = []
    given = repeat(NO_TIMESTAMP) if before is None else or_none_yet(before)
    try:
        stamps.extend(map(assigner, batch.values, given))
    except BaseException as error:
        # The list contains the results before the record that failed.
        raise step.failed(batch.values[len(stamps)], error) from error
    return checked(stamps, "a timestamp", lambda position, error: step.failed(batch.values[position], error))


def or_none_yet(timestamps: Sequence[int | None]) -> Sequence[int]:
    """NO_TIMESTAMP in place of None."""
    if None in timestamps:
        return [NO_TIMESTAMP if stamp is None else stamp for stamp in timestamps]
    return timestamps  # pyright: ignore[reportReturnType]
