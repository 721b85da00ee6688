"""The first positions of a job's sources, and the number of channels that each stage has on its exchanges: every channel
has its own watermark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from emberflow.connectors.source import Position, start_positions
from emberflow.plan.graphs.job_graph import JobGraph, StageKind, source_of
from emberflow.plan.graphs.stream_graph import StreamNode


def new_sources(graph: JobGraph, parallelism: int, known: Collection[str]) -> dict[str, list[Position]]:
    """By uid, the first positions of the sources that are not `known` from an earlier start."""
    found: dict[str, list[Position]] = {}
    for stage in graph.stages:
        node = graph.stream_graph.node(stage.head)
        if stage.kind is StageKind.SOURCE and node.uid not in known:
            source = source_of(graph, stage).source
            found[node.uid] = start_positions(source, node.parallelism or parallelism)
    return found


def stage_channels(
    graph: JobGraph, of_sources: Mapping[str, int], of_keyed: Callable[[StreamNode], int]
) -> dict[int, int]:
    """By stage. `of_sources` is by uid; a step that generates its own watermarks does so per channel of its inputs; the
    number of tasks of a keyed stage is up to the engine."""
    found: dict[int, int] = {}
    for stage in graph.stages:
        node = graph.stream_graph.node(stage.head)
        if stage.kind is StageKind.SOURCE:
            found[stage.id] = of_sources[node.uid]
        elif node.spec.traits.keyed_by_channel:
            found[stage.id] = sum(found[item.source_stage] for item in graph.inputs_of(stage.id))
        else:
            found[stage.id] = of_keyed(node)
    return found
