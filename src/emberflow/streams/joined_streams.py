"""Window joins and co-groups: records of two streams that share a key and a window.

Both are windows over the union of the two streams, in which each record says which stream it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval
from emberflow.events.output_tag import SideOutput
from emberflow.operators.windows.window_context import WindowContext
from emberflow.streams.data_stream import DataStream, method_of
from emberflow.streams.functions.function import KeySelector, ProcessWindowFunction
from emberflow.streams.functions.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from emberflow.streams.missing_steps import ExplainsMissingSteps
from emberflow.streams.windowed_stream import WindowedStream
from emberflow.windowing.assigners import WindowAssigner
from emberflow.windowing.evictors import Evictor
from emberflow.windowing.triggers import Trigger

T1 = TypeVar("T1", covariant=True)
T2 = TypeVar("T2", covariant=True)
K = TypeVar("K")
R = TypeVar("R")

FIRST, SECOND = 0, 1
Tagged = tuple[int, Any]
"""(which stream, record)"""


class JoinedStreams(ExplainsMissingSteps, Generic[T1, T2]):
    """Two streams to be joined window by window; made by `DataStream.join()`.

    `stream.join(other).where(key).equal_to(key).window(assigner).apply(function)` calls the function for every pair with one
    key and one window. Results carry the last timestamp of the window.

    ```python
    from emberflow.streams import StreamExecutionEnvironment, TumblingEventTimeWindows, WatermarkStrategy

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda event, before: event[1]
    )
    orders = env.from_collection([("o1", 0), ("o2", 10)]).assign_timestamps_and_watermarks(in_time)
    payments = env.from_collection([("o1", 700), ("o2", 2000)]).assign_timestamps_and_watermarks(in_time)
    paid = (
        orders.join(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TumblingEventTimeWindows.of(1000))
        .apply(lambda order, payment: (order[0], payment[1] - order[1]))
    )
    assert list(paid.execute_and_collect()) == [("o1", 700)]
    ```
    """

    continues_with = "where()"

    def __init__(self, first: DataStream[T1], second: DataStream[T2]) -> None:
        _same_environment("join()", first, second)
        self._streams = first, second

    def where(self, key_selector: KeySelector[T1, K] | Callable[[T1], K]) -> JoinWhere[T1, T2, K]:
        """The key of a record of the first stream."""
        return JoinWhere(self._streams, key_selector)


class JoinWhere(ExplainsMissingSteps, Generic[T1, T2, K]):
    """A window join whose first key is known."""

    continues_with = "equal_to()"

    def __init__(self, streams: tuple[DataStream[T1], DataStream[T2]], first_key: Any) -> None:
        self._streams = streams
        self._first_key = first_key

    def equal_to(self, key_selector: KeySelector[T2, K] | Callable[[T2], K]) -> JoinEqualTo[T1, T2]:
        """The key of a record of the second stream, which has to be equal."""
        return JoinEqualTo(self._streams, _TaggedKey(self._first_key, key_selector))


class JoinEqualTo(ExplainsMissingSteps, Generic[T1, T2]):
    """A window join whose keys are known."""

    continues_with = "window()"

    def __init__(self, streams: tuple[DataStream[T1], DataStream[T2]], key: _TaggedKey) -> None:
        self._streams = streams
        self._key = key

    def window(self, assigner: WindowAssigner[Any, Any]) -> WindowJoin[T1, T2]:
        """Which records belong together."""
        return WindowJoin(_windows(self._streams, self._key, assigner))


class _OnWindows(ExplainsMissingSteps):
    """What can be set for the windows of joins and co-groups. Triggers and evictors see `(0 or 1, record)`: which stream
    it is from, and the record."""

    continues_with = "apply()"

    def __init__(self, windowed: WindowedStream[Any, Tagged, Any]) -> None:
        self._windowed = windowed

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """When windows fire; as `WindowedStream.trigger`."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Removes records of either stream before or after the function; as `WindowedStream.evictor`."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, new_lateness: Interval) -> Self:
        """How long a window is kept; it fires again, with all its records, for each late one."""
        self._windowed.allowed_lateness(new_lateness)
        return self


