"""Merging watermarks: a scope's event time is the minimum over its channels, idle ones excluded."""

from __future__ import annotations

from collections.abc import Iterable

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK

ChannelId = tuple[int, int]
"""(edge, channel within the edge)"""
SavedChannel = tuple[ChannelId, int, int]


def hold_channel(edge: int, group: int) -> ChannelId:
    """The channel of a key group while it is held back: numbers below zero."""
    return edge, -1 - group


def is_hold(channel: ChannelId) -> bool:
    return channel[1] < 0


class ChannelClock:
    """The watermark of each channel and when it was last active."""

    __slots__ = ("_active_ms", "_idle_ms", "_new_ends", "_watermarks", "changed")

    def __init__(
        self,
        channels: Iterable[ChannelId],
        idle_ms: dict[int, int],
        saved: Iterable[SavedChannel] = (),
        now_ms: int = 0,
    ) -> None:
        self._watermarks: dict[ChannelId, int] = dict.fromkeys(channels, MIN_WATERMARK)
        self._active_ms: dict[ChannelId, int] = dict.fromkeys(self._watermarks, now_ms)
        self._idle_ms = idle_ms
        self._new_ends: set[ChannelId] = set()
        self.changed = False
        for channel, watermark, active_ms in saved:
            self._watermarks[channel] = watermark
            self._active_ms[channel] = active_ms

    @property
    def can_idle(self) -> bool:
        return bool(self._idle_ms)

    def spoke(self, channel: ChannelId, now_ms: int) -> None:
        """The channel sent something: it is not idle."""
        if self._idle_ms:
            self._active_ms[channel] = now_ms

    def advance(self, channel: ChannelId, watermark: int) -> None:
        """A channel's watermark never regresses."""
        if watermark > self._watermarks.get(channel, MIN_WATERMARK):
            self._watermarks[channel] = watermark
            self.changed = True
            if watermark == MAX_WATERMARK:
                self._new_ends.add(channel)

    def held(self, hold: ChannelId) -> int:
        """The watermark at which a part of a channel is held back; the end of time if it is not."""
        return self._watermarks.get(hold, MAX_WATERMARK)

    def hold(self, hold: ChannelId, watermark: int) -> None:
        """Holds back a part of a channel."""
        if self._watermarks.get(hold) != watermark:
            self._watermarks[hold] = watermark
            self.changed = True

    def release(self, hold: ChannelId) -> None:
        if self._watermarks.pop(hold, None) is not None:
            self._active_ms.pop(hold, None)
            self.changed = True
            self._new_ends.update(
                channel
                for channel, watermark in self._watermarks.items()
                if channel[0] == hold[0] and watermark == MAX_WATERMARK
            )

    def newly_ended(self) -> list[ChannelId]:
        """Channels that have ended since the last call and of which no part is held back. A channel with such a part is
        reported as ended when the part is released."""
        if not self._new_ends:
            return []
        behind = {channel[0] for channel in self._watermarks if is_hold(channel)}
        found = sorted(channel for channel in self._new_ends if channel[0] not in behind)
        self._new_ends.clear()
        return found

    def minimum(self, now_ms: int, without: ChannelId | None = None) -> int:
        """The merged watermark, optionally without one channel; −∞ while every channel is idle."""
        lowest = MAX_WATERMARK if without is not None else None
        silent = False
        for channel, watermark in self._watermarks.items():
            if channel == without:
                continue
            if watermark != MAX_WATERMARK and self._idle(channel, now_ms):
                silent = True
            elif lowest is None or watermark < lowest:
                lowest = watermark
        # An idle channel holds back only the end: it may become active again.
        if lowest is None or (lowest == MAX_WATERMARK and silent and without is None):
            return MIN_WATERMARK
        return lowest

    def _idle(self, channel: ChannelId, now_ms: int) -> bool:
        limit = None if is_hold(channel) else self._idle_ms.get(channel[0])
        return limit is not None and now_ms - self._active_ms.get(channel, now_ms) >= limit

    def saved(self) -> list[SavedChannel]:
        return [
            (channel, mark, self._active_ms.get(channel, 0)) for channel, mark in self._watermarks.items()
        ]
