"""A job graph as inline SVG: steps from top to bottom, shuffles drawn thick, steps of one stage in one colour."""

from __future__ import annotations

from html import escape

from emberflow.demo.charts import legend
from emberflow.plan.graphs.job_graph import JobGraph

WIDTH = 480
BOX_WIDTH, BOX_HEIGHT, ROW = 148, 42, 78
MARGIN = 10


def draw(graph: JobGraph) -> str:
    places = _places(graph)
    height = max(y for _, y in places.values()) + BOX_HEIGHT + MARGIN
    parts = [*_edges(graph, places), *_boxes(graph, places)]
    stages = [(f"stage {stage.id} ({stage.kind.value})", stage.id % 6 + 1) for stage in graph.stages]
    return (
        f'<svg class="graph" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="the job graph">{"".join(parts)}</svg>'
        + legend(stages)
    )


def _places(graph: JobGraph) -> dict[int, tuple[float, float]]:
    """Upper left corners. A step is below its deepest input, steps of one row in the order of their inputs."""
    depth: dict[int, int] = {}
    for node in graph.stream_graph.nodes:
        depth[node.id] = max((depth[edge.source] + 1 for edge in node.inputs), default=0)
    rows: dict[int, list[int]] = {}
    for node_id, row in depth.items():
        rows.setdefault(row, []).append(node_id)
    centers: dict[int, float] = {}
    for row in sorted(rows):
        wanted = {
            node_id: sum(centers[edge.source] for edge in inputs) / len(inputs) if inputs else WIDTH / 2
            for node_id in rows[row]
            for inputs in [graph.stream_graph.node(node_id).inputs]
        }
        ordered = sorted(rows[row], key=lambda node_id: (wanted[node_id], node_id))
        slot = (WIDTH - 2 * MARGIN) / len(ordered)
        for position, node_id in enumerate(ordered):
            alone = len(ordered) == 1
            centers[node_id] = wanted[node_id] if alone else MARGIN + slot * (position + 0.5)
    half = BOX_WIDTH / 2
    return {
        node_id: (min(max(center - half, MARGIN), WIDTH - MARGIN - BOX_WIDTH), MARGIN + depth[node_id] * ROW)
        for node_id, center in centers.items()
    }


def _boxes(graph: JobGraph, places: dict[int, tuple[float, float]]) -> list[str]:
    stage_of = {node_id: stage.id for stage in reversed(graph.stages) for node_id in stage.nodes}
    made: list[str] = []
    for node in graph.stream_graph.nodes:
        x, y = places[node.id]
        details = ", ".join(f"{name}={value}" for name, value in node.spec.describe().items())
        made.append(
            f"<g><title>{escape(node.name)}: {escape(node.spec.kind)}({escape(details)})</title>"
            f'<rect class="box" x="{x:.1f}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7"/>'
            f'<rect class="bar c{stage_of[node.id] % 6 + 1}" x="{x:.1f}" y="{y}" width="6" height="{BOX_HEIGHT}" rx="3"/>'
            f'<text class="name" x="{x + 16:.1f}" y="{y + 18}">{escape(_short(node.name))}</text>'
            f'<text class="tick" x="{x + 16:.1f}" y="{y + 33}">{escape(node.spec.kind)}</text></g>'
        )
    return made


def _edges(graph: JobGraph, places: dict[int, tuple[float, float]]) -> list[str]:
    made: list[str] = []
    for node in graph.stream_graph.nodes:
        for edge in node.inputs:
            (x1, y1), (x2, y2) = places[edge.source], places[node.id]
            x1, y1, x2 = x1 + BOX_WIDTH / 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH / 2
            middle = (y1 + y2) / 2
            kind = "shuffle" if edge.shuffles else "link"
            made.append(
                f'<path class="{kind}" d="M{x1:.1f},{y1} C{x1:.1f},{middle} {x2:.1f},{middle} {x2:.1f},{y2}"/>'
                f'<path class="head" d="M{x2 - 4:.1f},{y2 - 7} L{x2 + 4:.1f},{y2 - 7} L{x2:.1f},{y2} Z"/>'
            )
            label = f"by {edge.label}" if edge.shuffles else edge.side_tag
            if label:
                # Next to the line's lower end, on its outer side, where lines from the same step have diverged.
                at, anchor = (x2 - 9, "end") if x2 < x1 else (x2 + 9, "start")
                made.append(
                    f'<text class="tick" x="{at:.1f}" y="{y2 - 12}" text-anchor="{anchor}">{escape(label)}</text>'
                )
    return made


def _short(name: str, longest: int = 20) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
