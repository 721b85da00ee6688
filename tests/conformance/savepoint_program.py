"""A program with every kind of state, in a separate module like users' programs; see test_savepoints.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emberflow.agents import Agent, AgentsExecutionEnvironment, InputEvent, OutputEvent, RunnerContext, action
from emberflow.streams import (
    BroadcastProcessFunction,
    CollectSink,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    RuntimeContext,
    StateTtlConfig,
    StreamExecutionEnvironment,
    Time,
    TimeDomain,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import TestSource

Value = tuple[str, int]
KEYS = ("ann", "bob", "cat", "slow")
LONG = "x" * 3_000
"""More than a page."""
FAR_MS = 10**9


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


MANY = 150
"""Items and timers that each record adds: more than stay with a key after a few records."""


class Alarm(KeyedProcessFunction):
    """Counts, in state of every kind and size, and has timers far ahead: they fire when the input ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        living = MapStateDescriptor("living")
        living.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(5)).build())
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.fired = runtime_context.get_state(ValueStateDescriptor("fired"))
        self.items = runtime_context.get_list_state(ListStateDescriptor("items"))
        self.table = runtime_context.get_map_state(MapStateDescriptor("table"))
        self.living = runtime_context.get_map_state(living)

    def process_element(self, value: Value, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        timers = ctx.timer_service()
        if count == 1:
            timers.register_processing_time_timer(4_102_444_800_000)
        for number in range(count * MANY, (count + 1) * MANY):
            self.items.add(number)
            self.table.put(str(number), value[1])
            self.living.put(number, value[1])
            timers.register_event_time_timer(FAR_MS + number * 7919 % 100_000)
            if number % 3 == 0:
                timers.delete_event_time_timer(FAR_MS + (number - MANY) * 7919 % 100_000)
        yield "counted", value[0], count

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if ctx.time_domain() is TimeDomain.EVENT_TIME:
            count, last = self.fired.value() or (0, 0)
            assert timestamp > last
            self.fired.update((count + 1, timestamp))
            return
        items, table = list(self.items.get()), dict(self.table.items())
        assert items == sorted(items)
        assert sorted(table.values()) == sorted(self.living.values())
        yield (
            "alarm",
            ctx.get_current_key(),
            self.count.value(),
            self.fired.value(),
            len(items),
            sum(table.values()),
        )


RULES = MapStateDescriptor[str, int]("rules")


class Ruled(KeyedBroadcastProcessFunction):
    """Counts every record in its key and, in every task, in broadcast state; shows both when the input ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Value, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(2**63 - 1)

    def process_broadcast_element(self, value: Value, ctx: Any) -> None:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        rules = tuple(sorted(ctx.get_broadcast_state(RULES).items()))
        yield "ruled", ctx.get_current_key(), self.count.value(), rules


class Told(BroadcastProcessFunction):
    """The same without keys; the last task tells, which is another one after each change of parallelism."""

    def open(self, runtime_context: RuntimeContext) -> None:
        last = runtime_context.get_number_of_parallel_subtasks() - 1
        self.tells = runtime_context.get_index_of_this_subtask() == last

    def process_element(self, value: Value, ctx: Any) -> None:
        pass

    def process_broadcast_element(self, value: Value, ctx: Any) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], (rules.get(value[0]) or 0) + value[1])
        if self.tells:
            yield "told", value[0], rules.get(value[0])


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
    ruled = keyed.connect(stream.broadcast(RULES)).process(Ruled()).uid("ruled")
    told = stream.rebalance().connect(stream.broadcast(RULES)).process(Told()).uid("told")
    totals.union(windows, alarms, judged, ruled, told).sink_to(sink).uid("sink")
