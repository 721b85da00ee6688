"""A job as Spark's workers receive it, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberflow.engines.spark.wire.job_spec import JobSpec
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.streams import StreamExecutionEnvironment


def graph_of(build: Callable[[StreamExecutionEnvironment], object]) -> JobGraph:
    """The graph of the program that `build` adds to an environment."""
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    build(env)
    return env.job_graph()


def spec_of(graph: JobGraph, **changes: Any) -> JobSpec:
    """One task and one channel per stage, unless `changes` say otherwise."""
    usual: dict[str, Any] = {
        "graph": graph,
        "job_id": "job",
        "parallelism": 1,
        "max_parallelism": 8,
        "batch": False,
        "channels": dict.fromkeys(range(len(graph.stages)), 1),
        "at_end": dict.fromkeys(range(len(graph.stages)), False),
        "max_records": 10,
        "client_dir": "",
    }
    return JobSpec(**{**usual, **changes})
