"""Sliding window sums of 60 s, every second and every 10 s, on the same records: 1,000 keys, 20 records per key and second.

Windows share panes, so a record costs the same in both; what differs is that ten times as many windows fire.
"""

from __future__ import annotations

import statistics
import time
from datetime import timedelta

from benchmarks.measurement import Measure, Options, at_most
from emberflow.streams import (
    DataGeneratorSource,
    DiscardingSink,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    WatermarkStrategy,
)

KEYS = 1_000
PER_MS = 20


def reading(index: int) -> tuple[str, int, int]:
    """Sensor, value, event time."""
    return "k%d" % (index % KEYS), index % 7, index // PER_MS  # noqa: UP031


def sensor_of(value: tuple[str, int, int]) -> str:
    return value[0]


def time_of(value: tuple[str, int, int], _: int) -> int:
    return value[2]


def run(options: Options) -> list[Measure]:
    records = options.pick(1_000_000, 2_000_000)
    job_seconds(10, records // 10)
    every: dict[int, list[float]] = {1: [], 10: []}
    # In turns, so that a neighbour on the machine disturbs both.
    for _ in range(options.pick(1, 3)):
        for slide_s, seconds in every.items():
            seconds.append(job_seconds(slide_s, records))
    options.details["seconds"] = every
    one, ten = (statistics.median(seconds) for seconds in every.values())
    return [
        Measure(name="60 s / 1 s against 60 s / 10 s", value=one / ten, unit="×", bar=at_most(2)),
        Measure(name="60 s / 1 s", value=records / one, unit="records/s"),
        Measure(name="60 s / 10 s", value=records / ten, unit="records/s"),
    ]


def job_seconds(slide_s: int, records: int) -> float:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    stream = env.from_source(DataGeneratorSource(reading, count=records), strategy, "readings")
    windows = SlidingEventTimeWindows.of(timedelta(seconds=60), timedelta(seconds=slide_s))
    stream.key_by(sensor_of).window(windows).sum(1).sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("sliding sums")
    return time.perf_counter() - started
