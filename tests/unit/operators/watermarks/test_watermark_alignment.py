"""Which channels of a group may be read, and how far."""

from __future__ import annotations

from typing import Any

from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.operators.watermarks.watermark_alignment import FIRST_RECORDS, AlignedChannel, AlignmentGroup

DRIFT, MOST = 100, 1_000


def group_of(
    count: int, idle_ms: int | None = None, drift_ms: int = DRIFT
) -> tuple[AlignmentGroup, list[Any]]:
    group = AlignmentGroup(drift_ms)
    channels = [AlignedChannel(idle_ms, 0) for _ in range(count)]
    for channel in channels:
        group.join(channel)
    return group, channels


def reads(channel: AlignedChannel, records: int, watermark: int, now_ms: int = 0) -> None:
    channel.advance(watermark, now_ms)
    channel.has_read(records)


def test_a_channel_waits_while_it_is_ahead_by_more_than_the_drift() -> None:
    group, (fast, slow) = group_of(2)
    slow.advance(50, 0)
    fast.advance(150, 0)
    assert group.room(fast, 0, MOST), "exactly the drift ahead"
    fast.advance(151, 0)
    assert group.room(fast, 0, MOST) == 0
    assert group.room(slow, 0, MOST)
    slow.advance(51, 0)
    assert group.room(fast, 0, MOST)


def test_a_watermark_never_goes_back() -> None:
    group, (fast, slow) = group_of(2)
    slow.advance(0, 0)
    fast.advance(500, 0)
    fast.advance(0, 0)
    assert group.room(fast, 0, MOST) == 0


def test_a_drift_of_zero_lets_the_slowest_read() -> None:
    group, (one, other) = group_of(2, drift_ms=0)
    one.advance(5, 0)
    other.advance(5, 0)
    assert group.room(one, 0, MOST)
    assert group.room(other, 0, MOST)
    one.advance(6, 0)
    assert group.room(one, 0, MOST) == 0


def test_a_channel_alone_reads_without_limit() -> None:
    group, (alone,) = group_of(1)
    reads(alone, 10, 10**15)
    assert group.room(alone, 0, MOST) == MOST


def test_a_channel_without_watermark_holds_the_others_back_until_it_ends() -> None:
    group, (fast, silent) = group_of(2)
    assert group.room(fast, 0, MOST), "nobody has a watermark yet"
    fast.advance(0, 0)
    assert group.room(fast, 0, MOST) == 0
    group.leave(silent)
    assert group.room(fast, 0, MOST) == MOST
    group.leave(fast)
    group.leave(fast)
    assert group.highest_allowed(0) == MAX_WATERMARK


def test_an_idle_channel_does_not_count_until_it_has_records_again() -> None:
    group, (fast, slow) = group_of(2, idle_ms=20)
    slow.advance(0, 0)
    fast.advance(500, 0)
    slow.resting = True
    assert group.room(fast, 19, MOST) == 0
    assert group.room(fast, 20, MOST)
    slow.advance(1, 25)
    assert group.room(fast, 25, MOST) == 0


def test_a_channel_that_waits_or_has_no_idle_timeout_is_never_idle() -> None:
    group, (fast, slow) = group_of(2, idle_ms=20)
    slow.advance(0, 0)
    fast.advance(500, 0)
    assert group.room(fast, 1_000, MOST) == 0, "it waits for the steps behind it"
    group, (fast, slow) = group_of(2)
    fast.advance(500, 0)
    slow.resting = True
    assert group.room(fast, 10**9, MOST) == 0


def test_the_extremes_of_event_time() -> None:
    group, (fast, slow) = group_of(2, drift_ms=2**63 - 1)
    fast.advance(MAX_WATERMARK - 1, 0)
    slow.advance(MIN_WATERMARK + 1, 0)
    assert group.room(fast, 0, MOST) == 0
    slow.advance(0, 0)
    assert group.room(fast, 0, MOST) == MOST


def test_how_much_is_read_follows_the_pace_of_event_time() -> None:
    group, (fast, slow) = group_of(2)
    slow.advance(0, 0)
    assert group.room(fast, 0, MOST) == FIRST_RECORDS
    reads(fast, 10, 0)
    assert group.room(fast, 0, MOST) == FIRST_RECORDS, "one watermark is no pace"
    reads(fast, 10, 20)
    assert group.room(fast, 0, MOST) == 20, "at most twice as many as before"
    reads(fast, 20, 60)
    assert group.room(fast, 0, MOST) == 20, "40 ms are left, at 2 ms a record"
    assert group.room(fast, 0, 7) == 7
    reads(fast, 20, 100)
    assert group.room(fast, 0, MOST) == 1, "records at 100 may come, the next one shows"
    reads(fast, 1, 101)
    assert group.room(fast, 0, MOST) == 0


def test_a_channel_whose_event_time_stands_still_is_read_faster_and_faster() -> None:
    group, (fast, slow) = group_of(2)
    slow.advance(0, 0)
    reads(fast, 10, 5)
    rooms: list[int] = []
    for _ in range(9):
        rooms.append(group.room(fast, 0, MOST))
        reads(fast, rooms[-1], 5)
    assert rooms[0] == FIRST_RECORDS
    assert rooms[-1] == MOST
