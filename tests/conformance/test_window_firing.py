"""When windows fire: triggers (B12), allowed lateness, late records to a side output and as a metric (B14), state of
window functions (B11)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from emberflow.streams import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    CountWindow,
    DiscardingSink,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    MergingWindowAssigner,
    OutputTag,
    ProcessWindowFunction,
    PurgingTrigger,
    ReducingStateDescriptor,
    SlidingEventTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
    WindowAssigner,
    WindowContext,
)
from emberflow.testing import STREAMING_HOSTS, Cut, Host, TestSource, on_every_host, per_key

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
LATE: OutputTag[Any] = OutputTag("late")
TEN = TumblingEventTimeWindows.of(timedelta(milliseconds=10))


def first(value: Any) -> Any:
    return value[0]


def listed(key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
    yield key, context.window().start, [value for _, value in elements]


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


class EverySecond(Trigger[tuple[str, int], TimeWindow]):
    """Fires for every second record of a window, and at its end if there was one more; it keeps a count as state."""

    COUNT = ReducingStateDescriptor[int]("seen", lambda one, other: one + other)

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> TriggerResult:
        assert timestamp == element[1]
        ctx.register_event_time_timer(window.max_timestamp())
        seen = ctx.get_partitioned_state(self.COUNT)
        seen.add(1)
        return TriggerResult.FIRE if seen.get() % 2 == 0 else TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Any) -> TriggerResult:
        assert ctx.get_current_watermark() >= time == window.max_timestamp()
        odd = ctx.get_partitioned_state(self.COUNT).get() % 2 == 1
        return TriggerResult.FIRE_AND_PURGE if odd else TriggerResult.PURGE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Any) -> None:
        ctx.merge_partitioned_state(self.COUNT)
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Any) -> None:
        ctx.get_partitioned_state(self.COUNT).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class WithoutSmallest(Evictor[tuple[str, int], TimeWindow]):
    def evict_before(self, elements: list[Any], size: int, window: TimeWindow, evictor_context: Any) -> None:
        assert size == len(elements)
        assert all(item.value[1] == item.timestamp for item in elements)
        elements.remove(min(elements, key=lambda item: item.value[1]))

    def evict_after(self, elements: list[Any], size: int, window: TimeWindow, evictor_context: Any) -> None:
        assert evictor_context.get_current_watermark() >= window.end - 1
        elements.clear()


class Firings(ProcessWindowFunction[Any, Any, str, TimeWindow]):
    """Counts how often each window, and each key, has fired."""

    WINDOW = ValueStateDescriptor[int]("firings")
    KEY = ValueStateDescriptor[int]("firings")

    def process(self, key: str, context: WindowContext[TimeWindow], elements: Iterable[Any]) -> Iterable[Any]:
        of_window = context.window_state().get_state(self.WINDOW)
        of_key = context.global_state().get_state(self.KEY)
        of_window.update((of_window.value() or 0) + 1)
        of_key.update((of_key.value() or 0) + 1)
        yield key, context.window().start, len(list(elements)), of_window.value(), of_key.value()

    def clear(self, context: ProcessWindowFunction.Context[TimeWindow]) -> None:
        assert context.window_state().get_state(self.WINDOW).value() is not None
        context.window_state().get_state(self.WINDOW).clear()


class Halves(WindowAssigner[tuple[str, int], TimeWindow]):
    """An assigner of a user: windows of five, and one twice as long for even numbers."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Collection[TimeWindow]:
        assert context.get_current_processing_time() > 0
        start = timestamp - timestamp % 5
        windows = [TimeWindow(start, start + 5)]
        return [*windows, TimeWindow(start, start + 10)] if element[1] % 2 == 0 else windows

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


