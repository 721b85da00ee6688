"""B7: process functions and timers of both kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.streams import (
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import SPARK, STREAMING_HOSTS, Host, Latch, TestSource, on_every_host, per_key

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


def first(value: Any) -> Any:
    return value[0]


class TimerPerRecord(KeyedProcessFunction):
    """Sets a timer 10 ms after every record; reports records and timers in the order in which it sees them."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        yield value[0], "record", ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        assert ctx.timestamp() == timestamp
        yield ctx.get_current_key(), "timer", timestamp


class TwiceTheSameTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(50)
        ctx.timer_service().register_event_time_timer(50)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp


class DeletedTimer(KeyedProcessFunction):
    """The second record of a key deletes its timer."""

    def process_element(self, value: Any, ctx: Any) -> None:
        if value[2] == "set":
            ctx.timer_service().register_event_time_timer(100)
            ctx.timer_service().register_event_time_timer(101)
        else:
            ctx.timer_service().delete_event_time_timer(100)
            ctx.timer_service().delete_event_time_timer(77)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp


class TimerWithState(KeyedProcessFunction):
    """Counts per key, and emits the count when event time has passed 100; then the state is cleared."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self._count.update((self._count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), self._count.value()
        self._count.clear()


class TimerChain(KeyedProcessFunction):
    """A timer that sets the next one, three times."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1] + 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        if timestamp < 4:
            ctx.timer_service().register_event_time_timer(timestamp + 1)
        yield ctx.get_current_key(), timestamp


class ProcessingTimer(KeyedProcessFunction):
    def __init__(self, fired: Latch | None = None) -> None:
        self._fired = fired

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        service = ctx.timer_service()
        now = service.current_processing_time()
        if value[1] == "set":
            service.register_processing_time_timer(now + 30)
            service.register_processing_time_timer(now + 30)
            service.register_processing_time_timer(now + 10**9)
            service.delete_processing_time_timer(now + 10**9)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        if self._fired is not None:
            self._fired.open()
        yield ctx.get_current_key(), "timer"


class Busy(KeyedProcessFunction):
    """Detects whether a timer and an element of one task ever overlap."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._inside = False

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield from self._work(ctx, "record", ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield from self._work(ctx, "timer", timestamp)

    def _work(self, ctx: Any, what: str, timestamp: int) -> Iterable[Any]:
        assert not self._inside
        self._inside = True
        if what == "record":
            ctx.timer_service().register_event_time_timer(timestamp + 1)
        yield ctx.get_current_key(), what
        self._inside = False


class SeesWatermark(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


@on_every_host
def test_event_time_timers_fire_between_records(host: Host) -> None:
    records = [("a", 0), ("a", 5), ("a", 11), ("a", 30)]
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(TimerPerRecord())
        )
    )
    record, timer = (lambda t: ("a", "record", t)), (lambda t: ("a", "timer", t))
    if host.streaming:
        # The watermark is one below the highest timestamp: 10 behind 11, 29 behind 30.
        assert out == [
            record(0),
            record(5),
            record(11),
            timer(10),
            record(30),
            timer(15),
            timer(21),
            timer(40),
        ]
    else:
        assert out == [
            record(0),
            record(5),
            record(11),
            record(30),
            timer(10),
            timer(15),
            timer(21),
            timer(40),
        ]


@on_every_host(nightly=[SPARK])
def test_a_timer_is_one_per_key_and_time(host: Host) -> None:
    out = host.run(
        lambda env: (
            env.from_collection([("a", 1), ("b", 2), ("a", 3)])
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(TwiceTheSameTimer())
        )
    )
    assert sorted(out) == [("a", 50), ("b", 50)]


@on_every_host(nightly=[SPARK])
def test_a_deleted_timer_does_not_fire(host: Host) -> None:
    records = [("a", 1, "set"), ("b", 2, "set"), ("a", 3, "delete")]
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(DeletedTimer())
        )
    )
    assert per_key(out) == {"a": [("a", 101)], "b": [("b", 100), ("b", 101)]}


@on_every_host(nightly=[SPARK])
def test_timers_see_and_clear_their_keys_state(host: Host) -> None:
    records = [("a", 1), ("b", 2), ("a", 3), ("a", 200)]
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(TimerWithState())
        )
    )
    # The record at 200 comes before the watermark it causes: it is counted too.
    assert per_key(out) == {"a": [("a", 3)], "b": [("b", 1)]}


@on_every_host(nightly=[SPARK])
def test_a_timer_may_set_the_next_one(host: Host) -> None:
    out = host.run(
        lambda env: (
            env.from_collection([("a", 0)])
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(TimerChain())
        )
    )
    assert out == [("a", 1), ("a", 2), ("a", 3), ("a", 4)]


@on_every_host
def test_processing_time_timers_fire_once(host: Host) -> None:
    out = host.run(
        lambda env: env.from_collection([("a", "set"), ("b", "no")]).key_by(first).process(ProcessingTimer())
    )
    assert per_key(out) == {"a": [("a", "set"), ("a", "timer")], "b": [("b", "no")]}


class AfterAnHour(KeyedProcessFunction):
    """Passes a record on with a timer of processing time that is still pending when a bounded input ends."""

    def process_element(self, value: Any, ctx: Any) -> None:
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + 3_600_000)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), 1


@on_every_host
def test_timers_that_are_pending_at_the_end_feed_the_steps_behind(host: Host) -> None:
    """Their records are no end for those steps: the job ends after them, and they are not late in its windows."""
    out = host.run(
        lambda env: (
            env.from_collection([("a", 5), ("b", 5)])
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(AfterAnHour())
            .key_by(first)
            .process(AfterAnHour())
            .key_by(first)
            .sum(1)
        )
    )
    assert sorted(out) == [("a", 1), ("b", 1)]


@on_every_host(hosts=STREAMING_HOSTS)
def test_processing_time_timers_fire_while_the_source_is_silent(host: Host) -> None:
    fired = Latch()
    source = TestSource([("a", "set"), fired, ("a", "late")])
    out = host.run(lambda env: env.add_source(source).key_by(first).process(ProcessingTimer(fired)))
    assert out == [("a", "set"), ("a", "timer"), ("a", "late")]


@on_every_host(nightly=[SPARK])
def test_elements_and_timers_never_overlap(host: Host) -> None:
    records = [(f"k{i % 5}", i) for i in range(300)]
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(Busy())
        )
    )
    assert sum(1 for _, what in out if what == "record") == 300
    assert sum(1 for _, what in out if what == "timer") == 300


@on_every_host
def test_a_watermark_is_emitted_after_the_timers_it_fired(host: Host) -> None:
    # If a timer's result were overtaken by the watermark that fired it, the second stage's timer for that result
    # would be set too late and see the watermark of the end.
    class Second(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            late = value[1] == "timer" and ctx.timer_service().current_watermark() >= ctx.timestamp()
            yield value[0], value[1], late

    records = [("a", 0), ("a", 20), ("a", 40)]
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .key_by(first)
            .process(TimerPerRecord())
            .key_by(first)
            .process(Second())
        )
    )
    assert len(out) == 6
    assert not any(late for _, _, late in out)


@on_every_host(nightly=[SPARK])
def test_a_process_function_sees_timestamp_and_watermark(host: Host) -> None:
    out = host.run(
        lambda env: (
            env.from_collection([("a", 10), ("b", 20)])
            .assign_timestamps_and_watermarks(MONOTONOUS)
            .process(SeesWatermark())
        )
    )
    # In batch mode event time advances at the end of the input only.
    assert out == [("a", 10, -(2**63)), ("b", 20, 9 if host.streaming else -(2**63))]
