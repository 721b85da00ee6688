"""`BroadcastStream`: a stream whose records reach every task, and what it is connected with."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, overload

from emberflow.errors import InvalidArgument
from emberflow.plan.graphs.partitioning import BROADCAST
from emberflow.plan.partition_specs import BroadcastSpec
from emberflow.plan.specs import function_name
from emberflow.state.descriptors import MapStateDescriptor
from emberflow.streams.connected_streams import partitioned_edges
from emberflow.streams.data_stream import DataStream
from emberflow.streams.functions.broadcast_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from emberflow.streams.functions.function import timer_method
from emberflow.streams.functions.methods import method_of
from emberflow.streams.keyed_stream import KeyedStream

T1 = TypeVar("T1", covariant=True)
T2 = TypeVar("T2", covariant=True)
K = TypeVar("K")
R = TypeVar("R")


class BroadcastStream(Generic[T2]):
    """Made by `broadcast(descriptor, ...)`; give it to `connect()` of another stream."""

    def __init__(self, stream: DataStream[T2], descriptors: tuple[MapStateDescriptor[Any, Any], ...]) -> None:
        for item in descriptors:
            if not isinstance(item, MapStateDescriptor):
                raise InvalidArgument(
                    f"broadcast() needs descriptors of map state, not {item!r}",
                    way_out='pass e.g. MapStateDescriptor("rules")',
                )
        names = [item.name for item in descriptors]
        if len(set(names)) < len(names):
            raise InvalidArgument(
                f"broadcast() got two descriptors of one name: {', '.join(names)}",
                way_out="give each broadcast state a name of its own",
            )
        self._stream = stream
        self._descriptors = descriptors


class BroadcastConnectedStream(Generic[T1, T2]):
    """A stream and a broadcast stream side by side; made by `connect()`."""

    def __init__(self, stream: DataStream[T1], broadcast: BroadcastStream[T2]) -> None:
        if stream._env is not broadcast._stream._env:
            raise InvalidArgument("connect() needs streams of one environment")
        self._first = stream
        self._broadcast = broadcast

    @overload
    def process(
        self, func: BroadcastProcessFunction[T1, T2, R], output_type: Any = None
    ) -> DataStream[R]: ...
    @overload
    def process(
        self, func: KeyedBroadcastProcessFunction[Any, T1, T2, R], output_type: Any = None
    ) -> DataStream[R]: ...
    def process(
        self,
        func: BroadcastProcessFunction[T1, T2, R] | KeyedBroadcastProcessFunction[Any, T1, T2, R],
        output_type: Any = None,
    ) -> DataStream[R]:
        """One function object per task sees the records of both streams.

        A keyed stream needs a `KeyedBroadcastProcessFunction`, another one a `BroadcastProcessFunction`; the wrong one
        raises `InvalidArgument`.
        """
        keyed = isinstance(self._first, KeyedStream)
        if keyed != isinstance(func, KeyedBroadcastProcessFunction):
            needed = "KeyedBroadcastProcessFunction" if keyed else "BroadcastProcessFunction"
            raise InvalidArgument(
                f"{function_name(func)} does not fit: the stream has {'keys' if keyed else 'no keys'}",
                way_out=f"use a {needed}, or call key_by() on the stream" if not keyed else f"use a {needed}",
            )
        calls = (
            method_of(func, "process_element", "process()"),
            method_of(func, "process_broadcast_element", "process()"),
        )
        first: Any = self._first
        kind = "keyed_broadcast_process" if keyed else "broadcast_process"
        spec = BroadcastSpec(
            kind=kind,
            function=func,
            calls=calls,
            descriptors=self._broadcast._descriptors,
            with_keys=keyed,
            on_timer=timer_method(func) if keyed else None,
        )
        edges = first._keyed_edges(0) if keyed else partitioned_edges(self._first, 0)
        edges += self._broadcast._stream._edges(BROADCAST, 1)
        return self._first._added(spec, edges, kind)._typed(output_type)
