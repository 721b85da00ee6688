"""Memory events on every host: the same events with the same ids, across a crash too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentRunBeginEvent,
    AgentsExecutionEnvironment,
    EventType,
    InputEvent,
    MemoryEvent,
    MemoryEventOptions,
    OutputEvent,
    RunnerContext,
    action,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import Crash, Host, TestSource, on_every_host, per_key


class Audited(Agent):
    @action(InputEvent)
    @staticmethod
    def count(event: InputEvent, ctx: RunnerContext) -> None:
        memory = ctx.short_term_memory
        memory.set("user.seen", memory.get("user.seen", 0) + event.input[1])

    @action(InputEvent)
    @staticmethod
    async def wait(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.sensory_memory.set("draft", [event.input[1]])
        await asyncio.sleep(0.001)
        ctx.sensory_memory.append("draft", "more")

    @action(
        EventType.ShortTermWriteEvent,
        EventType.ShortTermReadEvent,
        EventType.SensoryWriteEvent,
        EventType.SensoryReadEvent,
    )
    @staticmethod
    def audit(event: MemoryEvent, ctx: RunnerContext) -> None:
        ctx.short_term_memory.append("audited", event.type)
        report(event, ctx)

    @action(AgentRunBeginEvent)
    @staticmethod
    def begin(event: AgentRunBeginEvent, ctx: RunnerContext) -> None:
        report(event, ctx)


def report(event: Any, ctx: RunnerContext) -> None:
    value = {name: item for name, item in event.value.items() if name != "audited"}
    ctx.send_event(OutputEvent((event.key, event.type, value, event.id.rpartition("-")[2])))


def applied(env: StreamExecutionEnvironment, stream: DataStream) -> DataStream:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    config = agents_env.get_config().set(MemoryEventOptions.SHORT_TERM_READ, True)
    config.set(AgentExecutionOptions.AGENT_RUN_BEGIN_EVENT, True)
    return agents_env.from_datastream(stream, lambda value: value[0]).apply(Audited()).to_datastream()


def expected(key: str, numbers: list[int]) -> list[Any]:
    found: list[Any] = []
    total = 0
    for run, number in enumerate(numbers, 1):
        before = {"user.seen": total} if run > 1 else {}
        found.append((key, EventType.AgentRunBeginEvent, before, f"{run}.begin"))
        if run > 1:
            found.append((key, EventType.ShortTermReadEvent, before, f"{run}.2.short_term_read_event"))
        total += number
        found += [
            (key, EventType.ShortTermWriteEvent, {"user.seen": total}, f"{run}.2.short_term_write_event"),
            (key, EventType.SensoryWriteEvent, {"draft": [number, "more"]}, f"{run}.3.sensory_write_event"),
        ]
    return found


@on_every_host
def test_memory_events_are_the_same_everywhere_and_across_a_crash(host: Host, tmp_path: Path) -> None:
    source = TestSource([("a", 1), ("b", 2), Crash(), ("a", 3), ("a", 4)])
    run = host.run_to_files(lambda env: applied(env, env.add_source(source)), tmp_path)
    assert run.starts == 2
    assert per_key(run.values) == {"a": expected("a", [1, 3, 4]), "b": expected("b", [2])}
