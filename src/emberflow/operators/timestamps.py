"""Timestamps and watermarks of the standard strategies.

Holds the running maximum of one channel. A fresh instance may go on anywhere in the channel, because receivers
never let a channel's watermark go back.
"""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.operators.operator import Operator, Step


class TimestampsOperator(Operator):
    def __init__(self, step: Step, strategy: WatermarkStrategy) -> None:
        super().__init__(step)
        self._assigner = strategy.assigner
        self._delay_ms = strategy.delay_ms
        self._highest = MIN_WATERMARK

    def reset(self) -> None:
        """Another channel or another micro-batch begins."""
        self._highest = MIN_WATERMARK

    def on_batch(self, batch: Batch) -> None:
        timestamps = assign_timestamps(self.step, self._assigner, batch)
        if self._delay_ms is None:
            self.output.batch(Batch(batch.values, timestamps, None))
            return
        back, highest, watermarks = self._delay_ms + 1, self._highest, list[int]()
        append = watermarks.append
        current = highest - back if highest != MIN_WATERMARK else MIN_WATERMARK
        for timestamp in timestamps:
            append(current)
            if timestamp > highest:
                highest = timestamp
                current = highest - back
        self._highest = highest
        self.output.batch(Batch(batch.values, timestamps, watermarks))
        self.output.watermark(current)

    def on_watermark(self, watermark: int) -> None:
        # What upstream says about event time is replaced, except that the input has ended.
        if watermark == MAX_WATERMARK:
            self.output.watermark(watermark)


def assign_timestamps(step: Step, assigner: Any, batch: Batch) -> list[int]:
    """Event times of a batch: the assigner's, or those that the source gave."""
    before = batch.timestamps
    if assigner is None:
        if before is None or None in before:
            raise InvalidArgument(
                f"step {step.name!r} has no timestamp assigner and its records carry no event time",
                way_out="add .with_timestamp_assigner(lambda value, timestamp: …) to the watermark strategy",
            )
        return list(before)  # type: ignore[arg-type]
    try:
        if before is None:
            return [int(assigner(value, MIN_WATERMARK)) for value in batch.values]
        return [
            int(assigner(value, MIN_WATERMARK if stamp is None else stamp))
            for value, stamp in zip(batch.values, before, strict=True)
        ]
    except Exception as error:
        culprit = _first_failing(assigner, batch)
        raise step.failed(culprit, error) from error


def _first_failing(assigner: Any, batch: Batch) -> Any:
    for value in batch.values:
        try:
            int(assigner(value, MIN_WATERMARK))
        except Exception:
            return value
    return None
