"""Tumbling window sum in Spark's batch mode: 2 million records, 100 keys, windows of 10 seconds."""

from __future__ import annotations

import statistics
import time
from datetime import timedelta

from benchmarks.measurement import Measure, Options, at_least
from benchmarks.session import environment, spark_session
from emberflow.streams import (
    DataGeneratorSource,
    DiscardingSink,
    RuntimeExecutionMode,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)

RECORDS = 2_000_000
KEYS = 100


def reading(index: int) -> tuple[str, int, int]:
    """Sensor, value, event time: one reading per millisecond."""
    return "k%d" % (index % KEYS), index % 7, index  # noqa: UP031


def sensor_of(value: tuple[str, int, int]) -> str:
    return value[0]


def time_of(value: tuple[str, int, int], _: int) -> int:
    return value[2]


def run(options: Options) -> list[Measure]:
    with spark_session("window batch") as session:
        job_seconds(session, RECORDS // 10)
        seconds = [job_seconds(session, RECORDS) for _ in range(options.pick(1, 3))]
    options.details["seconds"] = seconds
    took = statistics.median(seconds)
    return [
        Measure(name="records/s", value=RECORDS / took, unit="records/s", bar=at_least(150_000)),
        Measure(name="job time", value=took, unit="s"),
    ]


def job_seconds(session: object, records: int) -> float:
    env = environment(session)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    stream = env.from_source(DataGeneratorSource(reading, count=records, parallelism=2), strategy, "readings")
    sums = stream.key_by(sensor_of).window(TumblingEventTimeWindows.of(timedelta(seconds=10))).sum(1)
    sums.sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("window sum")
    return time.perf_counter() - started
