"""Watermark alignment: which channels of a group of sources may be read, and about how far.

A channel whose watermark is ahead of the lowest of its group by more than the drift must wait. Channels that are idle or
have ended do not count. The channel with the lowest watermark may always be read, so a group never waits for itself.

Pure bookkeeping: an engine reports what it reads, and asks before it reads more.
"""

from __future__ import annotations

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK

FIRST_RECORDS = 10
"""How many records are read before it is known how fast event time passes in a channel."""


class AlignedChannel:
    """One channel of a source: how far it has been read, in event time."""

    __slots__ = ("_measured", "_pace", "_records", "active_ms", "idle_ms", "resting", "watermark")

    def __init__(self, idle_ms: int | None, now_ms: int) -> None:
        self.watermark = MIN_WATERMARK
        self.idle_ms = idle_ms
        self.active_ms = now_ms
        self.resting = False
        """Whether there was nothing to read. A channel that waits, for its group or for a step, is never idle."""
        self._records = 0
        """Read since the pace was measured, when the watermark was `_measured`."""
        self._measured = MIN_WATERMARK
        self._pace: tuple[int, int] | None = None
        """Records that were read last, and how far they moved the watermark, in milliseconds."""

    def advance(self, watermark: int, now_ms: int) -> None:
        """Records have passed the watermark strategy."""
        self.watermark = max(self.watermark, watermark)
        self.stay_active(now_ms)

    def stay_active(self, now_ms: int) -> None:
        """The channel has records, or waits although it may have some."""
        self.active_ms = now_ms
        self.resting = False

    def has_read(self, records: int) -> None:
        """Called after each read."""
        self._records += records

    def is_idle(self, now_ms: int) -> bool:
        return self.resting and self.idle_ms is not None and now_ms - self.active_ms >= self.idle_ms

    def records_in(self, event_time_ms: int) -> int:
        """About how many records pass in so much event time: at least one, at most twice as many as were read last."""
        if self._records:
            self._measure()
        if self._pace is None:
            return FIRST_RECORDS
        records, moved_ms = self._pace
        at_most = max(FIRST_RECORDS, 2 * records)
        return min(at_most, max(1, event_time_ms * records // moved_ms)) if moved_ms else at_most

    def _measure(self) -> None:
        # Not when records are read: a custom generator processes them later.
        before, self._measured = self._measured, self.watermark
        records, self._records = self._records, 0
        # Where event time begins does not tell how fast it passes.
        begins = before == MIN_WATERMARK != self.watermark
        self._pace = None if begins else (records, self.watermark - before)


class AlignmentGroup:
    """The channels of all sources of a group that have not ended."""

    def __init__(self, max_drift_ms: int) -> None:
        self._max_drift_ms = max_drift_ms
        self._channels: dict[AlignedChannel, None] = {}

    def join(self, channel: AlignedChannel) -> None:
        self._channels[channel] = None

    def leave(self, channel: AlignedChannel) -> None:
        """The channel has ended."""
        self._channels.pop(channel, None)

    def highest_allowed(self, now_ms: int, without: AlignedChannel | None = None) -> int:
        """A channel whose watermark is above it must wait."""
        marks = (
            item.watermark for item in self._channels if item is not without and not item.is_idle(now_ms)
        )
        return min(min(marks, default=MAX_WATERMARK) + self._max_drift_ms, MAX_WATERMARK)

    def room(self, channel: AlignedChannel, now_ms: int, at_most: int) -> int:
        """About how many records the channel may be read further; 0 if it must wait."""
        # Compared with the others: a channel is never ahead of itself.
        allowed = self.highest_allowed(now_ms, without=channel)
        if channel.watermark > allowed:
            return 0
        if allowed == MAX_WATERMARK:
            return at_most
        return min(at_most, channel.records_in(allowed - channel.watermark))
