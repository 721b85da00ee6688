"""How many channels each stage of a job sends on each of its exchanges: every channel has a watermark of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emberflow.plan.job_graph import JobGraph, StageKind, source_of
from emberflow.plan.specs import WatermarkGeneratorSpec
from emberflow.plan.stream_graph import StreamNode


def stage_channels(
    graph: JobGraph, parallelism: int, known: Mapping[str, int], of_keyed: Callable[[StreamNode], int]
) -> dict[int, int]:
    """By stage. A source keeps the number it was first started with, if its uid is `known`; a step that makes its own
    watermarks does so per channel of its inputs; how many tasks a keyed stage speaks with is the engine's business."""
    found: dict[int, int] = {}
    for stage in graph.stages:
        node = graph.stream_graph.node(stage.head)
        if stage.kind is StageKind.SOURCE:
            if node.uid in known:
                found[stage.id] = known[node.uid]
            else:
                found[stage.id] = source_of(graph, stage).source.channels(node.parallelism or parallelism)
        elif isinstance(node.spec, WatermarkGeneratorSpec):
            found[stage.id] = sum(found[item.source_stage] for item in graph.inputs_of(stage.id))
        else:
            found[stage.id] = of_keyed(node)
    return found
