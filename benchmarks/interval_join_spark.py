"""Interval join of two inputs of 500,000 records each in Spark's batch mode, and how large its state becomes as a stream."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measurement import Measure, Options, at_least, at_most
from benchmarks.processes import usage
from benchmarks.session import environment, spark_session
from emberflow.streams import (
    DataGeneratorSource,
    DataStream,
    DiscardingSink,
    ProcessJoinFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    WatermarkStrategy,
)
from emberflow.testing import OperatorHarness

RECORDS = 500_000
"""Of each input."""
KEYS = 1_000
WITHIN_MS = 1_000
"""One record per millisecond and input: a record has three partners, the one of its time and one on either side."""
CHUNK = 1_000


def event(index: int) -> tuple[str, int, int]:
    """Key, value, event time. It begins late enough that all times take the same space."""
    return "k%d" % (index % KEYS), index % 7, 1_000_000 + index  # noqa: UP031


def key_of(value: tuple[str, int, int]) -> str:
    return value[0]


def time_of(value: tuple[str, int, int], _: int) -> int:
    return value[2]


class Pair(ProcessJoinFunction[tuple[str, int, int], tuple[str, int, int], tuple[str, int]]):
    def process_element(
        self, left: tuple[str, int, int], right: tuple[str, int, int], ctx: ProcessJoinFunction.Context
    ) -> Iterable[tuple[str, int]]:
        return ((left[0], left[1] + right[1]),)


def run(options: Options) -> list[Measure]:
    with spark_session("interval join") as session:
        job_seconds(environment(session), RECORDS // 10)
        seconds: list[float] = []
        rounds, before = options.pick(1, 3), usage().cpu_s
        with peak_python_mb() as peak:
            for _ in range(rounds):
                seconds.append(job_seconds(environment(session), RECORDS))
        processor_s = (usage().cpu_s - before) / rounds
    early, late = state_bytes((RECORDS // 10, RECORDS))
    options.details.update(seconds=seconds, state_bytes=[early, late])
    took = statistics.median(seconds)
    return [
        Measure(name="records/s", value=2 * RECORDS / took, unit="records/s", bar=at_least(60_000)),
        Measure(name="job time", value=took, unit="s"),
        Measure(name="processor time, all processes", value=processor_s, unit="s"),
        Measure(name="peak memory of Python, all processes", value=peak[0], unit="MB"),
        Measure(
            name="state as a stream, after all records against a tenth",
            value=late / early,
            unit="×",
            bar=at_most(1.1),
        ),
        Measure(name="the same in bytes", value=late / 1024, unit="KB"),
    ]


def joined(left: DataStream[Any], right: DataStream[Any]) -> DataStream[Any]:
    keyed = left.key_by(key_of).interval_join(right.key_by(key_of))
    return keyed.between(-WITHIN_MS, WITHIN_MS).process(Pair())


def job_seconds(env: StreamExecutionEnvironment, records: int) -> float:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    left, right = (
        env.from_source(DataGeneratorSource(event, count=records, parallelism=2), strategy, name)
        for name in ("left", "right")
    )
    joined(left, right).sink_to(DiscardingSink())
    started = time.perf_counter()
    env.execute("interval join")
    return time.perf_counter() - started


def state_bytes(after: tuple[int, ...]) -> list[int]:
    """What a checkpoint of the join stores after so many records of each input, which arrive side by side."""
    harness, found = OperatorHarness(joined, inputs=2), list[int]()
    for start in range(0, max(after), CHUNK):
        values = [event(index) for index in range(start, start + CHUNK)]
        times = [value[2] for value in values]
        for side in (0, 1):
            marks = [stamp - 1 for stamp in times]
            harness.send(values, times, marks, watermark=times[-1] - 1, into=side)
        harness.outlet().log.clear()
        if start + CHUNK in after:
            found.append(len(harness.snapshot()))
    return found


@contextmanager
def peak_python_mb() -> Iterator[list[float]]:
    """The highest memory of this process and its Python workers together while the block runs."""
    highest, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.25):
            highest[0] = max(highest[0], usage().python_mb)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield highest
    finally:
        done.set()
        watcher.join()
