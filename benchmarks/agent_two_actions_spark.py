"""The two-action agent with memory on Spark: micro-batches of 50,000 inputs, and batch mode, in one session."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.agent_jobs import TwoActions, input_of, with_agent, with_empty_step
from benchmarks.measurement import Measure, Options, at_least, at_most
from benchmarks.session import environment, spark_session
from emberflow.streams import DataGeneratorSource, DataStream, DiscardingSink, RuntimeExecutionMode

BATCH_INPUTS = 50_000
WARM_UP = 3


def two_actions(stream: DataStream) -> DataStream:
    return with_agent(stream, TwoActions())


def run(options: Options) -> list[Measure]:
    batches, inputs = options.pick(3, 6), options.pick(100_000, 1_000_000)
    agent_ms: list[int] = []
    empty_ms: list[int] = []
    with spark_session("two actions") as session:
        # A cold JVM would make the empty step, which comes first, look as slow as the agent.
        batch_ms(session, with_empty_step, WARM_UP)
        batch_ms(session, two_actions, WARM_UP)
        for _ in range(options.pick(2, 3)):
            empty_ms += batch_ms(session, with_empty_step, WARM_UP + batches)[WARM_UP:]
            agent_ms += batch_ms(session, two_actions, WARM_UP + batches)[WARM_UP:]
        job_seconds(session, inputs // 10)
        batch_s = [job_seconds(session, inputs) for _ in range(options.pick(1, 3))]
    options.details.update(agent_ms=agent_ms, empty_ms=empty_ms, batch_s=batch_s)
    ours, without = statistics.median(agent_ms), statistics.median(empty_ms)
    if ours <= without:
        raise RuntimeError(
            f"the machine is too busy: an agent's batch took {ours} ms, an empty step's {without}"
        )
    beyond_us = (ours - without) * 1000 / BATCH_INPUTS
    took = statistics.median(batch_s)
    return [
        Measure(
            name="agent, Spark streaming",
            value=BATCH_INPUTS * 1000 / ours,
            unit="inputs/s",
            bar=at_least(50_000),
        ),
        Measure(name="beyond an empty keyed step, streaming", value=beyond_us, unit="µs", bar=at_most(40)),
        Measure(name="agent, Spark batch", value=inputs / took, unit="inputs/s", bar=at_least(60_000)),
        Measure(name="empty keyed step, streaming", value=BATCH_INPUTS * 1000 / without, unit="inputs/s"),
    ]


def batch_ms(session: Any, applied: Callable[[DataStream], DataStream], batches: int) -> list[int]:
    """Milliseconds of the micro-batches of one query."""
    env = environment(session, max_records_per_batch=BATCH_INPUTS)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    source = DataGeneratorSource(input_of, count=batches * BATCH_INPUTS, parallelism=2)
    applied(env.from_source(source)).sink_to(DiscardingSink())
    metrics = env.execute("two actions").metrics
    if metrics.records_in != batches * BATCH_INPUTS:
        raise RuntimeError(f"{metrics.records_in} inputs came in instead of {batches * BATCH_INPUTS}")
    # The end of the input may take a separate batch, without inputs.
    return metrics.batch_ms[:batches]


def job_seconds(session: Any, inputs: int) -> float:
    """A whole job in batch mode, in a warm session."""
    env = environment(session)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = DataGeneratorSource(input_of, count=inputs, parallelism=2)
    two_actions(env.from_source(source)).sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("two actions")
    return time.perf_counter() - started
