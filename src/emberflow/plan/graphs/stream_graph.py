"""The stream graph: the program as the user wrote it, one node per step.

Frozen data. `to_json`/`from_json` keep everything but the functions themselves, of which only the names are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from emberflow.errors import DuplicateUid, InvalidArgument
from emberflow.events.identity import text_identity
from emberflow.events.types.type_information import TypeInformation
from emberflow.plan.graphs.partitioning import BY_CHANNEL, Partitioner, PartitionerKind
from emberflow.plan.specs import DescribedSpec, SourceSpec, Spec, TimestampsSpec, function_name

FORMAT_VERSION = 2
"""1 knew no partitioners but the channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEdge:
    """From an upstream node (or one of its side outputs) into an input of a node.

    `key` is the selector of a keyed edge. An edge with a `partitioner` sends records to numbered tasks. One with neither
    stays within the task.
    """

    source: int
    side_tag: str | None = None
    input_index: int = 0
    key: Callable[[Any], Any] | None = None
    key_name: str | None = None
    partitioner: Partitioner | None = None

    @property
    def shuffles(self) -> bool:
        return self.key_name is not None or self.partitioner is not None

    @property
    def by_channel(self) -> bool:
        return self.partitioner is not None and self.partitioner.kind is PartitionerKind.CHANNEL

    @property
    def broadcasts(self) -> bool:
        return self.partitioner is not None and self.partitioner.kind is PartitionerKind.BROADCAST

    @property
    def hashes(self) -> bool:
        return self.partitioner is not None and self.partitioner.kind is PartitionerKind.HASH

    @property
    def selector(self) -> Callable[[Any], Any] | None:
        """What the key of a record is, for a keyed edge or for the partitioner."""
        return self.key if self.partitioner is None else self.partitioner.key

    @property
    def label(self) -> str | None:
        """How records are distributed, for plans; None within a task."""
        return self.key_name if self.partitioner is None else self.partitioner.label


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamNode:
    id: int
    uid: str
    name: str
    spec: Spec
    inputs: tuple[StreamEdge, ...] = ()
    location: str = ""
    parallelism: int | None = None
    max_parallelism: int | None = None
    slot_sharing_group: str | None = None
    starts_chain: bool = False
    never_chains: bool = False
    output_type: TypeInformation[Any] | None = None
    """What the step's records are converted to; None if they are passed on as they are."""
    side_types: tuple[tuple[str, TypeInformation[Any]], ...] = ()
    """The same for side outputs, by the tag's id."""
    reuses_objects: bool = False
    """Whether records are passed on without copies, although functions could change them."""

    def describe(self) -> dict[str, Any]:
        """The details of the step, as JSON."""
        declared = {} if self.output_type is None else {"output_type": repr(self.output_type)}
        return {**self.spec.describe(), **declared}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGraph:
    name: str
    nodes: tuple[StreamNode, ...] = field(default=())

    def node(self, node_id: int) -> StreamNode:
        return self.nodes[node_id]

    @property
    def bounded(self) -> bool:
        return all(node.spec.source.bounded for node in self.nodes if isinstance(node.spec, SourceSpec))

    def consumers(self, node_id: int) -> list[tuple[StreamNode, StreamEdge]]:
        return [(node, edge) for node in self.nodes for edge in node.inputs if edge.source == node_id]

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT_VERSION,
            "name": self.name,
            "nodes": [
                {
                    "id": node.id,
                    "uid": node.uid,
                    "name": node.name,
                    "kind": node.spec.kind,
                    "keyed": node.spec.keyed,
                    "details": node.describe(),
                    "location": node.location,
                    "parallelism": node.parallelism,
                    "max_parallelism": node.max_parallelism,
                    "slot_sharing_group": node.slot_sharing_group,
                    "starts_chain": node.starts_chain,
                    "never_chains": node.never_chains,
                    "inputs": [
                        {
                            "source": edge.source,
                            "side_tag": edge.side_tag,
                            "input": edge.input_index,
                            "key": edge.key_name,
                            "partitioner": None if edge.partitioner is None else edge.partitioner.label,
                        }
                        for edge in node.inputs
                    ],
                }
                for node in self.nodes
            ],
        }

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent)

    @staticmethod
    def from_json(text: str) -> StreamGraph:
        """A graph for display: its steps are described, not runnable."""
        data = json.loads(text)
        if data.get("format") not in (1, FORMAT_VERSION):
            raise InvalidArgument(f"a stream graph of format {data.get('format')!r} cannot be read")
        return StreamGraph(name=data["name"], nodes=tuple(_node(item) for item in data["nodes"]))


