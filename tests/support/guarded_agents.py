"""Guarded agents that the conformance tests share. In a separate module, like users' agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    Budget,
    ErrorEvent,
    ErrorHandling,
    Event,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Retry,
    RunnerContext,
    action,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import Reply, ScriptedChatModel, When

TOKENS = 40


class GuardedAgent(Agent):
    """Fails in every possible way, depending on the number in the input."""

    def __init__(self) -> None:
        super().__init__()
        self.add_budget(Budget(tokens=TOKENS, per="key"))

    @action(
        InputEvent,
        retry=Retry(attempts=3, backoff_ms=2, on=(ConnectionError, TimeoutError)),
        timeout_ms=2_000,
        fallback="sorry",
    )
    async def work(self, event: InputEvent, ctx: RunnerContext) -> None:
        _, number = event.input
        ctx.short_term_memory.append("begun", number)
        ctx.spend(tokens=await ctx.durable_execute_async(_price, number))
        if number % 6 == 1 and ctx.attempt < 3:
            raise ConnectionError("come again")
        if number % 6 == 2:
            raise ConnectionError("never")
        if number % 6 == 3:
            raise ValueError("no use in trying again")
        if number == 4 and ctx.attempt == 1:
            await asyncio.sleep(60)
        if number % 6 == 0:
            ctx.send_event_after(20, Event("reminder", {"number": number}))
        ctx.send_event(Event("worked", {"number": number, "attempt": ctx.attempt}))

    @action()
    def sorry(self, event: InputEvent, ctx: RunnerContext) -> None:
        word, number = event.input
        error = ctx.error
        assert error is not None
        if number % 6 == 3:
            raise KeyError("speechless")
        ctx.send_event(OutputEvent((word, number, "sorry", error.error_type, error.attempts)))

    @action("worked")
    def finish(self, event: Event, ctx: RunnerContext) -> None:
        number = event.get_attr("number")
        if number % 6 == 5:
            raise RuntimeError("broken")
        begun = len(ctx.short_term_memory.get("begun"))
        ctx.send_event(OutputEvent((ctx.key, number, "done", event.get_attr("attempt"), begun)))

    @action(ErrorEvent)
    def repair(self, event: ErrorEvent, ctx: RunnerContext) -> None:
        if event.action == "finish":
            raise LookupError(f"cannot repair {event.message}")
        number = event.event.get_attr("input")[1]
        ctx.send_event(OutputEvent((ctx.key, number, "repaired", event.error_type)))

    @action("reminder")
    def remind(self, event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((ctx.key, event.get_attr("number"), "reminded")))


async def _price(number: int) -> int:
    return number % 5


def guarded(inputs: list[tuple[str, int]]) -> tuple[list[Any], list[Any]]:
    """The outputs of the agent, by key in order of input; and its reminders, which may come at any time."""
    spent: dict[str, int] = {}
    begun: dict[str, int] = {}
    outputs: list[Any] = []
    reminders: list[Any] = []
    for word, number in inputs:
        spent[word] = spent.get(word, 0) + number % 5
        kind = number % 6
        if kind == 3:
            outputs.append((word, number, "repaired", "KeyError"))
        elif number % 5 and spent[word] > TOKENS:
            outputs.append((word, number, "sorry", "BudgetExceeded", 1))
        elif kind == 2:
            outputs.append((word, number, "sorry", "ConnectionError", 3))
        else:
            begun[word] = begun.get(word, 0) + 1
            attempt = 3 if kind == 1 else 2 if number == 4 else 1
            if kind == 5:
                letter = (word, number, "letter", "repair", "LookupError", "cannot repair broken", 1)
                outputs.append(letter)
            else:
                outputs.append((word, number, "done", attempt, begun[word]))
            if kind == 0:
                reminders.append((word, number, "reminded"))
    return outputs, reminders


def with_letters(env: StreamExecutionEnvironment, stream: DataStream) -> DataStream:
    """Outputs and dead letters in one stream."""
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    built = agents_env.from_datastream(stream, lambda value: value[0]).apply(GuardedAgent())
    return built.to_datastream().union(built.dead_letters().map(_letter))


def _letter(letter: dict[str, Any]) -> tuple[Any, ...]:
    assert letter["key"] == letter["input"][0]
    word, number = letter["input"]
    return (
        word,
        number,
        "letter",
        letter["action"],
        letter["error_type"],
        letter["error"],
        letter["attempts"],
    )


class WaitingForPeople(Agent):
    """Asks, reminds, and fails for some inputs until a file exists."""

    @action(InputEvent)
    async def act(self, event: InputEvent, ctx: RunnerContext) -> None:
        what, path = event.input
        if what == "broken" and not Path(path).exists():  # noqa: ASYNC240 - a test file
            raise ValueError("broken")
        if what == "ask":
            answer = await ctx.ask_human("Go on?", expires_ms=600_000)
            ctx.send_event(OutputEvent(("answered", str(answer), answer.note)))
        elif what == "remind":
            ctx.send_event_after(700, Event("reminder"))
        else:
            ctx.send_event(OutputEvent(("repaired", ctx.run_id.rpartition("-")[2])))

    @action("reminder")
    def remind(self, event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(("reminded", ctx.run_id.rpartition("-")[2])))


def waiting_for_people(env: StreamExecutionEnvironment, stream: DataStream) -> DataStream:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    agents_env.get_config().set(AgentExecutionOptions.ON_ERROR, ErrorHandling.DEAD_LETTER)
    return (
        agents_env.from_datastream(stream, lambda value: value[0]).apply(WaitingForPeople()).to_datastream()
    )


class AskingTwoModels(Agent):
    """The service of the large model throttles or fails; the small one answers."""

    def __init__(self) -> None:
        super().__init__()
        services = {
            "broken": [When(contains="even", reply=Reply(error=500)), When(reply=Reply(error=503))],
            "working": [When(reply="by the small one")],
        }
        for name, rules in services.items():
            self.add_resource(name, ResourceType.CHAT_MODEL_CONNECTION, ScriptedChatModel(rules))
        for name, settings in (
            ("large", {"connection": "broken", "fallback": "small"}),
            ("small", {"connection": "working"}),
        ):
            described = ResourceDescriptor(clazz=BaseChatModelSetup, **settings)  # pyright: ignore[reportArgumentType]
            self.add_resource(name, ResourceType.CHAT_MODEL, described)

    @action(InputEvent)
    async def ask(self, event: InputEvent, ctx: RunnerContext) -> None:
        answer = await ctx.chat("large", "even" if event.input % 2 == 0 else "odd")
        ctx.send_event(OutputEvent((event.input, answer.content)))


def asking_two_models(env: StreamExecutionEnvironment, stream: DataStream) -> DataStream:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    return agents_env.from_datastream(stream, lambda value: value).apply(AskingTwoModels()).to_datastream()