class WindowJoin(_OnWindows, Generic[T1, T2]):
    """A window join that only lacks its function."""

    def apply(
        self,
        function: JoinFunction[T1, T2, R] | FlatJoinFunction[T1, T2, R] | Callable[[T1, T2], R],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Calls the function for every pair: a `JoinFunction` or a plain `function(first, second)` returns one result, a
        `FlatJoinFunction` any number."""
        return self._windowed.process(_EachPair(function), output_type).name("window_join")


class CoGroupedStreams(ExplainsMissingSteps, Generic[T1, T2]):
    """Two streams to be grouped window by window; made by `DataStream.co_group()`.

    `stream.co_group(other).where(key).equal_to(key).window(assigner).apply(function)` calls the function once for each key
    and window with the records of both streams. Results carry the last timestamp of the window.

    ```python
    from emberflow.streams import StreamExecutionEnvironment, TumblingEventTimeWindows, WatermarkStrategy

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda event, before: event[1]
    )
    orders = env.from_collection([("o1", 0), ("o2", 10)]).assign_timestamps_and_watermarks(in_time)
    payments = env.from_collection([("o1", 700)]).assign_timestamps_and_watermarks(in_time)
    unpaid = (
        orders.co_group(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TumblingEventTimeWindows.of(1000))
        .apply(lambda orders, payments: [] if list(payments) else orders)
    )
    assert list(unpaid.execute_and_collect()) == [("o2", 10)]
    ```
    """

    continues_with = "where()"

    def __init__(self, first: DataStream[T1], second: DataStream[T2]) -> None:
        _same_environment("co_group()", first, second)
        self._streams = first, second

    def where(self, key_selector: KeySelector[T1, K] | Callable[[T1], K]) -> CoGroupWhere[T1, T2, K]:
        """The key of a record of the first stream."""
        return CoGroupWhere(self._streams, key_selector)


class CoGroupWhere(ExplainsMissingSteps, Generic[T1, T2, K]):
    """A co-group whose first key is known."""

    continues_with = "equal_to()"

    def __init__(self, streams: tuple[DataStream[T1], DataStream[T2]], first_key: Any) -> None:
        self._streams = streams
        self._first_key = first_key

    def equal_to(self, key_selector: KeySelector[T2, K] | Callable[[T2], K]) -> CoGroupEqualTo[T1, T2]:
        """The key of a record of the second stream, which has to be equal."""
        return CoGroupEqualTo(self._streams, _TaggedKey(self._first_key, key_selector))


class CoGroupEqualTo(ExplainsMissingSteps, Generic[T1, T2]):
    """A co-group whose keys are known."""

    continues_with = "window()"

    def __init__(self, streams: tuple[DataStream[T1], DataStream[T2]], key: _TaggedKey) -> None:
        self._streams = streams
        self._key = key

    def window(self, assigner: WindowAssigner[Any, Any]) -> WindowCoGroup[T1, T2]:
        """Which records belong together."""
        return WindowCoGroup(_windows(self._streams, self._key, assigner))


class WindowCoGroup(_OnWindows, Generic[T1, T2]):
    """A co-group that only lacks its function."""

    def apply(
        self,
        function: CoGroupFunction[T1, T2, R]
        | Callable[[Iterable[T1], Iterable[T2]], Iterable[R | SideOutput] | None],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Calls the function for every key and window in which one of the streams has a record."""
        return self._windowed.process(_BothGroups(function), output_type).name("co_group")


def _same_environment(method: str, first: DataStream[Any], second: DataStream[Any]) -> None:
    if first._env is not second._env:
        raise InvalidArgument(f"{method} needs streams of one environment")


def _windows(
    streams: tuple[DataStream[Any], DataStream[Any]], key: _TaggedKey, assigner: WindowAssigner[Any, Any]
) -> WindowedStream[Any, Tagged, Any]:
    first, second = (_tagged(stream, side) for side, stream in enumerate(streams))
    return first.union(second).key_by(key).window(assigner)


def _tagged(stream: DataStream[Any], side: int) -> DataStream[Tagged]:
    # Of a keyed stream only the records count: the join has keys of its own.
    plain: DataStream[Any] = DataStream(stream._env, stream._outlets)
    return plain.map(_Tag(side)).name("tag")


class _Tag:
    def __init__(self, side: int) -> None:
        self._side = side

    def __call__(self, value: Any) -> Tagged:
        return self._side, value


class _TaggedKey(KeySelector[Tagged, Any]):
    """The key of a record, by the stream it is from."""

    def __init__(self, first: Any, second: Any) -> None:
        self._functions = first, second
        self._calls = method_of(first, "get_key", "where()"), method_of(second, "get_key", "equal_to()")

    def open(self, runtime_context: Any) -> None:
        for function in self._functions:
            _call_if_there(function, "open", runtime_context)

    def close(self) -> None:
        for function in self._functions:
            _call_if_there(function, "close")

    def get_key(self, value: Tagged) -> Any:
        return self._calls[value[0]](value[1])


class _OfTwoStreams(ProcessWindowFunction[Tagged, Any, Any, Any]):
    """What the functions of joins and co-groups have in common: their life cycle, and the elements apart."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def open(self, runtime_context: Any) -> None:
        _call_if_there(self._function, "open", runtime_context)

    def close(self) -> None:
        _call_if_there(self._function, "close")

    def _apart(self, elements: Iterable[Tagged]) -> tuple[list[Any], list[Any]]:
        apart: tuple[list[Any], list[Any]] = [], []
        for side, value in elements:
            apart[side].append(value)
        return apart


class _EachPair(_OfTwoStreams):
    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._call = method_of(function, "join", "apply()")
        self._flat = isinstance(function, FlatJoinFunction)

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Tagged]) -> Iterable[Any]:
        firsts, seconds = self._apart(elements)
        for first in firsts:
            for second in seconds:
                result = self._call(first, second)
                if not self._flat:
                    yield result
                elif result is not None:
                    yield from result


class _BothGroups(_OfTwoStreams):
    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._call = method_of(function, "co_group", "apply()")

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Tagged]) -> Any:
        return self._call(*self._apart(elements))


def _call_if_there(function: Any, method: str, *arguments: Any) -> None:
    found = getattr(function, method, None)
    if found is not None:
        found(*arguments)
