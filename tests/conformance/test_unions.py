"""B16, B13: streams that are split and joined again, and steps behind a union that need all of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from emberflow.streams import (
    DataStream,
    FilterFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from emberflow.testing import SPARK, Host, on_every_host, unordered
from emberflow.testing.hosts import HOSTS

TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 5 * value[1])
ODD = OutputTag("odd")
RECORDS = [("k", number) for number in range(40)]
WINDOWS = [(start, 4) for start in range(0, 200, 20)]


class Sizes(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, len(list(elements))


class Aside(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield (ODD, value) if value[1] % 2 else value


def sizes(stream: DataStream[Any]) -> DataStream[Any]:
    window = TumblingEventTimeWindows.of(timedelta(milliseconds=20))
    return stream.key_by(lambda value: value[0]).window(window).process(Sizes())


def named(stream: DataStream[Any], name: str) -> DataStream[Any]:
    return stream.map(lambda value: (name, value))


@on_every_host
def test_branches_of_a_stream_are_joined_again(host: Host) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream[Any]:
        timed = env.from_collection(RECORDS).assign_timestamps_and_watermarks(TIMED)
        even, odd = (
            timed.filter(lambda value: value[1] % 2 == 0),
            timed.filter(lambda value: value[1] % 2 == 1),
        )
        aside = timed.process(Aside())
        keyed = timed.key_by(lambda value: value[0]).map(lambda value: value)
        return named(sizes(even.union(odd).map(lambda value: value)), "filters").union(
            named(sizes(aside.union(aside.get_side_output(ODD)).map(lambda value: value)), "side output"),
            named(sizes(keyed.union(keyed.filter(lambda value: False)).map(lambda value: value)), "keyed"),
            named(
                timed.union(timed).map(lambda value: value[1]).rebalance().map(lambda value: value), "twice"
            ),
        )

    expected = [(name, window) for name in ("filters", "side output", "keyed") for window in WINDOWS]
    twice = [("twice", value[1]) for value in RECORDS * 2]
    assert unordered(host.run(build)) == unordered([*expected, *twice])


class New(FilterFunction[Any]):
    """Keeps what it has seen in itself."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen: set[Any] = set()

    def filter(self, value: Any) -> bool:
        new = value not in self._seen
        self._seen.add(value)
        return new


# In a streaming query on Spark, a function without keys is created for each micro-batch.
@on_every_host(hosts=[host for host in HOSTS if host is not SPARK])
def test_a_function_object_behind_a_union_sees_all_its_streams(host: Host) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream[Any]:
        return (
            env.from_collection(["x", "y"])
            .union(env.from_collection(["x", "z"]))
            .filter(New())
            .set_parallelism(1)
        )

    assert unordered(host.run(build)) == ["x", "y", "z"]
