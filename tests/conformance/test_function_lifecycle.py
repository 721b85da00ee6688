"""B3: `open()` and `close()` of every kind of function that a program hands over, with a context that knows the task."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emberflow.streams import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    JoinFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SinkFunction,
    TimestampAssigner,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowFunction,
)
from emberflow.testing import SPARK_BATCH, Host, on_every_host


class Recorded:
    """Notes in a file per object that it was opened and closed; fails if it is used while it is not open."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self._file = str(folder / (name or type(self).__name__))
        self._is_open = False

    def open(self, runtime_context: Any) -> None:
        assert 0 <= runtime_context.get_index_of_this_subtask() < 4
        self._note("open")
        self._is_open = True

    def close(self) -> None:
        self._note("close")
        self._is_open = False

    def used(self) -> None:
        assert self._is_open, f"{self._file} is used, but not open"

    def _note(self, what: str) -> None:
        with open(f"{self._file}.{what}.{os.getpid()}", "a", encoding="utf-8") as file:
            file.write("x")


class Map(Recorded, MapFunction):
    def map(self, value: Any) -> Any:
        self.used()
        return value


class FlatMap(Recorded, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        self.used()
        yield value


class Filter(Recorded, FilterFunction):
    def filter(self, value: Any) -> bool:
        self.used()
        return True


class Process(Recorded, ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.used()
        yield value


class Timestamps(Recorded, TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        self.used()
        return value[1]


class Key(Recorded, KeySelector):
    def get_key(self, value: Any) -> Any:
        self.used()
        return value[0]


class KeyedProcess(Recorded, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.used()
        yield value


class Reduce(Recorded, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        self.used()
        return value2


class Aggregate(Recorded, AggregateFunction):
    def create_accumulator(self) -> Any:
        self.used()
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


class ProcessWindow(Recorded, ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        self.used()
        yield from elements


class ApplyWindow(Recorded, WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        self.used()
        yield from inputs


class ProcessAll(Recorded, ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Any:
        self.used()
        yield from elements


class Async(Recorded, AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        self.used()
        return [value]


class CoMap(Recorded, CoMapFunction):
    def map1(self, value: Any) -> Any:
        self.used()
        return value

    map2 = map1


class CoFlatMap(Recorded, CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        self.used()
        yield value

    flat_map2 = flat_map1


class CoProcess(Recorded, CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.used()
        yield value

    process_element2 = process_element1


class IntervalJoin(Recorded, ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        self.used()
        yield left


class Join(Recorded, JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        self.used()
        return first


class FlatJoin(Recorded, FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        self.used()
        yield first


class CoGroup(Recorded, CoGroupFunction):
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Any:
        self.used()
        yield from first


class Choose(Recorded, Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        self.used()
        return (key[0] == "x" and 0) or num_partitions - 1


class Write(Recorded, SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        self.used()


RECORDS = [("a", 1), ("b", 2), ("a", 3), ("b", 4)]


@on_every_host(nightly=[SPARK_BATCH])
def test_every_function_is_opened_and_closed(host: Host, tmp_path: Path) -> None:
    """All of them in one program."""

    def named(kind: type[Any], *names: str) -> list[Any]:
        return [kind(tmp_path, f"{kind.__name__} {name}") for name in names]

    def build(env: Any) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Timestamps(tmp_path))
        keys = named(Key, "1", "2", "3", "4", "5", "6")
        stream = (
            env.from_collection(RECORDS)
            .map(Map(tmp_path))
            .flat_map(FlatMap(tmp_path))
            .filter(Filter(tmp_path))
            .process(Process(tmp_path))
            .assign_timestamps_and_watermarks(strategy)
        )
        stream = AsyncDataStream.ordered_wait(stream, Async(tmp_path), 10_000)
        keyed, windows = stream.key_by(keys[0]), TumblingEventTimeWindows.of(2)
        join = stream.join(stream).where(keys[1]).equal_to(keys[2]).window(windows)
        group = stream.co_group(stream).where(keys[3]).equal_to(keys[4]).window(windows)
        results = [
            keyed.process(KeyedProcess(tmp_path)),
            keyed.map(Map(tmp_path, "keyed map")),
            keyed.reduce(Reduce(tmp_path)),
            keyed.window(windows).reduce(Reduce(tmp_path, "window reduce"), ProcessWindow(tmp_path)),
            keyed.window(windows).aggregate(Aggregate(tmp_path), ApplyWindow(tmp_path)),
            stream.window_all(windows).process(ProcessAll(tmp_path)),
            stream.connect(stream).map(CoMap(tmp_path)),
            keyed.connect(keyed).flat_map(CoFlatMap(tmp_path)),
            keyed.connect(keyed).process(CoProcess(tmp_path)),
            keyed.interval_join(keyed).between(-1, 1).process(IntervalJoin(tmp_path)),
            join.apply(Join(tmp_path)),
            join.apply(FlatJoin(tmp_path)),
            group.apply(CoGroup(tmp_path)),
            stream.partition_custom(Choose(tmp_path), keys[5]).map(lambda value: value),
        ]
        stream.add_sink(Write(tmp_path))
        return results[0].union(*results[1:])

    assert host.run(build)
    counts: dict[str, dict[str, int]] = {}
    for path in tmp_path.iterdir():
        name, what, _ = path.name.split(".")
        found = counts.setdefault(name, {"open": 0, "close": 0})
        found[what] += len(path.read_text(encoding="utf-8"))
    classes = [kind.__name__ for kind in Recorded.__subclasses__() if kind is not Key]
    assert set(counts) == {*classes, *(f"Key {n}" for n in "123456"), "keyed map", "window reduce"}
    assert {name: found for name, found in counts.items() if found["open"] != found["close"]} == {}
