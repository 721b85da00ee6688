"""`WindowedStream`: what happens to a window's elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, overload

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.events.output_tag import OutputTag
from emberflow.events.types.type_information import TypeInformation
from emberflow.events.types.typed_call import typed_call
from emberflow.plan.graphs.stream_graph import StreamEdge
from emberflow.plan.window_specs import WindowSpec
from emberflow.streams.data_stream import DataStream
from emberflow.streams.functions.aggregations import Aggregation, Field
from emberflow.streams.functions.function import AggregateFunction, ReduceFunction
from emberflow.streams.functions.methods import check_aggregate, check_object, method_of
from emberflow.streams.functions.window_functions import (
    AnyWindowFunction,
    can_merge,
    keyed_function,
    shares_panes,
)
from emberflow.streams.keyed_stream import KeyedStream
from emberflow.streams.missing_steps import ExplainsMissingSteps
from emberflow.streams.program.declared_fields import check_field
from emberflow.windowing.assigners import MergingWindowAssigner, WindowAssigner
from emberflow.windowing.evictors import Evictor
from emberflow.windowing.triggers import Trigger

K = TypeVar("K", covariant=True)
T = TypeVar("T", covariant=True)
W = TypeVar("W", covariant=True)
R = TypeVar("R")
TUPLE = TypeVar("TUPLE", bound=tuple[Any, ...])
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    """What the methods of a windowed stream collect before a function is given."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any] | None = None
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag[Any] | None = None

    def spec(self, *, reduce: Any = None, aggregate: Any = None, process: Any = None) -> WindowSpec:
        """The step; raises `InvalidArgument` for a function that windows of this kind cannot use."""
        if aggregate is not None:
            check_aggregate(aggregate)
        merging = isinstance(self.assigner, MergingWindowAssigner)
        if aggregate is not None and merging and not can_merge(aggregate):
            raise InvalidArgument(
                f"{type(aggregate).__name__} has no merge(), which session windows need: they become one when a record "
                "closes the gap between them",
                way_out="override merge(acc_a, acc_b)",
            )
        return WindowSpec(
            assigner=self.assigner,
            reduce=reduce,
            aggregate=aggregate,
            process=process,
            trigger=self.trigger,
            evictor=self.evictor,
            allowed_lateness_ms=self.allowed_lateness_ms,
            late_tag=self.late_tag,
            mergeable=shares_panes(reduce, aggregate),
        )


class WindowOptions(ExplainsMissingSteps):
    """Trigger, evictor and lateness: what keyed windows and those of `window_all()` have in common."""

    continues_with = "reduce(), aggregate(), apply() or process()"

    def __init__(self, assigner: Any) -> None:
        check_object(assigner, "assign_windows", "window()", made_by=".of")
        if not callable(getattr(assigner, "assign_windows", None)):
            raise InvalidArgument(
                f"window() needs a window assigner, not {assigner!r}",
                way_out="write e.g. TumblingEventTimeWindows.of(timedelta(seconds=5))",
            )
        self._settings = WindowSettings(assigner=assigner)

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """When windows fire, instead of the assigner's own trigger.

        Raises `InvalidArgument` for sessions if the trigger cannot merge.
        """
        if not isinstance(trigger, Trigger):
            raise InvalidArgument(
                f"trigger() needs a Trigger, not {trigger!r}", way_out="write e.g. CountTrigger.of(10)"
            )
        if isinstance(self._settings.assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise InvalidArgument(
                f"a merging window assigner cannot be used with {type(trigger).__name__}, which does not support merging",
                way_out="override can_merge() and on_merge() of the trigger",
            )
        self._settings = replace(self._settings, trigger=trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Removes elements before or after the window function; the windows then keep all elements."""
        if not isinstance(evictor, Evictor):
            raise InvalidArgument(
                f"evictor() needs an Evictor, not {evictor!r}", way_out="write e.g. CountEvictor.of(10)"
            )
        self._settings = replace(self._settings, evictor=evictor)
        return self

    def allowed_lateness(self, time_ms: Interval) -> Self:
        """How long a window is kept after the watermark has passed its end; it fires again for each late record.

        It has no effect on windows of processing time. A negative time raises `InvalidArgument`.
        """
        lateness_ms = to_ms(time_ms, "the allowed lateness")
        if lateness_ms < 0:
            raise InvalidArgument(f"the allowed lateness must not be negative, got {lateness_ms} ms")
        self._settings = replace(self._settings, allowed_lateness_ms=lateness_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Sends records that belong to no window any more to a side output of the result; they are not counted as
        dropped."""
        if not isinstance(output_tag, OutputTag):
            raise InvalidArgument(f"side_output_late_data() needs an OutputTag, not {output_tag!r}")
        self._settings = replace(self._settings, late_tag=output_tag)
        return self


class WindowedStream(WindowOptions, Generic[K, T, W]):
    """The windows of a keyed stream; made by `KeyedStream.window()`. A window's results carry its last timestamp."""

    def __init__(self, keyed: KeyedStream[K, T], assigner: WindowAssigner[Any, W]) -> None:
        super().__init__(assigner)
        self._keyed = keyed

    def get_execution_environment(self) -> Any:
        """The environment whose program the stream belongs to."""
        return self._keyed._env

    def get_input_type(self) -> TypeInformation[Any]:
        """The declared type of the records; `Types.PICKLED_BYTE_ARRAY()` if there is none."""
        return self._keyed.get_type()

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
        """One running value per window; with a window function, it gets that value as its only element.

        Sliding windows share panes if the function is `mergeable`.
        """
        combine = typed_reduce(reduce_function, self._keyed)
        spec = self._settings.spec(reduce=combine, process=keyed_function(window_function))
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
        """One accumulator per window; with a window function, it gets the aggregate's result as its only element.

        Session windows need the function's `merge()`: `InvalidArgument` if it has none.
        """
        spec = self._settings.spec(aggregate=aggregate_function, process=keyed_function(window_function))
        return self._window(spec, output_type)

    def process(
        self, process_window_function: AnyWindowFunction[T, R, K, W], output_type: Any = None
    ) -> DataStream[R]:
        """All elements of a window at once; they are kept as state until the window fires."""
        spec = self._settings.spec(process=keyed_function(process_window_function))
        return self._window(spec, output_type)

    def apply(self, window_function: AnyWindowFunction[T, R, K, W], output_type: Any = None) -> DataStream[R]:
        """As `process`, for a `WindowFunction`."""
        return self._window(self._settings.spec(process=keyed_function(window_function)), output_type)

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

    def _window(self, spec: WindowSpec, output_type: Any) -> DataStream[Any]:
        return added(self._keyed, spec, self._keyed._keyed_edges())._typed(output_type)


def added(stream: DataStream[Any], spec: WindowSpec, edges: tuple[StreamEdge, ...]) -> DataStream[Any]:
    """The window step as a stream."""
    return DataStream(stream._env, ((stream._env._program.add(spec, edges, "window"), None),))


def typed_reduce(function: Any, stream: DataStream[Any]) -> Callable[[Any, Any], Any]:
    """A reduce function whose results are converted to the declared type of the stream. Sums and the like keep it."""
    combine = method_of(function, "reduce", "reduce()")
    if not isinstance(function, Aggregation):
        return typed_call(combine, stream._type())
    check_field(stream._type(), function.field, function.kind)
    return combine
