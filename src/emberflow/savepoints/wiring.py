"""Names a job's stages and exchanges in savepoints by the uids of the steps they connect.

Numbers change when steps are added or removed; uids do not. A checkpoint directory stores its job's wiring, so that a
savepoint can be created from it without the program.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emberflow.errors import CheckpointUnusable, CorruptData, describe_cause
from emberflow.events.stored_files import corrupt, read_json, write_json
from emberflow.operators.watermarks.watermark_merge import ChannelId, SavedChannel, is_hold
from emberflow.plan.graphs.job_graph import Exchange, JobGraph, StageKind
from emberflow.plan.operator_state import keeps_operator_state

FILE = "wiring.json"
_FORMAT = 2
"""1 had no numbers of tasks."""
_LOST = (
    "restore it from a backup; without one, start with an empty checkpoint directory and another output folder, from the"
    " last savepoint if there is one"
)
GENERATOR = "watermark_generator"
"""The kind of step whose keys are channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    job_name: str
    stages: dict[str, int]
    """uid of the head -> stage, in order of the stages"""
    kinds: dict[str, str]
    """uid -> kind of the heads that have state"""
    sources: list[str]
    sinks: list[str]
    exchanges: dict[str, int]
    format: int = _FORMAT
    tasks: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """uid -> parallelism of steps with state that belongs to numbered tasks; None: that of the environment"""
    first_epoch: int = 0
    """The epoch of Spark's batch 0; not 0 in a job that started from a savepoint."""

    def named_channels(self, channels: list[SavedChannel]) -> dict[str, list[int]]:
        """Watermarks of a scope's channels, by the name of their input. A hold within a channel lowers the whole channel;
        the upstream step sets it again after the start."""
        names = {number: name for name, number in self.exchanges.items()}
        found: dict[str, dict[int, int]] = {}
        held: dict[str, int] = {}
        for (exchange, channel), watermark, _ in channels:
            name = names.get(exchange)
            if name is None:
                continue
            if is_hold((exchange, channel)):
                held[name] = min(watermark, held.get(name, watermark))
            else:
                found.setdefault(name, {})[channel] = watermark
        return {
            name: [min(marks[number], held.get(name, marks[number])) for number in sorted(marks)]
            for name, marks in found.items()
        }

    def key_out(self, kind: str, key: Any) -> Any:
        """A key in the form that a savepoint stores."""
        if kind != GENERATOR:
            return key
        names = {number: name for name, number in self.exchanges.items()}
        return names.get(key[0], ""), key[1]

    def key_in(self, kind: str, key: Any) -> ChannelId | Any:
        """A savepoint's key in the form that this job uses; a channel of a removed input has number -1."""
        return key if kind != GENERATOR else (self.exchanges.get(key[0], -1), key[1])


def wiring_of(graph: JobGraph, first_epoch: int = 0) -> Wiring:
    nodes = graph.stream_graph
    heads = {stage.id: nodes.node(stage.head) for stage in graph.stages}
    return Wiring(
        job_name=graph.name,
        stages={node.uid: number for number, node in heads.items()},
        kinds={
            heads[stage.id].uid: heads[stage.id].spec.stored_kind
            for stage in graph.stages
            if stage.kind is not StageKind.SOURCE
        },
        sources=[heads[stage.id].uid for stage in graph.stages if stage.kind is StageKind.SOURCE],
        sinks=[node.uid for node in graph.sinks],
        exchanges=_exchange_names(graph),
        first_epoch=first_epoch,
        tasks={
            heads[stage.id].uid: heads[stage.id].parallelism
            for stage in graph.stages
            if stage.kind is StageKind.PARTITIONED
            and (graph.traits_of(stage).shares_state or keeps_operator_state(graph, stage))
        },
    )


def _exchange_names(graph: JobGraph) -> dict[str, int]:
    """Names with their numbers. A stream that is part of a union more than once has as many exchanges to the same input."""
    found: dict[str, int] = {}
    for exchange in graph.exchanges:
        name = _exchange_name(graph, exchange)
        others = sum(other == name or other.startswith(f"{name} #") for other in found)
        found[f"{name} #{others + 1}" if others else name] = exchange.id
    return found


def _exchange_name(graph: JobGraph, exchange: Exchange) -> str:
    """`source > step[:side output] > target[input]`; stable as long as these steps keep their uids."""
    nodes = graph.stream_graph
    feeder = nodes.node(graph.stages[exchange.source_stage].head).uid
    through = nodes.node(exchange.edge.source).uid
    side = f":{exchange.edge.side_tag}" if exchange.edge.side_tag else ""
    target = nodes.node(graph.stages[exchange.target_stage].head).uid
    return f"{feeder} > {through}{side} > {target}[{exchange.input_index}]"


def write_wiring(directory: Path, wiring: Wiring) -> None:
    write_json(directory / FILE, asdict(wiring))


def read_wiring(directory: Path) -> Wiring:
    path = directory / FILE
    try:
        body = read_json(path, newest=_FORMAT, way_out=_LOST)
    except FileNotFoundError as error:
        raise CheckpointUnusable(
            f"no savepoint can be created from {directory}",
            cause=describe_cause(error),
            way_out="name the checkpoint directory of a job that has run with this version of emberflow",
        ) from error
    try:
        return Wiring(**body)
    except TypeError as error:
        raise corrupt(path, describe_cause(error), _LOST) from error


def missing_wiring(directory: Path) -> CorruptData:
    return corrupt(directory / FILE, "it is missing, but the job has a checkpoint", _LOST)
