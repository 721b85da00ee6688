"""What a type checker infers for state descriptors and handles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_type

from emberflow.streams import (
    AggregateFunction,
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReduceFunction,
    ReducingState,
    ReducingStateDescriptor,
    RuntimeContext,
    TypeInformation,
    Types,
    ValueState,
    ValueStateDescriptor,
)


class Mean(AggregateFunction[int, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class Larger(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return max(value1, value2)


def descriptors() -> None:
    assert_type(ValueStateDescriptor("count", int), ValueStateDescriptor[int])
    assert_type(ValueStateDescriptor("count", Types.LONG()), ValueStateDescriptor[int])
    assert_type(ValueStateDescriptor[tuple[str, int]]("last"), ValueStateDescriptor[tuple[str, int]])
    assert_type(ListStateDescriptor("lines", Types.STRING()), ListStateDescriptor[str])
    assert_type(MapStateDescriptor("totals", Types.STRING(), Types.FLOAT()), MapStateDescriptor[str, float])
    assert_type(ReducingStateDescriptor("largest", Larger()), ReducingStateDescriptor[int])
    assert_type(
        AggregatingStateDescriptor("mean", Mean()), AggregatingStateDescriptor[int, tuple[int, int], float]
    )
    assert_type(Types.LIST(Types.STRING()), TypeInformation[list[str]])
    assert_type(Types.MAP(Types.STRING(), Types.INT()), TypeInformation[dict[str, int]])


def handles(ctx: RuntimeContext) -> None:
    value = ctx.get_state(ValueStateDescriptor("count", int))
    assert_type(value, ValueState[int])
    assert_type(value.value(), int | None)
    lines = ctx.get_list_state(ListStateDescriptor("lines", str))
    assert_type(lines, ListState[str])
    assert_type(lines.get(), Iterable[str])
    totals = ctx.get_map_state(MapStateDescriptor("totals", str, float))
    assert_type(totals, MapState[str, float])
    assert_type(totals.get("ann"), float | None)
    largest = ctx.get_reducing_state(ReducingStateDescriptor("largest", Larger()))
    assert_type(largest, ReducingState[int])
    assert_type(
        ctx.get_reducing_state(ReducingStateDescriptor[int]("sum", lambda a, b: a + b)), ReducingState[int]
    )
    mean = ctx.get_aggregating_state(AggregatingStateDescriptor("mean", Mean()))
    assert_type(mean, AggregatingState[int, float])
    assert_type(mean.get(), float | None)
