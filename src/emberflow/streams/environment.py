"""`StreamExecutionEnvironment`: where a program begins and where it is run."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Self, TypeVar, overload

from emberflow.connectors.client_sinks import CollectSink
from emberflow.connectors.collection import CollectionSource
from emberflow.connectors.dataframe import DataFrameSink, DataFrameSource, check_record_type
from emberflow.connectors.sequence import NumberSequenceSource
from emberflow.connectors.source import Source
from emberflow.errors import InvalidArgument
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.types.type_information import TypeInformation
from emberflow.plan.explain_mode import Explained
from emberflow.plan.graphs.explain import Form, render
from emberflow.plan.graphs.flink_plan import flink_plan
from emberflow.plan.graphs.job_graph import JobGraph, compile_graph
from emberflow.plan.graphs.stream_graph import StreamGraph, reusing_objects, watermarks_per_batch
from emberflow.plan.job_contract import (
    MADE,
    Engine,
    JobHandle,
)
from emberflow.plan.specs import SourceSpec
from emberflow.streams.data_stream import DataStream
from emberflow.streams.program.engine_choice import choose_engine
from emberflow.streams.program.program import Program, announce_parallelism
from emberflow.streams.program.tracebacks import user_frames_only
from emberflow.streams.results import CloseableIterator, JobClient, JobExecutionResult
from emberflow.streams.settings.configuration import Configuration
from emberflow.streams.settings.environment_settings import EnvironmentSettings
from emberflow.streams.slot_sharing import SlotSharingGroup

T = TypeVar("T")


class StreamExecutionEnvironment(EnvironmentSettings):
    """Where a program begins: sources, settings and `execute()`. Make one with `get_execution_environment()`.

    ```python
    from emberflow.streams import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection(["to be", "or not to be"]).map(str.upper).print()
    result = env.execute("shout")
    assert result.metrics.records_in == 2
    ```
    """

    def __init__(
        self,
        *,
        engine: str | Engine | None = None,
        spark: Any = None,
        master: str | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        parallelism: int | None = None,
    ) -> None:
        super().__init__(checkpoint_dir, parallelism)
        self._program = Program(parallelism)
        self._engine_choice = engine
        self._engine: Engine | None = None
        self._engine_options = {"spark": spark, "master": master or os.environ.get("EMBERFLOW_MASTER")}
        self._executed: set[int] = set()
        self._failed: set[int] = set()
        """Sinks of executions that failed."""
        self._left_out: set[int] = set()
        MADE["environments"] += 1

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | Mapping[str, Any] | None = None,
        *,
        engine: str | Engine | None = None,
        spark: Any = None,
        master: str | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        parallelism: int | None = None,
    ) -> StreamExecutionEnvironment:
        """`engine` is "local", "spark" or an engine; `spark` a session that the caller made; with `checkpoint_dir` a
        program that is started again continues where it was. `configuration` holds options by name, see `configure()`."""
        env = StreamExecutionEnvironment(
            engine=engine, spark=spark, master=master, checkpoint_dir=checkpoint_dir, parallelism=parallelism
        )
        if configuration is not None:
            env.configure(configuration)
        return env

    def set_parallelism(self, parallelism: int) -> Self:
        """How many tasks run in parallel; `--parallelism` on the command line wins."""
        super().set_parallelism(parallelism)
        self._program.parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        wanted = super().get_max_parallelism()
        while self._max_parallelism is None and wanted < self._program.highest_parallelism:
            wanted *= 2
        return wanted

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Accepted: neither engine has slots."""
        return self

    # sources

    @overload
    def from_collection(
        self, collection: Iterable[object], type_info: TypeInformation[T]
    ) -> DataStream[T]: ...
    @overload
    def from_collection(self, collection: Iterable[T], type_info: Any = None) -> DataStream[T]: ...
    def from_collection(self, collection: Iterable[Any], type_info: Any = None) -> DataStream[Any]:
        """The given values, in order; they travel with the program, so this is for small inputs and tests.

        Values are converted to `type_info`, such as `Types.ROW_NAMED(["word"], [Types.STRING()])`. What is not a collection,
        or is a string or bytes, raises `InvalidArgument`.
        """
        return self._source(CollectionSource(collection), None, "collection", type_info)

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """The whole numbers from `start` to `end`, both included, read in parallel."""
        return self._source(NumberSequenceSource(start, end), None, "sequence")

    @overload
    def from_source(
        self,
        source: Source[object],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "source",
        *,
        type_info: TypeInformation[T],
    ) -> DataStream[T]: ...
    @overload
    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "source",
        type_info: Any = None,
    ) -> DataStream[T]: ...
    def from_source(
        self,
        source: Source[Any],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "source",
        type_info: Any = None,
    ) -> DataStream[Any]:
        """The records of a source, with event time if a strategy is given, converted to `type_info` if it is given.

        What is not a `Source` raises `InvalidArgument`.
        """
        return self._source(source, watermark_strategy, source_name, type_info)

    @overload
    def add_source(
        self, source_func: Source[object], source_name: str = "source", *, type_info: TypeInformation[T]
    ) -> DataStream[T]: ...
    @overload
    def add_source(
        self, source_func: Source[T], source_name: str = "source", type_info: Any = None
    ) -> DataStream[T]: ...
    def add_source(
        self, source_func: Source[Any], source_name: str = "source", type_info: Any = None
    ) -> DataStream[Any]:
        """`from_source` without event time, as older programs write it."""
        return self._source(source_func, None, source_name, type_info)

    @overload
    def from_dataframe(
        self,
        dataframe: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        *,
        type_info: TypeInformation[T] | type[T],
    ) -> DataStream[T]: ...
    @overload
    def from_dataframe(
        self, dataframe: Any, watermark_strategy: WatermarkStrategy | None = None
    ) -> DataStream[dict[str, Any]]: ...
    def from_dataframe(
        self, dataframe: Any, watermark_strategy: WatermarkStrategy | None = None, *, type_info: Any = None
    ) -> DataStream[Any]:
        """The rows of a Spark DataFrame (batch or streaming) as dictionaries; on `local` any iterable of rows,
        a pandas or a pyarrow table.

        With `type_info` they are rows of `Types.ROW_NAMED(...)`, or objects of a dataclass, named tuple or Pydantic model;
        the table must have exactly its fields as columns.
        """
        check_record_type(type_info)
        return self._source(DataFrameSource(dataframe), watermark_strategy, "dataframe", type_info)

    def _source(
        self, source: Source[T], strategy: WatermarkStrategy | None, name: str, type_info: Any = None
    ) -> DataStream[T]:
        if not isinstance(source, Source):
            raise InvalidArgument(
                f"{source!r} is not a source",
                way_out="derive it from emberflow.streams.Source, or use from_collection()",
            )
        stream: DataStream[T] = DataStream(
            self, ((self._program.add(SourceSpec(source=source), (), name), None),)
        )
        stream._typed(type_info)
        if strategy is None or strategy == WatermarkStrategy.no_watermarks():
            return stream
        return stream.assign_timestamps_and_watermarks(strategy)

    # running

    def _default_parallelism(self) -> int:
        return getattr(self._chosen_engine(), "default_parallelism", 1)

    def _knows_options(self) -> bool:
        return self._engine_choice is None or isinstance(self._engine_choice, str)

    def _chosen_engine(self) -> Engine:
        if self._engine is None:
            options = {name: value for name, value in self._engine_options.items() if value is not None}
            self._engine = choose_engine(self._engine_choice, options)
        return self._engine

    @user_frames_only
    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs the program and waits for its end: all steps that were added since the last execution. If that failed, what
        was added since; if nothing was, the same steps again, from their last checkpoint if there is one."""
        started = time.monotonic()
        name = job_name or self._job_name
        executed = set(self._executed)
        try:
            handle = self._submit(self._new_graph(name))
            _wait(handle)
        except BaseException:
            # It can be executed again, from its last checkpoint if it has one.
            self._failed |= self._executed - executed
            self._executed = executed
            raise
        return JobExecutionResult(name, handle, started)

    @user_frames_only
    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Runs the program in the background."""
        name = job_name or self._job_name
        return JobClient(name, self._submit(self._new_graph(name)), self._savepoint_dir)

    def get_execution_plan(self) -> str:
        """The program in Flink's JSON form, without running it; `explain("json")` is emberflow's own, which has more."""
        graph = self._freeze(self._job_name, self._unfinished_sinks() or None)
        return flink_plan(graph, self.get_parallelism())

    @user_frames_only
    def explain(self, form: Form | str = "text") -> str:
        """The program as `text`, `mermaid` or `json`, without running it; another form raises `InvalidArgument`."""
        return render(self.job_graph(), form)

    def job_graph(self, name: str = "emberflow job") -> JobGraph:
        """The compiled program, for tools that look at plans; nothing is run."""
        return compile_graph(self._freeze(name))

    @user_frames_only
    def _collect(
        self, stream: DataStream[T], name: str | None, limit: int | None
    ) -> CloseableIterator[T] | list[T]:
        batches: queue.SimpleQueue[list[T]] = queue.SimpleQueue()
        node = self._client_sink(stream, CollectSink(lambda batch: batches.put(list(batch.values))))
        self._program.add_missing_sinks(self._executed)
        graph = compile_graph(self._freeze(name or self._job_name, {node} | self._unfinished_sinks()))
        self._executed.add(node)
        iterator = CloseableIterator(self._submit(graph), batches)
        if limit is None:
            return iterator
        with iterator:
            return list(islice(iterator, limit))

    @user_frames_only
    def _to_dataframe(self, stream: DataStream[Any], schema: Any) -> Any:
        node = self._client_sink(stream, DataFrameSink(schema))
        graph = compile_graph(self._freeze("dataframe", {node}))
        MADE["jobs"] += 1
        self._executed.add(node)
        return self._chosen_engine().to_dataframe(graph, self._config())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    def _freeze(self, name: str, wanted: set[int] | None = None) -> StreamGraph:
        derive = self._execution.has_auto_generated_uids_enabled()
        graph = self._program.freeze(name, wanted, chaining=self._chaining, derive_uids=derive)
        if self._execution.is_object_reuse_enabled():
            graph = reusing_objects(graph)
        return watermarks_per_batch(graph) if self._execution.get_auto_watermark_interval() else graph

    def _leave_out(self, node: int) -> None:
        """A sink that is not to be executed after all."""
        self._left_out.add(node)

    def _client_sink(self, stream: DataStream[Any], sink: Any) -> int:
        stream.sink_to(sink)
        return self._program.last

    def _unfinished_sinks(self) -> set[int]:
        sinks = set(self._program.sinks()) - self._executed - self._left_out
        return sinks - self._failed or sinks

    def _new_graph(self, name: str) -> JobGraph:
        """Everything that was added since the last execution and ends in a sink, or comes from an agent."""
        self._program.add_missing_sinks(self._executed)
        sinks = self._unfinished_sinks()
        if not sinks and self._executed:
            raise InvalidArgument(
                "every sink of the program was executed already, so there is nothing to execute",
                way_out="call execute() once, or build the program again with a new environment",
            )
        if not sinks:
            raise InvalidArgument(
                "the program has no sink, so there is nothing to execute",
                way_out="end a stream with print(), sink_to() or execute_and_collect()",
            )
        self._executed |= sinks
        return compile_graph(self._freeze(name, sinks))

    def _submit(self, graph: JobGraph) -> JobHandle:
        MADE["jobs"] += 1
        form = os.environ.get("EMBERFLOW_EXPLAIN")
        if form:
            raise Explained(render(graph, form))
        config = self._config()
        announce_parallelism(graph.stream_graph, config.parallelism)
        return self._chosen_engine().submit(graph, config)


def _wait(handle: JobHandle) -> None:
    try:
        # A wait without end cannot be interrupted by Ctrl-C on every platform; short ones can.
        while not handle.wait(0.5):
            pass
    except KeyboardInterrupt:
        handle.cancel()
        raise
