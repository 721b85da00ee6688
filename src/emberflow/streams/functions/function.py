"""The function classes users may derive from. Plain callables do as well wherever one method is enough.

Type parameters stand in Flink's order. They are optional: `class Parse(MapFunction)` works as `MapFunction[Any, Any]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from emberflow.events.output_tag import SideOutput
from emberflow.operators.contexts import ElementContext, PlainContext, RuntimeContext, TimerService
from emberflow.operators.windows.window_context import WindowContext

IN = TypeVar("IN", contravariant=True)
IN1 = TypeVar("IN1", contravariant=True)
IN2 = TypeVar("IN2", contravariant=True)
OUT = TypeVar("OUT", covariant=True)
T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")
ACC = TypeVar("ACC")
K = TypeVar("K", contravariant=True)
KEY = TypeVar("KEY", covariant=True)
W = TypeVar("W", contravariant=True)


class Function:
    """Base of all functions. The object is copied for every task, so it must be picklable."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per task before the first record: register state, open connections."""

    def close(self) -> None:
        """Called once per task after the last record: close what `open` opened."""


class MapFunction(Function, Generic[IN, OUT]):
    """One result per record, for `map()`."""

    def map(self, value: IN) -> OUT:
        """Returns the result for one record."""
        raise NotImplementedError("map() must be overridden")


class FlatMapFunction(Function, Generic[IN, OUT]):
    """Any number of results per record, for `flat_map()`."""

    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """Returns or yields the results for one record; None is none."""
        raise NotImplementedError("flat_map() must be overridden")


class FilterFunction(Function, Generic[IN]):
    """Decides which records are kept, for `filter()`."""

    def filter(self, value: IN) -> bool:
        """Returns whether the record is kept."""
        raise NotImplementedError("filter() must be overridden")


class ReduceFunction(Function, Generic[T]):
    """Combines two values of one type into one, for `reduce()` and `ReducingStateDescriptor`."""

    mergeable: ClassVar[bool] = False
    """Set it to True if results may be combined with each other, in any order, as those of an addition may. Sliding windows
    then share their panes, which makes a record cost the same however many windows cover it. A function that counts its
    calls, or treats its second argument as a single record, must leave it False."""

    def reduce(self, value1: T, value2: T) -> T:
        """Returns the combination of the value so far and the next one."""
        raise NotImplementedError("reduce() must be overridden")


class KeySelector(Function, Generic[IN, KEY]):
    """Returns a record's key, for `key_by()`."""

    def get_key(self, value: IN) -> KEY:
        """Returns the key; it must be the same whenever it is asked for the same record."""
        raise NotImplementedError("get_key() must be overridden")


AnyMap = MapFunction[A, R] | Callable[[A], R]
AnyFlatMap = FlatMapFunction[A, R] | Callable[[A], Iterable[R] | None]
AnyKey = KeySelector[A, R] | Callable[[A], R]
"""A function object, or a plain callable."""


class Partitioner(Function, Generic[K]):
    """Chooses the task of a record, for `partition_custom()`."""

    def partition(self, key: K, num_partitions: int) -> int:
        """Returns the number of a task, from 0 to `num_partitions` - 1."""
        raise NotImplementedError("partition() must be overridden")


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """An accumulator that grows with every value and is turned into a result at the end."""

    def create_accumulator(self) -> ACC:
        """Returns an empty accumulator."""
        raise NotImplementedError("create_accumulator() must be overridden")

    def add(self, value: IN, accumulator: ACC) -> ACC:
        """Returns the accumulator with one more value."""
        raise NotImplementedError("add() must be overridden")

    def get_result(self, accumulator: ACC) -> OUT:
        """Returns the result of an accumulator, which stays as it is."""
        raise NotImplementedError("get_result() must be overridden")

    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Returns the accumulator of both. Session windows need it.

        Sliding windows call it as well, unlike Flink's: where it is overridden they share their panes, whose accumulators
        are merged in order of time. Where it only raises, or ignores an argument, they do without.
        """
        raise NotImplementedError("merge() must be overridden for windows that merge")


class ProcessFunction(Function, Generic[IN, OUT]):
    """Sees every record with its timestamp; yields results and `(OutputTag, value)` pairs."""

    Context = PlainContext

    def process_element(self, value: IN, ctx: PlainContext) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one record, and `(tag, value)` for side outputs."""
        raise NotImplementedError("process_element() must be overridden")


