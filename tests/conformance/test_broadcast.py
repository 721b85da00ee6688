"""B9, B16: streams connected with a broadcast stream, and the broadcast state they read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, NotKeyed
from emberflow.streams import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    MapStateDescriptor,
    OutputTag,
    RuntimeContext,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import Host, Pause, TestSource, on_every_host, per_key, unordered

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
LIMITS = MapStateDescriptor[str, int]("limits")
NAMES = MapStateDescriptor[str, str]("names")
SIDE = OutputTag("side")


def first(value: Any) -> Any:
    return value[0]


class Over(KeyedBroadcastProcessFunction):
    """Totals per key; a timer compares them with the limit that was broadcast for the key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._total.update((self._total.value() or 0) + value[2])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 100)
        assert not hasattr(ctx.get_broadcast_state(LIMITS), "put")
        yield ctx.get_current_key(), "limit", ctx.get_broadcast_state(LIMITS).get(value[0])

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        key, _, limit = value
        limits = ctx.get_broadcast_state(LIMITS)
        if limit is None:
            del limits[key]
        else:
            limits[key] = limit
        yield SIDE, ("told", key, ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        limit = ctx.get_broadcast_state(LIMITS)[ctx.get_current_key()]
        if limit is not None and self._total.value() > limit:
            yield ctx.get_current_key(), "over", timestamp, sorted(ctx.get_broadcast_state(LIMITS))


class Named(BroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._tasks = runtime_context.get_number_of_parallel_subtasks()

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        names = ctx.get_broadcast_state(NAMES)
        yield "element", value[0], names.get(value[0]), value[0] in names, ctx.timestamp()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.get_broadcast_state(NAMES).put_all({value: value.upper()})
        yield "broadcast", value, self._tasks


RULES = [("a", 0, 5), ("b", 0, 100), ("c", 0, 1), ("c", 0, None)]
DATA = [("a", 10, 3), ("b", 20, 60), ("a", 30, 3), ("c", 40, 9), ("b", 50, 60), ("d", 60, 1)]


@on_every_host
def test_both_kinds_of_broadcast_functions(host: Host) -> None:
    """In streaming mode the data comes later; in batch mode the broadcast stream is read first anyway."""
    later: list[Any] = [Pause(400)] if host.streaming and host.engine == "local" else []

    def build(env: Any) -> Any:
        rules = env.from_source(TestSource(RULES), MONOTONOUS, "rules")
        data = env.from_source(TestSource([*later, *DATA]), MONOTONOUS, "data")
        over = data.key_by(first).connect(rules.broadcast(LIMITS)).process(Over())
        names = rules.map(first).broadcast(NAMES, LIMITS)
        named = data.connect(names).process(Named())
        parts = {"over": over, "side": over.get_side_output(SIDE), "named": named}
        marked = [stream.map(lambda value, part=part: (part, value)) for part, stream in parts.items()]
        return marked[0].union(*marked[1:])

    out = {part: [value for _, value in found] for part, found in per_key(host.run(build)).items()}
    assert per_key(value for value in out["over"] if value[1] == "limit") == {
        "a": [("a", "limit", 5)] * 2,
        "b": [("b", "limit", 100)] * 2,
        "c": [("c", "limit", None)],
        "d": [("d", "limit", None)],
    }
    assert unordered(value for value in out["over"] if value[1] == "over") == [
        ("a", "over", 110, ["a", "b"]),
        ("a", "over", 130, ["a", "b"]),
        ("b", "over", 120, ["a", "b"]),
        ("b", "over", 150, ["a", "b"]),
    ]
    tasks = host.parallelism
    assert unordered(out["side"]) == unordered([("told", key, 0) for key, _, _ in RULES] * tasks)
    assert unordered(value for value in out["named"] if value[0] == "broadcast") == unordered(
        [("broadcast", key, tasks) for key, _, _ in RULES] * tasks
    )
    assert unordered(value for value in out["named"] if value[0] == "element") == unordered(
        ("element", key, key.upper() if key != "d" else None, key != "d", stamp) for key, stamp, _ in DATA
    )


class Misuse(KeyedBroadcastProcessFunction):
    def __init__(self, what: str) -> None:
        self._what = what

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: Any) -> None:
        pass

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        if self._what == "keyed state":
            self._total.update(1)
        else:
            ctx.get_broadcast_state(MapStateDescriptor("limit"))


def test_what_a_broadcast_element_may_not_do() -> None:
    from emberflow.testing import LOCAL

    def build(env: Any, what: str) -> Any:
        stream = env.from_collection([("a", 1)])
        return stream.key_by(first).connect(stream.broadcast(LIMITS)).process(Misuse(what))

    with pytest.raises(NotKeyed, match="has no current key"):
        LOCAL.run(lambda env: build(env, "keyed state"))
    with pytest.raises(Exception, match=r"no broadcast state named 'limit'.*did you mean 'limits'"):
        LOCAL.run(lambda env: build(env, "another state"))


def test_functions_that_do_not_fit() -> None:
    from emberflow.testing import LOCAL

    env: Any = LOCAL.environment()
    stream = env.from_collection([1])
    with pytest.raises(InvalidArgument, match="the stream has keys"):
        stream.key_by(str).connect(stream.broadcast(LIMITS)).process(Named())
    with pytest.raises(InvalidArgument, match="the stream has no keys"):
        stream.connect(stream.broadcast(LIMITS)).process(Over())
    with pytest.raises(InvalidArgument, match="descriptors of map state"):
        stream.broadcast(ValueStateDescriptor("limits"))
    with pytest.raises(InvalidArgument, match="two descriptors of one name"):
        stream.broadcast(LIMITS, MapStateDescriptor("limits"))
