"""`KeyedStream`: what can be done with records that share a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, overload

from emberflow.errors import InvalidArgument
from emberflow.events.types.type_information import TypeInformation
from emberflow.events.types.typed_call import typed_call
from emberflow.plan.graphs.partitioning import PartitionerKind
from emberflow.plan.graphs.stream_graph import StreamEdge
from emberflow.plan.specs import KeyedProcessSpec, ReduceSpec, Spec
from emberflow.streams.data_stream import DataStream, Outlet
from emberflow.streams.functions.aggregations import Aggregation, Field
from emberflow.streams.functions.function import (
    AnyFlatMap,
    AnyMap,
    FilterFunction,
    KeyedProcessFunction,
    ReduceFunction,
    timer_method,
)
from emberflow.streams.functions.methods import method_of
from emberflow.streams.program.declared_fields import check_field
from emberflow.windowing.assigners import WindowAssigner
from emberflow.windowing.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from emberflow.windowing.windows import CountWindow

if TYPE_CHECKING:
    from emberflow.streams.environment import StreamExecutionEnvironment
    from emberflow.streams.interval_join import IntervalJoin
    from emberflow.streams.windowed_stream import WindowedStream

K = TypeVar("K", covariant=True)
T = TypeVar("T", covariant=True)
R = TypeVar("R")
W = TypeVar("W")
TUPLE = TypeVar("TUPLE", bound=tuple[Any, ...])


class KeyedStream(DataStream[T], Generic[K, T]):
    """A stream of records of type `T`, partitioned by keys of type `K`; made by `key_by()`.

    Functions on it may use keyed state: `runtime_context.get_state(...)` in `open()`.
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        outlets: tuple[Outlet, ...],
        key_selector: Callable[[Any], Any],
        key_name: str,
    ) -> None:
        super().__init__(env, outlets)
        self._key_selector = key_selector
        self._key_name = key_name

    @overload
    def process(
        self, func: KeyedProcessFunction[K, T, object], output_type: TypeInformation[R]
    ) -> DataStream[R]: ...
    @overload
    def process(self, func: KeyedProcessFunction[K, T, R], output_type: Any = None) -> DataStream[R]: ...
    def process(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, func: KeyedProcessFunction[K, T, Any], output_type: Any = None
    ) -> DataStream[Any]:
        """State, timers and side outputs per key.

        ```python
        from collections.abc import Iterator

        from emberflow.streams import (
            KeyedProcessFunction,
            RuntimeContext,
            StreamExecutionEnvironment,
            ValueStateDescriptor,
        )


        class Total(KeyedProcessFunction[str, tuple[str, int], int]):
            def open(self, runtime_context: RuntimeContext) -> None:
                self.total = runtime_context.get_state(ValueStateDescriptor("total", int))

            def process_element(
                self, value: tuple[str, int], ctx: KeyedProcessFunction.Context
            ) -> Iterator[int]:
                total = (self.total.value() or 0) + value[1]
                self.total.update(total)
                yield total


        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        sales = env.from_collection([("ann", 1), ("ann", 2)]).key_by(lambda sale: sale[0])
        assert sales.process(Total()).execute_and_collect(limit=2) == [1, 3]
        ```
        """
        call = method_of(func, "process_element", "process()")
        return self._keyed(
            KeyedProcessSpec(function=func, calls=(call,), on_timer=timer_method(func)),
            "process",
        )._typed(output_type)

    @overload
    def map(self, func: AnyMap[T, object], output_type: TypeInformation[R]) -> DataStream[R]: ...
    @overload
    def map(self, func: AnyMap[T, R], output_type: Any = None) -> DataStream[R]: ...
    def map(self, func: AnyMap[T, Any], output_type: Any = None) -> DataStream[Any]:
        """As `DataStream.map`; a `MapFunction` may use keyed state."""
        spec = KeyedProcessSpec(kind="keyed_map", function=func, calls=(AsMap(func),))
        return self._keyed(spec, "map")._typed(output_type)

    @overload
    def flat_map(self, func: AnyFlatMap[T, object], output_type: TypeInformation[R]) -> DataStream[R]: ...
    @overload
    def flat_map(self, func: AnyFlatMap[T, R], output_type: Any = None) -> DataStream[R]: ...
    def flat_map(self, func: AnyFlatMap[T, Any], output_type: Any = None) -> DataStream[Any]:
        """As `DataStream.flat_map`; a `FlatMapFunction` may use keyed state."""
        call = AsFlatMap(method_of(func, "flat_map", "flat_map()"))
        spec = KeyedProcessSpec(kind="keyed_flat_map", function=func, calls=(call,))
        return self._keyed(spec, "flat_map")._typed(output_type)

    @overload
    def filter(self, func: Callable[[T], TypeGuard[R]]) -> DataStream[R]: ...
    @overload
    def filter(self, func: FilterFunction[T] | Callable[[T], object]) -> DataStream[T]: ...
    def filter(self, func: FilterFunction[T] | Callable[[T], object]) -> DataStream[Any]:
        """As `DataStream.filter`; a `FilterFunction` may use keyed state."""
        keep = method_of(func, "filter", "filter()")
        return self._keyed(
            KeyedProcessSpec(kind="keyed_filter", function=func, calls=(AsFilter(keep),)), "filter"
        )

    # The second overload: of `lambda word: (word, 1)` a type checker keeps that the number is 1, and no sum is.
    @overload
    def reduce(self, func: ReduceFunction[T] | Callable[[T, T], T]) -> DataStream[T]: ...
    @overload
    def reduce(
        self: KeyedStream[K, tuple[Any, ...]], func: ReduceFunction[TUPLE] | Callable[[T, T], TUPLE]
    ) -> DataStream[TUPLE]: ...
    def reduce(self, func: ReduceFunction[Any] | Callable[[T, T], Any]) -> DataStream[Any]:
        """A running value per key, emitted after every record: the first record as it is, then `func(value so far, record)`.

        In BATCH mode only the final value of each key is emitted, at the end of the input and with the last timestamp there
        is. A `ReduceFunction` may use keyed state.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        numbers = env.from_collection([1, 2, 3]).key_by(lambda number: number % 2)
        assert sorted(numbers.reduce(lambda total, number: total + number).execute_and_collect()) == [1, 2, 4]
        ```
        """
        combine = typed_call(method_of(func, "reduce", "reduce()"), self._type())
        return self._keyed(ReduceSpec(function=func, combine=combine), "reduce")

    def sum(self, position_to_sum: Field = 0) -> DataStream[T]:
        """A running sum of one field, given by position or name; the other fields are those of the first record."""
        return self._aggregate(Aggregation("sum", position_to_sum))

    def min(self, position_to_min: Field = 0) -> DataStream[T]:
        """A running minimum of one field, given by position or name; the other fields are those of the first record."""
        return self._aggregate(Aggregation("min", position_to_min))

    def max(self, position_to_max: Field = 0) -> DataStream[T]:
        """A running maximum of one field, given by position or name; the other fields are those of the first record."""
        return self._aggregate(Aggregation("max", position_to_max))

    def min_by(self, position_to_min_by: Field = 0) -> DataStream[T]:
        """The whole record with the smallest field so far; the first of equals."""
        return self._aggregate(Aggregation("min_by", position_to_min_by))

    def max_by(self, position_to_max_by: Field = 0) -> DataStream[T]:
        """The whole record with the largest field so far; the first of equals."""
        return self._aggregate(Aggregation("max_by", position_to_max_by))

    def window(self, window_assigner: WindowAssigner[Any, W]) -> WindowedStream[K, T, W]:
        """Groups each key's records into windows; event-time windows need timestamps and watermarks before.

        What is not a window assigner raises `InvalidArgument`.

        ```python
        from datetime import timedelta

        from emberflow.streams import StreamExecutionEnvironment, TumblingEventTimeWindows, WatermarkStrategy

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda event, before: event[1]
        )
        events = env.from_collection([("a", 0), ("a", 900), ("a", 1000)])
        per_second = (
            events.assign_timestamps_and_watermarks(in_time)
            .map(lambda event: (event[0], 1))
            .key_by(lambda pair: pair[0])
            .window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
            .sum(1)
        )
        assert per_second.execute_and_collect(limit=2) == [("a", 2), ("a", 1)]
        ```
        """
        from emberflow.streams.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def interval_join(self, other_stream: KeyedStream[Any, R]) -> IntervalJoin[K, T, R]:
        """Joins records of two keyed streams whose event times differ by no more than an interval; continue with `between()`.

        Raises `NotKeyed` if the other stream has no keys, `InvalidArgument` if it belongs to another environment.
        """
        from emberflow.streams.interval_join import IntervalJoin

        return IntervalJoin(self, other_stream)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[K, T, CountWindow]:
        """Groups of `size` records of a key; with a slide, one begins with every `slide`-th record.

        Groups that are not complete when the input ends are not emitted. A size or slide below 1 raises
        `InvalidArgument`.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        numbers = env.from_collection([1, 2, 3, 4, 5]).key_by(lambda number: "all")
        assert numbers.count_window(2).sum().execute_and_collect(limit=2) == [3, 7]
        ```
        """
        from emberflow.streams.windowed_stream import WindowedStream

        if slide == 0:
            return WindowedStream(self, CountTumblingWindowAssigner.of(size))
        return WindowedStream(self, CountSlidingWindowAssigner.of(size, slide))

    def _only(self, what: str) -> int:
        # As in PyFlink: the setting would change the step before key_by().
        raise InvalidArgument(
            f"{what} sets something of a step, and key_by() is none",
            way_out=f"call {what} before key_by(), or on what the next step returns",
        )

    def _partitioned(self, kind: PartitionerKind, **parts: Any) -> DataStream[Any]:
        raise InvalidArgument(
            f"{kind.value}() cannot replace the partitioning of a keyed stream",
            way_out="call it on the stream before key_by(), or on a step behind it",
        )

    def _keyed_edges(self, input_index: int = 0) -> tuple[StreamEdge, ...]:
        return tuple(
            StreamEdge(
                source=node,
                side_tag=tag,
                input_index=input_index,
                key=self._key_selector,
                key_name=self._key_name,
            )
            for node, tag in self._outlets
        )

    def _aggregate(self, aggregation: Aggregation) -> DataStream[Any]:
        check_field(self._type(), aggregation.field, aggregation.kind)
        return self._keyed(
            ReduceSpec(kind=aggregation.kind, function=aggregation, combine=aggregation), aggregation.kind
        )

    def _keyed(self, spec: Spec, name: str) -> DataStream[Any]:
        return self._added(spec, self._keyed_edges(), name)


# Classes rather than lambdas: whoever copies one for a task copies the function object inside as well.


class AsMap:
    def __init__(self, func: Any) -> None:
        self._call = method_of(func, "map", "map()")

    def __call__(self, value: Any, context: Any) -> Any:
        return (self._call(value),)


class AsFlatMap:
    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def __call__(self, value: Any, context: Any) -> Any:
        return self._call(value)


class AsFilter:
    def __init__(self, keep: Callable[[Any], Any]) -> None:
        self._keep = keep

    def __call__(self, value: Any, context: Any) -> Any:
        return (value,) if self._keep(value) else None
