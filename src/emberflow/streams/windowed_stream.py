"""`WindowedStream`: what happens to a window's elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.windows import WindowAssigner
from emberflow.operators.window_context import WindowContext
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


class WindowedStream:
    def __init__(self, keyed: KeyedStream, assigner: WindowAssigner) -> None:
        if not callable(getattr(assigner, "assign", None)):
            raise InvalidArgument(
                f"window() needs a window assigner, not {assigner!r}",
                way_out="write e.g. TumblingEventTimeWindows.of(timedelta(seconds=5))",
            )
        self._keyed = keyed
        self._assigner = assigner

    def reduce(
        self,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        window_function: ProcessWindowFunction | WindowFunction | None = None,
        output_type: Any = None,
    ) -> DataStream:
        """One running value per window; with a window function, it gets that value as its only element."""
        combine = method_of(reduce_function, "reduce", "reduce()")
        return self._window(
            WindowSpec(assigner=self._assigner, reduce=combine, process=_process(window_function))
        )

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: ProcessWindowFunction | WindowFunction | None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """One accumulator per window."""
        return self._window(
            WindowSpec(
                assigner=self._assigner, aggregate=aggregate_function, process=_process(window_function)
            )
        )

    def process(self, process_window_function: ProcessWindowFunction, output_type: Any = None) -> DataStream:
        """All elements of a window at once."""
        return self._window(WindowSpec(assigner=self._assigner, process=_process(process_window_function)))

    def apply(self, window_function: WindowFunction, output_type: Any = None) -> DataStream:
        return self._window(WindowSpec(assigner=self._assigner, process=_process(window_function)))

    def sum(self, position: Field = 0) -> DataStream:
        return self.reduce(Aggregation("sum", position))

    def min(self, position: Field = 0) -> DataStream:
        return self.reduce(Aggregation("min", position))

    def max(self, position: Field = 0) -> DataStream:
        return self.reduce(Aggregation("max", position))

    def min_by(self, position: Field = 0) -> DataStream:
        return self.reduce(Aggregation("min_by", position))

    def max_by(self, position: Field = 0) -> DataStream:
        return self.reduce(Aggregation("max_by", position))

    def _window(self, spec: WindowSpec) -> DataStream:
        return DataStream(
            self._keyed.env, ((self._keyed.env.program.add(spec, self._keyed.keyed_edges(), "window"), None),)
        )


class _AppliedWindowFunction(ProcessWindowFunction):
    """A `WindowFunction` in the clothes of a `ProcessWindowFunction`."""

    def __init__(self, function: WindowFunction) -> None:
        self.open = function.open
        self.close = function.close
        self._function = function

    def process(self, key: Any, context: WindowContext[Any], elements: Any) -> Any:
        return self._function.apply(key, context.window(), elements)


class _PlainWindowFunction(ProcessWindowFunction):
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
