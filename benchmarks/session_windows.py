"""Session window sums over 100,000 keys, local and in Spark's batch mode: 1 million records, 5 to a session."""

from __future__ import annotations

import statistics
import time
from datetime import timedelta

from benchmarks.measurement import Measure, Options, at_least
from benchmarks.session import environment, spark_session
from emberflow.streams import (
    DataGeneratorSource,
    DiscardingSink,
    EventTimeSessionWindows,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    WatermarkStrategy,
)

RECORDS = 1_000_000
KEYS = 100_000
ACTIVE = 10_000
"""Keys that have records at a time: one every 10 s each, five times; then others."""
VISITS = 5


def visit(index: int) -> tuple[str, int, int]:
    """User, value, event time: one visit per millisecond."""
    block = index // (ACTIVE * VISITS)
    return "u%d" % ((block * ACTIVE + index % ACTIVE) % KEYS), index % 7, index  # noqa: UP031


def user_of(value: tuple[str, int, int]) -> str:
    return value[0]


def time_of(value: tuple[str, int, int], _: int) -> int:
    return value[2]


def run(options: Options) -> list[Measure]:
    rounds = options.pick(1, 3)
    local = StreamExecutionEnvironment.get_execution_environment
    job_seconds(local(engine="local"), RECORDS // 10)
    on_local = [job_seconds(local(engine="local"), RECORDS) for _ in range(rounds)]
    with spark_session("session windows") as session:
        job_seconds(batch(session), RECORDS // 10)
        on_spark = [job_seconds(batch(session), RECORDS) for _ in range(rounds)]
    options.details.update(local=on_local, spark=on_spark)
    return [
        Measure(
            name=name, value=RECORDS / statistics.median(seconds), unit="records/s", bar=at_least(100_000)
        )
        for name, seconds in (("local", on_local), ("Spark batch", on_spark))
    ]


def batch(session: object) -> StreamExecutionEnvironment:
    env = environment(session)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env


def job_seconds(env: StreamExecutionEnvironment, records: int) -> float:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    stream = env.from_source(DataGeneratorSource(visit, count=records), strategy, "visits")
    sessions = EventTimeSessionWindows.with_gap(timedelta(seconds=30))
    stream.key_by(user_of).window(sessions).sum(1).sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("session sums")
    return time.perf_counter() - started
