"""`ConnectedStreams`: two inputs, one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from emberflow.errors import InvalidArgument, NotKeyed
from emberflow.plan.specs import KeyedProcessSpec
from emberflow.streams.data_stream import DataStream, method_of
from emberflow.streams.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeySelector,
    timer_method,
)
from emberflow.streams.keyed_stream import AsFlatMap, AsMap, KeyedStream

T1 = TypeVar("T1", covariant=True)
T2 = TypeVar("T2", covariant=True)
R = TypeVar("R")
K1 = TypeVar("K1")
K2 = TypeVar("K2")


class ConnectedStreams(Generic[T1, T2]):
    """Two streams side by side; made by `connect()`.

    Two keyed streams share their state per key. Without keys, a co-function runs on either side by itself.
    """

    def __init__(self, first: DataStream[T1], second: DataStream[T2]) -> None:
        if first._env is not second._env:
            raise InvalidArgument("connect() needs streams of one environment")
        if isinstance(first, KeyedStream) != isinstance(second, KeyedStream):
            raise NotKeyed(
                "connect() got one keyed stream and one without keys",
                way_out="call key_by() on both, or on neither",
            )
        self._first = first
        self._second = second

    def key_by(
        self,
        key_selector1: KeySelector[T1, K1] | Callable[[T1], K1],
        key_selector2: KeySelector[T2, K2] | Callable[[T2], K2],
        key_type: Any = None,
    ) -> ConnectedStreams[T1, T2]:
        """Partitions both streams, as `DataStream.key_by`; records of both with equal keys share state."""
        return ConnectedStreams(self._first.key_by(key_selector1), self._second.key_by(key_selector2))

    def map(self, func: CoMapFunction[T1, T2, R], output_type: Any = None) -> DataStream[R]:
        """One result per record of either input."""
        first, second = method_of(func, "map1", "map()"), method_of(func, "map2", "map()")
        if isinstance(self._first, KeyedStream):
            return self._keyed("co_map", func, AsMap(first), AsMap(second))
        return self._first.map(_Side(func, first)).union(self._second.map(_Side(func, second)))

    def flat_map(self, func: CoFlatMapFunction[T1, T2, R], output_type: Any = None) -> DataStream[R]:
        """Any number of results per record of either input."""
        first, second = method_of(func, "flat_map1", "flat_map()"), method_of(func, "flat_map2", "flat_map()")
        if isinstance(self._first, KeyedStream):
            return self._keyed("co_flat_map", func, AsFlatMap(first), AsFlatMap(second))
        return self._first.flat_map(_Side(func, first)).union(self._second.flat_map(_Side(func, second)))

    def process(self, func: CoProcessFunction[T1, T2, R], output_type: Any = None) -> DataStream[R]:
        """Two inputs with timers and state per key; streams without keys raise `NotKeyed`."""
        if not isinstance(self._first, KeyedStream):
            raise NotKeyed(
                "process() on connected streams needs keys: without them the two inputs never meet",
                way_out="call key_by() on both streams before connect()",
            )
        first = method_of(func, "process_element1", "process()")
        second = method_of(func, "process_element2", "process()")
        return self._keyed("co_process", func, first, second)

    def _keyed(self, kind: str, func: Any, first: Any, second: Any) -> DataStream[Any]:
        keyed_first: Any = self._first
        keyed_second: Any = self._second
        spec = KeyedProcessSpec(kind=kind, function=func, calls=(first, second), on_timer=timer_method(func))
        edges = keyed_first._keyed_edges(0) + keyed_second._keyed_edges(1)
        return DataStream(self._first._env, ((self._first._env._program.add(spec, edges, kind), None),))


class _Side:
    """One half of a co-function, with its life cycle."""

    def __init__(self, function: Any, call: Any) -> None:
        self._function = function
        self._call = call

    def open(self, runtime_context: Any) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def __call__(self, value: Any) -> Any:
        return self._call(value)
