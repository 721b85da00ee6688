"""Keyed operators by hand: what leaves them, in which order, with which watermark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import StepFailed
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.streams import (
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    TimeDomain,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
)
from emberflow.testing import Emitted, OperatorHarness


def first(value: Any) -> Any:
    return value[0]


class Timers(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        service = ctx.timer_service()
        register = (
            service.register_event_time_timer
            if value[1] == "event"
            else service.register_processing_time_timer
        )
        register(value[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp, ctx.time_domain()


class ForEver(KeyedProcessFunction):
    """A processing-time timer that sets itself again."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(100)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_processing_time_timer(timestamp + 100)
        yield timestamp


class Clears(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._value = runtime_context.get_state(ValueStateDescriptor("v"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self._value.update(value[1])


class Sides(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield OutputTag("odd" if value[1] % 2 else "even"), value
        yield value


def timers() -> OperatorHarness:
    return OperatorHarness(lambda stream: stream.key_by(first).process(Timers()))


def test_a_timers_result_is_emitted_before_its_watermark() -> None:
    harness = timers()
    harness.send([("a", "event", 10)], [5], [MIN_WATERMARK], watermark=4)
    harness.watermark(12)
    assert harness.log == [4, Emitted(("a", 10, TimeDomain.EVENT_TIME), 10, 4), 12]


def test_a_watermark_between_records_fires_between_them() -> None:
    harness = timers()
    harness.send([("a", "event", 10), ("b", "event", 11)], [5, 20], [MIN_WATERMARK, 15], watermark=19)
    # The first timer fires at 15, before the second record; the second one is due when it is set.
    assert [item.value[:2] for item in harness.outlet().records] == [("a", 10), ("b", 11)]
    assert harness.outlet().watermarks == [19]


def test_processing_time_timers_follow_the_clock() -> None:
    harness = timers()
    harness.send([("a", "processing", 100), ("b", "processing", 50), ("a", "processing", 100)])
    harness.advance_clock(49)
    assert harness.values == []
    harness.advance_clock(1)
    assert harness.values == [("b", 50, TimeDomain.PROCESSING_TIME)]
    harness.advance_clock(1000)
    assert harness.values[1:] == [("a", 100, TimeDomain.PROCESSING_TIME)]


def test_pending_processing_time_timers_fire_once_at_the_end() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).process(ForEver()))
    harness.send([("a", 1)])
    harness.end()
    assert harness.values == [100]
    assert harness.log[-1] == MAX_WATERMARK
    assert harness.scope is not None
    assert harness.scope.ended
    assert len(harness.scope.processing_timers) == 0


def test_what_pending_timers_emit_at_the_end_does_not_carry_the_end() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).process(ForEver()))
    harness.send([("a", 1)], [5])
    harness.watermark(7)
    harness.end()
    assert harness.log == [7, Emitted(100, None, 7), MAX_WATERMARK]


def test_the_end_needs_every_channel() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).process(Timers()), channels=2)
    harness.send([("a", "event", 10)], [5])
    harness.watermark(MAX_WATERMARK, channel=0)
    assert harness.log == []
    harness.watermark(MAX_WATERMARK, channel=1)
    assert harness.log == [Emitted(("a", 10, TimeDomain.EVENT_TIME), 10, None), MAX_WATERMARK]


def test_a_key_without_state_is_dropped() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).process(Clears()))
    harness.send([("a", 1), ("b", 2)])
    assert harness.scope is not None
    assert set(harness.scope.entries) == {"a", "b"}
    harness.send([("a", None)])
    assert set(harness.scope.entries) == {"b"}
    assert harness.scope.removed == {"a"}
    harness.send([("a", 3)])
    assert harness.scope.removed == set()
    assert harness.scope.entries["a"] == {"v": 3}


def test_a_fired_window_leaves_no_state() -> None:
    harness = OperatorHarness(
        lambda stream: stream.key_by(first).window(TumblingEventTimeWindows.of(10)).reduce(lambda a, b: a)
    )
    harness.send([("a", 1), ("a", 2)], [1, 12], [MIN_WATERMARK, 0], watermark=11)
    assert harness.scope is not None
    assert len(harness.scope.event_timers) == 1
    harness.watermark(100)
    assert harness.scope.entries == {}
    assert len(harness.scope.event_timers) == 0
    assert harness.values == [("a", 1), ("a", 2)]
    assert [item.timestamp for item in harness.outlet().records] == [9, 19]


def test_late_records_are_counted() -> None:
    harness = OperatorHarness(
        lambda stream: stream.key_by(first).window(TumblingEventTimeWindows.of(10)).reduce(lambda a, b: a)
    )
    harness.watermark(30)
    harness.send([("a", 1)], [5])
    assert harness.stage.head is not None
    assert harness.stage.head.take_late() == 1
    assert harness.stage.head.take_late() == 0
    assert harness.scope is not None
    assert harness.scope.entries == {}


def test_side_outputs_by_name() -> None:
    def build(stream: Any) -> Any:
        main = stream.key_by(first).process(Sides())
        return {"main": main, "odd": main.get_side_output(OutputTag("odd"))}

    harness = OperatorHarness(build)
    harness.send([("a", 1), ("a", 2)])
    harness.end()
    assert harness.values == [("a", 1), ("a", 2)]
    assert harness.outlet("odd").values == [("a", 1)]
    assert harness.outlet("odd").watermarks == [MAX_WATERMARK]


def test_an_error_names_step_and_value() -> None:
    harness = OperatorHarness(lambda stream: stream.key_by(first).reduce(lambda a, b: a / 0).name("divide"))
    harness.send([("a", 1)])
    with pytest.raises(StepFailed, match=r"'divide'.*\('a', 2\)"):
        harness.send([("a", 2)])


def test_every_task_has_its_own_functions() -> None:
    function = Clears()

    def make() -> OperatorHarness:
        return OperatorHarness(lambda stream: stream.key_by(first).process(function))

    one, two = make(), make()
    one.send([("a", 1)])
    two.send([("a", 2)])
    assert one.scope is not None
    assert two.scope is not None
    assert (one.scope.entries["a"], two.scope.entries["a"]) == ({"v": 1}, {"v": 2})
    assert not hasattr(function, "_value")
