"""The tortured job: an agent with calls of every kind, followed by windows, timers and totals."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    Budget,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.errors import BudgetExceeded
from emberflow.streams import (
    DataGeneratorSource,
    DataStream,
    FileSource,
    KeyedProcessFunction,
    ListStateDescriptor,
    NumberSequenceSource,
    RateLimiterStrategy,
    StreamExecutionEnvironment,
    StreamFormat,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from emberflow.testing import literal_files
from tests.recovery.torture.model_client import Refused, ask, ask_blocking, note_finished, reconcile

EVERY_MS = 100
"""Event time between two inputs; windows and timers are a second long."""
A_MONTH_MS = 30 * 86_400_000
"""Later than any clock jump: delayed events with this due time fire when the input has ended."""


TICK_MS = 150
A_CENTURY_MS = 10**12
"""Event time starts at 0, so later times are those of the machine's clock."""
LANES = {"generator": 1, "generators": 2, "sequence": 2, "files": 3, "collection": 1}
"""Channels of each kind of source."""
A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Input number i of a seed: (key, i, event time). All inputs of a key are in the same channel: only there is an order
    that a crash could break."""

    seed: int
    keys: tuple[Any, ...]
    count: int
    source: str

    def __call__(self, index: int) -> tuple[Any, int, int]:
        lanes = LANES[self.source]
        lane = index * lanes // self.count if self.source == "sequence" else index % lanes
        key = random.Random(f"input {self.seed} {index}").choice(self.keys[lane::lanes])
        return key, index, index * EVERY_MS


def inputs_of(seed: int, keys: tuple[Any, ...], count: int, source: str) -> list[tuple[Any, int, int]]:
    inputs = Inputs(seed, keys, count, source)
    return [inputs(index) for index in range(count)]


class Opened(Event):
    number: int
    at_ms: int
    first: int


class Researched(Event):
    number: int
    at_ms: int
    amount: int


class Reminder(Event):
    pass


class Desk(Agent):
    """Per input: one call, then one of four kinds of research, a note of a synchronous action, and the closing. Per key:
    a budget that is too small, and a reminder."""

    def __init__(self, port: int, finished: str) -> None:
        super().__init__("desk")
        self._port = port
        self._finished = finished
        self.add_budget(Budget(tokens=2_000, per="key")).add_budget(Budget(steps=10))

    @action(InputEvent)
    async def open_case(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number, at_ms = event.input
        memory = ctx.short_term_memory
        memory.set("count", memory.get("count", 0) + 1)
        if memory.get("count") == 1:
            ctx.send_event_after(A_MONTH_MS, Reminder())
        ctx.sensory_memory.set("prompts", [f"open {key!r} {number}"])
        first = await self._ask(ctx, f"open {key!r} {number}")
        memory.set("opened.last", number)
        ctx.send_event(Opened(number=number, at_ms=at_ms, first=first))

    @action(Opened)
    async def research(self, event: Opened, ctx: RunnerContext) -> None:
        kinds = (self._side_by_side, self._one_after_another, self._blocking_beside, self._asked_or_refused)
        amount = event.first + await kinds[event.number % 4](ctx, event.number)
        ctx.sensory_memory.set("prompts", [*ctx.sensory_memory.get("prompts"), f"research {event.number}"])
        ctx.send_event(Researched(number=event.number, at_ms=event.at_ms, amount=amount))

    @action(Researched)
    def note(self, event: Researched, ctx: RunnerContext) -> None:
        """A synchronous action: its durable call blocks the task, so it is a quick one."""
        if event.number % 5 == 0:
            prompt = f"note {event.number}"
            value, idempotency_key = ctx.durable_execute(ask_blocking, self._port, prompt, str(ctx.key))
            note_finished(self._finished, idempotency_key, prompt)
            ctx.short_term_memory.set("notes", ctx.short_term_memory.get("notes", 0) + value)

    @action(Researched)
    async def close_case(self, event: Researched, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        answered = await self._ask_person(ctx, event.number) if event.number % 6 == 1 else None
        last = await self._ask(ctx, f"close {event.number} {event.amount}")
        memory.append("amounts", event.amount)
        memory.set("total", memory.get("total", 0) + last)
        try:
            ctx.spend(tokens=last)
        except BudgetExceeded:
            memory.set("overspent", memory.get("overspent", 0) + 1)
        ctx.send_event(
            OutputEvent(
                (
                    "answer",
                    ctx.key,
                    event.at_ms,
                    event.amount + last,
                    memory.get("count"),
                    memory.get("opened.last"),
                    memory.get("total"),
                    memory.get("notes", 0),
                    list(memory.get("amounts")),
                    list(ctx.sensory_memory.get("prompts")),
                    ctx.run_id,
                    answered,
                    (ctx.budget_left("steps"), ctx.budget_left("tokens"), memory.get("overspent", 0)),
                )
            )
        )

    @action(Reminder)
    async def remind(self, event: Reminder, ctx: RunnerContext) -> None:
        value = await self._ask(ctx, f"remind {ctx.key!r}")
        found = (value, ctx.short_term_memory.get("total"), ctx.budget_left("tokens"), ctx.run_id)
        ctx.send_event(OutputEvent(("reminder", ctx.key, *found)))

    # kinds of research

    async def _side_by_side(self, ctx: RunnerContext, number: int) -> int:
        return sum(await asyncio.gather(*(self._ask(ctx, f"side {part} {number}") for part in range(3))))

    async def _one_after_another(self, ctx: RunnerContext, number: int) -> int:
        found = await self._ask(ctx, f"chain {number}")
        for _ in range(2):
            found = await self._ask(ctx, f"chain {number} {found}")
        return found

    async def _blocking_beside(self, ctx: RunnerContext, number: int) -> int:
        blocking = ctx.durable_execute_async(ask_blocking, self._port, f"block {number}", str(ctx.key))
        (value, idempotency_key), beside = await asyncio.gather(blocking, self._ask(ctx, f"beside {number}"))
        note_finished(self._finished, idempotency_key, f"block {number}")
        return value + beside

    async def _asked_or_refused(self, ctx: RunnerContext, number: int) -> int:
        prompt = f"reconciled {number}"
        value, idempotency_key = await ctx.durable_execute_async(
            ask,
            self._port,
            prompt,
            str(ctx.key),
            reconciler=functools.partial(reconcile, self._port, prompt, str(ctx.key)),
        )
        note_finished(self._finished, idempotency_key, prompt)
        try:
            return value + await self._ask(ctx, f"refuse {number}")
        except Refused as refused:
            note_finished(self._finished, refused.args[1], refused.args[0])
            return value

    async def _ask_person(self, ctx: RunnerContext, number: int) -> tuple[str, str]:
        """The chosen answer, and the question as the person saw it."""
        answer = await ctx.ask_human(f"Close {ctx.key!r}, {number}?")
        return str(answer), answer.note

    async def _ask(self, ctx: RunnerContext, prompt: str) -> int:
        value, idempotency_key = await ctx.durable_execute_async(ask, self._port, prompt, str(ctx.key))
        note_finished(self._finished, idempotency_key, prompt)
        return value


class Ledger(KeyedProcessFunction):
    """A timer at the end of each second reports what was booked in it; one after the end reports the total. One in
    processing time, set with the first record of a key, fires once."""

    def __init__(self, end_ms: int) -> None:
        self._end_ms = end_ms

    def open(self, runtime_context: Any) -> None:
        self._booked = runtime_context.get_list_state(ListStateDescriptor("booked"))
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: tuple[Any, ...], ctx: Any) -> Iterator[Any]:
        self._booked.add((value[2], value[3]))
        if self._total.value() is None:
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + TICK_MS)
        self._total.update((self._total.value() or 0) + value[3])
        ctx.timer_service().register_event_time_timer(value[2] // 1000 * 1000 + 999)
        ctx.timer_service().register_event_time_timer(self._end_ms)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp > A_CENTURY_MS:
            yield "tick", ctx.get_current_key()
            return
        if timestamp == self._end_ms:
            yield "total", ctx.get_current_key(), self._total.value()
            return
        # After an agent, event time may advance further at once than to the timer's time: count only what belongs to it.
        booked = list(self._booked.get())
        self._booked.update([item for item in booked if item[0] > timestamp])
        due = [amount for at_ms, amount in booked if at_ms <= timestamp]
        yield "timer", ctx.get_current_key(), timestamp, len(due), sum(due)


def cases(env: StreamExecutionEnvironment, inputs: Inputs, rate: float | None, folder: Path) -> DataStream:
    """The input read from one kind of source."""
    ordered = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_event_time)
    # Ranges of numbers and files are read at different speeds: event time does not advance until the end.
    unordered = WatermarkStrategy.for_bounded_out_of_orderness(A_DAY).with_timestamp_assigner(_event_time)
    match inputs.source:
        case "generator" | "generators":
            source = DataGeneratorSource(
                inputs,
                count=inputs.count,
                rate_limiter_strategy=RateLimiterStrategy.per_second(rate) if rate else None,
                parallelism=LANES[inputs.source],
            )
            return env.from_source(source, ordered, "cases").uid("cases")
        case "sequence":
            numbers = env.from_source(NumberSequenceSource(0, inputs.count - 1)).uid("cases")
            return numbers.map(inputs).assign_timestamps_and_watermarks(unordered)
        case "files":
            lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder)).build()
            numbers = env.from_source(lines, WatermarkStrategy.no_watermarks(), "cases").uid("cases")
            return numbers.map(int).map(inputs).assign_timestamps_and_watermarks(unordered)
        case _:
            listed = env.from_collection([inputs(index) for index in range(inputs.count)]).uid("cases")
            return listed.assign_timestamps_and_watermarks(ordered)


def write_files(inputs: Inputs, folder: Path) -> None:
    """What the file source reads: a file per lane."""
    folder.mkdir(exist_ok=True)
    for lane in range(LANES["files"]):
        numbers = range(lane, inputs.count, LANES["files"])
        (folder / f"{lane}.txt").write_text("".join(f"{number}\n" for number in numbers))


def _event_time(value: tuple[Any, ...], timestamp: int) -> int:
    return value[2]


def build(
    env: StreamExecutionEnvironment,
    *,
    inputs: Inputs,
    rate: float | None,
    port: int,
    finished: str,
    folder: str,
    out: str,
) -> None:
    stream = cases(env, inputs, rate, Path(folder))
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    said = (
        agents_env.from_datastream(stream, lambda value: value[0]).apply(Desk(port, finished)).to_datastream()
    )
    answers = said.filter(lambda value: value[0] == "answer")
    reminders = said.filter(lambda value: value[0] == "reminder")
    windows = (
        answers.key_by(lambda value: value[1])
        .window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
        .reduce(lambda a, b: (*a[:3], a[3] + b[3]))
        .map(lambda value: ("window", value[1], value[2], value[3]))
    )
    booked = (
        answers.key_by(lambda value: value[1]).process(Ledger(inputs.count * EVERY_MS * 10)).uid("ledger")
    )
    booked.union(windows, reminders).sink_to(literal_files(out)).uid("out")
