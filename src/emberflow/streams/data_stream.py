"""`DataStream`: a stream without keys, and the steps it offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, overload

from emberflow.connectors.client_sinks import PrintSink
from emberflow.connectors.sink import FunctionSink, Sink, SinkFunction
from emberflow.errors import InvalidArgument, NotSupported
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.output_tag import OutputTag
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
from emberflow.streams.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
)
from emberflow.streams.step_settings import StepSettings
from emberflow.windowing.assigners import WindowAssigner

if TYPE_CHECKING:
    from emberflow.streams.all_windowed_stream import AllWindowedStream
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


class DataStream(StepSettings, Generic[T]):
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

    # steps

    def map(self, func: MapFunction[T, R] | Callable[[T], R], output_type: Any = None) -> DataStream[R]:
        """One result per record: `func(value)`, or `func.map(value)` of a `MapFunction`.

        `output_type` only documents. What is not callable raises `InvalidArgument`; an error of the function fails the
        job with `StepFailed`, which names the step and the value.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        doubled = env.from_collection([1, 2]).map(lambda number: number * 2)
        assert doubled.execute_and_collect(limit=2) == [2, 4]
        ```
        """
        return self._step(MapSpec(function=func, call=method_of(func, "map", "map()")), "map")

    def flat_map(
        self, func: FlatMapFunction[T, R] | Callable[[T], Iterable[R] | None], output_type: Any = None
    ) -> DataStream[R]:
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
        )

    @overload
    def filter(self, func: Callable[[T], TypeGuard[R]]) -> DataStream[R]: ...
    @overload
    def filter(self, func: FilterFunction[T] | Callable[[T], object]) -> DataStream[T]: ...
    def filter(self, func: FilterFunction[T] | Callable[[T], object]) -> DataStream[Any]:
        """Keeps the records for which the function returns a true value."""
        return self._step(FilterSpec(function=func, call=method_of(func, "filter", "filter()")), "filter")

    def process(self, func: ProcessFunction[T, R], output_type: Any = None) -> DataStream[R]:
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
        )

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
        return self._step(MapSpec(kind="project", function=None, call=Projection(field_indexes)), "project")

    def cache(self) -> DataStream[T]:
        """Raises `NotSupported`: nothing is kept between two executions."""
        raise NotSupported(
            "a stream cannot be cached", way_out="write it to a sink, or use to_dataframe().cache() on Spark"
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[T]:
        """Event time from here on; earlier watermarks are replaced."""
        if watermark_strategy.generator is None:
            return self._step(TimestampsSpec(strategy=watermark_strategy), "timestamps")
        edges = tuple(StreamEdge(source=node, side_tag=tag, by_channel=True) for node, tag in self._outlets)
        return self._added(WatermarkGeneratorSpec(strategy=watermark_strategy), edges, "watermarks")

    def key_by(
        self, key_selector: KeySelector[T, R] | Callable[[T], R], key_type: Any = None
    ) -> KeyedStream[R, T]:
        """Partitions the stream: records with equal keys are processed in one place, in order.

        `key_selector(value)` returns the key: a hashable value that is the same in every process, such as a string, number,
        bytes, None, date, enum, a tuple of these or a frozen dataclass. It must always return the same key for the same
        record. One that raises, or returns what cannot be hashed, fails the job with `KeySelectorFailed`, which names
        the value. State and timers of the steps that follow belong to a key. `key_type` only documents.

        ```python
        from emberflow.streams import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        sales = env.from_collection([("ann", 1), ("bob", 5), ("ann", 2)])
        totals = sales.key_by(lambda sale: sale[0]).reduce(lambda total, sale: (total[0], total[1] + sale[1]))
        assert sorted(totals.execute_and_collect()) == [("ann", 1), ("ann", 3), ("bob", 5)]
        ```
        """
        from emberflow.streams.keyed_stream import KeyedStream

        select = method_of(key_selector, "get_key", "key_by()")
        return KeyedStream(self._env, self._outlets, select, function_name(key_selector))

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

    def connect(self, ds: DataStream[R]) -> ConnectedStreams[T, R]:
        """Two streams of different types side by side, for co-functions.

        Raises `NotKeyed` if one of them is keyed and the other is not, `InvalidArgument` if `ds` belongs to another
        environment.
        """
        from emberflow.streams.connected_streams import ConnectedStreams

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
        return DataStream(self._env, tuple((node, output_tag.tag_id) for node, _ in self._outlets))

    # ends

    def sink_to(self, sink: Sink[T]) -> DataStreamSink:
        """Writes every record to a sink; what is not a `Sink` raises `InvalidArgument`."""
        if not isinstance(sink, Sink):
            raise InvalidArgument(
                f"sink_to() needs a Sink, not {type(sink).__name__}", way_out="use add_sink() for a function"
            )
        edges = tuple(StreamEdge(source=node, side_tag=tag) for node, tag in self._outlets)
        return DataStreamSink(self._env, self._env._program.add(SinkSpec(sink=sink), edges, sink.describe()))

    def add_sink(self, sink_func: SinkFunction[T] | Sink[T] | Callable[[T], object]) -> DataStreamSink:
        """Calls a `SinkFunction` or a plain `function(value)` for every record, at least once; or writes to a `Sink`."""
        given: Any = sink_func
        return self.sink_to(given if isinstance(sink_func, Sink) else FunctionSink(given))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Each record on a line of standard output, in the process that started the job."""
        return self.sink_to(PrintSink(sink_identifier or ""))

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

    def to_dataframe(self, schema: Any) -> Any:
        """On Spark a DataFrame (streaming or batch, as the program); on `local` a frame with `collect()` and `columns`.

        `schema` is a DDL string such as "user string, total long" or a StructType; records are dictionaries or tuples
        in that order.
        """
        return self._env._to_dataframe(self, schema)

    # how steps are added

    def _step(self, spec: Spec, name: str) -> DataStream[Any]:
        return self._added(
            spec, tuple(StreamEdge(source=node, side_tag=tag) for node, tag in self._outlets), name
        )

    def _added(self, spec: Spec, edges: tuple[StreamEdge, ...], name: str) -> DataStream[Any]:
        return DataStream(self._env, ((self._env._program.add(spec, edges, name), None),))

    def _only(self, what: str) -> int:
        if len(self._outlets) != 1:
            raise InvalidArgument(f"{what} belongs to one step; call it before union()")
        return self._outlets[0][0]


class DataStreamSink(StepSettings):
    """The end of a stream; its methods set the sink's name, uid and parallelism and return it."""

    def __init__(self, env: StreamExecutionEnvironment, node_id: int) -> None:
        super().__init__(env)
        self._node_id = node_id

    def _only(self, what: str) -> int:
        return self._node_id


def method_of(function: Any, method: str, where: str) -> Callable[..., Any]:
    """`function.method` of a function object, or the callable itself."""
    found = getattr(function, method, None)
    if callable(found):
        return found
    if callable(function):
        return function
    raise InvalidArgument(
        f"{where} needs a function or an object with a {method}() method, not {function!r}",
        way_out="pass e.g. a lambda",
    )


class Projection:
    """The fields of a record at some positions, as a tuple."""

    def __init__(self, positions: tuple[int, ...]) -> None:
        if not positions or not all(type(position) is int for position in positions):
            raise InvalidArgument(
                f"project() needs the positions of fields, not {positions!r}",
                way_out="write e.g. project(0, 2)",
            )
        self._positions = positions

    def __call__(self, value: Any) -> tuple[Any, ...]:
        return tuple([value[position] for position in self._positions])
