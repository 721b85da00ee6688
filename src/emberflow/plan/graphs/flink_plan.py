"""The program in the JSON form of Flink's `getExecutionPlan()`, for tools that read it. Holds less than our own form."""

from __future__ import annotations

import json
from typing import Any

from emberflow.plan.graphs.partitioning import PartitionerKind
from emberflow.plan.graphs.stream_graph import StreamEdge, StreamGraph, StreamNode
from emberflow.plan.specs import SinkSpec, SourceSpec


def flink_plan(graph: StreamGraph, parallelism: int) -> str:
    """`{"nodes": [{"id", "type", "pact", "contents", "parallelism", "predecessors"}]}`, ids counted from 1."""
    nodes = [_node(node, graph, parallelism) for node in graph.nodes]
    return json.dumps({"nodes": nodes}, indent=2)


def _node(node: StreamNode, graph: StreamGraph, parallelism: int) -> dict[str, Any]:
    pact, label = "Operator", node.name
    if isinstance(node.spec, SourceSpec):
        pact, label = "Data Source", f"Source: {node.name}"
    elif isinstance(node.spec, SinkSpec):
        pact, label = "Data Sink", f"Sink: {node.name}"
    found: dict[str, Any] = {
        "id": node.id + 1,
        "type": label,
        "pact": pact,
        "contents": label,
        "parallelism": node.parallelism or parallelism,
    }
    if node.inputs:
        found["predecessors"] = [
            {
                "id": edge.source + 1,
                "ship_strategy": _strategy(node, edge, graph, parallelism),
                "side": "first" if edge.input_index else "second",
            }
            for edge in node.inputs
        ]
    return found


def _strategy(node: StreamNode, edge: StreamEdge, graph: StreamGraph, parallelism: int) -> str:
    if edge.key_name is not None:
        return "HASH"
    if edge.partitioner is not None and edge.partitioner.kind is not PartitionerKind.CHANNEL:
        return edge.partitioner.kind.name
    before = graph.node(edge.source).parallelism or parallelism
    return "FORWARD" if before == (node.parallelism or parallelism) else "REBALANCE"
