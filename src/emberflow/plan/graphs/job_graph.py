"""The job graph: the stream graph cut at its shuffles.

A *stage* runs without a shuffle: a source, a keyed step or a step behind a partitioner, and every step after it up to the
next shuffle. A step without keys after a union belongs to every stage that feeds it, unless it needs a stage of its own
(`unions.py`). An *exchange* carries records from one stage to the head of another. Stages are numbered so that an exchange
always leads to a higher level.
Within a stage, `chains` are Flink's job vertices: steps that would share one task.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from emberflow.plan.graphs.stream_graph import StreamEdge, StreamGraph, StreamNode
from emberflow.plan.specs import SinkSpec, SourceSpec, StepTraits, TimestampsSpec, WatermarkGeneratorSpec


class StageKind(Enum):
    SOURCE = "source"
    KEYED = "keyed"
    PARTITIONED = "partitioned"
    """Its tasks are numbered and have no keys; each has function objects of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge inside a stage."""

    source: int
    target: int
    side_tag: str | None = None
    input_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An edge between stages; `edge` has the key selector."""

    id: int
    source_stage: int
    target_stage: int
    edge: StreamEdge

    @property
    def input_index(self) -> int:
        return self.edge.input_index


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    id: int
    kind: StageKind
    level: int
    head: int
    nodes: tuple[int, ...]
    links: tuple[Link, ...]
    chains: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGraph:
    stream_graph: StreamGraph
    stages: tuple[Stage, ...]
    exchanges: tuple[Exchange, ...]

    @property
    def name(self) -> str:
        return self.stream_graph.name

    @property
    def sinks(self) -> list[StreamNode]:
        return [node for node in self.stream_graph.nodes if isinstance(node.spec, SinkSpec)]

    def traits_of(self, stage: Stage) -> StepTraits:
        """Of the step at the head of a stage, which owns its state."""
        return self.stream_graph.node(stage.head).spec.traits

    def inputs_of(self, stage_id: int) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if exchange.target_stage == stage_id]

    def outputs_of(self, stage_id: int) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if exchange.source_stage == stage_id]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.stream_graph.to_dict(),
            "stages": [
                {
                    "id": stage.id,
                    "kind": stage.kind.value,
                    "level": stage.level,
                    "head": stage.head,
                    "nodes": list(stage.nodes),
                    "chains": [list(chain) for chain in stage.chains],
                }
                for stage in self.stages
            ],
            "exchanges": [
                {
                    "id": item.id,
                    "from": item.source_stage,
                    "to": item.target_stage,
                    "key": item.edge.key_name,
                    "partitioner": None if item.edge.partitioner is None else item.edge.partitioner.label,
                }
                for item in self.exchanges
            ],
        }

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent)

    @staticmethod
    def from_json(text: str) -> JobGraph:
        """Compiles the stream graph again, because the stages follow from the steps."""
        return compile_graph(StreamGraph.from_json(text))


def compile_graph(graph: StreamGraph) -> JobGraph:
    """Cuts a stream graph into stages at its shuffles."""
    heads = [node for node in graph.nodes if _is_head(node)]
    numbers = {node.id: number for number, node in enumerate(heads)}
    members = {node.id: _members(graph, node) for node in heads}
    levels: dict[int, int] = {}
    exchanges: list[Exchange] = []
    for head in heads:
        level = 0
        for edge in head.inputs:
            for other in heads:
                if edge.source in members[other.id][0]:
                    level = max(level, levels[other.id] + 1)
                    exchanges.append(
                        Exchange(
                            id=len(exchanges),
                            source_stage=numbers[other.id],
                            target_stage=numbers[head.id],
                            edge=edge,
                        )
                    )
        levels[head.id] = level
    stages = tuple(
        Stage(
            id=numbers[head.id],
            kind=_kind(head),
            level=levels[head.id],
            head=head.id,
            nodes=members[head.id][0],
            links=members[head.id][1],
            chains=_chains(graph, *members[head.id]),
        )
        for head in heads
    )
    return JobGraph(stream_graph=graph, stages=stages, exchanges=tuple(exchanges))


def _is_head(node: StreamNode) -> bool:
    return not node.inputs or any(edge.shuffles for edge in node.inputs)


def _kind(head: StreamNode) -> StageKind:
    if not head.inputs:
        return StageKind.SOURCE
    keyed = any(edge.key_name is not None or edge.by_channel for edge in head.inputs)
    return StageKind.KEYED if keyed else StageKind.PARTITIONED


def _members(graph: StreamGraph, head: StreamNode) -> tuple[tuple[int, ...], tuple[Link, ...]]:
    """Nodes are created after their inputs, so one pass in order of their ids finds them all."""
    nodes, links = [head.id], list[Link]()
    for node in graph.nodes:
        if _is_head(node):
            continue
        found = [
            Link(source=edge.source, target=node.id, side_tag=edge.side_tag, input_index=edge.input_index)
            for edge in node.inputs
            if edge.source in nodes
        ]
        if found:
            nodes.append(node.id)
            links.extend(found)
    return tuple(nodes), tuple(links)


def _chains(
    graph: StreamGraph, nodes: tuple[int, ...], links: tuple[Link, ...]
) -> tuple[tuple[int, ...], ...]:
    """Flink's rule: a step joins the chain of its only input if neither forbids it and the parallelism is equal."""
    chain_of: dict[int, list[int]] = {}
    chains: list[list[int]] = []
    for node_id in nodes:
        node = graph.node(node_id)
        feeders = [link.source for link in links if link.target == node_id]
        upstream = graph.node(feeders[0]) if len(feeders) == 1 else None
        joins = (
            upstream is not None
            and not (node.starts_chain or node.never_chains or upstream.never_chains)
            and upstream.parallelism == node.parallelism
        )
        if joins and upstream is not None:
            chain_of[node_id] = chain_of[upstream.id]
            chain_of[node_id].append(node_id)
        else:
            chain_of[node_id] = [node_id]
            chains.append(chain_of[node_id])
    return tuple(tuple(chain) for chain in chains)


def tasks_of(graph: JobGraph, stage: Stage, parallelism: int) -> int:
    """How many tasks a partitioned stage has; `parallelism` is that of the environment."""
    return graph.stream_graph.node(stage.head).parallelism or parallelism


def source_of(graph: JobGraph, stage: Stage) -> SourceSpec:
    spec = graph.stream_graph.node(stage.head).spec
    assert isinstance(spec, SourceSpec), "only source stages have a source"
    return spec


def idle_timeouts(graph: JobGraph) -> dict[int, int]:
    """Exchange -> idle timeout of the watermark strategy that its records passed last."""
    found: dict[int, int] = {}
    for item in graph.exchanges:
        links = graph.stages[item.source_stage].links
        node_id: int | None = item.edge.source
        while node_id is not None:
            spec = graph.stream_graph.node(node_id).spec
            if isinstance(spec, TimestampsSpec | WatermarkGeneratorSpec):
                if spec.strategy.idle_ms is not None:
                    found[item.id] = spec.strategy.idle_ms
                break
            node_id = next((link.source for link in links if link.target == node_id), None)
    return found
