"""The function classes users may derive from. Plain callables do as well wherever one method is enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emberflow.operators.contexts import ElementContext, PlainContext, RuntimeContext, TimerService
from emberflow.operators.window_context import WindowContext


class Function:
    """`open` is called once per task before the first record, `close` after the last."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Register state, open connections."""

    def close(self) -> None:
        """Close what `open` opened."""


class MapFunction(Function):
    def map(self, value: Any) -> Any:
        raise NotImplementedError("map() must be overridden")


class FlatMapFunction(Function):
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        raise NotImplementedError("flat_map() must be overridden")


class FilterFunction(Function):
    def filter(self, value: Any) -> bool:
        raise NotImplementedError("filter() must be overridden")


class ReduceFunction(Function):
    def reduce(self, value1: Any, value2: Any) -> Any:
        raise NotImplementedError("reduce() must be overridden")


class KeySelector(Function):
    def get_key(self, value: Any) -> Any:
        raise NotImplementedError("get_key() must be overridden")


class AggregateFunction(Function):
    """An accumulator that grows with every value and is turned into a result at the end."""

    def create_accumulator(self) -> Any:
        raise NotImplementedError("create_accumulator() must be overridden")

    def add(self, value: Any, accumulator: Any) -> Any:
        raise NotImplementedError("add() must be overridden")

    def get_result(self, accumulator: Any) -> Any:
        raise NotImplementedError("get_result() must be overridden")

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError("merge() must be overridden for windows that merge")


class ProcessFunction(Function):
    """Sees every record with its timestamp; yields results and `(OutputTag, value)` pairs."""

    Context = PlainContext

    def process_element(self, value: Any, ctx: PlainContext) -> Iterable[Any] | None:
        raise NotImplementedError("process_element() must be overridden")


class KeyedProcessFunction(Function):
    """State, both kinds of timers and side outputs, all scoped to the current key."""

    Context = ElementContext
    OnTimerContext = ElementContext

    def process_element(self, value: Any, ctx: ElementContext) -> Iterable[Any] | None:
        raise NotImplementedError("process_element() must be overridden")

    def on_timer(self, timestamp: int, ctx: ElementContext) -> Iterable[Any] | None:
        """Called when a timer that this key registered is due."""


class CoMapFunction(Function):
    def map1(self, value: Any) -> Any:
        raise NotImplementedError("map1() must be overridden")

    def map2(self, value: Any) -> Any:
        raise NotImplementedError("map2() must be overridden")


class CoFlatMapFunction(Function):
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        raise NotImplementedError("flat_map1() must be overridden")

    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        raise NotImplementedError("flat_map2() must be overridden")


class CoProcessFunction(Function):
    """Two inputs, one state: both keyed by the same key."""

    Context = PlainContext

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        raise NotImplementedError("process_element1() must be overridden")

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        raise NotImplementedError("process_element2() must be overridden")

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any] | None:
        """Called when a timer that this key registered is due."""


class KeyedCoProcessFunction(CoProcessFunction):
    Context = ElementContext
    OnTimerContext = ElementContext


class ProcessWindowFunction(Function):
    """Sees a fired window as a whole."""

    Context = WindowContext

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Iterable[Any] | None:
        raise NotImplementedError("process() must be overridden")


class WindowFunction(Function):
    """Like `ProcessWindowFunction`, with just the window."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        raise NotImplementedError("apply() must be overridden")


class AsyncFunction(Function):
    """One call per record; `async_invoke` returns the list of results."""

    async def async_invoke(self, value: Any) -> list[Any]:
        raise NotImplementedError("async_invoke() must be overridden")

    def timeout(self, value: Any) -> list[Any]:
        """Results for a record whose call took too long; raises by default."""
        raise TimeoutError


__all__ = [
    "AggregateFunction",
    "AsyncFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "MapFunction",
    "ProcessFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "TimerService",
    "WindowFunction",
]
