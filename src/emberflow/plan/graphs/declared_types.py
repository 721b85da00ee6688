"""The declared type of a stream: what its step declares, or what the step before it declares if it passes records on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberflow.events.types.type_information import TypeInformation
from emberflow.plan.graphs.stream_graph import StreamNode


def type_of(nodes: Sequence[StreamNode], node_id: int, side_tag: str | None) -> TypeInformation[Any] | None:
    """The type of a step's records, or of one of its side outputs; None if none is declared, or inputs differ."""
    node = nodes[node_id]
    if side_tag is not None:
        return dict(node.side_types).get(side_tag)
    if node.output_type is not None or not node.spec.keeps_type:
        return node.output_type
    return common_type([type_of(nodes, edge.source, edge.side_tag) for edge in node.inputs])


def common_type(types: Sequence[TypeInformation[Any] | None]) -> TypeInformation[Any] | None:
    """The one type of all; None if they differ."""
    return types[0] if types and all(found == types[0] for found in types) else None
