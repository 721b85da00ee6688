"""A thousand keys, one asynchronous call of 200 ms each, in one micro-batch of two tasks.

Bursts of 1,000 records with pauses between them: the micro-batches in the pauses are the empty batches of the same query.
"""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

from benchmarks.counting import RunningSum
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from benchmarks.steered_source import Bursts
from benchmarks.watching import MicroBatch, watched
from emberflow.streams import AsyncDataStream, DiscardingSink, RuntimeExecutionMode

KEYS = 1_000
CALL_MS = 200
PERIOD_MS = 5_000
WARM_UP = 5


async def call(value: Any) -> Any:
    await asyncio.sleep(CALL_MS / 1000)
    return value


def key_of(value: tuple[int, int]) -> int:
    return value[0]


def run(options: Options) -> list[Measure]:
    with spark_session("async calls") as session:
        full, empty = micro_batches(session, WARM_UP + options.pick(4, 10))
    options.details.update(full_ms=full, empty_ms=empty)
    if not full or not empty:
        raise RuntimeError(
            f"the machine is too busy: {len(full)} batches with calls and {len(empty)} without were seen"
        )
    with_calls, without = statistics.median(full), statistics.median(empty)
    return [
        Measure(
            name="beyond an empty batch", value=with_calls - without, unit="ms", bar=at_most(3 * CALL_MS)
        ),
        Measure(name="a batch of 1,000 calls", value=with_calls, unit="ms"),
        Measure(name="an empty batch", value=without, unit="ms"),
    ]


def micro_batches(session: Any, bursts: int) -> tuple[list[int], list[int]]:
    """Milliseconds of the batches with a burst, and of those without, once the JVM is warm."""
    env = environment(session, max_records_per_batch=KEYS)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    keyed = env.from_source(Bursts(KEYS, PERIOD_MS, bursts)).key_by(key_of).process(RunningSum())
    AsyncDataStream.unordered_wait(keyed, call, 30_000, capacity=KEYS).sink_to(DiscardingSink())
    with watched(session) as seen:
        env.execute("async calls")
    warm = [item for item in seen if item.rows > 0][WARM_UP - 1].batch_id
    full = [item.duration_ms for item in seen if item.rows > 0 and item.batch_id > warm]
    return full, [item.duration_ms for item in seen if is_empty(item) and item.batch_id > warm]


def is_empty(batch: MicroBatch) -> bool:
    # A trigger that ran no batch at all is reported as well, with a duration close to zero.
    return batch.rows == 0 and batch.duration_ms > 20
