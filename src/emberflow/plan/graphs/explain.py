"""Renders graphs as text and as Mermaid diagrams."""

from __future__ import annotations

from typing import Literal, get_args

from emberflow.errors import InvalidArgument, did_you_mean, shorten
from emberflow.plan.graphs.alignment import alignment_notes
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.graphs.stream_graph import StreamNode

Form = Literal["text", "mermaid", "json"]
FORMS: tuple[Form, ...] = get_args(Form)


def render(graph: JobGraph, form: Form | str) -> str:
    """Renders the graph in one of the forms; raises InvalidArgument for an unknown form."""
    if form not in FORMS:
        raise InvalidArgument(
            f"a plan has no form {shorten(form)}{did_you_mean(form, FORMS)}",
            way_out=f"use one of {', '.join(FORMS)}",
        )
    if form == "mermaid":
        return to_mermaid(graph)
    if form == "json":
        return graph.to_json(indent=2)
    return to_text(graph)


def to_text(graph: JobGraph) -> str:
    lines = [f"job {graph.name!r}: {len(graph.stages)} stages, {len(graph.exchanges)} shuffles"]
    for stage in graph.stages:
        into = [f"stage {item.source_stage} by {item.edge.label}" for item in graph.inputs_of(stage.id)]
        tasks = graph.stream_graph.node(stage.head).parallelism
        kind = stage.kind.value + ("" if tasks is None else f", {tasks} task{'s' if tasks > 1 else ''}")
        lines.append(f"stage {stage.id} ({kind})" + (f" <- {', '.join(into)}" if into else ""))
        for chain in stage.chains:
            for position, node_id in enumerate(chain):
                node = graph.stream_graph.node(node_id)
                lines.append(f"  {'└─' if position else '──'} {_label(node)}")
    return "\n".join([*lines, *alignment_notes(graph)])


def _label(node: StreamNode) -> str:
    described = node.describe()
    if node.slot_sharing_group is not None:
        described["slot_sharing_group"] = f"{node.slot_sharing_group} (no effect)"
    details = ", ".join(f"{name}={value}" for name, value in described.items())
    where = f"  at {node.location}" if node.location else ""
    return f"{node.name} [{node.uid}] {node.spec.kind}({details}){where}"


def to_mermaid(graph: JobGraph) -> str:
    lines = ["flowchart LR"]
    for stage in graph.stages:
        lines.append(f'  subgraph s{stage.id}["stage {stage.id} · {stage.kind.value}"]')
        for node_id in stage.nodes:
            node = graph.stream_graph.node(node_id)
            lines.append(f'    s{stage.id}n{node_id}["{_escape(node.name)}<br/>{node.spec.kind}"]')
        for link in stage.links:
            tag = f"|{_escape(link.side_tag)}|" if link.side_tag else ""
            lines.append(f"    s{stage.id}n{link.source} -->{tag} s{stage.id}n{link.target}")
        lines.append("  end")
    for item in graph.exchanges:
        target = graph.stages[item.target_stage]
        label = _escape(item.edge.label or "key")
        lines.append(
            f'  s{item.source_stage}n{item.edge.source} ==>|"by {label}"| s{item.target_stage}n{target.head}'
        )
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
