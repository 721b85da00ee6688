"""`ConnectedStreams`: two inputs, one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from emberflow.errors import InvalidArgument, NotKeyed
from emberflow.plan.graphs.partitioning import AS_SENT, Partitioner, PartitionerKind
from emberflow.plan.graphs.stream_graph import StreamEdge
from emberflow.plan.partition_specs import CoProcessSpec
from emberflow.plan.specs import KeyedProcessSpec, function_name
from emberflow.streams.data_stream import DataStream
from emberflow.streams.functions.function import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
    timer_method,
)
from emberflow.streams.functions.methods import method_of
from emberflow.streams.keyed_stream import AsFlatMap, KeyedStream
from emberflow.streams.missing_steps import ExplainsMissingSteps

T1 = TypeVar("T1", covariant=True)
T2 = TypeVar("T2", covariant=True)
R = TypeVar("R")
K1 = TypeVar("K1")
K2 = TypeVar("K2")


class ConnectedStreams(ExplainsMissingSteps, Generic[T1, T2]):
    """Two streams side by side; made by `connect()`.

    Two keyed streams share their state per key. If one of them has no keys, there is no keyed state and there are no timers,
    but each task has one function object that sees the records of both.
    """

    continues_with = "map(), flat_map() or process()"

    def __init__(self, first: DataStream[T1], second: DataStream[T2]) -> None:
        if first._env is not second._env:
            raise InvalidArgument("connect() needs streams of one environment")
        self._first = first
        self._second = second

    def key_by(
        self,
        key_selector1: KeySelector[T1, K1] | Callable[[T1], K1],
        key_selector2: KeySelector[T2, K2] | Callable[[T2], K2],
        key_type: Any = None,
    ) -> ConnectedStreams[T1, T2]:
        """Partitions both streams, as `DataStream.key_by`; records of both with equal keys share state."""
        return ConnectedStreams(
            self._first.key_by(key_selector1, key_type), self._second.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction[T1, T2, R], output_type: Any = None) -> DataStream[R]:
        """One result per record of either input; as in PyFlink, None is none."""
        first, second = method_of(func, "map1", "map()"), method_of(func, "map2", "map()")
        return self._added("co_map", func, AsCoMap(first), AsCoMap(second))._typed(output_type)

    def flat_map(self, func: CoFlatMapFunction[T1, T2, R], output_type: Any = None) -> DataStream[R]:
        """Any number of results per record of either input."""
        first, second = method_of(func, "flat_map1", "flat_map()"), method_of(func, "flat_map2", "flat_map()")
        return self._added("co_flat_map", func, AsFlatMap(first), AsFlatMap(second))._typed(output_type)

    def process(self, func: CoProcessFunction[T1, T2, R], output_type: Any = None) -> DataStream[R]:
        """Two inputs with side outputs; with keys also state and timers.

        A `KeyedCoProcessFunction` on streams without keys raises `NotKeyed`.

        ```python
        from collections.abc import Iterator

        from emberflow.streams import CoProcessFunction, StreamExecutionEnvironment


        class Announce(CoProcessFunction[str, int, str]):
            def process_element1(self, value: str, ctx: CoProcessFunction.Context) -> Iterator[str]:
                yield f"word {value}"

            def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[str]:
                yield f"number {value}"


        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        both = env.from_collection(["a"]).connect(env.from_collection([1]))
        assert sorted(both.process(Announce()).execute_and_collect()) == ["number 1", "word a"]
        ```
        """
        if isinstance(func, KeyedCoProcessFunction) and not self._keyed:
            raise NotKeyed(
                f"{function_name(func)} is a keyed function, but not both streams have keys",
                way_out="call key_by() on both streams or on the connected streams, or use a CoProcessFunction",
            )
        first = method_of(func, "process_element1", "process()")
        second = method_of(func, "process_element2", "process()")
        return self._added("co_process", func, first, second)._typed(output_type)

    @property
    def _keyed(self) -> bool:
        return isinstance(self._first, KeyedStream) and isinstance(self._second, KeyedStream)

    def _added(self, kind: str, func: Any, first: Any, second: Any) -> DataStream[Any]:
        streams: list[Any] = [self._first, self._second]
        if self._keyed:
            spec = KeyedProcessSpec(
                kind=kind, function=func, calls=(first, second), on_timer=timer_method(func)
            )
            edges = streams[0]._keyed_edges(0) + streams[1]._keyed_edges(1)
        else:
            spec = CoProcessSpec(kind=f"unkeyed_{kind}", function=func, calls=(first, second))
            edges = partitioned_edges(streams[0], 0) + partitioned_edges(streams[1], 1)
        return self._first._added(spec, edges, kind)


def partitioned_edges(stream: DataStream[Any], input_index: int) -> tuple[StreamEdge, ...]:
    """Into a step without keys that heads a stage of its own. A keyed stream stays partitioned by its key."""
    if not isinstance(stream, KeyedStream):
        return stream._edges(AS_SENT, input_index)
    by_key = Partitioner(kind=PartitionerKind.HASH, key=stream._key_selector, name=stream._key_name)
    return stream._edges(by_key, input_index)


class AsCoMap:
    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def __call__(self, value: Any, context: Any) -> Any:
        result = self._call(value)
        return None if result is None else (result,)