def _node(item: dict[str, Any]) -> StreamNode:
    return StreamNode(
        id=item["id"],
        uid=item["uid"],
        name=item["name"],
        spec=DescribedSpec(kind=item["kind"], details=tuple(item["details"].items()), is_keyed=item["keyed"]),
        location=item["location"],
        parallelism=item["parallelism"],
        max_parallelism=item.get("max_parallelism"),
        slot_sharing_group=item.get("slot_sharing_group"),
        starts_chain=item["starts_chain"],
        never_chains=item["never_chains"],
        inputs=tuple(
            StreamEdge(
                source=edge["source"],
                side_tag=edge["side_tag"],
                input_index=edge["input"],
                key_name=edge["key"],
                partitioner=_partitioner(edge),
            )
            for edge in item["inputs"]
        ),
    )


def _partitioner(edge: dict[str, Any]) -> Partitioner | None:
    if "by_channel" in edge:
        return BY_CHANNEL if edge["by_channel"] else None
    kind, _, name = (edge["partitioner"] or "").partition("(")
    return Partitioner(kind=PartitionerKind(kind), name=name.removesuffix(")")) if kind else None


ASIDE = "aside:"
"""Prefix of the uids of steps that an engine needs for itself: they do not affect the derived uids of their neighbours."""


def counting(inputs: tuple[StreamEdge, ...], uids: list[str]) -> tuple[StreamEdge, ...]:
    """The inputs that a step's identity depends on."""
    return tuple(edge for edge in inputs if not uids[edge.source].startswith(ASIDE))


def derive_uid(spec: Spec, inputs: tuple[StreamEdge, ...], uids: list[str], ordinal: int) -> str:
    """A uid that stays the same as long as the program around the step does not change."""
    described = [(uids[edge.source], edge.side_tag, edge.input_index) for edge in inputs]
    parts = json.dumps([spec.kind, function_name(spec.function), described, ordinal])
    return f"{spec.kind}-{text_identity(parts)}"


_FIRST_FORM = re.compile(r"[a-z_]+-[0-9a-f]{8}")


def of_first_form(uids: Iterable[str]) -> str:
    """The advice for a user whose stored state has uids derived by version 1; empty for other uids."""
    found = [uid for uid in uids if _FIRST_FORM.fullmatch(uid)]
    if not found:
        return ""
    return (
        f"uids such as {found[0]!r} were derived by an earlier version of emberflow; this version derives them differently: "
        f"give each step the uid it had, e.g. .uid({found[0]!r}). A sink that is not in the program (of dead letters) cannot be "
        "given one: create a savepoint from the checkpoint (emberflow savepoint create) and start from that with an empty "
        "checkpoint directory"
    )


def check_uids(nodes: tuple[StreamNode, ...]) -> None:
    seen: dict[str, StreamNode] = {}
    for node in nodes:
        other = seen.setdefault(node.uid, node)
        if other is not node:
            raise DuplicateUid(
                f"the steps {other.name!r} and {node.name!r} have the same uid {node.uid!r}",
                way_out="give each step its own uid",
            )


def reusing_objects(graph: StreamGraph) -> StreamGraph:
    """The graph with steps that do not copy what they emit."""
    return replace(graph, nodes=tuple(replace(node, reuses_objects=True) for node in graph.nodes))


def watermarks_per_batch(graph: StreamGraph) -> StreamGraph:
    """The graph with watermarks that advance after each batch of records, as Flink's do after an interval."""
    nodes = tuple(
        replace(node, spec=replace(node.spec, per_batch=True))
        if isinstance(node.spec, TimestampsSpec)
        else node
        for node in graph.nodes
    )
    return replace(graph, nodes=nodes)
