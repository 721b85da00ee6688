"""Slow calls on Spark: the effect of one of them on other keys, and the cost of ten thousand parked runs.

Fast keys get one input per second each, with a call of 50 ms. In one job, the first part has no slow call in flight; in the
second part one key waits 20 s. Then, in a separate job, 10,000 inputs arrive at once, and their keys wait 10 s. Finally, a
job that has nothing else to do waits longer for a call than Spark keeps idle Python workers alive.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
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
LONG_MS = 75_000
WARM_RATE, WARM_S = 10, 8
"""Inputs before the 10,000: the first micro-batches of a query are planned and compiled."""
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


async def wait_and_tell(folder: str, milliseconds: int) -> int:
    with (Path(folder) / "calls").open("a") as file:
        file.write("begun\n")
    return await wait(milliseconds)


class ToldCall(Agent):
    """One call; it leaves a line every time it is made."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    @action(InputEvent)
    async def call(self, event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.durable_execute_async(wait_and_tell, self._folder, LONG_MS)
        ctx.send_event(OutputEvent(event.input))


class OneSlowKey(DueSource):
    """One input per second for every fast key; at `slow_at_s`, one for a key whose call is slow."""

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


class AllAtOnce(DueSource):
    """A few inputs with fast calls; then one for every key that is to wait."""

    def __init__(self) -> None:
        super().__init__(WARM_RATE, WARM_RATE * WARM_S + PARKED, WARM_RATE)

    @property
    def burst_s(self) -> float:
        return self._began_s + WARM_S

    def available(self, channel: int, position: Any, elapsed_ms: int) -> int:
        if time.time() >= self.burst_s:
            return self._count - position
        return min(super().available(channel, position, elapsed_ms), WARM_RATE * WARM_S - position)

    def due_ms(self, channel: int, position: Any) -> int:
        return super().due_ms(channel, min(position, WARM_RATE * WARM_S))

    def read(self, channel: int, position: Any, limit: int) -> Iterator[Chunk]:
        for chunk in super().read(channel, position, limit):
            first = chunk.position - len(chunk.values)
            values = [
                (key, (first + i, FAST_MS))
                if first + i < WARM_RATE * WARM_S
                else (f"waits{first + i}", (first + i, PARKED_MS))
                for i, (key, _) in enumerate(chunk.values)
            ]
            yield Chunk(values, chunk.position, end=chunk.end)


def run(options: Options) -> list[Measure]:
    with spark_session("parking") as session:
        # A cold JVM takes longer for its first micro-batches than a whole part lasts.
        one_slow_key(session, warm_s=3, part_s=2, options=options)
        found = one_slow_key(session, warm_s=12, part_s=options.pick(16, 18), options=options)
        return found + many_parked(session, options) + idle_job(session)


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

    # The slow call starts with the second part, and ends after it.
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
    source = AllAtOnce()
    arrived: list[Any] = []
    outputs = with_agent(env.from_source(source), DurableCall())
    outputs.sink_to(CollectSink(lambda batch: arrived.extend(batch.values)))
    largest = [0.0]
    over = threading.Event()

    def watch_memory() -> None:
        while not over.wait(0.5):
            workers = [pid for pid in family() if process_name(pid).startswith("python")]
            largest[0] = max([largest[0], *(memory_mb(pid) for pid in workers)])

    watcher = threading.Thread(target=watch_memory, daemon=True)
    watcher.start()
    try:
        with watched(session) as batches:
            env.execute("many parked")
    finally:
        over.set()
        watcher.join()
    last_s = time.time()
    if len(arrived) != PARKED + WARM_RATE * WARM_S:
        raise RuntimeError(f"{len(arrived)} outputs of {PARKED} and {WARM_RATE * WARM_S} came")
    durations = [batch.duration_ms / 1000 for batch in batches if batch.ended_s > source.burst_s]
    options.details["batches_s"] = durations
    return [
        Measure(
            name="longest micro-batch with 10,000 parked runs", value=max(durations), unit="s", bar=at_most(2)
        ),
        Measure(name="memory of the largest Python process", value=largest[0], unit="MB", bar=at_most(1024)),
        Measure(name="10,000 runs parked for 10 s, all in all", value=last_s - source.burst_s, unit="s"),
    ]


def idle_job(session: Any) -> list[Measure]:
    env = _streaming(session)
    arrived: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="emberflow-bench-") as folder:
        outputs = with_agent(env.from_collection([("key", 1)]), ToldCall(folder))
        outputs.sink_to(CollectSink(lambda batch: arrived.extend(batch.values)))
        with watched(session) as batches:
            env.execute("one long call")
        made = len((Path(folder) / "calls").read_text().splitlines())
    if len(arrived) != 1:
        raise RuntimeError(f"{len(arrived)} outputs of one call")
    return [
        Measure(name="a call of 75 s on an idle job: times it was made", value=made, unit="", bar=at_most(1)),
        Measure(name="micro-batches meanwhile", value=len(batches), unit=""),
    ]
