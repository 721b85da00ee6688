"""Which steps have operator state: those without keys whose function initializes and snapshots it."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.plan.graphs.job_graph import JobGraph, Stage, StageKind
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.partition_specs import BroadcastSpec, CoProcessSpec
from emberflow.plan.specs import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec

_MAY_HAVE = (MapSpec, FlatMapSpec, FilterSpec, ProcessSpec, CoProcessSpec, BroadcastSpec)


def has_operator_state(function: Any) -> bool:
    """Whether it is a `CheckpointedFunction`, or has its methods."""
    return all(callable(getattr(function, name, None)) for name in ("initialize_state", "snapshot_state"))


def needs_own_stage(node: StreamNode) -> bool:
    """Whether the step has operator state; raises InvalidArgument where it cannot have any."""
    if not has_operator_state(node.spec.function):
        return False
    if not isinstance(node.spec, _MAY_HAVE) or any(edge.key_name is not None for edge in node.inputs):
        raise InvalidArgument(
            f"the function of step {node.name!r} ({node.location}) has operator state, which belongs to steps without keys",
            way_out="keep keyed state instead (runtime_context.get_state), or use the function before key_by()",
        )
    return True


def keeps_operator_state(graph: JobGraph, stage: Stage) -> bool:
    """Whether the head of a stage has operator state."""
    return stage.kind is StageKind.PARTITIONED and has_operator_state(
        graph.stream_graph.node(stage.head).spec.function
    )
