"""`DataStream`: a stream without keys, and the steps it offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeGuard, TypeVar, overload

from emberflow.connectors.client_sinks import PrintSink
from emberflow.connectors.dataframe import schema_of
from emberflow.connectors.sink import FunctionSink, Sink, SinkFunction
from emberflow.errors import InvalidArgument, NotSupported
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.output_tag import OutputTag
from emberflow.events.types.object_types import declared_type
from emberflow.events.types.type_information import PickledBytesTypeInfo, TypeInformation
from emberflow.plan.graphs.declared_types import common_type
from emberflow.plan.graphs.partitioning import BY_CHANNEL, Partitioner, PartitionerKind, PartitionSpec
from emberflow.plan.graphs.stream_graph import StreamEdge
from emberflow.plan.specs import (
    FilterSpec,
    FlatMapSpec,
    MapSpec,
    ProcessSpec,
    SinkSpec,
    Spec,
    TimestampsSpec,
    WatermarkGeneratorSpec,
    function_name,
)
from emberflow.streams.functions.function import (
    AnyFlatMap,
    AnyKey,
    AnyMap,
    FilterFunction,
    ProcessFunction,
)
from emberflow.streams.functions.key_selectors import key_selector_of
from emberflow.streams.functions.methods import Projection, check_strategy, method_of, tag_id_of
from emberflow.streams.physical_partitioning import PhysicalPartitioning
from emberflow.streams.program.declared_fields import check_field
from emberflow.streams.step_settings import StepSettings
from emberflow.windowing.assigners import WindowAssigner

if TYPE_CHECKING:
    from emberflow.streams.all_windowed_stream import AllWindowedStream
    from emberflow.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from emberflow.streams.connected_streams import ConnectedStreams
    from emberflow.streams.environment import StreamExecutionEnvironment
    from emberflow.streams.joined_streams import CoGroupedStreams, JoinedStreams
    from emberflow.streams.keyed_stream import KeyedStream
    from emberflow.streams.results import CloseableIterator

T = TypeVar("T", covariant=True)
R = TypeVar("R")
W = TypeVar("W")

Outlet = tuple[int, str | None]
"""(step, side output)"""


class DataStream(StepSettings, PhysicalPartitioning[T], Generic[T]):
    """A stream of records of type `T`; every method adds a step to the program, nothing runs before `execute()`.

    Made by a source of the environment, or by a step of another stream. Functions are callables or objects of the
    function classes (`MapFunction`, …); they are sent to the workers, so they must be picklable.

    ```python
    from emberflow.streams import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    words = env.from_collection(["to be", "or not"]).flat_map(str.split)
    assert words.map(len).execute_and_collect(limit=4) == [2, 2, 2, 3]
    ```
    """

    def __init__(self, env: StreamExecutionEnvironment, outlets: tuple[Outlet, ...]) -> None:
        super().__init__(env)
        self._outlets = outlets

    def get_type(self) -> TypeInformation[Any]:
        """The declared type of the records; `Types.PICKLED_BYTE_ARRAY()` where none is declared."""
        return self._type() or PickledBytesTypeInfo()

    # steps

    @overload
    def map(self, func: AnyMap[T, object], output_type: TypeInformation[R]) -> DataStream[R]: ...
    @overload
    def map(self, func: AnyMap[T, R], output_type: Any = None) -> DataStream[R]: ...
    def map(self, func: AnyMap[T, Any], output_type: Any = None) -> DataStream[Any]:
        """One result per record: `func(value)`, or `func.map(value)` of a `MapFunction`.

        Results are converted to `output_type`, such as `Types.INT()`; without one they are passed on as they are. What is not
        callable raises `InvalidArgument`; an error of the function, or a result that does not fit, fails the job with
        `StepFailed`, which names the step and the value.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        doubled = env.from_collection([1, 2]).map(lambda number: number * 2)
        assert doubled.execute_and_collect(limit=2) == [2, 4]
        ```
        """
        return self._step(MapSpec(function=func, call=method_of(func, "map", "map()")), "map")._typed(
            output_type
        )

    @overload
    def flat_map(self, func: AnyFlatMap[T, object], output_type: TypeInformation[R]) -> DataStream[R]: ...
    @overload
    def flat_map(self, func: AnyFlatMap[T, R], output_type: Any = None) -> DataStream[R]: ...
    def flat_map(self, func: AnyFlatMap[T, Any], output_type: Any = None) -> DataStream[Any]:
        """Any number of results per record: all that `func(value)` returns or yields; None is none.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        words = env.from_collection(["to be", ""]).flat_map(lambda line: line.split())
        assert words.execute_and_collect(limit=3) == ["to", "be"]
        ```
        """
        return self._step(
            FlatMapSpec(function=func, call=method_of(func, "flat_map", "flat_map()")), "flat_map"
        )._typed(output_type)

    @overload
    def filter(self, func: Callable[[T], TypeGuard[R]]) -> DataStream[R]: ...
    @overload
    def filter(self, func: FilterFunction[T] | Callable[[T], object]) -> DataStream[T]: ...
    def filter(self, func: FilterFunction[T] | Callable[[T], object]) -> DataStream[Any]:
        """Keeps the records for which the function returns a true value."""
        return self._step(FilterSpec(function=func, call=method_of(func, "filter", "filter()")), "filter")

    @overload
    def process(self, func: ProcessFunction[T, object], output_type: TypeInformation[R]) -> DataStream[R]: ...
    @overload
    def process(self, func: ProcessFunction[T, R], output_type: Any = None) -> DataStream[R]: ...
    def process(self, func: ProcessFunction[T, Any], output_type: Any = None) -> DataStream[Any]:
        """Timestamps, the watermark and side outputs; state and timers need `key_by()` before.

        A `KeyedProcessFunction` raises `InvalidArgument`: this stream has no keys.

        ```python
        from collections.abc import Iterator

        from emberflow.streams import ProcessFunction, StreamExecutionEnvironment


        class Stamped(ProcessFunction[str, tuple[str, int | None]]):
            def process_element(
                self, value: str, ctx: ProcessFunction.Context
            ) -> Iterator[tuple[str, int | None]]:
                yield value, ctx.timestamp()


        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        assert env.from_collection(["a"]).process(Stamped()).execute_and_collect(limit=1) == [("a", None)]
        ```
        """
        if hasattr(func, "on_timer"):
            raise InvalidArgument(
                f"{function_name(func)} is a keyed function, but this stream has no keys",
                way_out="call key_by() before process()",
            )
        return self._step(
            ProcessSpec(function=func, call=method_of(func, "process_element", "process()")), "process"
        )._typed(output_type)

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """A tuple of some fields of each record, by their positions; a position that is no whole number raises
        `InvalidArgument`.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        assert env.from_collection([("a", 1, True)]).project(2, 0).execute_and_collect(limit=1) == [
            (True, "a")
        ]
        ```
        """
        projection = Projection(field_indexes)
        projected = self._step(MapSpec(kind="project", function=None, call=projection), "project")
        return projected._typed(projection.type_of(self._type()))

    def cache(self) -> DataStream[T]:
        """Raises `NotSupported`: nothing is kept between two executions."""
        raise NotSupported(
            "a stream cannot be cached", way_out="write it to a sink, or use to_dataframe().cache() on Spark"
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[T]:
        """Event time from here on; earlier watermarks are replaced."""
        check_strategy(watermark_strategy)
        if watermark_strategy.generator is None:
            return self._step(TimestampsSpec(strategy=watermark_strategy), "timestamps")
        edges = self._edges(BY_CHANNEL)
        return self._added(WatermarkGeneratorSpec(strategy=watermark_strategy), edges, "watermarks")

    @overload
    def key_by(
        self, key_selector: AnyKey[T, object] | int | str, key_type: TypeInformation[R]
    ) -> KeyedStream[R, T]: ...
    @overload
    def key_by(self, key_selector: AnyKey[T, R], key_type: Any = None) -> KeyedStream[R, T]: ...
    @overload
    def key_by(self, key_selector: int | str, key_type: Any = None) -> KeyedStream[Any, T]: ...
    def key_by(self, key_selector: AnyKey[T, Any] | int | str, key_type: Any = None) -> KeyedStream[Any, T]:
        """Partitions the stream: records with equal keys are processed in one place, in order.

        `key_selector` is a function, a `KeySelector`, or the name or position of a field. The key is a hashable value that is the same in every process, such as a string, number,
        bytes, None, date, enum, a tuple or list of these or a frozen dataclass. It must always return the same key for the same
        record. One that raises, or returns what cannot be hashed, fails the job with `KeySelectorFailed`, which names
        the value. State and timers of the steps that follow belong to a key. Keys are converted to `key_type`.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        sales = env.from_collection([("ann", 1), ("bob", 5), ("ann", 2)])
        totals = sales.key_by(lambda sale: sale[0]).reduce(lambda total, sale: (total[0], total[1] + sale[1]))
        assert sorted(totals.execute_and_collect()) == [("ann", 1), ("ann", 3), ("bob", 5)]
        ```
        """
        from emberflow.streams.keyed_stream import KeyedStream

        if isinstance(key_selector, int | str):
            check_field(self._type(), key_selector, "key_by")
        return KeyedStream(self._env, self._outlets, *key_selector_of(key_selector, key_type))

    def window_all(self, window_assigner: WindowAssigner[Any, W]) -> AllWindowedStream[T, W]:
        """Groups all records of the stream into windows. One task does it, whatever the parallelism.

        What is not a window assigner raises `InvalidArgument`.
        """
        from emberflow.streams.all_windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def union(self, *streams: DataStream[R]) -> DataStream[T | R]:
        """All records of all streams; order is kept within each. Streams of another environment raise `InvalidArgument`."""
        outlets = self._outlets
        for stream in streams:
            if stream._env is not self._env:
                raise InvalidArgument("union() needs streams of one environment")
            outlets += stream._outlets
        return DataStream(self._env, outlets)

    @overload
    def connect(self, ds: DataStream[R]) -> ConnectedStreams[T, R]: ...
    @overload
    def connect(self, ds: BroadcastStream[R]) -> BroadcastConnectedStream[T, R]: ...
    def connect(
        self, ds: DataStream[R] | BroadcastStream[R]
    ) -> ConnectedStreams[T, R] | BroadcastConnectedStream[T, R]:
        """Two streams of different types side by side, for co-functions; or this one beside a broadcast stream.

        Raises `InvalidArgument` if `ds` belongs to another environment.
        """
        from emberflow.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
        from emberflow.streams.connected_streams import ConnectedStreams

        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream[R]) -> JoinedStreams[T, R]:
        """Pairs of records of two streams with one key and one window; continue with `where()`."""
        from emberflow.streams.joined_streams import JoinedStreams

        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream[R]) -> CoGroupedStreams[T, R]:
        """All records of two streams with one key and one window together; continue with `where()`."""
        from emberflow.streams.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, other_stream)

    def get_side_output(self, output_tag: OutputTag[R]) -> DataStream[R]:
        """What the step yielded as `(output_tag, value)`. A side output itself has none: `InvalidArgument`."""
        if any(tag is not None for _, tag in self._outlets):
            raise InvalidArgument(f"a side output has no side output {output_tag.tag_id!r} of its own")
        outlets = tuple((node, tag_id_of(output_tag)) for node, _ in self._outlets)
        return DataStream[R](self._env, outlets)._typed(output_tag.type_info)

    # ends

    def sink_to(self, sink: Sink[T]) -> DataStreamSink:
        """Writes every record to a sink; what is not a `Sink` raises `InvalidArgument`."""
        if not isinstance(sink, Sink):
            raise InvalidArgument(
                f"sink_to() needs a Sink, not {type(sink).__name__}", way_out="use add_sink() for a function"
            )
        spec = SinkSpec(sink=sink.for_type(self._type()))
        return DataStreamSink(self._env, self._env._program.add(spec, self._edges(), sink.describe()))

    def add_sink(self, sink_func: SinkFunction[T] | Sink[T] | Callable[[T], object]) -> DataStreamSink:
        """Calls a `SinkFunction` or a plain `function(value)` for every record, at least once; or writes to a `Sink`."""
        given: Any = sink_func
        if not isinstance(sink_func, Sink):
            method_of(given, "invoke", "add_sink()")
        return self.sink_to(given if isinstance(sink_func, Sink) else FunctionSink(given))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Each record on a line of standard output, in the process that started the job.

        Records of a declared type are printed as PyFlink does: `(And,5)` for a tuple, `+I[And,5]` for a row. With a
        parallelism above 1 each line begins with the number of its subtask, such as `2> `.
        """
        return self.sink_to(PrintSink(sink_identifier or "", type_info=self._type()))

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[T]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T]: ...
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T] | list[T]:
        """Runs the program and iterates over this stream; with a limit, a list of at most that many records.

        The job stops when the iterator is closed, or the limit is reached. Raises what made the job fail.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        with env.from_sequence(1, 1000).execute_and_collect() as numbers:
            assert next(numbers) == 1
        ```
        """
        return self._env._collect(self, job_execution_name, limit)

    def to_dataframe(self, schema: Any = None) -> Any:
        """On Spark a DataFrame (streaming or batch, as the program); on `local` a frame with `collect()` and `columns`.

        `schema` is a DDL string such as "user string, total long", a StructType, type information such as
        `Types.ROW_NAMED(...)`, a dataclass, a named tuple or a Pydantic model; without it, it is derived from the declared type
        of the records, and `InvalidArgument` is raised if there is none. Records are dictionaries, rows, objects with these
        fields, or tuples in that order.
        """
        return self._env._to_dataframe(self, schema_of(schema, self._type()))

    # how steps are added

    def _partitioned(self, kind: PartitionerKind, **parts: Any) -> DataStream[Any]:
        partitioner = Partitioner(kind=kind, **parts)
        return self._added(PartitionSpec(partitioner=partitioner), self._edges(), kind.value)

    def _step(self, spec: Spec, name: str) -> DataStream[Any]:
        return self._added(spec, self._edges(), name)

    def _edges(self, partitioner: Partitioner | None = None, input_index: int = 0) -> tuple[StreamEdge, ...]:
        return tuple(
            StreamEdge(source=node, side_tag=tag, input_index=input_index, partitioner=partitioner)
            for node, tag in self._outlets
        )

    def _added(self, spec: Spec, edges: tuple[StreamEdge, ...], name: str) -> DataStream[Any]:
        return DataStream(self._env, ((self._env._program.add(spec, edges, name), None),))

    def _typed(self, declared: Any) -> Self:
        """Declares what the records are converted to: type information, or a class with fields. Others only document."""
        applied = declared_type(declared)
        if applied is not None:
            for node, tag in self._outlets:
                self._env._program.declare(node, tag, applied)
        return self

    def _type(self) -> TypeInformation[Any] | None:
        return common_type([self._env._program.type_of(node, tag) for node, tag in self._outlets])

    def _only(self, what: str) -> int:
        if len(self._outlets) != 1:
            raise InvalidArgument(f"{what} belongs to one step; call it before union()")
        program, (step, tag) = self._env._program, self._outlets[0]
        if tag is not None:
            self._outlets = ((step := program.step_of_side_output(self._edges()), None),)
        if isinstance(program.node(step).spec, PartitionSpec):
            raise InvalidArgument(
                f"{what} belongs to a step, but {program.node(step).name}() is none",
                way_out="call it before the partitioner, or on the step behind it",
            )
        return step


class DataStreamSink(StepSettings):
    """The end of a stream; its methods set the sink's name, uid and parallelism and return it."""

    def __init__(self, env: StreamExecutionEnvironment, node_id: int) -> None:
        super().__init__(env)
        self._node_id = node_id

    def _only(self, what: str) -> int:
        return self._node_id
