"""B3: map, flat_map and filter, plain and rich, without keys and with them."""

from __future__ import annotations

from typing import Any

from emberflow.streams import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    RuntimeContext,
    ValueStateDescriptor,
)
from emberflow.testing import SPARK, Host, on_every_host, per_key


class Scale(MapFunction):
    """`open` is called before the first record, with a context that knows the task."""

    def __init__(self, factor: int) -> None:
        self._factor = factor
        self._opened: RuntimeContext | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._opened = runtime_context

    def map(self, value: int) -> tuple[int, str, bool]:
        assert self._opened is not None
        index, count = (
            self._opened.get_index_of_this_subtask(),
            self._opened.get_number_of_parallel_subtasks(),
        )
        return value * self._factor, self._opened.get_task_name(), 0 <= index < count


class Split(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._separator = " "

    def flat_map(self, value: str) -> Any:
        yield from value.split(self._separator)


class LongerThan(FilterFunction):
    def __init__(self, length: int) -> None:
        self._length = length

    def filter(self, value: str) -> bool:
        return len(value) > self._length


class Numbered(MapFunction):
    """A map on a keyed stream may keep state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def map(self, value: tuple[str, str]) -> tuple[str, str, int]:
        number = (self._seen.value() or 0) + 1
        self._seen.update(number)
        return (*value, number)


class Closing(MapFunction):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        self._file = open(f"{self._folder}/{runtime_context.get_index_of_this_subtask()}", "a")  # noqa: SIM115

    def map(self, value: int) -> int:
        self._file.write(f"{value}\n")
        return value

    def close(self) -> None:
        self._file.write("closed\n")
        self._file.close()


@on_every_host(nightly=[SPARK])
def test_map_flat_map_and_filter_as_lambdas(host: Host) -> None:
    out = host.run(
        lambda env: (
            env.from_collection(["to be", "or not"])
            .flat_map(lambda line: line.split())
            .filter(lambda word: word != "or")
            .map(str.upper)
        )
    )
    assert out == ["TO", "BE", "NOT"]


@on_every_host(nightly=[SPARK])
def test_flat_map_may_return_nothing_or_a_generator(host: Host) -> None:
    out = host.run(
        lambda env: env.from_collection([0, 1, 3]).flat_map(
            lambda n: None if n == 0 else (n for _ in range(n))
        )
    )
    assert out == [1, 3, 3, 3]


@on_every_host
def test_rich_functions_are_opened_with_their_context(host: Host) -> None:
    out = host.run(lambda env: env.from_collection([1, 2]).map(Scale(3)).name("scale"))
    assert out == [(3, "scale", True), (6, "scale", True)]


@on_every_host(nightly=[SPARK])
def test_rich_flat_map_and_filter(host: Host) -> None:
    out = host.run(
        lambda env: env.from_collection(["a bb ccc", "dddd"]).flat_map(Split()).filter(LongerThan(1))
    )
    assert out == ["bb", "ccc", "dddd"]


@on_every_host
def test_functions_are_closed(host: Host, tmp_path: Any) -> None:
    host.run(lambda env: env.from_collection([1, 2, 3]).map(Closing(str(tmp_path))))
    lines = [line for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    assert sorted(line for line in lines if line != "closed") == ["1", "2", "3"]
    assert lines.count("closed") >= 1
    assert lines[-1] == "closed"


@on_every_host(nightly=[SPARK])
def test_a_filter_that_keeps_nothing(host: Host) -> None:
    out = host.run(lambda env: env.from_collection([1, 2]).filter(lambda n: n > 5).key_by(lambda n: n).sum())
    assert out == []


@on_every_host(nightly=[SPARK])
def test_map_flat_map_and_filter_after_key_by(host: Host) -> None:
    records = [("a", "x"), ("b", "y"), ("a", "z"), ("a", "w")]
    out = host.run(lambda env: env.from_collection(records).key_by(lambda v: v[0]).map(Numbered()))
    assert per_key(out) == {"a": [("a", "x", 1), ("a", "z", 2), ("a", "w", 3)], "b": [("b", "y", 1)]}
    out = host.run(
        lambda env: (
            env.from_collection(records)
            .key_by(lambda v: v[0])
            .filter(lambda v: v[1] != "z")
            .key_by(lambda v: v[0])
            .flat_map(lambda v: [v, v])
        )
    )
    assert per_key(out) == {"a": [("a", "x")] * 2 + [("a", "w")] * 2, "b": [("b", "y")] * 2}
