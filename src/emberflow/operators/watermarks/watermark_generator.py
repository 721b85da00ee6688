"""Custom watermark generators: an operator keyed by channel, so that the generator survives restarts as state.

It receives a channel's records in order, calls the generator after each, and emits the channel's records with the
watermarks in force before each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberflow.event_time.timestamps import to_watermark
from emberflow.event_time.watermarks import Watermark, WatermarkStrategy
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, function_behind, open_function
from emberflow.operators.watermarks.timestamp_assigner import assign_timestamps, or_none_yet
from emberflow.operators.watermarks.watermark_merge import ChannelId

GENERATOR = "$generator"
HIGHEST = "$highest"


class WatermarkGeneratorOperator(KeyedOperator):
    """`select_channel` informs the exchange after the step whose records and watermarks come next."""

    def __init__(self, step: Step, strategy: WatermarkStrategy) -> None:
        super().__init__(step)
        self._strategy = strategy
        self._highest = MIN_WATERMARK
        self.select_channel: Callable[[ChannelId], None] = lambda channel: None
        self.report: Callable[[ChannelId, int], None] = lambda channel, watermark: None
        """Called with a channel's watermark behind each of its batches, before the batch is passed on."""

    def open(self, context: Any) -> None:
        open_function(function_behind(self._strategy.assigner, "extract_timestamp"), context)

    def close(self) -> None:
        close_function(function_behind(self._strategy.assigner, "extract_timestamp"))

    def emit_watermark(self, watermark: Watermark | int) -> None:
        """The generator's output."""
        timestamp = to_watermark(watermark.timestamp if isinstance(watermark, Watermark) else watermark)
        if timestamp > self._highest:
            self._highest = timestamp

    def receive(self, input_index: int, channel: ChannelId, batch: Batch, watermark: int | None) -> None:
        if batch.values:
            self._channel(channel, batch)
        elif watermark is None and self.scope.owns(channel):
            self._stay_active(channel)
        if watermark == MAX_WATERMARK:
            self.scope.channels.advance(channel, MAX_WATERMARK)
            self.merge_watermarks()

    def merge_watermarks(self) -> None:
        """An earlier strategy's watermarks are replaced by the generator's, but the end of a channel is passed on, by the
        scope that has the channel's records: another one might overtake them. Not while a part of it is held back."""
        for channel in self.scope.channels.newly_ended():
            if self.scope.owns(channel):
                self.select_channel(channel)
                self.output.watermark(MAX_WATERMARK)
        super().merge_watermarks()

    def on_watermark(self, watermark: int) -> None:
        self.scope.watermark = watermark
        self.scope.ended = watermark == MAX_WATERMARK

    def _stay_active(self, channel: ChannelId) -> None:
        """The source waits for others of its group: what comes after this step must not consider its channel idle."""
        highest = self.scope.entry(channel).get(HIGHEST, MIN_WATERMARK)
        self.scope.prune((channel,))
        self.select_channel(channel)
        self.output.watermark(highest)

    def _channel(self, channel: ChannelId, batch: Batch) -> None:
        entry = self.scope.entry(channel)
        generator = entry.get(GENERATOR)
        if generator is None:
            generator = self._strategy.generator() if self._strategy.generator else None
        self._highest = entry.get(HIGHEST, MIN_WATERMARK)
        timestamps = assign_timestamps(self.step, self._strategy.assigner, batch)
        watermarks: list[int] = []
        value: Any = None
        try:
            for value, stamp in zip(batch.values, or_none_yet(timestamps), strict=True):
                watermarks.append(self._highest)
                generator.on_event(value, stamp, self)  # pyright: ignore[reportOptionalMemberAccess]
                generator.on_periodic_emit(self)  # pyright: ignore[reportOptionalMemberAccess]
        except BaseException as error:
            raise self.step.failed(value, error) from error
        entry[GENERATOR] = generator
        entry[HIGHEST] = self._highest
        entry.dirty = True
        self.report(channel, self._highest)
        self.select_channel(channel)
        marks = None if self.batch_mode else watermarks
        self.output.batch(Batch(batch.values, timestamps, marks, None, batch.origins))
        self.output.watermark(self._highest)
