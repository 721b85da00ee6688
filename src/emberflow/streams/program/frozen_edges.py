"""The edges of a program when it is frozen: partitioners move from their place between two steps to the edges behind it,
and steps whose parallelism differs from that of the step before get one, as in Flink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from emberflow.connectors.collection import CollectionSource
from emberflow.errors import InvalidArgument
from emberflow.plan.graphs.partitioning import AS_SENT, IN_TURN, PartitionerKind, PartitionSpec
from emberflow.plan.graphs.stream_graph import StreamEdge, StreamNode
from emberflow.plan.graphs.unions import merges_inputs
from emberflow.plan.operator_state import needs_own_stage
from emberflow.plan.specs import SinkSpec, SourceSpec


class FrozenEdges:
    def __init__(self, nodes: Sequence[StreamNode], parallelism: int | None) -> None:
        self._nodes = nodes
        self._parallelism = parallelism
        self._into: dict[int, tuple[StreamEdge, ...]] = {}

    def into(self, node_id: int) -> tuple[StreamEdge, ...]:
        """The inputs of a step; their sources are steps, never partitioners."""
        found = self._into.get(node_id)
        if found is None:
            node = self._nodes[node_id]
            edges = [item for edge in node.inputs for item in self._behind(edge)]
            found = self._into[node_id] = tuple(self._settled(node, edges))
        return found

    def _behind(self, edge: StreamEdge) -> list[StreamEdge]:
        """The edge without the partitioners it comes from: the last of them counts, unless the edge has its own."""
        spec = self._nodes[edge.source].spec
        if not isinstance(spec, PartitionSpec):
            return [edge]
        own = edge.key_name is not None or (edge.partitioner is not None and not edge.partitioner.implied)
        found: list[StreamEdge] = []
        for before in self._nodes[edge.source].inputs:
            moved = replace(
                edge,
                source=before.source,
                side_tag=edge.side_tag or before.side_tag,
                partitioner=edge.partitioner if own else spec.partitioner,
            )
            found += self._behind(moved)
        return found

    def _settled(self, node: StreamNode, edges: list[StreamEdge]) -> list[StreamEdge]:
        if any(edge.key_name is not None or edge.by_channel for edge in edges):
            needs_own_stage(replace(node, inputs=tuple(edges)))
            return edges
        settled = [self._forwarded(node, edge) for edge in edges]
        if node.parallelism is not None and not isinstance(node.spec, SinkSpec):
            settled = [
                replace(edge, partitioner=IN_TURN)
                if (edge.partitioner is None or edge.partitioner.implied)
                and self._tasks(edge.source) != node.parallelism
                else edge
                for edge in settled
            ]
        own_stage = needs_own_stage(replace(node, inputs=tuple(edges)))
        if own_stage or any(edge.shuffles for edge in settled) or merges_inputs(node, settled, self.into):
            # What heads a stage gets all its records through exchanges.
            return [edge if edge.shuffles else replace(edge, partitioner=AS_SENT) for edge in settled]
        return settled

    def _forwarded(self, node: StreamNode, edge: StreamEdge) -> StreamEdge:
        """forward() needs no exchange, but equal parallelism."""
        partitioner = edge.partitioner
        if partitioner is None or partitioner.implied or partitioner.kind is not PartitionerKind.FORWARD:
            return edge
        before = self._tasks(edge.source)
        if node.parallelism is not None and before is not None and before != node.parallelism:
            raise InvalidArgument(
                f"forward() before step {node.name!r} ({node.location}) needs equal parallelism, but it is {before} before "
                f"and {node.parallelism} behind it",
                way_out="use rebalance() or rescale(), or give both steps the same parallelism",
            )
        return replace(edge, partitioner=None)

    def _tasks(self, node_id: int) -> int | None:
        """How many tasks a step runs in; None if the environment decides that later."""
        node = self._nodes[node_id]
        if node.parallelism is not None and not isinstance(node.spec, SourceSpec):
            return node.parallelism
        if isinstance(node.spec, SourceSpec):
            alone = isinstance(node.spec.source, CollectionSource)
            return 1 if alone else node.parallelism or self._parallelism
        edges = self.into(node_id)
        if any(edge.shuffles for edge in edges):
            return self._parallelism
        counts = {self._tasks(edge.source) for edge in edges}
        return counts.pop() if len(counts) == 1 else None
