"""What is shipped to Spark's workers: the job, as bytes, and how a worker restores it.

User classes of `__main__` are included and put into the worker's own `__main__`, so that records and state that contain
them are pickled by name, which is fast and compatible with the program's next version after a restart.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle

from emberflow.connectors.source import Source
from emberflow.durable.location import CallStoreLocation
from emberflow.engines.spark.wire.packet_rows import group_ids
from emberflow.errors import NotSerializable, describe_cause
from emberflow.events.fence import NO_FENCE, Fence
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.graphs.job_graph import JobGraph, StageKind, idle_timeouts, tasks_of
from emberflow.plan.specs import SourceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    graph: JobGraph
    job_id: str
    parallelism: int
    max_parallelism: int
    batch: bool
    channels: dict[int, int]
    """stage -> number of channels it sends"""
    at_end: dict[int, bool]
    """stage -> whether its channels' watermarks take effect only at the end of a batch"""
    max_records: int
    client_dir: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    calls: CallStoreLocation | None = None
    """Where workers keep the durable call log; None if there is no log."""
    limits_dir: str = ""
    """Where workers share the limits of models. Empty if they may be on several machines: each task then gets an equal
    share of every limit."""
    fence: Fence = NO_FENCE
    """Of this start of the job; without a checkpoint directory there is none."""
    ticking_stage: int | None = None
    """The source stage that requests batches without input while runs are parked."""
    first_epoch: int = 0
    """The epoch of batch 0: a job that started from a savepoint continues counting from the savepoint's epoch."""
    start_positions: dict[int, list[list[Any]]] = field(default_factory=dict[int, list[list[Any]]])
    """source stage -> [position, ended] of each channel when the job started"""
    from_savepoint: bool = False
    hold_file: str = ""
    """While it exists, sources provide no records: the job is about to be stopped between two batches."""
    spread_over: int = 0
    """The number of partitions for which the numbers of key groups are chosen; 0: one per task."""
    for_one_query: bool = False
    """Whether the job's directory serves a query that the user starts, and therefore only one."""
    deadline_ms: int = 1_000
    """How long a micro-batch waits for agents' calls before they continue in the background."""

    def epoch_of(self, batch_id: int) -> int:
        """The job's epoch of a micro-batch of this query, as the call log and the decisions count them. Sinks count by
        batch ids."""
        return self.first_epoch + batch_id

    def input_channels(self, stage_id: int) -> list[ChannelId]:
        return [
            (item.id, channel)
            for item in self.graph.inputs_of(stage_id)
            for channel in range(self.channels[item.source_stage])
        ]

    def tasks_of(self, stage_id: int) -> int | None:
        """The number of tasks of a partitioned stage, which are its first key groups; None for other stages."""
        stage = self.graph.stages[stage_id]
        if stage.kind is not StageKind.PARTITIONED:
            return None
        return tasks_of(self.graph, stage, self.parallelism)

    def groups_of(self, stage_id: int) -> range:
        """The key groups of a stage."""
        return range(self.tasks_of(stage_id) or self.max_parallelism)

    @property
    def leading_groups(self) -> frozenset[int]:
        """One key group for each task of a keyed stage."""
        return frozenset(
            -(-task * self.max_parallelism // self.parallelism) for task in range(self.parallelism)
        )

    @property
    def group_numbers(self) -> tuple[int, ...]:
        """key group -> its number as Spark sees it."""
        return group_ids(self.max_parallelism, self.spread_over or self.parallelism)

    def idle_of(self, stage_id: int) -> dict[int, int]:
        timeouts = idle_timeouts(self.graph)
        return {item.id: timeouts[item.id] for item in self.graph.inputs_of(stage_id) if item.id in timeouts}


class SourceElsewhere(Source[Any]):
    """Replaces a source in a stage that does not read it: a collection may be large."""

    def __init__(self, source: Source[Any]) -> None:
        self.bounded = source.bounded
        self.ordered = source.ordered


def for_stage(spec: JobSpec, stage_id: int | None) -> JobSpec:
    """The job as one stage needs it: only a source stage includes its source and its start positions."""
    head = None if stage_id is None else spec.graph.stages[stage_id].head
    nodes = tuple(
        replace(node, spec=SourceSpec(source=SourceElsewhere(node.spec.source)))
        if isinstance(node.spec, SourceSpec) and node.id != head
        else node
        for node in spec.graph.stream_graph.nodes
    )
    stream_graph = replace(spec.graph.stream_graph, nodes=nodes)
    positions = {number: item for number, item in spec.start_positions.items() if number == stage_id}
    graph = replace(spec.graph, stream_graph=stream_graph)
    return replace(spec, graph=graph, start_positions=positions)


def dump_spec(spec: JobSpec) -> bytes:
    """Serializes a job; raises NotSerializable, which names the function that cannot be pickled."""
    main = sys.modules.get("__main__")
    types = {
        name: value
        for name, value in vars(main).items()
        if isinstance(value, type) and value.__module__ == "__main__"
    }
    try:
        return cloudpickle.dumps((spec, types), 5)
    except Exception as error:
        raise _blame(spec, error) from error


def _blame(spec: JobSpec, error: BaseException) -> NotSerializable:
    way_out = "create connections, locks and files in open() instead of keeping them in the function"
    for node in spec.graph.stream_graph.nodes:
        try:
            cloudpickle.dumps(node.spec, 5)
        except Exception as cause:
            where = f" ({node.location})" if node.location else ""
            return NotSerializable(
                f"the function of step {node.name!r}{where} cannot be sent to Spark's workers",
                cause=describe_cause(cause),
                way_out=way_out,
            )
    return NotSerializable(
        "the program cannot be sent to Spark's workers", cause=describe_cause(error), way_out=way_out
    )


_loaded: dict[str, JobSpec] = {}
_KEPT = 8


def load_spec(data: bytes) -> JobSpec:
    """Deserializes a job, once per process."""
    digest = hashlib.sha256(data).hexdigest()
    spec = _loaded.get(digest)
    if spec is None:
        spec, types = pickle.loads(data)
        main: Any = sys.modules["__main__"]
        for name, value in types.items():
            setattr(main, name, value)
        while len(_loaded) >= _KEPT:
            del _loaded[next(iter(_loaded))]
        _loaded[digest] = spec
    return spec
