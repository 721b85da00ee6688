"""The cost of an idle query, and whether memory stays flat while a job runs for long, on both engines.

The memory of a JVM says little: the heap grows to its limit whether anything leaks or not. So its live heap after a
collection is measured, and the memory of all Python processes; both slopes are taken over the second half of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.counting import RunningSum, key_of, record
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.processes import Usage, slope_per_minute, usage
from benchmarks.session import environment, spark_session
from emberflow.streams import (
    DataGeneratorSource,
    DiscardingSink,
    JobClient,
    RateLimiterStrategy,
    StreamExecutionEnvironment,
)

SOAK_RECORDS_PER_S = 2_000
# Noise of a sampled process is a few hundred KB; a leak of one small object per record is megabytes a minute.
FLAT_LOCAL_MB_PER_MIN, FLAT_PYTHON_MB_PER_MIN, FLAT_HEAP_MB_PER_MIN = 0.5, 1.0, 1.0
IDLE_LOCAL_PERCENT, IDLE_SPARK_PERCENT = 5, 60

MakeEnvironment = Callable[[], StreamExecutionEnvironment]


def run(options: Options) -> list[Measure]:
    soak_s, idle_s = options.pick(60, 600), options.pick(15, 60)
    measures = _local(options, soak_s, idle_s)
    return measures + _spark(options, soak_s, idle_s)


def _local(options: Options, soak_s: int, idle_s: int) -> list[Measure]:
    def make() -> StreamExecutionEnvironment:
        return StreamExecutionEnvironment.get_execution_environment(engine="local")

    idle, samples = idle_percent(make, idle_s, warm_s=1), soak(make, soak_s, None)
    options.details["local"] = samples
    return [
        Measure(name="idle CPU, local", value=idle, unit="%", bar=at_most(IDLE_LOCAL_PERCENT)),
        _slope("memory growth, local", samples, "python_mb", FLAT_LOCAL_MB_PER_MIN),
        Measure(name="memory, local", value=samples[-1]["python_mb"], unit="MB"),
    ]


def _spark(options: Options, soak_s: int, idle_s: int) -> list[Measure]:
    with spark_session("idle and soak") as session:

        def make() -> StreamExecutionEnvironment:
            return environment(session)

        def live_heap_mb() -> float:
            runtime = session._jvm.java.lang.Runtime.getRuntime()
            runtime.gc()
            return (runtime.totalMemory() - runtime.freeMemory()) / 1024**2

        idle = idle_percent(make, idle_s, warm_s=20)
        samples = soak(make, soak_s, live_heap_mb)
    options.details["spark"] = samples
    return [
        Measure(
            name="idle CPU, Spark", value=idle, unit="%", bar=at_most(IDLE_SPARK_PERCENT), note="of one core"
        ),
        _slope("Python memory growth, Spark", samples, "python_mb", FLAT_PYTHON_MB_PER_MIN),
        _slope("live heap growth, Spark", samples, "heap_mb", FLAT_HEAP_MB_PER_MIN),
        Measure(name="Python memory, Spark", value=samples[-1]["python_mb"], unit="MB"),
        Measure(name="JVM memory, Spark", value=samples[-1]["java_mb"], unit="MB"),
    ]


def start(env: StreamExecutionEnvironment, records_per_s: float) -> JobClient:
    source = DataGeneratorSource(record, rate_limiter_strategy=RateLimiterStrategy.per_second(records_per_s))
    env.from_source(source).key_by(key_of).process(RunningSum()).sink_to(DiscardingSink())
    return env.execute_async("soak")


def idle_percent(make: MakeEnvironment, seconds: int, warm_s: int) -> float:
    """Processor time of this process and its descendants while a query waits for its second record, in percent of a core."""
    client = start(make(), 0.0001)
    try:
        time.sleep(warm_s)
        before, began = usage(), time.monotonic()
        time.sleep(seconds)
        return 100 * (usage().cpu_s - before.cpu_s) / (time.monotonic() - began)
    finally:
        client.cancel()


def soak(make: MakeEnvironment, seconds: int, heap_mb: Callable[[], float] | None) -> list[dict[str, Any]]:
    client = start(make(), SOAK_RECORDS_PER_S)
    samples: list[dict[str, Any]] = []
    began, every_s = time.monotonic(), max(2.0, seconds / 60)
    try:
        while time.monotonic() - began < seconds:
            time.sleep(every_s)
            heap = heap_mb() if heap_mb else None
            now: Usage = usage()
            samples.append(
                {
                    "seconds": round(time.monotonic() - began, 1),
                    "records": client.metrics.records_in,
                    "cpu_s": round(now.cpu_s, 2),
                    "python_mb": round(now.python_mb, 2),
                    "java_mb": round(now.java_mb, 1),
                    **({"heap_mb": round(heap, 2)} if heap is not None else {}),
                }
            )
    finally:
        client.cancel()
    expected = SOAK_RECORDS_PER_S * seconds
    if samples[-1]["records"] < expected / 2:
        raise RuntimeError(f"only {samples[-1]['records']} of about {expected} records came in")
    return samples


def _slope(name: str, samples: list[dict[str, Any]], field: str, flat: float) -> Measure:
    later = samples[len(samples) // 2 :]
    slope = slope_per_minute([(item["seconds"], item[field]) for item in later])
    return Measure(name=name, value=slope, unit="MB/min", bar=at_most(flat))
