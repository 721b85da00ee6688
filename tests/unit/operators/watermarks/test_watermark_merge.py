"""ChannelClock: the minimum over channels, without the idle ones."""

from __future__ import annotations

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.operators.watermarks.watermark_merge import ChannelClock, hold_channel

A, B = (0, 0), (0, 1)


def test_the_minimum_over_all_channels() -> None:
    clock = ChannelClock([A, B], {})
    assert clock.minimum(0) == MIN_WATERMARK
    clock.advance(A, 10)
    assert clock.minimum(0) == MIN_WATERMARK
    clock.advance(B, 5)
    assert clock.minimum(0) == 5
    assert clock.minimum(0, without=B) == 10


def test_a_channel_never_regresses() -> None:
    clock = ChannelClock([A], {})
    clock.advance(A, 10)
    clock.changed = False
    clock.advance(A, 7)
    assert clock.minimum(0) == 10
    assert not clock.changed


def test_idle_channels_hold_nothing_back() -> None:
    clock = ChannelClock([A, B], {0: 100}, now_ms=0)
    clock.advance(A, 10)
    clock.advance(B, 5)
    clock.spoke(A, 150)
    assert clock.minimum(90) == 5
    assert clock.minimum(150) == 10
    clock.spoke(B, 160)
    assert clock.minimum(160) == 5


def test_event_time_stands_still_while_every_channel_is_idle() -> None:
    clock = ChannelClock([A, B], {0: 100}, now_ms=0)
    clock.advance(A, 10)
    assert clock.minimum(500) == MIN_WATERMARK


def test_the_end_needs_every_channel_also_the_idle_ones() -> None:
    clock = ChannelClock([A, B], {0: 100}, now_ms=0)
    clock.advance(B, 5)
    clock.spoke(A, 500)
    clock.advance(A, MAX_WATERMARK)
    assert clock.minimum(500) == MIN_WATERMARK
    clock.advance(B, MAX_WATERMARK)
    assert clock.minimum(10_000) == MAX_WATERMARK


def test_channels_of_edges_without_a_timeout_are_never_idle() -> None:
    clock = ChannelClock([A, (1, 0)], {0: 100}, now_ms=0)
    clock.advance(A, 50)
    assert clock.minimum(10**9) == MIN_WATERMARK


def test_saved_channels_are_restored() -> None:
    clock = ChannelClock([A, B], {0: 100}, now_ms=3)
    clock.advance(A, 10)
    clock.spoke(B, 40)
    again = ChannelClock([A, B], {0: 100}, clock.saved(), now_ms=999)
    assert again.saved() == clock.saved()
    assert again.minimum(105) == MIN_WATERMARK
    assert again.minimum(141) == MIN_WATERMARK


def test_a_channel_has_not_ended_while_a_part_of_it_is_held_back() -> None:
    other = (1, 0)
    clock = ChannelClock([A, B, other], {})
    hold, second = hold_channel(0, 3), hold_channel(0, 4)
    clock.hold(hold, 10)
    clock.hold(second, 10)
    clock.advance(A, MAX_WATERMARK)
    clock.advance(other, MAX_WATERMARK)
    assert clock.newly_ended() == [other]
    clock.release(hold)
    assert clock.newly_ended() == []
    restored = ChannelClock([A, B, other], {}, clock.saved())
    assert restored.newly_ended() == []
    restored.release(second)
    assert restored.newly_ended() == [A]


def test_an_end_is_reported_once() -> None:
    clock = ChannelClock([A, B], {})
    clock.advance(A, MAX_WATERMARK)
    assert clock.newly_ended() == [A]
    clock.advance(B, MAX_WATERMARK)
    clock.advance(A, MAX_WATERMARK)
    assert clock.newly_ended() == [B]
    assert clock.newly_ended() == []
    assert ChannelClock([A, B], {}, clock.saved()).newly_ended() == []
