"""Tasks that an action starts and does not await: nothing they do counts once the action has ended or was retried."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    Event,
    InputEvent,
    OutputEvent,
    Retry,
    RunnerContext,
)
from emberflow.errors import InvalidArgument
from emberflow.streams import StreamExecutionEnvironment
from emberflow.testing import TestSource, run_agent
from tests.support.agent_harness import AgentHarness

TWICE = Retry(attempts=2, backoff_ms=1, jitter=0)


def _send(ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent("late"))


def _send_later(ctx: RunnerContext) -> None:
    ctx.send_event_after(0, OutputEvent("late"))


def _remember(ctx: RunnerContext) -> None:
    ctx.short_term_memory.set("seen", "late")


def _remember_for_the_run(ctx: RunnerContext) -> None:
    ctx.sensory_memory.set("seen", "late")


def _spend(ctx: RunnerContext) -> None:
    ctx.spend(tokens=1)


def _call(ctx: RunnerContext) -> None:
    ctx.durable_execute(str, "late")


@pytest.mark.parametrize("does", [_send, _send_later, _remember, _remember_for_the_run, _spend, _call])
def test_the_rest_of_a_failed_gather_does_not_reach_the_next_attempt(
    does: Callable[[RunnerContext], None],
) -> None:
    raised: list[str] = []

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        second_runs = ended if ctx.attempt == 1 else asyncio.Event()

        async def slow() -> None:
            await second_runs.wait()
            try:
                does(ctx)
            except InvalidArgument as error:
                raised.append(error.message)
            over.set()

        if ctx.attempt == 1:
            await asyncio.gather(slow(), _refused())
        ended.set()
        await over.wait()
        seen = (ctx.short_term_memory.get("seen"), ctx.sensory_memory.get("seen"))
        ctx.send_event(OutputEvent((ctx.attempt, seen)))

    ended, over = asyncio.Event(), asyncio.Event()
    agent = Agent("retries").add_action("act", [InputEvent], act, retry=TWICE)
    assert run_agent(agent, [1]).outputs == [(2, (None, None))]
    assert [message.endswith("its attempt has failed") for message in raised] == [True]


async def _refused() -> None:
    raise ConnectionError("refused")


def test_tasks_of_the_current_attempt_are_not_affected() -> None:
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        async def part(number: int) -> None:
            await asyncio.sleep(0)
            ctx.short_term_memory.append("parts", (ctx.attempt, number))
            ctx.send_event(OutputEvent(await ctx.durable_execute_async(str, number)))

        await asyncio.gather(*(asyncio.create_task(part(number)) for number in range(2)))
        if ctx.attempt == 1:
            raise ConnectionError("refused")
        ctx.send_event(OutputEvent(ctx.short_term_memory.get("parts")))

    agent = Agent("retries").add_action("act", [InputEvent], act, retry=TWICE)
    assert run_agent(agent, [1]).outputs == ["0", "1", [(2, 0), (2, 1)]]


def test_a_durable_call_after_the_end_does_not_count_for_the_next_action(tmp_path: Path) -> None:
    """It had the number of the next action's first call, which then received its answer, or failed with ReplayMismatch."""
    made: list[str] = []
    raised: list[str] = []
    left: list[asyncio.Task[None]] = []

    async def pay(whom: str) -> str:
        made.append(whom)
        return f"{whom} paid"

    async def first(event: InputEvent, ctx: RunnerContext) -> None:
        async def pay_late() -> None:
            await second_runs.wait()
            try:
                await ctx.durable_execute_async(pay, "late")
            except InvalidArgument as error:
                raised.append(error.message)

        left.append(asyncio.create_task(pay_late()))
        ctx.send_event(Event("second"))

    async def second(event: Event, ctx: RunnerContext) -> None:
        second_runs.set()
        await asyncio.wait(left)
        ctx.send_event(OutputEvent(await ctx.durable_execute_async(pay, "bob")))

    second_runs = asyncio.Event()
    agent = Agent("pays").add_action("first", [InputEvent], first).add_action("second", ["second"], second)
    assert _outputs(agent, tmp_path) == ["bob paid"]
    assert made == ["bob"]
    assert raised == ["action 'first' makes a durable call after it has ended"]


def test_effects_between_the_end_and_its_delivery_do_not_count() -> None:
    """On Spark the end of an action is delivered on another thread."""
    kept: list[RunnerContext] = []

    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        kept.append(ctx)

    harness = AgentHarness(Agent("leaves").add_action("act", [InputEvent], act))
    harness.send([("a", 1)])
    harness.calls.open[0]._done = lambda result, error: None
    harness.calls.finish()
    with pytest.raises(InvalidArgument, match=r"action 'act' sends an event after it has ended"):
        _send(kept[0])


def _outputs(agent: Agent, directory: Path) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local", checkpoint_dir=str(directory))
    agents = AgentsExecutionEnvironment.get_execution_environment(env)
    stream = env.add_source(TestSource([1]))
    results = agents.from_datastream(stream, lambda value: value).apply(agent).to_datastream()
    with results.execute_and_collect() as found:
        return list(found)