class Neighbours(MergingWindowAssigner[tuple[str, int], TimeWindow]):
    """Merges windows that overlap, but not those that only touch."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Collection[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + 3)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        group: list[TimeWindow] = []
        for window in sorted(windows):
            if group and window.start >= max(item.end for item in group):
                self._report(group, callback)
                group = []
            group.append(window)
        self._report(group, callback)

    def _report(self, group: list[TimeWindow], callback: Any) -> None:
        if len(group) > 1:
            callback.merge(group, TimeWindow(group[0].start, max(item.end for item in group)))

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


RECORDS = [("a", 1), ("a", 2), ("a", 7), ("b", 8), ("a", 13), ("a", 14), ("b", 21), ("a", 33)]


@on_every_host(hosts=STREAMING_HOSTS)
def test_triggers_and_evictors(host: Host) -> None:
    def build(env: Any) -> Any:
        keyed = (
            env.add_source(TestSource(RECORDS, 3)).assign_timestamps_and_watermarks(MONOTONOUS).key_by(first)
        )
        made = {
            "custom": keyed.window(TEN).trigger(EverySecond()).process(listed),
            "count": keyed.window(TEN).trigger(CountTrigger.of(2)).reduce(add),
            "purging": keyed.window(TEN).trigger(PurgingTrigger.of(CountTrigger.of(2))).process(listed),
            "continuous": keyed.window(TEN).trigger(ContinuousEventTimeTrigger.of(5)).process(listed),
            "session": keyed.window(EventTimeSessionWindows.with_gap(5))
            .trigger(EverySecond())
            .process(listed),
            "evictor": keyed.window(TEN).evictor(WithoutSmallest()).process(listed),
            "assigner": keyed.window(Halves()).process(listed),
            "merging": keyed.window(Neighbours()).process(listed),
            "state": keyed.window(TEN).trigger(EverySecond()).process(Firings()),
        }
        named = [stream.map(lambda value, name=name: (name, value)) for name, stream in made.items()]
        return named[0].union(*named[1:])

    every = {name: [value for _, value in values] for name, values in per_key(host.run(build)).items()}
    found = {name: per_key(values) for name, values in every.items()}
    assert found["custom"]["a"] == [
        ("a", 0, [1, 2]),
        ("a", 0, [1, 2, 7]),
        ("a", 10, [13, 14]),
        ("a", 30, [33]),
    ]
    assert found["custom"]["b"] == [("b", 0, [8]), ("b", 20, [21])]
    assert found["count"] == {"a": [("a", 3), ("a", 27)]}
    assert found["purging"] == {"a": [("a", 0, [1, 2]), ("a", 10, [13, 14])]}
    # The interval ends at 5, which the watermark passes behind 7, and the window at 9.
    assert found["continuous"]["a"] == [
        ("a", 0, [1, 2, 7]),
        ("a", 0, [1, 2, 7]),
        ("a", 10, [13, 14]),
        ("a", 10, [13, 14]),
        ("a", 30, [33]),
        ("a", 30, [33]),
    ]
    assert found["session"]["a"] == [
        ("a", 1, [1, 2]),
        ("a", 1, [1, 2, 7]),
        ("a", 13, [13, 14]),
        ("a", 33, [33]),
    ]
    assert found["evictor"]["a"] == [("a", 0, [2, 7]), ("a", 10, [14]), ("a", 30, [])]
    assert found["assigner"]["a"] == [
        ("a", 0, [1, 2]),
        ("a", 0, [2]),
        ("a", 5, [7]),
        ("a", 10, [13, 14]),
        ("a", 10, [14]),
        ("a", 30, [33]),
    ]
    assert found["merging"]["a"] == [("a", 1, [1, 2]), ("a", 7, [7]), ("a", 13, [13, 14]), ("a", 33, [33])]
    assert found["state"]["a"] == [
        ("a", 0, 2, 1, 1),
        ("a", 0, 3, 2, 2),
        ("a", 10, 2, 1, 3),
        ("a", 30, 1, 1, 4),
    ]


# 25 ends [0, 10) and [10, 20); with a lateness of 10, the first is removed and the second is kept.
LATE_RECORDS = [("a", 1), ("a", 12), ("a", 25), Cut(), ("a", 3), ("a", 14), ("a", 15), ("a", 26), ("a", 40)]


@on_every_host(hosts=STREAMING_HOSTS)
def test_late_records(host: Host) -> None:
    late_of: dict[str, Any] = {}

    def build(env: Any) -> Any:
        stream = env.add_source(TestSource(LATE_RECORDS)).assign_timestamps_and_watermarks(MONOTONOUS)
        keyed = stream.key_by(first)
        sessions, sliding = EventTimeSessionWindows.with_gap(4), SlidingEventTimeWindows.of(20, 5)
        made: dict[str, Any] = {
            "lateness": keyed.window(TEN).allowed_lateness(10).side_output_late_data(LATE).process(listed),
            "reduce": keyed.window(TEN).allowed_lateness(10).reduce(add),
            "tumbling": keyed.window(TEN).side_output_late_data(LATE).process(listed),
            "session": keyed.window(sessions).side_output_late_data(LATE).process(listed),
            "late session": keyed.window(sessions)
            .allowed_lateness(5)
            .side_output_late_data(LATE)
            .process(listed),
            "panes": keyed.window(sliding).side_output_late_data(LATE).sum(1),
            "state": keyed.window(TEN).allowed_lateness(10).process(Firings()),
        }
        late = {f"{name}, late": stream.get_side_output(LATE) for name, stream in made.items()}
        named = [
            stream.map(lambda value, name=name: (name, value)) for name, stream in {**made, **late}.items()
        ]
        return named[0].union(*named[1:])

    late_of.update(per_key(host.run(build)))
    found = {name: [value[1:] for _, value in values] for name, values in late_of.items()}
    assert found["lateness"] == [
        (0, [1]),
        (10, [12]),
        (10, [12, 14]),
        (10, [12, 14, 15]),
        (20, [25, 26]),
        (40, [40]),
    ]
    assert found["lateness, late"] == [(3,)]
    assert found["reduce"] == [(1,), (12,), (26,), (41,), (51,), (40,)]
    assert found["tumbling"] == [(0, [1]), (10, [12]), (20, [25, 26]), (40, [40])]
    assert found["tumbling, late"] == [(3,), (14,), (15,)]
    assert found["session"] == [(1, [1]), (12, [12]), (25, [25, 26]), (40, [40])]
    assert found["session, late"] == [(3,), (14,), (15,)]
    # [12, 16) is kept until 20 and [14, 18) would be until 22; the watermark is 24.
    assert found["late session"] == [(1, [1]), (12, [12]), (25, [25, 26]), (40, [40])]
    assert found["late session, late"] == [(3,), (14,), (15,)]
    # 14 and 15 are late for windows that end by 25, not for those that end later.
    assert [total for (total,) in found["panes"]] == [1, 1, 13, 13, 12, 92, 66, 51, 91, 40, 40, 40]
    assert found["panes, late"] == [(3,)]
    assert found["state"] == [
        (0, 1, 1, 1),
        (10, 1, 1, 2),
        (10, 2, 2, 3),
        (10, 3, 3, 4),
        (20, 2, 1, 5),
        (40, 1, 1, 6),
    ]


@on_every_host(hosts=STREAMING_HOSTS)
def test_dropped_late_records_are_a_metric(host: Host) -> None:
    env = host.environment()
    keyed = (
        env.add_source(TestSource(LATE_RECORDS)).assign_timestamps_and_watermarks(MONOTONOUS).key_by(first)
    )
    keyed.window(TEN).reduce(add).sink_to(DiscardingSink())
    keyed.window(TEN).allowed_lateness(10).reduce(add).sink_to(DiscardingSink())
    keyed.window(SlidingEventTimeWindows.of(20, 5)).sum(1).sink_to(DiscardingSink())
    keyed.window(EventTimeSessionWindows.with_gap(4)).reduce(add).sink_to(DiscardingSink())
    keyed.window(TEN).side_output_late_data(LATE).reduce(add).sink_to(DiscardingSink())
    metrics = env.execute("late").metrics
    # 3, 14 and 15 for the first and for sessions; 3 for those with lateness and for the sliding ones.
    assert metrics.late_records_dropped == 3 + 1 + 1 + 3


class ByCount(ProcessWindowFunction[tuple[str, int], tuple[int, int], str, CountWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[CountWindow], elements: Iterable[Any]
    ) -> Iterable[tuple[int, int]]:
        return [(context.window().id, value) for _, value in elements]


def test_generic_subscripts_of_window_functions() -> None:
    from emberflow.testing import LOCAL

    out = LOCAL.run(
        lambda env: env.from_collection([("a", 5), ("a", 6)]).key_by(first).count_window(1).process(ByCount())
    )
    assert out == [(0, 5), (1, 6)]
