"""What an engine cannot do is refused when the plan is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emberflow.errors import NotSupported
from emberflow.plan.capabilities import check_capabilities, resolve_mode
from emberflow.plan.graphs.job_graph import JobGraph
from emberflow.plan.job_contract import JobConfig, RuntimeExecutionMode
from emberflow.streams import StreamExecutionEnvironment
from emberflow.testing import TestSource


def graph(*, bounded: bool) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.add_source(TestSource([1], bounded=bounded), "numbers").print()
    return env.job_graph()


def config(mode: RuntimeExecutionMode | None = RuntimeExecutionMode.AUTOMATIC, **fields: Any) -> JobConfig:
    return JobConfig(parallelism=1, max_parallelism=64, mode=mode, **fields)


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_batch_needs_an_end(engine: str) -> None:
    with pytest.raises(
        NotSupported, match=r"'numbers' \(test_capabilities.py:\d+\) is unbounded[\s\S]*STREAMING"
    ):
        check_capabilities(graph(bounded=False), config(RuntimeExecutionMode.BATCH), engine)
    check_capabilities(graph(bounded=False), config(RuntimeExecutionMode.STREAMING), engine)
    check_capabilities(graph(bounded=True), config(RuntimeExecutionMode.BATCH), engine)


def test_streaming_frames_run_on_spark_only() -> None:
    class Frame:
        isStreaming = True

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_dataframe(Frame()).print()
    with pytest.raises(NotSupported, match='engine="spark"'):
        check_capabilities(env.job_graph(), config(RuntimeExecutionMode.STREAMING), "local")


def test_automatic_mode() -> None:
    streaming, batch = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH
    assert resolve_mode(graph(bounded=True), config()) is batch
    assert resolve_mode(graph(bounded=False), config()) is streaming
    # A program that is to be continued later is a stream, even if it ends.
    assert resolve_mode(graph(bounded=True), config(checkpoint_dir="x")) is streaming
    assert resolve_mode(graph(bounded=True), config(streaming)) is streaming


def test_without_a_mode_only_bounded_tables_are_a_batch(tmp_path: Path) -> None:
    streaming, batch = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH

    def tables(*, and_a_stream: bool = False) -> JobGraph:
        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        rows = env.from_dataframe([{"n": 1}])
        if and_a_stream:
            rows = rows.union(env.add_source(TestSource([1], bounded=False)))
        rows.print()
        return env.job_graph()

    assert resolve_mode(graph(bounded=True), config(None)) is streaming
    assert resolve_mode(tables(), config(None)) is batch
    assert resolve_mode(tables(), config(streaming)) is streaming
    assert resolve_mode(tables(), config(None, checkpoint_dir=str(tmp_path))) is streaming
    assert resolve_mode(tables(and_a_stream=True), config(None)) is streaming
