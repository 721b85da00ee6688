"""The agent whose stored state is among the golden files, and an operator that is opened with such state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from emberflow.agents import Agent, AgentPlan, InputEvent, OutputEvent, RunnerContext
from emberflow.event_time.clock import FixedClock
from emberflow.events.batch import Batch
from emberflow.operators.agents.agent_operator import AgentOperator
from emberflow.operators.contexts import RuntimeContext
from emberflow.operators.host_services import HostServices
from emberflow.operators.operator import Step
from emberflow.operators.scope import Scope
from emberflow.plan.specs import AgentSpec


class Calls:
    """Calls that end when the test says so."""

    def __init__(self) -> None:
        self.started: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def start(self, limiter: str, capacity: int, call: Any, done: Any) -> None:
        self.started.append((call, done))

    def wait_for(self, call: Callable[[], Any]) -> Any:
        return asyncio.run(call())

    async def in_thread(self, function: Callable[[], Any], threads: int) -> Any:
        return function()

    def finish(self) -> None:
        while self.started:
            call, done = self.started.pop(0)
            done(asyncio.run(call()), None)


class Pages:
    def __init__(self, pages: dict[int, bytes]) -> None:
        self.pages = pages

    def get_page(self, number: int) -> bytes | None:
        return self.pages.get(number)

    def put_page(self, number: int | None, data: bytes) -> int:
        number = len(self.pages) + 1 if number is None else number
        self.pages[number] = data
        return number

    def remove_page(self, number: int) -> None:
        del self.pages[number]

    def reserve_pages(self, count: int) -> int:
        raise NotImplementedError("memory needs no page but the next one")


async def answer(event: InputEvent, ctx: RunnerContext) -> None:
    count = ctx.short_term_memory.get("stats.count", 0) + 1
    ctx.short_term_memory.set("stats.count", count)
    ctx.short_term_memory.append("history", event.input)
    ctx.short_term_memory.set("text", str(event.input) * 3_000)
    await asyncio.sleep(0)
    history = ctx.short_term_memory.get("history")
    ctx.send_event(OutputEvent((event.id, count, history, len(ctx.short_term_memory.get("text")))))


def opened(scope: Scope) -> tuple[AgentOperator, Calls, list[Any]]:
    agent = Agent("keeper").add_action("answer", [InputEvent], answer)
    operator = AgentOperator(
        Step("u", "keeper"), AgentSpec(plan=AgentPlan.from_agent(agent), plan_id="golden")
    )
    calls = Calls()
    operator.connect(HostServices(clock=scope.clock, calls=calls))
    operator.open(RuntimeContext("keeper", operator))
    outputs: list[Any] = []

    class Sink:
        def on_batch(self, batch: Batch) -> None:
            outputs.extend(batch.values)

        def on_watermark(self, watermark: int) -> None:
            outputs.append(watermark)

    operator.output.main.append(Sink())
    operator.input_of = {0: 0}
    operator.enter(scope)
    return operator, calls, outputs


def new_scope(pages: Pages, **stored: Any) -> Scope:
    return Scope(channels=[(0, 0)], idle_ms={}, clock=FixedClock(7), pages=pages, **stored)
