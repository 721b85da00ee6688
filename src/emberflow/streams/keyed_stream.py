"""`KeyedStream`: what can be done with records that share a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from emberflow.event_time.windows import WindowAssigner
from emberflow.plan.specs import KeyedProcessSpec, ReduceSpec, Spec
from emberflow.plan.stream_graph import StreamEdge
from emberflow.streams.aggregations import Aggregation, Field
from emberflow.streams.data_stream import DataStream, Outlet, method_of
from emberflow.streams.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
)

if TYPE_CHECKING:
    from emberflow.streams.environment import StreamExecutionEnvironment
    from emberflow.streams.windowed_stream import WindowedStream


class KeyedStream(DataStream):
    """Functions on a keyed stream may use keyed state (`open()` -> `get_state(...)`)."""

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

    def process(self, func: KeyedProcessFunction, output_type: Any = None) -> DataStream:  # type: ignore[override]
        """State, timers and side outputs per key."""
        call = method_of(func, "process_element", "process()")
        return self._keyed(
            KeyedProcessSpec(function=func, calls=(call,), on_timer=getattr(func, "on_timer", None)),
            "process",
        )

    def map(self, func: MapFunction | Callable[[Any], Any], output_type: Any = None) -> DataStream:
        return self._keyed(KeyedProcessSpec(kind="keyed_map", function=func, calls=(AsMap(func),)), "map")

    def flat_map(
        self, func: FlatMapFunction | Callable[[Any], Iterable[Any] | None], output_type: Any = None
    ) -> DataStream:
        call = AsFlatMap(method_of(func, "flat_map", "flat_map()"))
        return self._keyed(KeyedProcessSpec(kind="keyed_flat_map", function=func, calls=(call,)), "flat_map")

    def filter(self, func: FilterFunction | Callable[[Any], bool]) -> DataStream:
        keep = method_of(func, "filter", "filter()")
        return self._keyed(
            KeyedProcessSpec(kind="keyed_filter", function=func, calls=(AsFilter(keep),)), "filter"
        )

    def reduce(self, func: ReduceFunction | Callable[[Any, Any], Any]) -> DataStream:
        """A running value per key, emitted after every record."""
        return self._keyed(ReduceSpec(function=func, combine=method_of(func, "reduce", "reduce()")), "reduce")

    def sum(self, position_to_sum: Field = 0) -> DataStream:
        """A running sum of one field; the other fields are those of the first record."""
        return self._aggregate(Aggregation("sum", position_to_sum))

    def min(self, position_to_min: Field = 0) -> DataStream:
        """A running minimum of one field; the other fields are those of the first record."""
        return self._aggregate(Aggregation("min", position_to_min))

    def max(self, position_to_max: Field = 0) -> DataStream:
        """A running maximum of one field; the other fields are those of the first record."""
        return self._aggregate(Aggregation("max", position_to_max))

    def min_by(self, position_to_min_by: Field = 0) -> DataStream:
        """The whole record with the smallest field so far; the first of equals."""
        return self._aggregate(Aggregation("min_by", position_to_min_by))

    def max_by(self, position_to_max_by: Field = 0) -> DataStream:
        """The whole record with the largest field so far; the first of equals."""
        return self._aggregate(Aggregation("max_by", position_to_max_by))

    def window(self, window_assigner: WindowAssigner) -> WindowedStream:
        """Groups each key's records into windows."""
        from emberflow.streams.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def keyed_edges(self, input_index: int = 0) -> tuple[StreamEdge, ...]:
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

    def together_with(self, more: DataStream) -> KeyedStream:
        """Further records under the same keys; for layers above this one."""
        return KeyedStream(self.env, (*self.outlets, *more.outlets), self._key_selector, self._key_name)

    def add_step(self, spec: Spec, name: str) -> DataStream:
        """Any keyed step; for layers above this one."""
        return self._keyed(spec, name)

    def _aggregate(self, aggregation: Aggregation) -> DataStream:
        return self._keyed(
            ReduceSpec(kind=aggregation.kind, function=aggregation, combine=aggregation), aggregation.kind
        )

    def _keyed(self, spec: Spec, name: str) -> DataStream:
        return self._added(spec, self.keyed_edges(), name)


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
