"""B8: the five kinds of keyed state, their scope, and time to live."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from emberflow.streams import (
    AggregateFunction,
    AggregatingStateDescriptor,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    RuntimeContext,
    StateTtlConfig,
    Time,
    ValueStateDescriptor,
)
from emberflow.testing import SPARK, STREAMING_HOSTS, Cut, Host, Latch, TestSource, on_every_host, per_key


def first(value: Any) -> Any:
    return value[0]


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class AllKinds(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last"))
        self._all = runtime_context.get_list_state(ListStateDescriptor("all"))
        self._counts = runtime_context.get_map_state(MapStateDescriptor("counts"))
        self._sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self._mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean()))

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[Any]:
        key, number = value
        before = self._last.value()
        self._last.update(number)
        self._all.add(number)
        self._counts.put(number, (self._counts.get(number) or 0) + 1)
        self._sum.add(number)
        self._mean.add(number)
        yield (
            key,
            before,
            list(self._all.get()),
            dict(self._counts.items()),
            self._sum.get(),
            self._mean.get(),
        )


class Commands(KeyedProcessFunction):
    """Does to its state what the record says, and emits the result."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._value = runtime_context.get_state(ValueStateDescriptor("v"))
        self._list = runtime_context.get_list_state(ListStateDescriptor("l"))
        self._map = runtime_context.get_map_state(MapStateDescriptor("m"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        key, command, *args = value
        target, _, method = command.partition(".")
        if target:
            getattr({"value": self._value, "list": self._list, "map": self._map}[target], method)(*args)
        yield key, self._value.value(), list(self._list.get()), dict(self._map.items()), self._map.is_empty()


TTL_S = 1.0


class CountWithTtl(KeyedProcessFunction):
    def __init__(self, gone: Latch) -> None:
        self._gone = gone

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count")
        descriptor.enable_time_to_live(
            StateTtlConfig.new_builder(Time.milliseconds(int(TTL_S * 1000))).build()
        )
        self._count = runtime_context.get_state(descriptor)
        kept = ListStateDescriptor("kept")
        kept.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self._kept = runtime_context.get_list_state(kept)
        shown = StateTtlConfig.new_builder(Time.seconds(1)).return_expired_if_not_cleaned_up()
        cleaned, stale = MapStateDescriptor("cleaned"), ValueStateDescriptor("stale")
        cleaned.enable_time_to_live(shown.build())
        stale.enable_time_to_live(shown.disable_cleanup_in_background().build())
        self._cleaned = runtime_context.get_map_state(cleaned)
        self._stale = runtime_context.get_state(stale)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        self._kept.add(value[1])
        seen = self._cleaned.get("seen"), self._stale.value()
        self._cleaned.put("seen", value[1])
        self._stale.update(value[1])
        if value[1] == 2:
            # Longer than it takes to find that the state has expired, without any input.
            threading.Timer(2 * TTL_S, self._gone.open).start()
        yield value[0], count, len(list(self._kept.get())), *seen


@on_every_host
def test_all_five_kinds_of_state(host: Host) -> None:
    records = [("a", 4), ("b", 1), ("a", 2), ("a", 4)]
    out = host.run(lambda env: env.from_collection(records).key_by(first).process(AllKinds()))
    assert per_key(out) == {
        "a": [
            ("a", None, [4], {4: 1}, 4, 4.0),
            ("a", 4, [4, 2], {4: 1, 2: 1}, 6, 3.0),
            ("a", 2, [4, 2, 4], {4: 2, 2: 1}, 10, 10 / 3),
        ],
        "b": [("b", None, [1], {1: 1}, 1, 1.0)],
    }


@on_every_host
def test_state_is_kept_between_batches(host: Host) -> None:
    source = TestSource([("a", 1), ("b", 1), Cut(), ("a", 2), Cut(), ("a", 3), ("b", 2)])
    out = host.run(lambda env: env.add_source(source).key_by(first).process(AllKinds()))
    assert [record[2] for record in per_key(out)["a"]] == [[1], [1, 2], [1, 2, 3]]
    assert [record[2] for record in per_key(out)["b"]] == [[1], [1, 2]]


@on_every_host(nightly=[SPARK])
def test_state_can_be_changed_and_cleared(host: Host) -> None:
    commands = [
        ("k", ""),
        ("k", "value.update", 7),
        ("k", "list.add_all", [1, 2]),
        ("k", "list.update", [3]),
        ("k", "map.put_all", {"x": 1, "y": 2}),
        ("k", "map.remove", "x"),
        ("k", "map.remove", "not there"),
        ("k", "value.clear"),
        ("k", "list.clear"),
        ("k", "map.clear"),
        ("k", "value.update", 8),
    ]
    out = host.run(lambda env: env.from_collection(commands).key_by(first).process(Commands()))
    assert [record[1:] for record in out] == [
        (None, [], {}, True),
        (7, [], {}, True),
        (7, [1, 2], {}, True),
        (7, [3], {}, True),
        (7, [3], {"x": 1, "y": 2}, False),
        (7, [3], {"y": 2}, False),
        (7, [3], {"y": 2}, False),
        (None, [3], {"y": 2}, False),
        (None, [], {"y": 2}, False),
        (None, [], {}, True),
        (8, [], {}, True),
    ]


@on_every_host(nightly=[SPARK])
def test_none_among_state_values(host: Host) -> None:
    commands = [
        ("k", "value.update", 1),
        ("k", "value.update", None),  # as in Flink: the same as clear()
        ("k", "list.add", None),
        ("k", "map.put", None, None),
        ("k", "map.put", "x", None),
        ("k", ""),
    ]
    out = host.run(lambda env: env.from_collection(commands).key_by(first).process(Commands()))
    assert out[-1] == ("k", None, [None], {None: None, "x": None}, False)


@on_every_host(nightly=[SPARK])
def test_state_belongs_to_its_key_and_step(host: Host) -> None:
    records = [(f"k{i % 50}", i) for i in range(200)]

    def build(env: Any) -> Any:
        stream = env.from_collection(records)
        return stream.key_by(first).process(AllKinds()).key_by(first).process(AllKindsAgain())

    out = per_key(host.run(build))
    assert {key: [record[1] for record in found] for key, found in out.items()} == {
        f"k{i}": [1, 2, 3, 4] for i in range(50)
    }


class AllKindsAgain(KeyedProcessFunction):
    """Uses the same names as the step before it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._all = runtime_context.get_list_state(ListStateDescriptor("all"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._all.add("x")
        yield value[0], len(list(self._all.get()))


@on_every_host(nightly=[SPARK])
def test_large_values_in_state(host: Host) -> None:
    records = [("a", "x" * 300_000), ("a", "y" * 300_000), ("a", "")]
    out = host.run(lambda env: env.from_collection(records).key_by(first).process(Sizes()))
    assert out == [("a", 300_000), ("a", 600_000), ("a", 600_000)]


class Sizes(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._all = runtime_context.get_list_state(ListStateDescriptor("all"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._all.add(value[1])
        yield value[0], sum(map(len, self._all.get()))


@on_every_host(hosts=STREAMING_HOSTS)
def test_values_disappear_after_their_time_to_live(host: Host) -> None:
    gone = Latch()
    source = TestSource([("a", 1), ("a", 2), gone, ("a", 3)])
    out = host.run(lambda env: env.add_source(source).key_by(first).process(CountWithTtl(gone)))
    # What was cleaned up in the background is gone, although expired values may be shown.
    assert out == [("a", 1, 1, None, None), ("a", 2, 2, 1, 1), ("a", 1, 3, None, 2)]
