"""Crashes as data: what is finally committed equals a run without them, exactly once.

Every stateful kind of step has its own scenario; the crash points are at the start, between checkpoints, and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from emberflow.streams import (
    AsyncDataStream,
    BroadcastProcessFunction,
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
    MapStateDescriptor,
    OutputTag,
    RuntimeContext,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkGenerator,
    WatermarkStrategy,
)
from emberflow.testing import (
    LOCAL_HOSTS,
    SPARK,
    SPARK_BATCH,
    Crash,
    Cut,
    Host,
    Pause,
    Sentinel,
    TestSource,
    on_every_host,
    per_key,
    unordered,
)
from tests.support.count_and_alarm import CountAndAlarm, first

Make = Callable[[Any, Any], Any]
"""From an environment and a stream of records to the stream that is looked at."""


ALONE = OutputTag("alone")
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])


class BothSides(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self._total.update((self._total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(2**63 - 1)

    process_element2 = process_element1

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), self._total.value()


class EveryThird(WatermarkGenerator):
    def __init__(self) -> None:
        self._count = 0

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        self._count += 1
        if self._count % 3 == 0:
            output.emit_watermark(timestamp - 1)


def reduce(env: Any, stream: Any) -> Any:
    return stream.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1]))


def process(env: Any, stream: Any) -> Any:
    return stream.assign_timestamps_and_watermarks(MONOTONOUS).key_by(first).process(CountAndAlarm())


def window(env: Any, stream: Any) -> Any:
    keyed = stream.assign_timestamps_and_watermarks(MONOTONOUS).key_by(first)
    return keyed.window(TumblingEventTimeWindows.of(4)).reduce(lambda a, b: (a[0], a[1] + b[1]))


def two_stages(env: Any, stream: Any) -> Any:
    totals = stream.key_by(first).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return totals.key_by(lambda value: value[1] % 2).map(Numbered())


def stateless(env: Any, stream: Any) -> Any:
    return stream.map(lambda value: (value[0], value[1] * 10))


def generator(env: Any, stream: Any) -> Any:
    strategy = WatermarkStrategy.for_generator(EveryThird).with_timestamp_assigner(lambda value, _: value[1])
    return stream.assign_timestamps_and_watermarks(strategy).key_by(first).process(CountAndAlarm())


def asynchronous(env: Any, stream: Any) -> Any:
    return AsyncDataStream.ordered_wait(stream, ten_times, 10_000).key_by(first).sum(1)


async def ten_times(value: Any) -> Any:
    return value[0], value[1] * 10


def connected(env: Any, stream: Any) -> Any:
    left = stream.assign_timestamps_and_watermarks(MONOTONOUS).key_by(first)
    right = env.from_collection([("a", 1000), ("b", 2000)]).key_by(first)
    return left.connect(right).process(BothSides())


def joined(env: Any, stream: Any) -> Any:
    keyed = stream.assign_timestamps_and_watermarks(MONOTONOUS).key_by(first)
    join = keyed.interval_join(keyed).between(1, 3).side_output_left_unmatched(ALONE)
    pairs = join.process(lambda left, right, ctx: [(left[0], left[1], right[1])])
    return pairs.union(pairs.get_side_output(ALONE))


RULES = MapStateDescriptor[str, int]("rules")


class TotalsAndRules(KeyedBroadcastProcessFunction):
    """Counts every record once per key, and once in the broadcast state of every task; shows both at the end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self._total.update((self._total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(2**63 - 1)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        rules = sorted(ctx.get_broadcast_state(RULES).items())
        yield ctx.get_current_key(), self._total.value(), rules


class CountedRules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value[0], "element"

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])
        yield value[0], "rule", rules.get(value[0])


def keyed_broadcast(env: Any, stream: Any) -> Any:
    keyed = stream.assign_timestamps_and_watermarks(MONOTONOUS).key_by(first)
    return keyed.connect(stream.broadcast(RULES)).process(TotalsAndRules())


def unkeyed_broadcast(env: Any, stream: Any) -> Any:
    return stream.connect(stream.broadcast(RULES)).process(CountedRules())


