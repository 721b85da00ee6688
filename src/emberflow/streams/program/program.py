"""The program under construction: steps are added one by one and frozen into a stream graph when it runs."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

from emberflow.connectors.sink import DiscardingSink
from emberflow.errors import InvalidArgument
from emberflow.events.types.type_information import TypeInformation
from emberflow.plan.graphs.declared_types import type_of
from emberflow.plan.graphs.partitioning import PartitionSpec
from emberflow.plan.graphs.stream_graph import (
    ASIDE,
    StreamEdge,
    StreamGraph,
    StreamNode,
    check_uids,
    counting,
    derive_uid,
)
from emberflow.plan.specs import FilterSpec, SinkSpec, Spec
from emberflow.streams.program.frozen_edges import FrozenEdges
from emberflow.streams.program.tracebacks import LIBRARY


def caller_location() -> str:
    """`pipeline.py:31`: the line of user code that is adding a step."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


class Program:
    """The steps of one environment, in the order in which they were added."""

    def __init__(self, parallelism: int | None = None) -> None:
        self.parallelism = parallelism
        """That of the environment, if the program sets it."""
        self._nodes: list[StreamNode] = []
        self._explicit: dict[int, str] = {}

    def add(self, spec: Spec, inputs: tuple[StreamEdge, ...] = (), name: str | None = None) -> int:
        node = StreamNode(
            id=len(self._nodes),
            uid="",
            name=name or spec.kind,
            spec=spec,
            inputs=inputs,
            location=caller_location(),
        )
        self._nodes.append(node)
        return node.id

    def step_of_side_output(self, inputs: tuple[StreamEdge, ...]) -> int:
        """A step for a side output that has settings: those of the step that it comes from are not meant."""
        return self.add(FilterSpec(kind="side_output", call=_every), inputs, "side_output")

    def node(self, node_id: int) -> StreamNode:
        return self._nodes[node_id]

    def change(self, node_id: int, **fields: Any) -> None:
        """`name`, `parallelism`, chaining flags of a step."""
        self._nodes[node_id] = replace(self._nodes[node_id], **fields)

    def name_of(self, node_id: int) -> str:
        return self._nodes[node_id].name

    def set_uid(self, node_id: int, uid: str) -> None:
        if not uid or not isinstance(uid, str):
            raise InvalidArgument(f"uid() needs a non-empty string, not {uid!r}")
        self._explicit[node_id] = uid

    def declare(self, node_id: int, side_tag: str | None, declared: TypeInformation[Any]) -> None:
        """What the records of a step, or of one of its side outputs, are converted to."""
        if side_tag is None:
            self.change(node_id, output_type=declared)
        else:
            known = dict(self._nodes[node_id].side_types)
            self.change(node_id, side_types=tuple({**known, side_tag: declared}.items()))

    def type_of(self, node_id: int, side_tag: str | None) -> TypeInformation[Any] | None:
        """The declared type of a step's records, or of one of its side outputs."""
        return type_of(self._nodes, node_id, side_tag)

    def specs(self) -> list[Spec]:
        return [node.spec for node in self._nodes]

    @property
    def highest_parallelism(self) -> int:
        return max((node.parallelism or 1 for node in self._nodes), default=1)

    @property
    def last(self) -> int:
        return len(self._nodes) - 1

    def sinks(self) -> list[int]:
        return [node.id for node in self._nodes if isinstance(node.spec, SinkSpec)]

    def add_missing_sinks(self, executed: set[int]) -> None:
        """Discards what steps emit that are executed for what they do, such as agents, where nothing takes it. What the
        executed sinks took is not executed again."""
        done = self._with_ancestors(executed)
        acting = {node.id for node in self._nodes if node.spec.traits.acts} - done
        if not acting:
            return
        taken = {edge.source for node in self._nodes for edge in node.inputs}
        for node in self._nodes[:]:
            if node.id in taken or isinstance(node.spec, SinkSpec):
                continue
            if acting & self._with_ancestors({node.id}):
                sink = self.add(SinkSpec(sink=DiscardingSink()), (StreamEdge(source=node.id),), "discarded")
                if node.id in self._explicit:
                    self.set_uid(sink, f"{ASIDE}discarded-{self._explicit[node.id]}")

    def freeze(
        self, name: str, wanted: set[int] | None = None, *, chaining: bool = True, derive_uids: bool = True
    ) -> StreamGraph:
        """The graph of the whole program, or of the wanted steps and all that feeds them.

        Without `chaining` no step shares a task with another one; without `derive_uids` each needs a `uid()`.
        """
        kept = self._with_ancestors(wanted) if wanted is not None else set(range(len(self._nodes)))
        kept = {old for old in kept if not isinstance(self._nodes[old].spec, PartitionSpec)}
        edges = FrozenEdges(self._nodes, self.parallelism)
        renumbered = {old: new for new, old in enumerate(sorted(kept))}
        uids: list[str] = []
        ordinals: dict[tuple[str, ...], int] = {}
        nodes: list[StreamNode] = []
        for old in sorted(kept):
            node = self._nodes[old]
            inputs = tuple(replace(edge, source=renumbered[edge.source]) for edge in edges.into(old))
            identity = counting(inputs, uids)
            signature = (node.spec.kind, *(uids[edge.source] for edge in identity))
            ordinal = ordinals.get(signature, 0)
            ordinals[signature] = ordinal + 1
            if not derive_uids and old not in self._explicit:
                raise InvalidArgument(
                    f"step {node.name!r} ({node.location}) has no uid, and uids are not derived",
                    way_out="give it one with uid(), or call get_config().enable_auto_generated_uids()",
                )
            uid = self._explicit.get(old) or derive_uid(node.spec, identity, uids, ordinal)
            uids.append(uid)
            never_chains = node.never_chains or not chaining
            nodes.append(replace(node, id=renumbered[old], uid=uid, inputs=inputs, never_chains=never_chains))
        check_uids(tuple(nodes))
        return StreamGraph(name=name, nodes=tuple(nodes))

    def _with_ancestors(self, wanted: set[int]) -> set[int]:
        kept: set[int] = set()
        waiting = list(wanted)
        while waiting:
            node_id = waiting.pop()
            if node_id not in kept:
                kept.add(node_id)
                waiting.extend(edge.source for edge in self._nodes[node_id].inputs)
        return kept


def announce_parallelism(graph: StreamGraph, parallelism: int) -> None:
    """Tells the sinks of a program that is about to run how many tasks write to them."""
    for node in graph.nodes:
        if isinstance(node.spec, SinkSpec):
            node.spec.sink.starting(node.parallelism or parallelism)


def _every(record: object) -> bool:
    return True
