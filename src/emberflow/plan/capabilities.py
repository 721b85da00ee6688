"""What each engine does not support, as data: rejected when the plan is compiled, never in the middle of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emberflow.connectors.dataframe import DataFrameSource
from emberflow.errors import InvalidArgument, NotSupported
from emberflow.plan.graphs.alignment import aligned_sources
from emberflow.plan.graphs.job_graph import JobGraph, StageKind, tasks_of
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.job_contract import JobConfig, RuntimeExecutionMode
from emberflow.plan.specs import SourceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A step that an engine does not support; None stands for every engine or mode."""

    engine: str | None
    mode: RuntimeExecutionMode | None
    applies: Callable[[StreamNode], bool]
    reason: str
    way_out: str


def _unbounded(node: StreamNode) -> bool:
    return isinstance(node.spec, SourceSpec) and not node.spec.source.bounded


def _spark_stream(node: StreamNode) -> bool:
    return isinstance(node.spec, SourceSpec) and bool(
        getattr(getattr(node.spec.source, "dataframe", None), "isStreaming", False)
    )


def _table(node: StreamNode) -> bool:
    return isinstance(node.spec, SourceSpec) and isinstance(node.spec.source, DataFrameSource)


def _spark_batch_frame(node: StreamNode) -> bool:
    frame = getattr(node.spec.source, "dataframe", None) if isinstance(node.spec, SourceSpec) else None
    return frame is not None and not getattr(frame, "isStreaming", False)


GAPS = (
    Gap(
        engine=None,
        mode=RuntimeExecutionMode.BATCH,
        applies=_unbounded,
        reason="is unbounded, so it cannot run in BATCH mode",
        way_out="use STREAMING mode",
    ),
    Gap(
        engine="local",
        mode=None,
        applies=_spark_stream,
        reason="is a streaming Spark DataFrame, which only Spark can run",
        way_out='use engine="spark"',
    ),
    Gap(
        engine="spark",
        mode=RuntimeExecutionMode.STREAMING,
        applies=_spark_batch_frame,
        reason="is a batch DataFrame, which Spark does not join with a stream",
        way_out="read it with spark.readStream, or call env.set_runtime_mode(RuntimeExecutionMode.BATCH)",
    ),
)


def check_capabilities(graph: JobGraph, config: JobConfig, engine: str) -> None:
    mode = resolve_mode(graph, config)
    if config.savepoint is not None and mode is RuntimeExecutionMode.BATCH:
        raise NotSupported(
            "a job in BATCH mode cannot start from a savepoint: it keeps no state",
            way_out="use STREAMING mode",
        )
    aligned_sources(graph)  # Groups with contradicting drifts are rejected.
    for stage in graph.stages:
        node, tasks = graph.stream_graph.node(stage.head), tasks_of(graph, stage, config.parallelism)
        highest = min(config.max_parallelism, node.max_parallelism or config.max_parallelism)
        if stage.kind is not StageKind.SOURCE and tasks > highest:
            raise InvalidArgument(
                f"step {node.name!r} has a parallelism of {tasks}, above the maximum of {highest}",
                way_out="set a lower parallelism, or a higher maximum (set_max_parallelism) before the job first runs",
            )
    for gap in GAPS:
        if gap.engine not in (None, engine) or gap.mode not in (None, mode):
            continue
        for node in graph.stream_graph.nodes:
            if gap.applies(node):
                where = f" ({node.location})" if node.location else ""
                raise NotSupported(f"step {node.name!r}{where} {gap.reason}", way_out=gap.way_out)


def resolve_mode(graph: JobGraph, config: JobConfig) -> RuntimeExecutionMode:
    """The mode that the program chose, else STREAMING, except that a table, which Spark cannot read as a stream, is
    processed in BATCH. AUTOMATIC is batch if every source is bounded. A program that may continue from a checkpoint
    directory or a savepoint is a stream in both cases: batch mode keeps no state."""
    if config.mode is RuntimeExecutionMode.STREAMING or config.mode is RuntimeExecutionMode.BATCH:
        return config.mode
    batch = graph.stream_graph.bounded and config.checkpoint_dir is None and config.savepoint is None
    if config.mode is None:
        batch = batch and any(_table(node) for node in graph.stream_graph.nodes)
    return RuntimeExecutionMode.BATCH if batch else RuntimeExecutionMode.STREAMING
