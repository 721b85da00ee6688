"""What `error-handling-strategy` does with a failed call of a model, on every engine (A42)."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    ChatRequestEvent,
    ChatResponseEvent,
    ErrorHandlingStrategy,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    RunnerContext,
    action,
    chat_model_connection,
    chat_model_setup,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import Host, Reply, ScriptedChatModel, When, on_every_host

INPUTS = [("easy", 1), ("hard", 1), ("easy", 2)]


class Asker(Agent):
    """One chat request per input; a question that contains "hard" fails twice before it is answered."""

    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ScriptedChatModel,
            replies=[
                When(contains="hard", reply=Reply("at last", errors_first=[500, "timeout"])),
                When(reply="at once"),
            ],
        )

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service")

    @action(InputEvent)
    @staticmethod
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        ctx.send_event(ChatRequestEvent("model", f"{event.input[0]} {event.input[1]}"))

    @action(ChatResponseEvent)
    @staticmethod
    def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        waited_ms = round(event.total_retry_wait_sec * 1000)
        ctx.send_event(OutputEvent((ctx.key, event.response.content, event.retry_count, waited_ms)))


def asked(env: StreamExecutionEnvironment, strategy: ErrorHandlingStrategy) -> DataStream[Any]:
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    config = agents_env.get_config()
    config.set(AgentExecutionOptions.ERROR_HANDLING_STRATEGY, strategy)
    config.set(AgentExecutionOptions.RETRY_WAIT_INTERVAL, 0.01)
    inputs = env.from_collection(INPUTS)
    return agents_env.from_datastream(inputs, lambda value: value[0]).apply(Asker()).to_datastream()


@on_every_host
def test_failed_calls_are_retried_or_ignored(host: Host) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream[Any]:
        retried = asked(env, ErrorHandlingStrategy.RETRY).map(lambda output: ("retry", *output))
        ignored = asked(env, ErrorHandlingStrategy.IGNORE).map(lambda output: ("ignore", *output))
        return retried.union(ignored)

    easy = ("easy", "at once", 0, 0)
    assert sorted(host.run(build)) == sorted(
        [
            ("retry", *easy),
            ("retry", *easy),
            ("retry", "hard", "at last", 2, 30),
            ("ignore", *easy),
            ("ignore", *easy),
        ]
    )


@on_every_host
def test_without_a_strategy_the_first_failure_fails_the_job(host: Host) -> None:
    with pytest.raises(Exception, match=r"chat_model_action[\s\S]*500"):
        host.run(lambda env: asked(env, ErrorHandlingStrategy.FAIL))
