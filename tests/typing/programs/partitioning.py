"""What a type checker infers for partitioners and broadcast streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from emberflow.streams import (
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    BroadcastState,
    BroadcastStream,
    CheckpointedFunction,
    CoProcessFunction,
    DataStream,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    OperatorListState,
    Partitioner,
    ReadOnlyBroadcastState,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)

env = StreamExecutionEnvironment.get_execution_environment(engine="local")
words = env.from_collection(["a", "b"])
numbers = env.from_collection([1, 2])
LIMITS = MapStateDescriptor[str, int]("limits")


class ByLength(Partitioner[int]):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % num_partitions


class Limited(BroadcastProcessFunction[str, int, bytes]):
    def process_element(self, value: str, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[bytes]:
        assert_type(ctx.get_broadcast_state(LIMITS), ReadOnlyBroadcastState[str, int])
        assert_type(ctx.get_broadcast_state(LIMITS).get(value), int | None)
        yield value.encode()

    def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> None:
        assert_type(ctx.get_broadcast_state(LIMITS), BroadcastState[str, int])
        ctx.get_broadcast_state(LIMITS).put("highest", value)


class LimitedByKey(KeyedBroadcastProcessFunction[int, str, int, bool]):
    def process_element(
        self, value: str, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[bool]:
        ctx.timer_service().register_event_time_timer(1)
        yield "highest" in ctx.get_broadcast_state(LIMITS)

    def process_broadcast_element(self, value: int, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(LIMITS).put("highest", value)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[bool]:
        yield ctx.get_broadcast_state(LIMITS).is_empty()


class Sizes(CoProcessFunction[str, int, int]):
    def process_element1(self, value: str, ctx: CoProcessFunction.Context) -> Iterator[int]:
        yield len(value)

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[int]:
        yield value


def partitioners() -> None:
    assert_type(words.rebalance(), DataStream[str])
    assert_type(words.shuffle().rescale().forward().global_(), DataStream[str])
    assert_type(words.broadcast(), DataStream[str])
    assert_type(words.partition_custom(ByLength(), len), DataStream[str])
    assert_type(words.partition_custom(lambda key, tasks: key % tasks, len), DataStream[str])
    group = SlotSharingGroup.builder("io").set_cpu_cores(2.5).build()
    assert_type(words.map(len).force_non_parallel().slot_sharing_group(group), DataStream[int])


def broadcasts() -> None:
    rules = numbers.broadcast(LIMITS)
    assert_type(rules, BroadcastStream[int])
    assert_type(words.connect(rules), BroadcastConnectedStream[str, int])
    assert_type(words.connect(rules).process(Limited()), DataStream[bytes])
    assert_type(words.key_by(len).connect(rules).process(LimitedByKey()), DataStream[bool])
    assert_type(words.connect(numbers).process(Sizes()), DataStream[int])


class Buffered(MapFunction[str, int], CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.kept = store.get_list_state(ListStateDescriptor[int]("kept"))
        assert_type(self.kept, OperatorListState[int])
        assert_type(store.get_broadcast_state(LIMITS), BroadcastState[str, int])

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.kept.update([1])

    def map(self, value: str) -> int:
        return sum(self.kept.get())


def operator_state() -> None:
    assert_type(words.map(Buffered()), DataStream[int])