class KeyedProcessFunction(Function, Generic[K, IN, OUT]):
    """State, both kinds of timers and side outputs, all scoped to the current key."""

    Context = ElementContext
    OnTimerContext = ElementContext

    def process_element(self, value: IN, ctx: ElementContext[K]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one record, and `(tag, value)` for side outputs."""
        raise NotImplementedError("process_element() must be overridden")

    def on_timer(self, timestamp: int, ctx: ElementContext[K]) -> Iterable[OUT | SideOutput] | None:
        """Called when a timer that this key registered is due; returns or yields as `process_element`."""


class CoMapFunction(Function, Generic[IN1, IN2, OUT]):
    """At most one result per record of either input, for connected streams."""

    def map1(self, value: IN1) -> OUT | None:
        """Returns the result for one record of the first input; None is no result."""
        raise NotImplementedError("map1() must be overridden")

    def map2(self, value: IN2) -> OUT | None:
        """Returns the result for one record of the second input; None is no result."""
        raise NotImplementedError("map2() must be overridden")


class CoFlatMapFunction(Function, Generic[IN1, IN2, OUT]):
    """Any number of results per record of either input, for connected streams."""

    def flat_map1(self, value: IN1) -> Iterable[OUT] | None:
        """Returns or yields the results for one record of the first input."""
        raise NotImplementedError("flat_map1() must be overridden")

    def flat_map2(self, value: IN2) -> Iterable[OUT] | None:
        """Returns or yields the results for one record of the second input."""
        raise NotImplementedError("flat_map2() must be overridden")


class CoProcessFunction(Function, Generic[IN1, IN2, OUT]):
    """Two inputs, one function object per task. If both are keyed, they share state and timers per key; without keys the
    context has neither: registering a timer raises `NotKeyed`."""

    Context = ElementContext
    OnTimerContext = ElementContext

    def process_element1(self, value: IN1, ctx: ElementContext[Any]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one record of the first input."""
        raise NotImplementedError("process_element1() must be overridden")

    def process_element2(self, value: IN2, ctx: ElementContext[Any]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one record of the second input."""
        raise NotImplementedError("process_element2() must be overridden")

    def on_timer(self, timestamp: int, ctx: ElementContext[Any]) -> Iterable[OUT | SideOutput] | None:
        """Called when a timer that this key registered is due."""


class KeyedCoProcessFunction(CoProcessFunction[IN1, IN2, OUT], Generic[K, IN1, IN2, OUT]):
    """A `CoProcessFunction` that also names the type of its key."""


def timer_method(func: Any) -> Callable[[int, Any], Any] | None:
    """`on_timer` of a function object; None if it has only the one that does nothing."""
    found = getattr(func, "on_timer", None)
    function = getattr(found, "__func__", None)
    # The base classes' own does nothing.
    inherited = getattr(function, "__module__", "").rpartition(".")[0] == __package__
    return None if inherited else found


class ProcessWindowFunction(Function, Generic[IN, OUT, K, W]):
    """Sees a fired window as a whole."""

    Context = WindowContext

    def process(
        self, key: K, context: WindowContext[W], elements: Iterable[IN]
    ) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one window of one key."""
        raise NotImplementedError("process() must be overridden")

    def clear(self, context: WindowContext[W]) -> None:
        """Called when the window is removed. Its state is removed afterwards, whether it was cleared here or not."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """As `ProcessWindowFunction`, for `window_all()`: there is no key."""

    Context = WindowContext

    def process(self, context: WindowContext[W], elements: Iterable[IN]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one window."""
        raise NotImplementedError("process() must be overridden")

    def clear(self, context: WindowContext[W]) -> None:
        """Called when the window is removed."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """As `ProcessAllWindowFunction`, with the window instead of a context."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one window."""
        raise NotImplementedError("apply() must be overridden")


class WindowFunction(Function, Generic[IN, OUT, K, W]):
    """As `ProcessWindowFunction`, with the window instead of a context."""

    def apply(self, key: K, window: W, inputs: Iterable[IN]) -> Iterable[OUT | SideOutput] | None:
        """Returns or yields the results for one window of one key."""
        raise NotImplementedError("apply() must be overridden")


class AsyncFunction(Function, Generic[IN, OUT]):
    """One asynchronous call per record, for `AsyncDataStream`."""

    async def async_invoke(self, value: IN) -> list[OUT]:
        """Returns the list of results for one record."""
        raise NotImplementedError("async_invoke() must be overridden")

    def timeout(self, value: IN) -> list[OUT]:
        """Returns the results for a record whose call took too long; raises `TimeoutError` by default."""
        raise TimeoutError


__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
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
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "TimerService",
    "WindowFunction",
]
