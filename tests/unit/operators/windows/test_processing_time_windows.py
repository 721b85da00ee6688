"""Windows that end by the clock, driven with a manual one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.streams import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DataStream,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from emberflow.testing import ManualClock, OperatorHarness


def first(value: Any) -> Any:
    return value[0]


def listed(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield key, context.window().start, context.window().end, [value for _, value in elements]


def driven(assigner: WindowAssigner[Any, Any], trigger: Any = None) -> OperatorHarness:
    def build(stream: DataStream[Any]) -> DataStream[Any]:
        windowed = stream.key_by(first).window(assigner)
        return (windowed if trigger is None else windowed.trigger(trigger)).process(listed)

    return OperatorHarness(build, clock=ManualClock(1_000))


def test_tumbling_windows_follow_the_clock() -> None:
    harness = driven(TumblingProcessingTimeWindows.of(100, 10))
    harness.send([("a", 1), ("b", 2)])
    harness.advance_clock(9)
    harness.send([("a", 3)])
    assert harness.values == []
    harness.advance_clock(1)
    assert harness.values == [("a", 910, 1010, [1, 3]), ("b", 910, 1010, [2])]
    # A result carries the last millisecond of its window, whatever clock ended it.
    assert [record.timestamp for record in harness.outlet().records] == [1009, 1009]
    harness.send([("a", 4)])
    harness.advance_clock(100)
    assert harness.values[2:] == [("a", 1010, 1110, [4])]
    assert harness.scope is not None
    assert harness.scope.entries == {}
    assert len(harness.scope.processing_timers) == 0


def test_sliding_windows_follow_the_clock() -> None:
    harness = driven(SlidingProcessingTimeWindows.of(100, 50))
    harness.send([("a", 1)])
    harness.advance_clock(60)
    harness.send([("a", 2)])
    harness.advance_clock(200)
    assert harness.values == [("a", 950, 1050, [1]), ("a", 1000, 1100, [1, 2]), ("a", 1050, 1150, [2])]


def test_sessions_follow_the_clock() -> None:
    harness = driven(ProcessingTimeSessionWindows.with_gap(10))
    for step_ms, value in ((0, 1), (9, 2), (10, 3), (11, 4)):
        harness.advance_clock(step_ms)
        harness.send([("a", value)])
    harness.advance_clock(10)
    # Exactly one gap apart is one session by event time; the clock has fired it by then.
    assert [values for *_, values in harness.values] == [[1, 2], [3], [4]]


def test_a_session_with_a_gap_from_the_record() -> None:
    harness = driven(ProcessingTimeSessionWindows.with_dynamic_gap(lambda record: record[1]))
    harness.send([("a", 100), ("b", 5)])
    harness.advance_clock(50)
    harness.send([("a", 10)])
    harness.advance_clock(60)
    assert harness.values == [("b", 1000, 1005, [5]), ("a", 1000, 1100, [100, 10])]


def test_a_continuous_trigger_fires_in_intervals() -> None:
    harness = driven(TumblingProcessingTimeWindows.of(100), ContinuousProcessingTimeTrigger.of(30))
    harness.send([("a", 1)])
    harness.advance_clock(30)
    harness.send([("a", 2)])
    harness.advance_clock(30)
    harness.advance_clock(40)
    assert [values for *_, values in harness.values] == [[1], [1, 2], [1, 2], [1, 2]]
    assert harness.scope is not None
    assert harness.scope.entries == {}


def test_windows_of_the_clock_are_removed_although_their_trigger_does_not_look_at_it() -> None:
    harness = driven(TumblingProcessingTimeWindows.of(100), CountTrigger.of(2))
    harness.send([("a", 1), ("a", 2), ("a", 3)])
    assert [values for *_, values in harness.values] == [[1, 2]]
    harness.advance_clock(100)
    assert harness.scope is not None
    assert harness.scope.entries == {}
    assert len(harness.values) == 1


def test_windows_of_event_time_may_fire_by_the_clock() -> None:
    harness = driven(TumblingEventTimeWindows.of(100), ProcessingTimeTrigger())
    harness.send([("a", 1)], [1_005])
    harness.advance_clock(100)
    assert harness.values == [("a", 1000, 1100, [1])]
    harness.watermark(1_099)
    assert len(harness.values) == 1
    assert harness.scope is not None
    assert harness.scope.entries == {}


def test_what_is_open_at_the_end_of_the_input_fires_once() -> None:
    harness = driven(TumblingProcessingTimeWindows.of(100), ContinuousProcessingTimeTrigger.of(30))
    harness.send([("a", 1)])
    harness.end()
    assert [values for *_, values in harness.values] == [[1]]
    assert harness.scope is not None
    assert harness.scope.entries == {}


def test_processing_time_windows_continue_after_a_restart() -> None:
    before = driven(ProcessingTimeSessionWindows.with_gap(100))
    before.send([("a", 1)])
    before.advance_clock(20)
    before.send([("a", 2)])
    after = OperatorHarness(
        lambda stream: (
            stream.key_by(first).window(ProcessingTimeSessionWindows.with_gap(100)).process(listed)
        ),
        clock=before.clock,
        restore=before.snapshot(),
    )
    after.advance_clock(100)
    assert after.values == [("a", 1000, 1120, [1, 2])]


def test_a_first_interval_in_the_last_millisecond_of_a_window_is_the_only_one() -> None:
    """Flink remembers it, so that later records out of order begin no other interval."""
    harness = driven(TumblingEventTimeWindows.of(21), ContinuousEventTimeTrigger.of(10))
    harness.send([("a", 1), ("a", 2)], [20, 5])
    harness.watermark(15)
    assert harness.values == []
    harness.watermark(20)
    assert [values for *_, values in harness.values] == [[1, 2]]
