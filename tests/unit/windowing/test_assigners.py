"""Window assigners: left-closed, right-open, aligned to the epoch."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Duration, Time, to_ms
from emberflow.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from emberflow.windowing.windows import TimeWindow


def test_tumbling_windows_are_aligned_to_the_epoch() -> None:
    assigner = TumblingEventTimeWindows.of(Time.seconds(5))
    assert list(assigner.assign(0)) == [TimeWindow(0, 5000)]
    assert list(assigner.assign(4999)) == [TimeWindow(0, 5000)]
    assert list(assigner.assign(5000)) == [TimeWindow(5000, 10000)]
    assert list(assigner.assign(-1)) == [TimeWindow(-5000, 0)]


def test_an_offset_moves_them() -> None:
    day = TumblingEventTimeWindows.of(timedelta(days=1), timedelta(hours=-8))
    hour = 3_600_000
    assert list(day.assign(0)) == [TimeWindow(-8 * hour, 16 * hour)]
    assert list(day.assign(16 * hour)) == [TimeWindow(16 * hour, 40 * hour)]


def test_sliding_windows_from_the_latest_to_the_earliest() -> None:
    assigner = SlidingEventTimeWindows.of(10, 5)
    assert list(assigner.assign(7)) == [TimeWindow(5, 15), TimeWindow(0, 10)]
    assert list(assigner.assign(5)) == [TimeWindow(5, 15), TimeWindow(0, 10)]


def test_sliding_windows_with_gaps_leave_records_out() -> None:
    assigner = SlidingEventTimeWindows.of(2, 5)
    assert list(assigner.assign(6)) == [TimeWindow(5, 7)]
    assert list(assigner.assign(8)) == []


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6), st.integers(-(10**6), 10**6))
def test_a_record_is_in_exactly_one_tumbling_window(stamp: int, size: int, offset: int) -> None:
    (window,) = TumblingEventTimeWindows(size, offset % size).assign(stamp)
    assert window.start <= stamp < window.end
    assert window.end - window.start == size
    assert (window.start - offset) % size == 0
    assert window.max_timestamp() == window.end - 1


@given(st.integers(-(10**6), 10**6), st.integers(1, 100), st.integers(1, 100))
def test_a_record_is_in_every_sliding_window_that_covers_it(stamp: int, size: int, slide: int) -> None:
    found = {tuple(window) for window in SlidingEventTimeWindows(size, slide).assign(stamp)}
    start = (stamp // slide - size // slide - 2) * slide
    covering = {
        (begin, begin + size) for begin in range(start, stamp + slide, slide) if begin <= stamp < begin + size
    }
    assert found == covering


def test_durations() -> None:
    assert to_ms(timedelta(milliseconds=1.6)) == 2
    assert to_ms(Time.minutes(1.5)) == 90_000
    assert to_ms(Duration.hours(1)) == to_ms(Time.days(1 / 24)) == 3_600_000
    assert to_ms(7) == 7
    for wrong in (True, 1.5, "5 s", None):
        with pytest.raises(InvalidArgument, match="timedelta"):
            to_ms(wrong)  # pyright: ignore[reportArgumentType]
