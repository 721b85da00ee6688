"""Starting a Spark job from a savepoint: whether it may, and when its own checkpoint takes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from emberflow.connectors.dataframe import DataFrameSource
from emberflow.engines.spark.driver.savepoints import last_batch
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.errors import NotSupported
from emberflow.plan.graphs.job_graph import StageKind, source_of
from emberflow.savepoints.restore import SavepointStart


def has_checkpoint(directory: str | None) -> bool:
    """Whether a query would continue from there. One that did not finish its first batch starts over."""
    return directory is not None and last_batch(Path(directory) / "spark", "commits") is not None


def started_from(start: SavepointStart | None, spec: JobSpec) -> JobSpec:
    """The job with the information that it starts with state."""
    if start is None:
        return spec
    for stage in spec.graph.stages:
        if stage.kind is StageKind.SOURCE and isinstance(
            source_of(spec.graph, stage).source, DataFrameSource
        ):
            raise NotSupported(
                "a job that reads a streaming DataFrame cannot start from a savepoint: its position belongs to Spark",
                way_out="read the data with a source of emberflow",
            )
    return replace(spec, from_savepoint=True)
