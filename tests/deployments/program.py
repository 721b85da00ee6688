"""Started by the deployment tests: `program.py local|classic|cluster|connect STREAMING|BATCH`. Prints one line per result.

Uses classes of `__main__` and of a module next to it as records, keys and state; timers, a window, a side output, a
second keyed stage and asynchronous calls.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from own_module import Reading, warmer

from emberflow.streams import (
    AsyncDataStream,
    KeyedProcessFunction,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)

HOT = OutputTag("hot")
READINGS = [Reading(f"s{i % 5}", 15 + (i * 37) % 23, i * 100) for i in range(120)]


@dataclass
class Seen:
    count: int = 0


@dataclass(frozen=True)
class Place:
    name: str


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Reading, ctx: Any) -> Iterator[Any]:
        seen = self._seen.value() or Seen()
        assert isinstance(seen, Seen)
        self._seen.update(Seen(seen.count + 1))
        ctx.timer_service().register_event_time_timer(20_000)
        if value.celsius > 35:
            yield HOT, ("hot", value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield "count", ctx.get_current_key(), self._seen.value()


async def label(value: Reading) -> tuple[str, Reading]:
    await asyncio.sleep(0.01)
    return "warmest", value


def where_the_code_is(value: Any) -> Any:
    """Proves that a worker runs the shipped code, not an installed version."""
    import emberflow

    return (*value, "shipped" if f"{os.sep}emberflow-code-" in emberflow.__file__ else "installed")


def session(kind: str) -> Any:
    if kind == "local":
        return None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    if kind == "connect":
        builder = builder.remote("local[2]")
    else:
        builder = builder.master("local-cluster[2,1,1024]" if kind == "cluster" else "local[2]")
    return builder.config("spark.ui.enabled", "false").getOrCreate()


def main(kind: str, mode: str) -> None:
    spark = session(kind)
    env = StreamExecutionEnvironment.get_execution_environment(
        engine="local" if kind == "local" else "spark", spark=spark
    )
    env.set_parallelism(2).set_runtime_mode(RuntimeExecutionMode[mode])
    env.set_option("max_records_per_batch", 50)
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=1)).with_timestamp_assigner(
            lambda value, timestamp: value.at_ms
        )
    )
    counts = readings.key_by(lambda value: Place(value.sensor)).process(Count())
    warmest = (
        readings.key_by(lambda value: value.sensor)
        .window(TumblingEventTimeWindows.of(timedelta(seconds=3)))
        .reduce(warmer)
    )
    labelled = AsyncDataStream.unordered_wait(warmest, label, timedelta(seconds=30))
    again = labelled.key_by(lambda value: value[1].sensor).map(lambda value: ("again", value[1].celsius))
    out = counts.union(counts.get_side_output(HOT), labelled, again).map(where_the_code_is)
    with out.execute_and_collect() as results:
        for value in results:
            print("result", value, flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
