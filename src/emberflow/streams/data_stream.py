"""`DataStream`: a stream without keys, and the steps it offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from emberflow.connectors.client_sinks import PrintSink
from emberflow.connectors.sink import FunctionSink, Sink, SinkFunction
from emberflow.errors import InvalidArgument
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.output_tag import OutputTag
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
from emberflow.plan.stream_graph import StreamEdge
from emberflow.streams.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
)

if TYPE_CHECKING:
    from emberflow.streams.connected_streams import ConnectedStreams
    from emberflow.streams.environment import StreamExecutionEnvironment
    from emberflow.streams.keyed_stream import KeyedStream
    from emberflow.streams.results import CloseableIterator

Outlet = tuple[int, str | None]
"""(step, side output)"""


class DataStream:
    """Records of one or, after `union`, several steps."""

    def __init__(self, env: StreamExecutionEnvironment, outlets: tuple[Outlet, ...]) -> None:
        self.env = env
        self._outlets = outlets

    # steps

    def map(self, func: MapFunction | Callable[[Any], Any], output_type: Any = None) -> DataStream:
        """One result per record."""
        return self._step(MapSpec(function=func, call=method_of(func, "map", "map()")), "map")

    def flat_map(
        self, func: FlatMapFunction | Callable[[Any], Iterable[Any] | None], output_type: Any = None
    ) -> DataStream:
        """Any number of results per record."""
        return self._step(
            FlatMapSpec(function=func, call=method_of(func, "flat_map", "flat_map()")), "flat_map"
        )

    def filter(self, func: FilterFunction | Callable[[Any], bool]) -> DataStream:
        """Keeps the records for which the function is true."""
        return self._step(FilterSpec(function=func, call=method_of(func, "filter", "filter()")), "filter")

    def process(self, func: ProcessFunction, output_type: Any = None) -> DataStream:
        """Timestamps, the watermark and side outputs; state and timers need `key_by()`."""
        if hasattr(func, "on_timer"):
            raise InvalidArgument(
                f"{function_name(func)} is a keyed function, but this stream has no keys",
                way_out="call key_by() before process()",
            )
        return self._step(
            ProcessSpec(function=func, call=method_of(func, "process_element", "process()")), "process"
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Event time from here on; earlier watermarks are replaced."""
        if watermark_strategy.generator is None:
            return self._step(TimestampsSpec(strategy=watermark_strategy), "timestamps")
        edges = tuple(StreamEdge(source=node, side_tag=tag, by_channel=True) for node, tag in self._outlets)
        return self._added(WatermarkGeneratorSpec(strategy=watermark_strategy), edges, "watermarks")

    def key_by(self, key_selector: KeySelector | Callable[[Any], Any], key_type: Any = None) -> KeyedStream:
        """Partitions the stream: records with equal keys meet in one place, in order."""
        from emberflow.streams.keyed_stream import KeyedStream

        select = method_of(key_selector, "get_key", "key_by()")
        return KeyedStream(self.env, self._outlets, select, function_name(key_selector))

    def union(self, *streams: DataStream) -> DataStream:
        """All records of all streams; order is kept within each."""
        outlets = self._outlets
        for stream in streams:
            if stream.env is not self.env:
                raise InvalidArgument("union() needs streams of one environment")
            outlets += stream._outlets
        return DataStream(self.env, outlets)

    def connect(self, ds: DataStream) -> ConnectedStreams:
        """Two streams of different types side by side, for co-functions."""
        from emberflow.streams.connected_streams import ConnectedStreams

        return ConnectedStreams(self, ds)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the step yielded as `(output_tag, value)`."""
        if any(tag is not None for _, tag in self._outlets):
            raise InvalidArgument(f"a side output has no side output {output_tag.tag_id!r} of its own")
        return DataStream(self.env, tuple((node, output_tag.tag_id) for node, _ in self._outlets))

    # ends

    def sink_to(self, sink: Sink) -> DataStreamSink:
        if not isinstance(sink, Sink):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(
                f"sink_to() needs a Sink, not {type(sink).__name__}", way_out="use add_sink() for a function"
            )
        edges = tuple(StreamEdge(source=node, side_tag=tag) for node, tag in self._outlets)
        return DataStreamSink(self.env, self.env.program.add(SinkSpec(sink=sink), edges, sink.describe()))

    def add_sink(self, sink_func: SinkFunction | Sink | Callable[[Any], Any]) -> DataStreamSink:
        """A `SinkFunction`, a plain `function(value)`, or a `Sink`."""
        return self.sink_to(sink_func if isinstance(sink_func, Sink) else FunctionSink(sink_func))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Each record on a line of standard output, in the process that started the job."""
        return self.sink_to(PrintSink(sink_identifier or ""))

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Runs the program and iterates over this stream; with a limit, a list of at most that many records."""
        return self.env.collect(self, job_execution_name, limit)

    def to_dataframe(self, schema: Any) -> Any:
        """On Spark a DataFrame (streaming or batch, as the program); on `local` a `LocalFrame`. `schema` is a DDL
        string such as "user string, total long" or a StructType; records are dictionaries or tuples in that order."""
        return self.env.to_dataframe(self, schema)

    # settings of the step that made this stream

    def name(self, name: str) -> Self:
        return self._set(name=name)

    def uid(self, uid: str) -> Self:
        """A stable identity for the step's state across program changes."""
        self.env.program.set_uid(self._only("uid()"), uid)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        if parallelism < 1:
            raise InvalidArgument(f"the parallelism must be at least 1, got {parallelism}")
        return self._set(parallelism=parallelism)

    def start_new_chain(self) -> Self:
        return self._set(starts_chain=True)

    def disable_chaining(self) -> Self:
        return self._set(never_chains=True)

    # how steps are added

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        return self._outlets

    def _step(self, spec: Spec, name: str) -> DataStream:
        return self._added(
            spec, tuple(StreamEdge(source=node, side_tag=tag) for node, tag in self._outlets), name
        )

    def _added(self, spec: Spec, edges: tuple[StreamEdge, ...], name: str) -> DataStream:
        return DataStream(self.env, ((self.env.program.add(spec, edges, name), None),))

    def _only(self, what: str) -> int:
        if len(self._outlets) != 1:
            raise InvalidArgument(f"{what} belongs to one step; call it before union()")
        return self._outlets[0][0]

    def _set(self, **fields: Any) -> Self:
        self.env.program.change(self._only(f"{next(iter(fields))}"), **fields)
        return self


class DataStreamSink:
    """The end of a stream."""

    def __init__(self, env: StreamExecutionEnvironment, node_id: int) -> None:
        self._env = env
        self._node_id = node_id

    def name(self, name: str) -> DataStreamSink:
        self._env.program.change(self._node_id, name=name)
        return self

    def uid(self, uid: str) -> DataStreamSink:
        self._env.program.set_uid(self._node_id, uid)
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink:
        self._env.program.change(self._node_id, parallelism=parallelism)
        return self


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
