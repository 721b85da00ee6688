"""B16: union, and connected streams with two inputs, state and timers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import NotKeyed
from emberflow.streams import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    ListStateDescriptor,
    OutputTag,
    Row,
    RuntimeContext,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import SPARK, Host, TestSource, on_every_host, per_key, unordered


def first(value: Any) -> Any:
    return value[0]


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
UNPAID = OutputTag("unpaid")


class Sides(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "left", value

    def map2(self, value: Any) -> Any:
        return "right", value


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value: int) -> Any:
        return [value] * value

    def flat_map2(self, value: str) -> Any:
        yield from value


class Counted(CoMapFunction):
    """One state for both inputs of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def _next(self, value: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        return value[0], self._count.value()

    map1 = _next
    map2 = _next


class Reconcile(KeyedCoProcessFunction):
    """Matches orders and payments of a key; an order without a payment goes to a side output when its time is up."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._orders = runtime_context.get_list_state(ListStateDescriptor("orders"))
        self._paid = runtime_context.get_state(ValueStateDescriptor("paid"))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._orders.add(value)
        ctx.timer_service().register_event_time_timer(value[1] + 1000)
        yield value[0], "order"

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._paid.update(value[1])
        yield value[0], "payment"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        if self._paid.value() is None:
            yield UNPAID, (ctx.get_current_key(), "unpaid")
        else:
            yield ctx.get_current_key(), "settled"
        self._orders.clear()


@on_every_host(nightly=[SPARK])
def test_a_union_has_the_records_of_all(host: Host) -> None:
    def build(env: Any) -> Any:
        one, two, three = (env.from_collection(range(start, start + 3)) for start in (0, 10, 20))
        return one.union(two, three).map(lambda n: n)

    out = host.run(build)
    assert sorted(out) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert per_key(out, lambda n: n // 10) == {0: [0, 1, 2], 1: [10, 11, 12], 2: [20, 21, 22]}


@on_every_host
def test_a_union_after_key_by_shares_state(host: Host) -> None:
    def build(env: Any) -> Any:
        one, two = env.from_collection([("a", 1), ("b", 2)]), env.from_collection([("a", 10)])
        return one.union(two).key_by(first).sum(1)

    assert {key: found[-1] for key, found in per_key(host.run(build)).items()} == {
        "a": ("a", 11),
        "b": ("b", 2),
    }


@on_every_host(nightly=[SPARK])
def test_a_stream_united_with_itself_counts_twice(host: Host) -> None:
    def build(env: Any) -> Any:
        stream = env.from_collection([1, 2])
        return stream.union(stream.map(lambda n: n)).key_by(lambda n: n).reduce(lambda a, b: a + b)

    assert unordered(host.run(build)) == ([1, 2, 2, 4] if host.streaming else [2, 4])


@on_every_host(nightly=[SPARK])
def test_co_map_and_co_flat_map_without_keys(host: Host) -> None:
    def co_map(env: Any) -> Any:
        return env.from_collection([1, 2]).connect(env.from_collection(["x"])).map(Sides())

    def co_flat_map(env: Any) -> Any:
        return env.from_collection([1, 2]).connect(env.from_collection(["xy"])).flat_map(Repeat())

    assert per_key(host.run(co_map)) == {"left": [("left", 1), ("left", 2)], "right": [("right", "x")]}
    assert unordered(host.run(co_flat_map)) == [1, 2, 2, "x", "y"]


@on_every_host(nightly=[SPARK])
def test_co_map_with_keys_shares_state(host: Host) -> None:
    def build(env: Any) -> Any:
        left = env.from_collection([("a", 1), ("b", 1), ("a", 2)])
        right = env.from_collection([("a", "x"), ("c", "y")])
        return left.connect(right).key_by(first, first).map(Counted())

    assert per_key(host.run(build)) == {"a": [("a", 1), ("a", 2), ("a", 3)], "b": [("b", 1)], "c": [("c", 1)]}


@on_every_host
def test_co_process_with_state_and_timers(host: Host) -> None:
    orders = TestSource([("o1", 0), ("o2", 10), ("o3", 20)])
    payments = TestSource([("o1", 500), ("o3", 600)])

    def build(env: Any) -> Any:
        left = env.from_source(orders, MONOTONOUS, "orders").key_by(first)
        right = env.from_source(payments, MONOTONOUS, "payments").key_by(first)
        main = left.connect(right).process(Reconcile())
        return main.union(main.get_side_output(UNPAID))

    out = per_key(host.run(build))
    assert {key: sorted(what for _, what in found[:-1]) for key, found in out.items()} == {
        "o1": ["order", "payment"],
        "o2": ["order"],
        "o3": ["order", "payment"],
    }
    assert {key: found[-1][1] for key, found in out.items()} == {
        "o1": "settled",
        "o2": "unpaid",
        "o3": "settled",
    }


class Numbered(CoProcessFunction):
    """One object sees both inputs: its counter goes through."""

    def __init__(self) -> None:
        self._seen = 0
        self._open: bool | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._task = runtime_context.get_index_of_this_subtask()
        self._open = True

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        return self._next("left", value, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        return self._next("right", value, ctx)

    def _next(self, side: str, value: Any, ctx: Any) -> Iterable[Any]:
        assert self._open
        self._seen += 1
        yield UNPAID, (side, ctx.timestamp())
        yield self._task, self._seen, side, value


@on_every_host(nightly=[SPARK])
def test_one_function_sees_both_inputs_without_keys(host: Host) -> None:
    def build(env: Any) -> Any:
        left = env.from_source(TestSource([("a", 5), ("b", 6)]), MONOTONOUS, "left")
        main = left.connect(env.from_collection(["x", "y"])).process(Numbered())
        late = main.get_side_output(UNPAID).map(lambda pair: ("side", *pair))
        counted = env.from_collection([1, 2]).connect(env.from_collection([3, 4])).map(Counter())
        return main.union(late, counted.map(lambda count: ("counted", count)))

    out = host.run(build)
    main = [found for found in out if found[0] == 0]
    assert [seen for _, seen, _, _ in main] == [1, 2, 3, 4]
    assert {side: [v for _, _, s, v in main if s == side] for side in ("left", "right")} == {
        "left": [("a", 5), ("b", 6)],
        "right": ["x", "y"],
    }
    assert unordered(found[1:] for found in out if found[0] == "side") == unordered(
        [("left", 5), ("left", 6), ("right", None), ("right", None)]
    )
    assert [count for name, count in (found for found in out if found[0] == "counted")] == [1, 2, 3, 4]


class Counter(CoMapFunction):
    def __init__(self) -> None:
        self.n = 0

    def map1(self, value: Any) -> Any:
        self.n += 1
        return self.n

    map2 = map1


@on_every_host
def test_keying_after_connect_and_one_keyed_input(host: Host) -> None:
    """A keyed and an unkeyed stream may be connected: keyed afterwards they share state, as they are they share a function."""
    left, right = [("a", 1), ("b", 1), ("a", 2)], [("a", "x"), ("c", "y")]

    def build(env: Any) -> Any:
        keyed = env.from_collection(left).key_by(lambda value: "another key")
        again = keyed.connect(env.from_collection(right)).key_by(first, first).map(Counted())
        mixed = env.from_collection(left).key_by(first).connect(env.from_collection(right)).map(Sides())
        return again.map(lambda found: ("keyed", found)).union(mixed.map(lambda found: ("mixed", found)))

    out = per_key(host.run(build))
    assert per_key(found for _, found in out["keyed"]) == {
        "a": [("a", 1), ("a", 2), ("a", 3)],
        "b": [("b", 1)],
        "c": [("c", 1)],
    }
    assert unordered(found for _, found in out["mixed"]) == unordered(
        [("left", value) for value in left] + [("right", value) for value in right]
    )


@on_every_host
def test_keyed_functions_need_keys_on_both_sides(host: Host) -> None:
    env = host.environment()
    one, two = env.from_collection([1]), env.from_collection([2])
    for connected in (one.connect(two), one.key_by(lambda n: n).connect(two)):
        with pytest.raises(NotKeyed, match=r"key_by\(\) on both"):
            connected.process(Reconcile())


class Keys(KeyedCoProcessFunction[Any, Any, Any, Any]):
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key()

    process_element2 = process_element1


@on_every_host(nightly=[SPARK])
def test_keys_of_connected_streams_have_their_declared_type(host: Host) -> None:
    def build(env: Any) -> Any:
        words = env.from_collection([("x", 1)])
        key_type = Types.ROW_NAMED(["word"], [Types.STRING()])
        return (
            words.connect(words)
            .key_by(lambda value: (value[0],), lambda value: (value[0],), key_type)
            .process(Keys())
        )

    assert host.run(build) == [Row(word="x")] * 2
