"""`AllWindowedStream`: windows over a whole stream. All of its records have the same key, so one task processes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from emberflow.events.types.type_information import TypeInformation
from emberflow.plan.graphs.stream_graph import StreamEdge
from emberflow.plan.window_specs import WindowSpec
from emberflow.streams.data_stream import DataStream
from emberflow.streams.functions.function import AggregateFunction, ReduceFunction
from emberflow.streams.functions.window_functions import AnyAllWindowFunction, all_function
from emberflow.streams.windowed_stream import WindowOptions, added, typed_reduce
from emberflow.windowing.assigners import WindowAssigner

T = TypeVar("T", covariant=True)
W = TypeVar("W", covariant=True)
R = TypeVar("R")
V = TypeVar("V")


def only_key(value: object) -> int:
    """The key of every record of a stream that is not partitioned."""
    return 0


class AllWindowedStream(WindowOptions, Generic[T, W]):
    """The windows of a stream without keys; made by `DataStream.window_all()`."""

    def __init__(self, stream: DataStream[T], assigner: WindowAssigner[Any, W]) -> None:
        super().__init__(assigner)
        self._stream = stream

    def get_execution_environment(self) -> Any:
        """The environment whose program the stream belongs to."""
        return self._stream._env

    def get_input_type(self) -> TypeInformation[Any]:
        """The declared type of the records; `Types.PICKLED_BYTE_ARRAY()` if there is none."""
        return self._stream.get_type()

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: None = None,
        output_type: Any = None,
    ) -> DataStream[T]: ...
    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: AnyAllWindowFunction[T, R, W],
        output_type: Any = None,
    ) -> DataStream[R]: ...
    def reduce(
        self,
        reduce_function: ReduceFunction[Any] | Callable[[T, T], Any],
        window_function: AnyAllWindowFunction[T, Any, W] | None = None,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """One running value per window; with a window function, it gets that value as its only element."""
        combine = typed_reduce(reduce_function, self._stream)
        spec = self._settings.spec(reduce=combine, process=all_function(window_function))
        return self._window(spec, output_type)

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
        window_function: AnyAllWindowFunction[V, R, W],
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[R]: ...
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, Any, Any],
        window_function: AnyAllWindowFunction[Any, Any, W] | None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """One accumulator per window; with a window function, it gets the aggregate's result as its only element."""
        spec = self._settings.spec(aggregate=aggregate_function, process=all_function(window_function))
        return self._window(spec, output_type)

    def process(
        self, process_window_function: AnyAllWindowFunction[T, R, W], output_type: Any = None
    ) -> DataStream[R]:
        """All elements of a window at once; they are kept as state until the window fires."""
        return self._window(self._settings.spec(process=all_function(process_window_function)), output_type)

    def apply(self, window_function: AnyAllWindowFunction[T, R, W], output_type: Any = None) -> DataStream[R]:
        """As `process`, for an `AllWindowFunction`."""
        return self._window(self._settings.spec(process=all_function(window_function)), output_type)

    def _window(self, spec: WindowSpec, output_type: Any) -> DataStream[Any]:
        edges = tuple(
            StreamEdge(source=node, side_tag=tag, key=only_key, key_name="everything")
            for node, tag in self._stream._outlets
        )
        made = added(self._stream, spec, edges)
        made.set_parallelism(1)
        return made._typed(output_type)
