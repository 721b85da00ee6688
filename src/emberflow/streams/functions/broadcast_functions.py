"""The function classes for a stream that is connected with a broadcast stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from emberflow.events.output_tag import SideOutput
from emberflow.operators.partitions.broadcast import BroadcastContext, KeyedReadOnlyContext, ReadOnlyContext
from emberflow.streams.functions.function import Function

IN1 = TypeVar("IN1", contravariant=True)
IN2 = TypeVar("IN2", contravariant=True)
OUT = TypeVar("OUT", covariant=True)
KEY = TypeVar("KEY", contravariant=True)


class BroadcastProcessFunction(Function, Generic[IN1, IN2, OUT]):
    """A stream without keys, and a broadcast stream whose records reach every task.

    ```python
    from collections.abc import Iterator

    from emberflow.streams import (
        BroadcastProcessFunction,
        MapStateDescriptor,
        RuntimeExecutionMode,
        StreamExecutionEnvironment,
    )

    LIMITS = MapStateDescriptor[str, int]("limits")


    class Within(BroadcastProcessFunction[int, int, int]):
        def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[int]:
            if value <= (ctx.get_broadcast_state(LIMITS).get("highest") or 0):
                yield value

        def process_broadcast_element(self, value: int, ctx: BroadcastProcessFunction.Context) -> None:
            ctx.get_broadcast_state(LIMITS).put("highest", value)


    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)  # The broadcast stream comes first.
    limits = env.from_collection([20]).broadcast(LIMITS)
    numbers = env.from_collection([10, 20, 30]).connect(limits).process(Within())
    assert numbers.execute_and_collect(limit=3) == [10, 20]
    ```
    """

    Context = BroadcastContext
    ReadOnlyContext = ReadOnlyContext

    def process_element(self, value: IN1, ctx: ReadOnlyContext) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one record; it may read the broadcast state."""
        raise NotImplementedError("process_element() must be overridden")

    def process_broadcast_element(
        self, value: IN2, ctx: BroadcastContext
    ) -> Iterable[OUT | SideOutput] | None:
        """Called in every task; it may change the broadcast state, in the same way everywhere."""
        raise NotImplementedError("process_broadcast_element() must be overridden")


class KeyedBroadcastProcessFunction(Function, Generic[KEY, IN1, IN2, OUT]):
    """A keyed stream, with state and timers per key, and a broadcast stream whose records reach every task."""

    Context = BroadcastContext
    ReadOnlyContext = KeyedReadOnlyContext
    OnTimerContext = KeyedReadOnlyContext

    def process_element(
        self, value: IN1, ctx: KeyedReadOnlyContext[KEY]
    ) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one record; it may read the broadcast state and set timers."""
        raise NotImplementedError("process_element() must be overridden")

    def process_broadcast_element(
        self, value: IN2, ctx: BroadcastContext
    ) -> Iterable[OUT | SideOutput] | None:
        """Called in every task; it may change the broadcast state, in the same way everywhere. Keyed state raises
        `NotKeyed` here."""
        raise NotImplementedError("process_broadcast_element() must be overridden")

    def on_timer(self, timestamp: int, ctx: KeyedReadOnlyContext[KEY]) -> Iterable[OUT | SideOutput] | None:
        """Called when a timer that this key registered is due; it may read the broadcast state."""
