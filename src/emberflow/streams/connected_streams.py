"""`ConnectedStreams`: two inputs, one function."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument, NotKeyed
from emberflow.plan.specs import KeyedProcessSpec
from emberflow.streams.data_stream import DataStream, method_of
from emberflow.streams.functions import CoFlatMapFunction, CoMapFunction, CoProcessFunction
from emberflow.streams.keyed_stream import AsFlatMap, AsMap, KeyedStream


class ConnectedStreams:
    """Keyed × keyed shares state per key. Without keys, a co-map is a map on either side."""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        if first.env is not second.env:
            raise InvalidArgument("connect() needs streams of one environment")
        if isinstance(first, KeyedStream) != isinstance(second, KeyedStream):
            raise NotKeyed(
                "connect() got one keyed stream and one without keys",
                way_out="call key_by() on both, or on neither",
            )
        self._first = first
        self._second = second

    def key_by(self, key_selector1: Any, key_selector2: Any, key_type: Any = None) -> ConnectedStreams:
        return ConnectedStreams(self._first.key_by(key_selector1), self._second.key_by(key_selector2))

    def map(self, func: CoMapFunction, output_type: Any = None) -> DataStream:
        first, second = method_of(func, "map1", "map()"), method_of(func, "map2", "map()")
        if isinstance(self._first, KeyedStream):
            return self._keyed("co_map", func, AsMap(first), AsMap(second))
        return self._first.map(_Side(func, first)).union(self._second.map(_Side(func, second)))

    def flat_map(self, func: CoFlatMapFunction, output_type: Any = None) -> DataStream:
        first, second = method_of(func, "flat_map1", "flat_map()"), method_of(func, "flat_map2", "flat_map()")
        if isinstance(self._first, KeyedStream):
            return self._keyed("co_flat_map", func, AsFlatMap(first), AsFlatMap(second))
        return self._first.flat_map(_Side(func, first)).union(self._second.flat_map(_Side(func, second)))

    def process(self, func: CoProcessFunction, output_type: Any = None) -> DataStream:
        """Two inputs, timers and state per key."""
        if not isinstance(self._first, KeyedStream):
            raise NotKeyed(
                "process() on connected streams needs keys: without them the two inputs never meet",
                way_out="call key_by() on both streams before connect()",
            )
        first = method_of(func, "process_element1", "process()")
        second = method_of(func, "process_element2", "process()")
        return self._keyed("co_process", func, first, second)

    def _keyed(self, kind: str, func: Any, first: Any, second: Any) -> DataStream:
        assert isinstance(self._first, KeyedStream)
        assert isinstance(self._second, KeyedStream)
        spec = KeyedProcessSpec(
            kind=kind, function=func, calls=(first, second), on_timer=getattr(func, "on_timer", None)
        )
        edges = self._first.keyed_edges(0) + self._second.keyed_edges(1)
        return DataStream(self._first.env, ((self._first.env.program.add(spec, edges, kind), None),))


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
