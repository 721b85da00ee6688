"""Misspelt names are rejected with the closest known one, wherever options and arguments are given by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Retry,
    RunnerContext,
    action,
)
from emberflow.errors import EmberflowError, did_you_mean
from emberflow.streams import EngineOption, StreamExecutionEnvironment
from emberflow.testing import run_agent


class Model:
    def __init__(self, *, temperature: float = 1.0) -> None:
        self.temperature = temperature


class Asks(Agent):
    @action(InputEvent)
    @staticmethod
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        given: Any = event.input
        if given == "budget":
            ctx.budget_left("token")  # pyright: ignore[reportArgumentType]
        ctx.get_resource("model", given)
        ctx.send_event(OutputEvent("done"))


def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(engine="local")


def explained(form: str) -> str:
    program = env()
    program.from_collection([1]).print()
    return program.explain(form)


def with_argument(name: str) -> None:
    described = ResourceDescriptor(clazz=Model, arguments={name: 0.5})
    agent = Asks().add_resource("model", ResourceType.CHAT_MODEL, described)
    run_agent(agent, ["chat_model"])


CASES: dict[str, tuple[Callable[[], object], str, str]] = {
    "engine": (
        lambda: StreamExecutionEnvironment.get_execution_environment(engine="lokal").get_parallelism(),
        "'lokal'",
        "'local'",
    ),
    "engine option": (lambda: env().set_option("triger_ms", 1), "'triger_ms'", "'trigger_ms'"),
    "configuration": (
        lambda: StreamExecutionEnvironment.get_execution_environment(
            {"state_back": "sqlite"}, engine="local"
        ),
        "'state_back'",
        "'state_backend'",
    ),
    "form of a plan": (lambda: explained("mermiad"), "'mermiad'", "'mermaid'"),
    "agent option": (
        lambda: AgentsExecutionEnvironment(env()).get_config().set("max-step", 1),
        "'max-step'",
        "'max-steps'",
    ),
    "guard of an action": (
        lambda: Agent("a").add_action("act", [InputEvent], lambda event, ctx: None, retries=Retry()),
        "'retries'",
        "'retry'",
    ),
    "time limit of an action": (
        lambda: Agent("a").add_action("act", [InputEvent], lambda event, ctx: None, time_out_ms=5),
        "'time_out_ms'",
        "'timeout_ms'",
    ),
    "resource type": (lambda: run_agent(Asks(), ["chat_modle"]), "'chat_modle'", "'chat_model'"),
    "kind of a budget": (lambda: run_agent(Asks(), ["budget"]), "'token'", "'tokens'"),
    "argument of a resource": (lambda: with_argument("temprature"), "'temprature'", "'temperature'"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_misspelt_name_is_rejected_with_the_closest_one(case: str) -> None:
    do, given, wanted = CASES[case]
    with pytest.raises(EmberflowError) as caught:
        do()
    assert re.search(f"{given}.*; did you mean {wanted}\\?", str(caught.value))


def test_correct_names_are_accepted() -> None:
    with_argument("temperature")
    assert explained("mermaid").startswith("flowchart")
    env().set_option(EngineOption.TRIGGER_MS, 100)
    Agent("a").add_action("act", [InputEvent], lambda event, ctx: None, retry=Retry(), reply="kind")


def test_nothing_is_suggested_if_no_name_is_close() -> None:
    assert did_you_mean("colour", ["text", "json"]) == ""
