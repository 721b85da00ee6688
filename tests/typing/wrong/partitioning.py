"""Partitioners and broadcast streams with mistakes that a type checker must find."""

from __future__ import annotations

from emberflow.streams import (
    BroadcastProcessFunction,
    MapStateDescriptor,
    Partitioner,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)

env = StreamExecutionEnvironment.get_execution_environment(engine="local")
words = env.from_collection(["a", "b"])
numbers = env.from_collection([1, 2])
LIMITS = MapStateDescriptor[str, int]("limits")


class ByText(Partitioner[str]):
    def partition(self, key: str, num_partitions: int) -> int:
        return len(key) % num_partitions


class Limited(BroadcastProcessFunction[str, int, bytes]):
    def process_element(self, value: str, ctx: BroadcastProcessFunction.ReadOnlyContext) -> None:
        ctx.get_broadcast_state(LIMITS).put("highest", 1)  # error: reportAttributeAccessIssue

    def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(LIMITS).put("highest", "1")  # error: reportArgumentType


words.partition_custom(ByText(), len)  # error: reportArgumentType
words.partition_custom(len, len)  # error: reportArgumentType
words.broadcast(ValueStateDescriptor("limits"))  # error: reportArgumentType
numbers.connect(numbers.broadcast(LIMITS)).process(Limited())  # error: reportArgumentType, reportCallIssue
words.set_parallelism("3")  # error: reportArgumentType
