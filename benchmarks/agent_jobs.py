"""The agents that several benchmarks measure, and the same job with an empty keyed step.

Inputs are `(key, number)`. In a separate module, like users' agents, so that Spark's workers can import them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    ConfigOption,
    Event,
    InputEvent,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.streams import DataStream, KeyedProcessFunction

KEYS = 100


def input_of(index: int) -> tuple[str, int]:
    return "k%d" % (index % KEYS), index  # noqa: UP031  the quickest way to make the key, and this is not measured code


def key_of(value: tuple[Any, Any]) -> Any:
    return value[0]


class Counted(Event):
    number: Any
    seen: int


class TwoActions(Agent):
    """An input, one event, an output; one memory read and one write."""

    @action(InputEvent)
    def count(event: InputEvent, ctx: RunnerContext) -> None:
        seen = ctx.short_term_memory.get("seen", 0) + 1
        ctx.short_term_memory.set("seen", seen)
        ctx.send_event(Counted(number=event.input[1], seen=seen))

    @action(Counted)
    def tell(event: Counted, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(output=(event.number, event.seen)))


class OneCall(Agent):
    """Waits as long as the input says, in milliseconds, then answers with the time at which it started to wait."""

    @action(InputEvent)
    async def call(event: InputEvent, ctx: RunnerContext) -> None:
        began_s = time.time()
        await asyncio.sleep(event.input[1] / 1000)
        ctx.send_event(OutputEvent(output=(event.input[0], began_s)))


class Called(Event):
    call_ms: int
    calls: int


class ChainedCalls(Agent):
    """Five calls, each in a separate action that the event of the previous one triggers."""

    CALLS = 5

    @action(InputEvent)
    def begin(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(Called(call_ms=event.input[1], calls=0))

    @action(Called)
    async def call(event: Called, ctx: RunnerContext) -> None:
        await asyncio.sleep(event.call_ms / 1000)
        calls = event.calls + 1
        if calls < ChainedCalls.CALLS:
            ctx.send_event(Called(call_ms=event.call_ms, calls=calls))
        else:
            ctx.send_event(OutputEvent(output=calls))


class AwaitedCalls(Agent):
    """The same five calls, awaited one after the other in a single action."""

    @action(InputEvent)
    async def call(event: InputEvent, ctx: RunnerContext) -> None:
        for _ in range(ChainedCalls.CALLS):
            await asyncio.sleep(event.input[1] / 1000)
        ctx.send_event(OutputEvent(output=ChainedCalls.CALLS))


class EmptyStep(KeyedProcessFunction):
    """What remains of an agent's step without the agent: a (key, output) pair for every input."""

    def process_element(self, value: tuple[Any, Any], ctx: Any) -> Iterable[Any]:
        yield value[0], value


def with_agent(
    stream: DataStream, agent: Agent, settings: dict[ConfigOption, Any] | None = None
) -> DataStream:
    """The agent's outputs."""
    agents_env = AgentsExecutionEnvironment.get_execution_environment(stream.get_execution_environment())
    for option, value in (settings or {}).items():
        agents_env.get_config().set(option, value)
    return agents_env.from_datastream(stream, key_of).apply(agent).to_datastream()


def with_empty_step(stream: DataStream) -> DataStream:
    """The same shape: keys, a keyed step that emits pairs, and the map that extracts outputs from them."""
    return stream.key_by(key_of).process(EmptyStep()).map(_output_of)


def _output_of(pair: tuple[Any, Any]) -> Any:
    return pair[1]
