"""From the time an input is due to the time the client has the two-action agent's output, at 500 inputs per second.

The first seconds are excluded: a query that starts up has a backlog.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.agent_jobs import KEYS, TwoActions, with_agent
from benchmarks.due_source import DueSource
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from emberflow.streams import CollectSink, RuntimeExecutionMode, StreamExecutionEnvironment

INPUTS_PER_S = 500
Latencies = tuple[list[float], list[float]]
"""Seconds since the inputs were due, and since they were read; in order of length."""


def run(options: Options) -> list[Measure]:
    local = StreamExecutionEnvironment.get_execution_environment(engine="local")
    measures = rows("local", 1000, latencies(local, 1, options.pick(5, 30)), (2, 10), options)
    with spark_session("agent latency") as session:
        # A cold JVM takes longer for its first micro-batch than the warm-up below.
        latencies(_streaming(session), 0, 5)
        found = latencies(_streaming(session), options.pick(10, 20), options.pick(10, 60))
    return measures + rows("Spark streaming", 1, found, (0.6, 1.5), options)


def _streaming(session: Any) -> StreamExecutionEnvironment:
    env = environment(session)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    return env


def latencies(env: StreamExecutionEnvironment, warm_s: int, measured_s: int) -> Latencies:
    since_due: list[float] = []
    since_read: list[float] = []
    inputs = INPUTS_PER_S * (warm_s + measured_s)
    began_s = time.time()

    def arrived(batch: object) -> None:
        now = time.time()
        for (due_s, read_s), _ in batch.values:
            if due_s - began_s >= warm_s:
                since_due.append(now - due_s)
                since_read.append(now - read_s)

    with_agent(env.from_source(DueSource(INPUTS_PER_S, inputs, KEYS)), TwoActions()).sink_to(
        CollectSink(arrived)
    )
    env.execute("agent latency")
    if len(since_due) < INPUTS_PER_S * measured_s:
        raise RuntimeError(f"only {len(since_due)} of {INPUTS_PER_S * measured_s} outputs came")
    return sorted(since_due), sorted(since_read)


def rows(
    where: str, scale: int, found: Latencies, bars: tuple[float, float], options: Options
) -> list[Measure]:
    unit = "ms" if scale == 1000 else "s"
    due, read = found
    options.details[where] = {
        f"p{percent}_{unit}": round(at(due, percent) * scale, 3) for percent in (1, 25, 50, 75, 90, 99, 100)
    }
    return [
        Measure(name=f"p50, {where}", value=at(due, 50) * scale, unit=unit, bar=at_most(bars[0])),
        Measure(name=f"p99, {where}", value=at(due, 99) * scale, unit=unit, bar=at_most(bars[1])),
        Measure(name=f"p50 since the source read it, {where}", value=at(read, 50) * scale, unit=unit),
    ]


def at(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
