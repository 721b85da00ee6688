"""Slow calls on Spark: what one of them costs everybody else, and what ten thousand parked runs cost.

Fast keys get an input a second each, with a call of 50 ms. In one job, the first part has no slow call in flight; in the
second part one key waits 20 s. Then, in a job of its own, 10,000 keys wait 10 s at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.agent_jobs import with_agent
from benchmarks.agent_latency import at
from benchmarks.due_source import DueSource
from benchmarks.measurement import Measure, Options, at_most
from benchmarks.processes import family, memory_mb, process_name
from benchmarks.session import environment, spark_session
from benchmarks.watching import watched
from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import Chunk, CollectSink, RuntimeExecutionMode, StreamExecutionEnvironment

FAST_KEYS = 500
FAST_MS, SLOW_MS = 50, 20_000
PARKED = 10_000
PARKED_MS = 10_000
DEADLINE_S = 1


async def wait(milliseconds: int) -> int:
    await asyncio.sleep(milliseconds / 1000)
    return milliseconds


class DurableCall(Agent):
    """Waits as long as the input says, in a durable call."""

    @action(InputEvent)
    async def call(event: InputEvent, ctx: RunnerContext) -> None:
        key, (carried, call_ms) = event.input
        await ctx.durable_execute_async(wait, call_ms)
        ctx.send_event(OutputEvent(output=(key, carried)))


class OneSlowKey(DueSource):
    """An input a second for every fast key; at `slow_at_s`, one for a key whose call is slow."""

    def __init__(self, seconds: int, slow_at_s: int) -> None:
        super().__init__(FAST_KEYS, FAST_KEYS * seconds, FAST_KEYS)
        self._slow_at = FAST_KEYS * slow_at_s

    def read(self, channel: int, position: Any, limit: int) -> Iterator[Chunk]:
        for chunk in super().read(channel, position, limit):
            first = chunk.position - len(chunk.values)
            values = [
                ("slow", (value, SLOW_MS)) if first + i == self._slow_at else (key, (value, FAST_MS))
                for i, (key, value) in enumerate(chunk.values)
            ]
            yield Chunk(values, chunk.position, end=chunk.end)


def run(options: Options) -> list[Measure]:
    with spark_session("parking") as session:
        # A cold JVM takes longer for its first micro-batches than a whole part lasts.
        one_slow_key(session, warm_s=3, part_s=2, options=options)
        found = one_slow_key(session, warm_s=12, part_s=options.pick(16, 18), options=options)
        return found + many_parked(session, options)


def _streaming(session: Any) -> StreamExecutionEnvironment:
    env = environment(session)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    return env


def one_slow_key(session: Any, warm_s: int, part_s: int, options: Options) -> list[Measure]:
    env = _streaming(session)
    without: list[float] = []
    beside: list[float] = []
    slow_at_s = warm_s + part_s
    began_s = time.time()

    def arrived(batch: Any) -> None:
        now = time.time()
        for key, (due_s, _) in batch.values:
            since_start = due_s - began_s
            if key != "slow" and since_start >= warm_s:
                (without if since_start < slow_at_s else beside).append(now - due_s)

    # The slow call begins when the second part begins, and ends after it.
    source = OneSlowKey(warm_s + 2 * part_s, slow_at_s)
    with_agent(env.from_source(source), DurableCall()).sink_to(CollectSink(arrived))
    with watched(session) as batches:
        env.execute("one slow key")
    # The first micro-batches of a query are planned and compiled.
    longest = max((batch.duration_ms for batch in batches[5:]), default=0) / 1000
    without.sort()
    beside.sort()
    options.details["latency_s"] = {
        name: {f"p{percent}": round(at(values, percent), 3) for percent in (50, 90, 99, 100)}
        for name, values in (("without", without), ("beside", beside))
    }
    return [
        Measure(
            name="p99 of 500 keys beside a 20 s call, against without",
            value=at(beside, 99) / at(without, 99),
            unit="x",
            bar=at_most(1.2),
        ),
        Measure(name="p99 without a slow call", value=at(without, 99), unit="s"),
        Measure(name="p99 beside a slow call", value=at(beside, 99), unit="s"),
        Measure(
            name="longest micro-batch beside a slow call",
            value=longest,
            unit="s",
            bar=at_most(DEADLINE_S + 1),
        ),
    ]


def many_parked(session: Any, options: Options) -> list[Measure]:
    env = _streaming(session)
    inputs = [(f"k{number}", (number, PARKED_MS)) for number in range(PARKED)]
    arrived: list[Any] = []
    outputs = with_agent(env.from_collection(inputs), DurableCall())
    outputs.sink_to(CollectSink(lambda batch: arrived.extend(batch.values)))
    largest = [0.0]
    over = threading.Event()

    def watch_memory() -> None:
        while not over.wait(0.5):
            workers = [pid for pid in family() if process_name(pid).startswith("python")]
            largest[0] = max([largest[0], *(memory_mb(pid) for pid in workers)])

    watcher = threading.Thread(target=watch_memory, daemon=True)
    watcher.start()
    began = time.monotonic()
    try:
        with watched(session) as batches:
            env.execute("many parked")
    finally:
        over.set()
        watcher.join()
    if len(arrived) != PARKED:
        raise RuntimeError(f"{len(arrived)} of {PARKED} outputs came")
    durations = [batch.duration_ms / 1000 for batch in batches if batch.duration_ms]
    options.details["batches_s"] = durations
    return [
        Measure(
            name="longest micro-batch with 10,000 parked runs", value=max(durations), unit="s", bar=at_most(2)
        ),
        Measure(name="memory of the largest Python process", value=largest[0], unit="MB", bar=at_most(1024)),
        Measure(name="10,000 runs parked for 10 s, all in all", value=time.monotonic() - began, unit="s"),
    ]
