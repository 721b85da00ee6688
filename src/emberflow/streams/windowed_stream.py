"""`WindowedStream`: what happens to a window's elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, overload

from emberflow.errors import InvalidArgument
from emberflow.event_time.windows import WindowAssigner
from emberflow.operators.windows.window_context import WindowContext
from emberflow.plan.specs import WindowSpec
from emberflow.streams.aggregations import Aggregation, Field
from emberflow.streams.data_stream import DataStream, method_of
from emberflow.streams.functions import (
    AggregateFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from emberflow.streams.keyed_stream import KeyedStream

K = TypeVar("K", covariant=True)
T = TypeVar("T", covariant=True)
W = TypeVar("W", covariant=True)
R = TypeVar("R")
TUPLE = TypeVar("TUPLE", bound=tuple[Any, ...])
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
WINDOW = TypeVar("WINDOW")

AnyWindowFunction = (
    ProcessWindowFunction[IN, OUT, KEY, WINDOW]
    | WindowFunction[IN, OUT, KEY, WINDOW]
    | Callable[[KEY, WindowContext[WINDOW], Iterable[IN]], Iterable[OUT] | None]
)
"""A window function of either class, or a plain `function(key, context, elements)`."""


class WindowedStream(Generic[K, T, W]):
    """The windows of a keyed stream; made by `KeyedStream.window()`. A window's results carry its last timestamp."""

    def __init__(self, keyed: KeyedStream[K, T], assigner: WindowAssigner[W]) -> None:
        if not callable(getattr(assigner, "assign", None)):
            raise InvalidArgument(
                f"window() needs a window assigner, not {assigner!r}",
                way_out="write e.g. TumblingEventTimeWindows.of(timedelta(seconds=5))",
            )
        self._keyed = keyed
        self._assigner = assigner

    # The second overload is for the same reason as that of `KeyedStream.reduce`.
    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: None = None,
        output_type: Any = None,
    ) -> DataStream[T]: ...
    @overload
    def reduce(
        self: WindowedStream[K, tuple[Any, ...], W],
        reduce_function: ReduceFunction[TUPLE] | Callable[[T, T], TUPLE],
        window_function: None = None,
        output_type: Any = None,
    ) -> DataStream[TUPLE]: ...
    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: AnyWindowFunction[T, R, K, W],
        output_type: Any = None,
    ) -> DataStream[R]: ...
    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[T, T], Any],
        window_function: AnyWindowFunction[T, Any, K, W] | None = None,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """One running value per window; with a window function, it gets that value as its only element."""
        combine = method_of(reduce_function, "reduce", "reduce()")
        return self._window(
            WindowSpec(assigner=self._assigner, reduce=combine, process=_process(window_function))
        )

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, R],
        window_function: None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[R]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, V],
        window_function: AnyWindowFunction[V, R, K, W],
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[R]: ...
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, Any],
        window_function: AnyWindowFunction[Any, Any, K, W] | None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """One accumulator per window; with a window function, it gets the aggregate's result as its only element."""
        return self._window(
            WindowSpec(
                assigner=self._assigner, aggregate=aggregate_function, process=_process(window_function)
            )
        )

    def process(
        self, process_window_function: AnyWindowFunction[T, R, K, W], output_type: Any = None
    ) -> DataStream[R]:
        """All elements of a window at once; they are kept as state until the window fires."""
        return self._window(WindowSpec(assigner=self._assigner, process=_process(process_window_function)))

    def apply(self, window_function: AnyWindowFunction[T, R, K, W], output_type: Any = None) -> DataStream[R]:
        """As `process`, for a `WindowFunction`."""
        return self._window(WindowSpec(assigner=self._assigner, process=_process(window_function)))

    def sum(self, position: Field = 0) -> DataStream[T]:
        """The sum of one field, given by position or name; the other fields are those of the first record."""
        return self.reduce(Aggregation("sum", position))

    def min(self, position: Field = 0) -> DataStream[T]:
        """The minimum of one field; the other fields are those of the first record."""
        return self.reduce(Aggregation("min", position))

    def max(self, position: Field = 0) -> DataStream[T]:
        """The maximum of one field; the other fields are those of the first record."""
        return self.reduce(Aggregation("max", position))

    def min_by(self, position: Field = 0) -> DataStream[T]:
        """The whole record with the smallest field; the first of equals."""
        return self.reduce(Aggregation("min_by", position))

    def max_by(self, position: Field = 0) -> DataStream[T]:
        """The whole record with the largest field; the first of equals."""
        return self.reduce(Aggregation("max_by", position))

    def _window(self, spec: WindowSpec) -> DataStream[Any]:
        return DataStream(
            self._keyed._env,
            ((self._keyed._env._program.add(spec, self._keyed._keyed_edges(), "window"), None),),
        )


class _AppliedWindowFunction(ProcessWindowFunction[Any, Any, Any, Any]):
    """A `WindowFunction` in the clothes of a `ProcessWindowFunction`."""

    def __init__(self, function: WindowFunction[Any, Any, Any, Any]) -> None:
        self.open = function.open
        self.close = function.close
        self._function = function

    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function.apply(key, context.window(), elements)


class _PlainWindowFunction(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, function: Callable[[Any, Any, Any], Any]) -> None:
        self._function = function

    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function(key, context, elements)


def _process(function: Any) -> Any:
    if function is None or hasattr(function, "process"):
        return function
    if hasattr(function, "apply"):
        return _AppliedWindowFunction(function)
    if callable(function):
        return _PlainWindowFunction(function)
    raise InvalidArgument(f"a window function needs process() or apply(), which {function!r} lacks")