class Sides(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value[0], "left", value[1]

    def map2(self, value: Any) -> Any:
        return value[0], "right", value[1]


def unkeyed_connect(env: Any, stream: Any) -> Any:
    return stream.connect(env.from_collection([("a", 1000), ("b", 2000)])).map(Sides())


class Numbered(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def map(self, value: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        # The order of the other keys' records is not guaranteed, so only their number counts.
        return value[1] % 2, self._count.value()


RECORDS = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6), ("c", 7), ("a", 9)]


def with_crashes(host: Host, records: list[Any], points: Iterable[int]) -> TestSource:
    """Pauses between records give local checkpoints time to happen; cuts make micro-batches on Spark."""
    items: list[Any] = []
    for index, record in enumerate(records):
        if index in points:
            items.append(Crash())
        items.append(record)
        if index % 3 == 2:
            items += [Cut(), Pause(40)] if host.engine == "local" else [Cut()]
    if len(records) in points:
        items.append(Crash())
    return TestSource(items)


def without(items: Iterable[Any]) -> list[Any]:
    return [item for item in items if not isinstance(item, Sentinel)]


MAKES = (
    stateless,
    reduce,
    process,
    window,
    two_stages,
    generator,
    asynchronous,
    connected,
    joined,
    keyed_broadcast,
    unkeyed_broadcast,
    unkeyed_connect,
)
IN_ANY_ORDER = (two_stages, joined, unkeyed_broadcast, unkeyed_connect)
"""Where the order within a key depends on how records of several inputs or tasks alternate."""


@pytest.mark.parametrize("make", MAKES, ids=lambda f: f.__name__)
@on_every_host(hosts=LOCAL_HOSTS)
def test_committed_once_whatever_happens(host: Host, make: Make, tmp_path: Path) -> None:
    whole = host.run(lambda env: make(env, env.add_source(with_crashes(host, RECORDS, ()))))
    source = with_crashes(host, RECORDS, (4, 7))
    run = host.run_to_files(lambda env: make(env, env.add_source(source)), tmp_path)
    assert run.starts == 3
    assert unordered(run.values) == unordered(whole)
    if make not in IN_ANY_ORDER:
        assert per_key(run.values) == per_key(whole)


def every_step(env: Any, stream: Any) -> Any:
    """All kinds of steps in one query; each value names the step it comes from."""
    named = [make(env, stream).map(lambda value, name=make.__name__: (name, value)) for make in MAKES]
    return named[0].union(*named[1:])


def of_step(values: list[Any], make: Make) -> list[Any]:
    return [value for name, value in values if name == make.__name__]


@on_every_host(hosts=[SPARK, SPARK_BATCH])
def test_every_step_commits_once_in_one_query(host: Host, tmp_path: Path) -> None:
    """The same on Spark, where each start takes seconds: compared with the result of the same host without a crash."""
    whole = host.run(lambda env: every_step(env, env.add_source(with_crashes(host, RECORDS, ()))))
    source = with_crashes(host, RECORDS, (4, 7))
    run = host.run_to_files(lambda env: every_step(env, env.add_source(source)), tmp_path)
    assert run.starts == 3
    for make in MAKES:
        found, wanted = of_step(run.values, make), of_step(whole, make)
        assert wanted, make.__name__
        assert unordered(found) == unordered(wanted), make.__name__
        if make not in IN_ANY_ORDER:
            assert per_key(found) == per_key(wanted), make.__name__


@pytest.mark.parametrize("points", [(0,), (8,), (1, 2, 3), (0, 8)], ids=str)
@on_every_host(hosts=LOCAL_HOSTS)
def test_crashes_at_other_points(host: Host, points: tuple[int, ...], tmp_path: Path) -> None:
    whole = host.run(lambda env: process(env, env.add_source(with_crashes(host, RECORDS, ()))))
    source = with_crashes(host, RECORDS, points)
    run = host.run_to_files(lambda env: process(env, env.add_source(source)), tmp_path)
    assert run.starts == len(points) + 1
    assert per_key(run.values) == per_key(whole)


@on_every_host(nightly=[SPARK_BATCH])
def test_a_crash_inside_a_function(host: Host, tmp_path: Path) -> None:
    crash = Crash()

    def fragile(value: Any) -> Any:
        if value == ("c", 7):
            crash.reach()
        return value

    source = with_crashes(host, RECORDS, ())
    run = host.run_to_files(lambda env: env.add_source(source).map(fragile).key_by(first).sum(1), tmp_path)
    assert run.starts == 2
    assert {key: found[-1][1] for key, found in per_key(run.values).items()} == {"a": 19, "b": 7, "c": 11}
    assert len(run.values) == (len(RECORDS) if host.streaming else 3)


@on_every_host(nightly=[SPARK_BATCH])
def test_a_finished_program_that_is_started_again_adds_nothing(host: Host, tmp_path: Path) -> None:
    source = TestSource(RECORDS)
    once = host.run_to_files(lambda env: reduce(env, env.add_source(source)), tmp_path)
    again = host.run_to_files(lambda env: reduce(env, env.add_source(source)), tmp_path)
    assert len(once.values) == (len(RECORDS) if host.streaming else len(per_key(RECORDS)))
    assert again.values == once.values


@pytest.mark.parametrize("make", [process, keyed_broadcast, joined], ids=lambda f: f.__name__)
@on_every_host(hosts=LOCAL_HOSTS)
def test_state_moves_to_another_parallelism(host: Host, make: Make, tmp_path: Path) -> None:
    source = with_crashes(host, RECORDS, (7,))

    def build(env: Any) -> Any:
        # One task before the crash, three afterwards.
        env.set_parallelism(3 if crashed(source) else 1)
        return make(env, env.add_source(source))

    whole = host.run(lambda env: make(env, env.add_source(with_crashes(host, RECORDS, ()))))
    run = host.run_to_files(build, tmp_path)
    assert run.starts == 2
    assert unordered(run.values) == unordered(whole)
    if make not in IN_ANY_ORDER:
        assert per_key(run.values) == per_key(whole)


def crashed(source: TestSource) -> bool:
    return any(item.happened for item in source.items if isinstance(item, Crash))


@on_every_host(hosts=[SPARK])
def test_a_worker_that_is_killed(host: Host, tmp_path: Path) -> None:
    from emberflow.testing import WorkerKill

    source = TestSource([("a", 1), Cut(), ("a", 2), WorkerKill(), ("a", 3)])
    run = host.run_to_files(lambda env: reduce(env, env.add_source(source)), tmp_path)
    assert run.values == [("a", 1), ("a", 3), ("a", 6)]
