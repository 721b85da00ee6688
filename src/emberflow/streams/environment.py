"""`StreamExecutionEnvironment`: where a program begins and where it is run."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from emberflow.connectors.client_sinks import CollectSink
from emberflow.connectors.collection import CollectionSource
from emberflow.connectors.dataframe import DataFrameSink, DataFrameSource
from emberflow.connectors.sequence import NumberSequenceSource
from emberflow.connectors.source import Source
from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval
from emberflow.event_time.watermarks import WatermarkStrategy
from emberflow.events.key_groups import DEFAULT_MAX_PARALLELISM
from emberflow.plan.engine_options import EngineOption, check_option
from emberflow.plan.explain_mode import Explained
from emberflow.plan.graphs.explain import Form, render
from emberflow.plan.graphs.job_graph import JobGraph, compile_graph
from emberflow.plan.job_contract import (
    MADE,
    CheckpointingMode,
    Engine,
    JobConfig,
    JobHandle,
    RuntimeExecutionMode,
)
from emberflow.plan.restart_strategy import RestartStrategy
from emberflow.plan.specs import SourceSpec
from emberflow.streams.checkpoint_config import CheckpointConfig
from emberflow.streams.data_stream import DataStream
from emberflow.streams.engine_choice import choose_engine
from emberflow.streams.program import Program
from emberflow.streams.results import CloseableIterator, JobClient, JobExecutionResult
from emberflow.streams.tracebacks import user_frames_only

T = TypeVar("T")


class StreamExecutionEnvironment:
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
        self._program = Program()
        self._engine_choice = engine
        self._engine: Engine | None = None
        self._engine_options = {"spark": spark, "master": master or os.environ.get("EMBERFLOW_MASTER")}
        self._checkpoint_dir = os.fspath(checkpoint_dir) if checkpoint_dir else None
        self._checkpoint_dir = os.environ.get("EMBERFLOW_CHECKPOINT_DIR") or self._checkpoint_dir
        self._checkpoints = CheckpointConfig()
        self._savepoint: str | None = None
        self._allow_non_restored_state = False
        self._restart: RestartStrategy | None = None
        self._parallelism = parallelism
        self._max_parallelism: int | None = None
        self._mode: RuntimeExecutionMode | None = None
        self._options: dict[str, Any] = {}
        self._parameters: dict[str, str] = {}
        self._executed: set[int] = set()
        MADE["environments"] += 1

    @staticmethod
    def get_execution_environment(
        configuration: dict[str, Any] | None = None,
        *,
        engine: str | Engine | None = None,
        spark: Any = None,
        master: str | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        parallelism: int | None = None,
    ) -> StreamExecutionEnvironment:
        """`engine` is "local", "spark" or an engine; `spark` a session that the caller made; with `checkpoint_dir` a
        program that is started again goes on where it was. `configuration` holds engine options by name."""
        env = StreamExecutionEnvironment(
            engine=engine, spark=spark, master=master, checkpoint_dir=checkpoint_dir, parallelism=parallelism
        )
        for name, value in (configuration or {}).items():
            env.set_option(name, value)
        return env

    # settings

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """How many tasks work side by side; `--parallelism` on the command line wins."""
        if parallelism < 1:
            raise InvalidArgument(f"the parallelism must be at least 1, got {parallelism}")
        self._parallelism = parallelism
        return self

    def get_parallelism(self) -> int:
        """How many tasks work side by side: the command line's number, else the program's, else the engine's default."""
        named = os.environ.get("EMBERFLOW_PARALLELISM")
        return (
            int(named)
            if named
            else self._parallelism or getattr(self._chosen_engine(), "default_parallelism", 1)
        )

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups; fixed for the life of the state."""
        if not 1 <= max_parallelism <= 32768:
            raise InvalidArgument(
                f"the maximum parallelism must be between 1 and 32768, got {max_parallelism}"
            )
        self._max_parallelism = max_parallelism
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups."""
        wanted = DEFAULT_MAX_PARALLELISM
        while wanted < 4 * self.get_parallelism():
            wanted *= 2
        return self._max_parallelism or wanted

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """`STREAMING` is the default, except that a program which reads only bounded input, some of it with
        `from_dataframe`, is `BATCH`. `BATCH` needs bounded input; a keyed `reduce`, `sum`, … then emits one value per key.
        `AUTOMATIC` is `BATCH` where every source is bounded and there is no checkpoint directory.

        ```python
        from emberflow.streams import RuntimeExecutionMode, StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        sales = env.from_collection([("ann", 1), ("ann", 2)]).key_by(lambda sale: sale[0])
        totals = sales.sum(1)
        assert list(totals.execute_and_collect()) == [("ann", 1), ("ann", 3)]

        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        assert list(totals.execute_and_collect()) == [("ann", 3)]
        ```
        """
        self._mode = execution_mode
        return self

    def enable_checkpointing(
        self, interval: Interval, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """How often state, positions and outputs are committed together. On Spark every micro-batch is a checkpoint."""
        self._checkpoints.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoints.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Timeout, pause and number of checkpoints."""
        return self._checkpoints

    def set_savepoint(
        self, path: str | os.PathLike[str], allow_non_restored_state: bool = False
    ) -> StreamExecutionEnvironment:
        """The program begins where the savepoint was taken, unless its checkpoint directory has a checkpoint already.
        Steps are matched by uid; state of steps that are gone is an error, or left out if that is allowed."""
        self._savepoint = os.fspath(path)
        self._allow_non_restored_state = allow_non_restored_state
        return self

    def set_restart_strategy(self, strategy: RestartStrategy) -> StreamExecutionEnvironment:
        """What happens when the job fails; see `RestartStrategies`."""
        self._restart = strategy
        return self

    @property
    def checkpoint_dir(self) -> str | None:
        """Where the program keeps its state; None if it keeps none."""
        return self._checkpoint_dir

    @user_frames_only
    def set_option(self, name: EngineOption | str, value: Any) -> StreamExecutionEnvironment:
        """An engine's own setting, such as `trigger_ms` on Spark or `state_backend` on local.

        A name that no engine knows raises `InvalidArgument` with the closest one; a value that does not fit does so when
        the program runs.
        """
        if self._engine_choice is None or isinstance(self._engine_choice, str):
            check_option(name)
        self._options[str(name)] = value
        return self

    def set_job_parameters(self, parameters: dict[str, str]) -> StreamExecutionEnvironment:
        """What functions read with `runtime_context.get_job_parameter(name)`."""
        self._parameters = {str(name): str(value) for name, value in parameters.items()}
        return self

    # sources

    def from_collection(self, collection: Iterable[T], type_info: Any = None) -> DataStream[T]:
        """The given values, in order; they travel with the program, so this is for small inputs and tests.

        What is not a collection, or is a string or bytes, raises `InvalidArgument`. `type_info` only documents.
        """
        return self._source(CollectionSource(collection), None, "collection")

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """The whole numbers from `start` to `end`, both included, read in parallel."""
        return self._source(NumberSequenceSource(start, end), None, "sequence")

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "source",
        type_info: Any = None,
    ) -> DataStream[T]:
        """The records of a source, with event time if a strategy is given. What is not a `Source` raises `InvalidArgument`."""
        return self._source(source, watermark_strategy, source_name)

    def add_source(
        self, source: Source[T], source_name: str = "source", type_info: Any = None
    ) -> DataStream[T]:
        """`from_source` without event time, as older programs write it."""
        return self._source(source, None, source_name)

    def from_dataframe(
        self, dataframe: Any, watermark_strategy: WatermarkStrategy | None = None
    ) -> DataStream[dict[str, Any]]:
        """The rows of a Spark DataFrame (batch or streaming) as dictionaries; on `local` any iterable of rows,
        a pandas or a pyarrow table."""
        return self._source(DataFrameSource(dataframe), watermark_strategy, "dataframe")

    def _source(self, source: Source[T], strategy: WatermarkStrategy | None, name: str) -> DataStream[T]:
        if not isinstance(source, Source):
            raise InvalidArgument(
                f"{source!r} is not a source",
                way_out="derive it from emberflow.streams.Source, or use from_collection()",
            )
        stream: DataStream[T] = DataStream(
            self, ((self._program.add(SourceSpec(source=source), (), name), None),)
        )
        if strategy is None or strategy == WatermarkStrategy.no_watermarks():
            return stream
        return stream.assign_timestamps_and_watermarks(strategy)

    # running

    def _chosen_engine(self) -> Engine:
        if self._engine is None:
            options = {name: value for name, value in self._engine_options.items() if value is not None}
            self._engine = choose_engine(self._engine_choice, options)
        return self._engine

    @user_frames_only
    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs the program and waits for its end."""
        started = time.monotonic()
        name = job_name or "emberflow job"
        executed = set(self._executed)
        try:
            handle = self._submit(self._new_graph(name))
            _wait(handle)
        except BaseException:
            # It can be executed again, from its last checkpoint if it has one.
            self._executed = executed
            raise
        return JobExecutionResult(name, handle, started)

    @user_frames_only
    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Runs the program in the background."""
        name = job_name or "emberflow job"
        return JobClient(name, self._submit(self._new_graph(name)))

    def get_execution_plan(self) -> str:
        """The program as JSON, without running it."""
        return self.job_graph().to_json(indent=2)

    @user_frames_only
    def explain(self, form: Form | str = "text") -> str:
        """The program as `text`, `mermaid` or `json`, without running it; another form raises `InvalidArgument`."""
        return render(self.job_graph(), form)

    def job_graph(self, name: str = "emberflow job") -> JobGraph:
        """The compiled program, for tools that look at plans; nothing is run."""
        return compile_graph(self._program.freeze(name))

    @user_frames_only
    def _collect(
        self, stream: DataStream[T], name: str | None, limit: int | None
    ) -> CloseableIterator[T] | list[T]:
        batches: queue.SimpleQueue[list[T]] = queue.SimpleQueue()
        node = self._client_sink(stream, CollectSink(lambda batch: batches.put(list(batch.values))))
        graph = compile_graph(
            self._program.freeze(name or "emberflow job", {node} | self._unfinished_sinks())
        )
        self._executed.add(node)
        iterator = CloseableIterator(self._submit(graph), batches)
        if limit is None:
            return iterator
        with iterator:
            return list(islice(iterator, limit))

    @user_frames_only
    def _to_dataframe(self, stream: DataStream[Any], schema: Any) -> Any:
        node = self._client_sink(stream, DataFrameSink(schema))
        graph = compile_graph(self._program.freeze("dataframe", {node}))
        MADE["jobs"] += 1
        self._executed.add(node)
        return self._chosen_engine().to_dataframe(graph, self._config())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    def _config(self) -> JobConfig:
        return JobConfig(
            parallelism=self.get_parallelism(),
            max_parallelism=self.get_max_parallelism(),
            mode=self._mode,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_interval_ms=self._checkpoints.get_checkpoint_interval(),
            checkpointing_mode=self._checkpoints.get_checkpointing_mode(),
            checkpoint_timeout_ms=self._checkpoints.get_checkpoint_timeout(),
            checkpoint_pause_ms=self._checkpoints.get_min_pause_between_checkpoints(),
            retained_checkpoints=self._checkpoints.get_retained_checkpoints(),
            savepoint=os.environ.get("EMBERFLOW_SAVEPOINT") or self._savepoint,
            allow_non_restored_state=self._allow_non_restored_state
            or bool(os.environ.get("EMBERFLOW_ALLOW_NON_RESTORED_STATE")),
            restart=self._restart,
            quiet=bool(os.environ.get("EMBERFLOW_QUIET")),
            show_traceback=bool(os.environ.get("EMBERFLOW_TRACEBACK")),
            parameters=dict(self._parameters),
            options=dict(self._options),
        )

    def _leave_out(self, node: int) -> None:
        """A sink that is not to be executed after all."""
        self._executed.add(node)

    def _client_sink(self, stream: DataStream[Any], sink: Any) -> int:
        stream.sink_to(sink)
        return self._program.last

    def _unfinished_sinks(self) -> set[int]:
        return {node for node in self._program.sinks() if node not in self._executed}

    def _new_graph(self, name: str) -> JobGraph:
        """Everything that was added since the last execution and ends in a sink."""
        sinks = self._unfinished_sinks()
        if not sinks and self._program.sinks():
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
        return compile_graph(self._program.freeze(name, sinks))

    def _submit(self, graph: JobGraph) -> JobHandle:
        MADE["jobs"] += 1
        form = os.environ.get("EMBERFLOW_EXPLAIN")
        if form:
            raise Explained(render(graph, form))
        return self._chosen_engine().submit(graph, self._config())


def _wait(handle: JobHandle) -> None:
    try:
        # A wait without end cannot be interrupted by Ctrl-C on every platform; short ones can.
        while not handle.wait(0.5):
            pass
    except KeyboardInterrupt:
        handle.cancel()
        raise
