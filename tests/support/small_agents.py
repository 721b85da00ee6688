"""Agents that the conformance tests share. In a separate module, like users' agents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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
from emberflow.streams import DataStream, StreamExecutionEnvironment


@dataclass(frozen=True)
class Note:
    text: str
    weight: int


class Counted(Event):
    word: str
    count: int
    note: Note


class CountingAgent(Agent):
    """Two synchronous actions, one memory."""

    @action(InputEvent)
    @staticmethod
    def count(event: InputEvent, ctx: RunnerContext) -> None:
        word = event.input[0]
        count = ctx.short_term_memory.get("stats.seen", 0) + 1
        ctx.short_term_memory.set("stats.seen", count)
        ctx.short_term_memory.append("stats.history", event.input[1])
        ctx.sensory_memory.set("doubled", event.input[1] * 2)
        ctx.send_event(Counted(word=word, count=count, note=Note(word, event.input[1])))

    @action(Counted)
    @staticmethod
    def tell(event: Counted, ctx: RunnerContext) -> None:
        assert isinstance(event.note, Note)
        history = ctx.short_term_memory.get("stats.history")
        doubled = ctx.sensory_memory.get("doubled")
        ctx.send_event(
            OutputEvent(output=(event.word, event.count, event.note.weight, sum(history), doubled))
        )


def counted(inputs: list[tuple[str, int]]) -> list[tuple[str, int, int, int, int]]:
    """The outputs of the counting agents, by key in order of input."""
    history: dict[str, list[int]] = {}
    outputs: list[tuple[str, int, int, int, int]] = []
    for word, number in inputs:
        seen = history.setdefault(word, [])
        seen.append(number)
        outputs.append((word, len(seen), number, sum(seen), number * 2))
    return outputs


class WaitingAgent(Agent):
    """The same with calls in both actions: memory is changed before and after them."""

    @action(InputEvent)
    async def count(self, event: InputEvent, ctx: RunnerContext) -> None:
        word, number = event.input
        count = ctx.short_term_memory.get("stats.seen", 0) + 1
        ctx.short_term_memory.set("stats.seen", count)
        await asyncio.sleep(0.002 * (number % 3))
        ctx.short_term_memory.append("stats.history", number)
        ctx.sensory_memory.set("doubled", number * 2)
        ctx.send_event(Counted(word=word, count=count, note=Note(word, number)))

    @action(Counted)
    async def tell(self, event: Counted, ctx: RunnerContext) -> None:
        doubled = await ctx.durable_execute_async(_same, ctx.sensory_memory.get("doubled"))
        history = ctx.short_term_memory.get("stats.history")
        ctx.send_event(
            OutputEvent(output=(event.word, event.count, event.note.weight, sum(history), doubled))
        )


def _same(value: Any) -> Any:
    return value


class FailingAgent(Agent):
    """Fails for negative numbers, after it has changed memory; every third input waits."""

    @action(InputEvent)
    @staticmethod
    def check(event: InputEvent, ctx: RunnerContext) -> None:
        word, number = event.input
        ctx.short_term_memory.set("total", ctx.short_term_memory.get("total", 0) + number)
        if number < 0:
            raise ValueError(f"{number} is negative")
        ctx.send_event(Event(type="slow" if number % 3 == 0 else "quick", attributes={"word": word}))

    @action("slow")
    @staticmethod
    async def slow(event: Event, ctx: RunnerContext) -> None:
        await asyncio.sleep(0.002)
        ctx.send_event(OutputEvent((event.get_attr("word"), ctx.short_term_memory.get("total"))))

    @action("quick")
    @staticmethod
    def quick(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.get_attr("word"), ctx.short_term_memory.get("total"))))


def applied(
    env: StreamExecutionEnvironment, stream: DataStream, agent: Agent, *, skip: bool = False
) -> DataStream:
    """The agent on a stream of (key, …) tuples."""
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    if skip:
        agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.SKIP)
    return agents_env.from_datastream(stream, lambda value: value[0]).apply(agent).to_datastream()


class DiaryAgent(Agent):
    """Memory that grows beyond what is stored with its key: large values, a long list, deleted and written again."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__()
        self._waits = waits
        self.add_action("write", [InputEvent], self.write_waiting if waits else self.write)

    async def write_waiting(self, event: InputEvent, ctx: RunnerContext) -> None:
        await asyncio.sleep(0)
        self.write(event, ctx)

    def write(self, event: InputEvent, ctx: RunnerContext) -> None:
        word, number = event.input
        memory = ctx.short_term_memory
        memory.append("history", f"{number} " + "x" * 700)
        memory.set(f"pages.p{number % 4}", f"{number} " + "y" * 3_000)
        if number % 5 == 0:
            memory.delete("pages")
        shown = sorted(
            f"{name}={value.split()[0]}" for name, value in memory.new_object("pages").get_fields().items()
        )
        history = [int(item.split()[0]) for item in memory.get("history")]
        ctx.send_event(OutputEvent((word, shown, history)))


def diary(inputs: list[tuple[str, int]]) -> list[tuple[str, list[str], list[int]]]:
    """The outputs of the diary agent."""
    pages: dict[str, dict[str, int]] = {}
    history: dict[str, list[int]] = {}
    outputs: list[tuple[str, list[str], list[int]]] = []
    for word, number in inputs:
        history.setdefault(word, []).append(number)
        kept = pages.setdefault(word, {})
        kept[f"p{number % 4}"] = number
        if number % 5 == 0:
            kept.clear()
        shown = sorted(f"{name}={value}" for name, value in kept.items())
        outputs.append((word, shown, list(history[word])))
    return outputs


class TwinKeysAgent(Agent):
    """A durable call and a question to a person per input; some inputs arrive there later than others."""

    @action(InputEvent)
    @staticmethod
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        key, delay_s = event.input
        await asyncio.sleep(delay_s)
        answer = await ctx.durable_execute_async(answer_for, key)
        decision = await ctx.ask_human("Refund?")
        ctx.send_event(OutputEvent((key, answer, str(decision))))


def answer_for(key: Any) -> str:
    return f"for {key!r}"
