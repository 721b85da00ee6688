"""Which sources of a program stay together in event time, and by which strategy.

Checked when a plan is explained or submitted, followed by the local engine, shown by `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass

from emberflow.errors import InvalidArgument
from emberflow.event_time.watermarks import WatermarkAlignment, WatermarkStrategy
from emberflow.plan.graphs.job_graph import JobGraph, Stage, StageKind
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.specs import TimestampsSpec, WatermarkGeneratorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedSource:
    """`step` is the node of the strategy; it runs in the source's stage, or with a custom generator in the one behind it."""

    stage: int
    step: int
    step_stage: int
    alignment: WatermarkAlignment
    idle_ms: int | None


def aligned_sources(graph: JobGraph) -> list[AlignedSource]:
    """The first strategy with alignment behind a source counts. One without watermarks takes no part: it would hold its group
    back forever. Raises InvalidArgument if strategies of one group have different drifts."""
    _check_drifts(graph)
    return [
        found
        for stage in graph.stages
        if stage.kind is StageKind.SOURCE and (found := _aligned(graph, stage)) is not None
    ]


def alignment_notes(graph: JobGraph) -> list[str]:
    """What a reader of a plan must know about alignment."""
    sources = aligned_sources(graph)
    names: dict[WatermarkAlignment, list[str]] = {}
    for item in sources:
        names.setdefault(item.alignment, []).append(
            repr(graph.stream_graph.node(graph.stages[item.stage].head).name)
        )
    notes = [
        f"watermark group {alignment.group!r}: {', '.join(found)}; on local, a source more than {alignment.max_drift_ms} ms "
        "ahead of the slowest waits; on Spark and in batch mode there is no alignment, results are the same"
        for alignment, found in names.items()
    ]
    used = {item.step for item in sources}
    notes.extend(
        f"step {node.name!r}: its watermark alignment has no effect, because it "
        + ("has no watermarks" if _is_silent(strategy) else "is not the first behind a source")
        for node in graph.stream_graph.nodes
        if (strategy := _strategy_of(node)) is not None and strategy.alignment and node.id not in used
    )
    return notes


def _aligned(graph: JobGraph, stage: Stage) -> AlignedSource | None:
    places = dict.fromkeys(stage.nodes, stage.id)
    for item in graph.outputs_of(stage.id):
        if item.edge.by_channel:
            places[graph.stages[item.target_stage].head] = item.target_stage
    for node_id in sorted(places):
        strategy = _strategy_of(graph.stream_graph.node(node_id))
        if strategy is not None and strategy.alignment is not None and not _is_silent(strategy):
            return AlignedSource(
                stage=stage.id,
                step=node_id,
                step_stage=places[node_id],
                alignment=strategy.alignment,
                idle_ms=strategy.idle_ms,
            )
    return None


def _check_drifts(graph: JobGraph) -> None:
    drifts: dict[str, tuple[int, str]] = {}
    for node in graph.stream_graph.nodes:
        strategy = _strategy_of(node)
        if strategy is None or strategy.alignment is None:
            continue
        group, drift_ms = strategy.alignment.group, strategy.alignment.max_drift_ms
        other_ms, other = drifts.setdefault(group, (drift_ms, node.name))
        if other_ms != drift_ms:
            raise InvalidArgument(
                f"the watermark group {group!r} has two drifts: {other_ms} ms in step {other!r}, "
                f"{drift_ms} ms in step {node.name!r}",
                way_out="give with_watermark_alignment() the same drift for all sources of a group",
            )


def _strategy_of(node: StreamNode) -> WatermarkStrategy | None:
    return node.spec.strategy if isinstance(node.spec, TimestampsSpec | WatermarkGeneratorSpec) else None


def _is_silent(strategy: WatermarkStrategy) -> bool:
    return strategy.generator is None and strategy.delay_ms is None
