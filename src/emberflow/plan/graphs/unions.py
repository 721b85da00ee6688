"""Which steps behind a union have a stage of their own.

A step without keys behind a union is executed where its records come from: once in every stage that feeds it, without an
exchange. That has the results of a single step as long as the copies need nothing of each other. Where they do, records
and watermarks of all inputs are merged before the step, as in front of a keyed one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from emberflow.plan.graphs.stream_graph import StreamEdge, StreamNode
from emberflow.plan.specs import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec, SinkSpec

_CALLS_A_FUNCTION = (MapSpec, FilterSpec, FlatMapSpec, ProcessSpec)


def merges_inputs(
    node: StreamNode, edges: Sequence[StreamEdge], into: Callable[[int], Sequence[StreamEdge]]
) -> bool:
    """`edges` are the inputs of the step, `into` returns those of another one."""
    if len(edges) < 2 or isinstance(node.spec, SinkSpec):
        return False
    return _may_remember(node) or _rejoins(edges, into)


def _may_remember(node: StreamNode) -> bool:
    """A function object may compare a record with those of the other streams, or with event time."""
    function = node.spec.function
    return (
        isinstance(node.spec, _CALLS_A_FUNCTION)
        and function is not None
        and not isinstance(function, partial)
        and not hasattr(function, "__qualname__")
    )


def _rejoins(edges: Sequence[StreamEdge], into: Callable[[int], Sequence[StreamEdge]]) -> bool:
    """Whether two inputs come out of one stage, where both would be the same channel with two courses of event time."""
    seen: set[int] = set()
    for edge in edges:
        heads = _heads(edge.source, into)
        if seen & heads:
            return True
        seen |= heads
    return False


def _heads(node_id: int, into: Callable[[int], Sequence[StreamEdge]]) -> set[int]:
    """The first steps of the stages that a step belongs to."""
    edges = into(node_id)
    if not edges or any(edge.shuffles for edge in edges):
        return {node_id}
    return set[int]().union(*(_heads(edge.source, into) for edge in edges))
