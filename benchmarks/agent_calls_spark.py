"""2,000 keys whose agents wait for one call of a second each, on Spark: batch mode and one micro-batch."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.agent_jobs import OneCall, with_agent
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from emberflow.plan.job_contract import JobMetrics
from emberflow.streams import CollectSink, DataGeneratorSource, RuntimeExecutionMode

KEYS = 2_000
CALL_MS = 1_000


def one_second_call(index: int) -> tuple[int, int]:
    return index, CALL_MS


def run(options: Options) -> list[Measure]:
    batch, whole, micro_batches = [], [], []
    with spark_session("agent calls") as session:
        # A cold JVM must not be measured: every kind of job runs once before.
        job(session, RuntimeExecutionMode.BATCH)
        job(session, RuntimeExecutionMode.STREAMING)
        for _ in range(options.pick(1, 5)):
            batch.append(job(session, RuntimeExecutionMode.BATCH)[0])
            took, metrics = job(session, RuntimeExecutionMode.STREAMING)
            whole.append(took)
            # What a query does before its first micro-batch is its start-up.
            micro_batches.append(sum(metrics.batch_ms) / 1000)
    options.details.update(batch_s=batch, streaming_job_s=whole, micro_batches_s=micro_batches)
    return [
        Measure(name="Spark batch, whole job", value=statistics.median(batch), unit="s", bar=at_most(4)),
        Measure(
            name="Spark streaming, beyond start-up",
            value=statistics.median(micro_batches),
            unit="s",
            bar=at_most(6),
        ),
        Measure(name="Spark streaming, whole job", value=statistics.median(whole), unit="s"),
    ]


def job(session: Any, mode: RuntimeExecutionMode) -> tuple[float, JobMetrics]:
    """Seconds of the whole job, and what it counted."""
    outputs: list[object] = []
    env = environment(session, max_records_per_batch=KEYS)
    env.set_runtime_mode(mode)
    stream = env.from_source(DataGeneratorSource(one_second_call, count=KEYS, parallelism=2))
    with_agent(stream, OneCall()).sink_to(CollectSink(lambda batch: outputs.extend(batch.values)))
    started = time.perf_counter()
    metrics = env.execute("agent calls").metrics
    took = time.perf_counter() - started
    if len(outputs) != KEYS:
        raise RuntimeError(f"{len(outputs)} outputs came instead of {KEYS}")
    return took, metrics
