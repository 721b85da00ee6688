"""The cost of recording calls: 2,000 calls of 100 ms, 200 at a time, durable and not, in one process and on Spark.

Both have a durable call log, because both jobs have a checkpoint directory; "off" awaits the same function in the action
without the context.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from typing import Any

from benchmarks.agent_jobs import with_agent
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.session import environment, spark_session
from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import (
    CollectSink,
    DataGeneratorSource,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)

KEYS, CALLS = 200, 2_000
CALL_MS = 100
LOCAL_BAR = SPARK_BAR = at_most(1.15)


async def call(number: int) -> dict[str, Any]:
    """A model's answer, of realistic size."""
    await asyncio.sleep(CALL_MS / 1000)
    return {"number": number, "content": "x" * 500}


class Durable(Agent):
    @action(InputEvent)
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.durable_execute_async(call, event.input[1])
        ctx.send_event(OutputEvent(answer["number"]))


class NotDurable(Agent):
    @action(InputEvent)
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        answer = await call(event.input[1])
        ctx.send_event(OutputEvent(answer["number"]))


def question(index: int) -> tuple[int, int]:
    return index % KEYS, index


def run(options: Options) -> list[Measure]:
    rounds = options.pick(1, 5)
    local = {True: list[float](), False: list[float]()}
    for _ in range(rounds):
        for durable in (True, False):
            local[durable].append(local_seconds(durable=durable))
    spark = {True: list[float](), False: list[float]()}
    with spark_session("durable on and off") as session:
        # A cold JVM must not be measured.
        for durable in (True, False):
            spark_seconds(session, durable=durable)
        for _ in range(rounds):
            for durable in (True, False):
                spark[durable].append(spark_seconds(session, durable=durable))
    options.details.update(
        local_on_s=local[True], local_off_s=local[False], spark_on_s=spark[True], spark_off_s=spark[False]
    )
    return [
        *_rows("local", local, LOCAL_BAR),
        *_rows("Spark, beyond start-up", spark, SPARK_BAR),
    ]


def _rows(where: str, seconds: dict[bool, list[float]], bar: Any) -> list[Measure]:
    on, off = statistics.median(seconds[True]), statistics.median(seconds[False])
    return [
        Measure(name=f"{where}: durable on against off", value=on / off, unit="x", bar=bar),
        Measure(name=f"{where}: durable on", value=on, unit="s"),
        Measure(name=f"{where}: durable off", value=off, unit="s"),
    ]


def local_seconds(*, durable: bool) -> float:
    """The whole job, from execute() to its end."""
    with tempfile.TemporaryDirectory(prefix="emberflow-bench-") as folder:
        env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=folder)
        return _job(env, durable=durable)[0]


def spark_seconds(session: Any, *, durable: bool) -> float:
    """The micro-batches; what a query does before its first one is its start-up."""
    env = environment(session, max_records_per_batch=CALLS, deadline_ms=30_000)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    return _job(env, durable=durable)[1]


def _job(env: StreamExecutionEnvironment, *, durable: bool) -> tuple[float, float]:
    outputs: list[object] = []
    stream = env.from_source(DataGeneratorSource(question, count=CALLS, parallelism=1))
    agent = Durable() if durable else NotDurable()
    with_agent(stream, agent).sink_to(CollectSink(lambda batch: outputs.extend(batch.values)))
    started = time.perf_counter()
    metrics = env.execute("durable" if durable else "not durable").metrics
    took = time.perf_counter() - started
    if len(outputs) != CALLS:
        raise RuntimeError(f"{len(outputs)} outputs came instead of {CALLS}")
    return took, sum(metrics.batch_ms) / 1000
