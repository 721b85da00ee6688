"""Agents that wait for calls to a service that answers when the test says so."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    ErrorHandling,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.streams import StreamExecutionEnvironment


class Service:
    """The outside world: answers when the test says so, and may fail."""

    def __init__(self) -> None:
        self.answers: set[str] = set()
        self.fails: set[str] = set()
        self.broken: set[str] = set()
        """What breaks once without a call."""
        self.made: Counter[str] = Counter()
        self.everything = False

    async def ask(self, name: str) -> str:
        self.made[name] += 1
        while not (self.everything or name in self.answers):  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.002)
        if name in self.fails:
            # It fails now and may succeed the next time.
            self.fails.discard(name)
            raise ConnectionError(name)
        return name.upper()

    def check(self, name: str) -> None:
        if name in self.broken:
            self.broken.discard(name)
            raise RuntimeError(name)


SERVICE = Service()


async def ask(name: str) -> str:
    return await SERVICE.ask(name)


class Waits(Agent):
    @action(InputEvent)
    async def first(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        answer = await ctx.durable_execute_async(ask, f"{key}{number}.1")
        ctx.send_event(Event("asked", {"number": number, "answer": answer}))

    @action("asked")
    async def second(self, event: Event, ctx: RunnerContext) -> None:
        number = event.get_attr("number")
        answer = await ctx.durable_execute_async(ask, f"{ctx.key}{number}.2")
        seen = (ctx.short_term_memory.get("seen") or 0) + 1
        ctx.short_term_memory.set("seen", seen)
        ctx.send_event(OutputEvent((ctx.key, number, event.get_attr("answer"), answer)))
        ctx.send_event_after(1, Event("later", {"number": number}))

    @action("later")
    def later(self, event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((ctx.key, event.get_attr("number"), "later")))


def graph(agent: Agent | None = None) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    stream = env.from_collection([("a", 0)])
    built = agents_env.from_datastream(stream, lambda value: value[0]).apply(agent or Waits())
    letters = built.dead_letters().map(lambda letter: (*letter["input"], "letter"))
    built.to_datastream().union(letters).print()
    return env.job_graph()


class Counts(Agent):
    @action(InputEvent)
    async def count(self, event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        await ctx.durable_execute_async(ask, f"{key}{number}")
        SERVICE.check(f"{key}{number}")
        seen = (ctx.short_term_memory.get("seen") or 0) + 1
        ctx.short_term_memory.set("seen", seen)
        ctx.send_event(OutputEvent((key, number, seen)))
