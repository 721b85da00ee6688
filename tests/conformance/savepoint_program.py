"""A program with every kind of state, in a separate module like users' programs; see test_savepoints.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import (
    CollectSink,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import TestSource

Value = tuple[str, int]
KEYS = ("ann", "bob", "cat", "slow")
LONG = "x" * 3_000
"""More than a page."""


def values(count: int) -> list[Value]:
    return [(KEYS[number % len(KEYS)], number) for number in range(count)]


def price(log: str, text: str, idempotency_key: str = "") -> int:
    """A call that costs something: each one is recorded."""
    with open(log, "a") as file:
        file.write(f"{text}\n")
    return len(text)


async def until_there(path: str) -> None:
    # Another process creates the file.
    while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.05)


class PricingAgent(Agent):
    """Memory that grows; the first input of the key 'slow' waits in its second call until a file exists."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    @action(InputEvent)
    async def judge(self, event: InputEvent, ctx: RunnerContext) -> None:
        name, number = event.input
        seen = ctx.short_term_memory.get("seen", 0) + 1
        ctx.short_term_memory.set("seen", seen)
        ctx.short_term_memory.set("long", f"{LONG}{number}")
        ctx.short_term_memory.append("numbers", number)
        if name == "slow" and seen == 1:
            cost = await ctx.durable_execute_async(price, f"{self.folder}/calls", f"price of {number}")
            await until_there(f"{self.folder}/go")
        else:
            cost = 0
        numbers = ctx.short_term_memory.get("numbers")
        size = len(ctx.short_term_memory.get("long"))
        ctx.send_event(OutputEvent(output=("agent", name, seen, sum(numbers), cost, size)))


class Alarm(KeyedProcessFunction):
    """Counts, and has one processing-time timer far ahead: it fires when the input ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Value, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            ctx.timer_service().register_processing_time_timer(4_102_444_800_000)
        yield "counted", value[0], count

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield "alarm", ctx.get_current_key(), self.count.value()


def build(env: StreamExecutionEnvironment, source: TestSource, folder: Path, out: list[Any]) -> None:
    """The program; its committed output is added to `out`."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1] * 10
    )
    stream = env.from_source(source, source_name="numbers").uid("numbers")
    timed = stream.assign_timestamps_and_watermarks(strategy).uid("stamps")
    keyed = timed.key_by(lambda value: value[0])
    sink = CollectSink(lambda batch: out.extend(batch.values))
    totals = keyed.sum(1).uid("totals").map(lambda value: ("total", *value)).uid("named")
    windows = keyed.window(TumblingEventTimeWindows.of(200)).sum(1).uid("windows")
    windows = windows.map(lambda value: ("window", *value)).uid("named windows")
    alarms = keyed.process(Alarm()).uid("alarms")
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    judged = (
        agents.from_datastream(stream, lambda value: value[0])
        .apply(PricingAgent(str(folder)))
        .uid("pricing")
        .to_datastream()
        .uid("judged")
    )
    totals.union(windows, alarms, judged).sink_to(sink).uid("sink")
