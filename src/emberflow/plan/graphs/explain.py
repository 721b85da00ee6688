"""Renders graphs as text and as Mermaid diagrams."""

from __future__ import annotations

from typing import Literal, get_args

from emberflow.errors import InvalidArgument, did_you_mean, shorten
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
        into = [
            f"stage {item.source_stage} by {'channel' if item.edge.by_channel else item.edge.key_name}"
            for item in graph.inputs_of(stage.id)
        ]
        lines.append(f"stage {stage.id} ({stage.kind.value})" + (f" <- {', '.join(into)}" if into else ""))
        for chain in stage.chains:
            for position, node_id in enumerate(chain):
                node = graph.stream_graph.node(node_id)
                lines.append(f"  {'└─' if position else '──'} {_label(node)}")
    return "\n".join(lines)


def _label(node: StreamNode) -> str:
    details = ", ".join(f"{name}={value}" for name, value in node.describe().items())
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
        label = "channel" if item.edge.by_channel else _escape(item.edge.key_name or "key")
        lines.append(
            f'  s{item.source_stage}n{item.edge.source} ==>|"by {label}"| s{item.target_stage}n{target.head}'
        )
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
