"""A Spark job that begins from a savepoint: where its sources begin, and when its own checkpoint takes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from emberflow.connectors.dataframe import DataFrameSource
from emberflow.engines.spark.channel_counts import write_channels
from emberflow.engines.spark.job_spec import JobSpec
from emberflow.engines.spark.savepoints import last_batch
from emberflow.errors import NotSupported
from emberflow.plan.job_graph import StageKind, source_of
from emberflow.savepoints.restore import SavepointStart


def has_checkpoint(directory: str | None) -> bool:
    """Whether a query would go on from there. One that did not finish its first batch begins again."""
    return directory is not None and last_batch(Path(directory) / "spark", "commits") is not None


def keep_channels(home: Path, start: SavepointStart) -> None:
    """Sources have as many channels as they had, whatever the parallelism is now."""
    counts = {uid: len(source.positions) for uid, source in start.sources.items()}
    write_channels(home, counts)


def begun_from(start: SavepointStart | None, spec: JobSpec) -> JobSpec:
    """The job with the positions that its sources begin at."""
    if start is None:
        return spec
    positions: dict[int, list[list[object]]] = {}
    for stage in spec.graph.stages:
        if stage.kind is not StageKind.SOURCE:
            continue
        if isinstance(source_of(spec.graph, stage).source, DataFrameSource):
            raise NotSupported(
                "a job that reads a streaming DataFrame cannot start from a savepoint: its position belongs to Spark",
                way_out="read the data with a source of emberflow",
            )
        source = start.sources.get(spec.graph.stream_graph.node(stage.head).uid)
        if source is not None:
            positions[stage.id] = [list(pair) for pair in zip(source.positions, source.ended, strict=True)]
    return replace(spec, start_positions=positions)
