"""Sinks at the start of a job: earlier starts lose them."""

from __future__ import annotations

from emberflow.connectors.sink import sink_failed
from emberflow.engines.ownership import Fence
from emberflow.plan.job_graph import JobGraph
from emberflow.plan.specs import SinkSpec


def take_over_sinks(graph: JobGraph, job_id: str, fence: Fence) -> None:
    """From here on nothing becomes visible by an earlier start of the job, whatever its process does."""
    for node in graph.sinks:
        if isinstance(node.spec, SinkSpec) and not node.spec.sink.to_client:
            try:
                node.spec.sink.take_over(job_id, node.uid, fence.epoch)
            except Exception as error:
                raise sink_failed(node.name, "open", error) from error
