"""The sinks of a job by number, and their errors. Used where tasks write and where a batch is committed."""

from __future__ import annotations

from typing import Any

from emberflow.connectors.sink import Sink, sink_failed
from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.specs import SinkSpec


def guard_sink(node: StreamNode, what: str, call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except BaseException as error:
        raise sink_failed(node.name, what, error) from error


def sink_of(spec: JobSpec, number: int) -> tuple[StreamNode, Sink[Any]]:
    node = spec.graph.sinks[number]
    assert isinstance(node.spec, SinkSpec)
    return node, node.spec.sink
