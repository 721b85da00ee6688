"""Chat requests that follow each other in a run are answered concurrently, and take effect in order (A19)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    BaseChatModelConnection,
    BaseChatModelSetup,
    ChatMessage,
    ChatRequestEvent,
    ChatResponseEvent,
    ErrorEvent,
    InputEvent,
    MessageRole,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    action,
    chat_model_connection,
    chat_model_setup,
    tool,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import SPARK, Host, on_every_host, per_key
from tests.support.small_agents import applied

INPUTS = [("ann", 1), ("bob", 1), ("ann", 2)]


class Meeting(BaseChatModelConnection):
    """Says whether it was asked both questions of a run at the same time. Asks for a tool first."""

    def open(self) -> None:
        self._asked: Counter[str] = Counter()

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        run, _, question = messages[0].content.partition(" ")
        results = [message.content for message in messages if message.role is MessageRole.TOOL]
        meeting = f"{run} {len(results)}"
        self._asked[meeting] += 1
        # A guard against hangs: calls one after another never meet.
        for _ in range(6_000):
            if self._asked[meeting] >= 2:
                break
            await asyncio.sleep(0.01)
        if not results:
            call = {
                "id": "1",
                "type": "function",
                "function": {"name": "double", "arguments": {"text": question}},
            }
            return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call])
        together = "together" if self._asked[meeting] >= 2 else "alone"
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"{results[0]} {together}")


class Asker(Agent):
    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=Meeting)

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=["double"])

    @tool
    @staticmethod
    def double(text: str) -> str:
        """The text, twice."""
        return text * 2

    @action(InputEvent)
    @staticmethod
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        for question in ("a", "b"):
            ctx.send_event(ChatRequestEvent("model", f"{key}-{number} {question}"))

    @action(ChatResponseEvent)
    @staticmethod
    def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        answers = [*ctx.sensory_memory.get("answers", []), event.response.content]
        ctx.sensory_memory.set("answers", answers)
        if len(answers) == 2:
            ctx.send_event(OutputEvent((ctx.key, answers)))


@on_every_host
def test_adjacent_requests_meet_at_the_model(host: Host) -> None:
    outputs = host.run(lambda env: applied(env, env.from_collection(INPUTS), Asker()))
    both = ["aa together", "bb together"]
    assert per_key(outputs) == {"ann": [("ann", both)] * 2, "bob": [("bob", both)]}


def pay(paid: str, what: str) -> None:
    with Path(paid).open("a") as file:
        file.write(f"{what}\n")


class Refusing(BaseChatModelConnection):
    """Refuses the first of three questions, after the others have been answered. Every call leaves a line in a file."""

    def __init__(self, paid: str) -> None:
        self._paid = paid

    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        question = messages[0].content
        pay(self._paid, question)
        if question.endswith("a"):
            await asyncio.sleep(0.5)
            raise RuntimeError("not this one")
        return ChatMessage(role=MessageRole.ASSISTANT, content=question)


class Hopeful(Agent):
    """Goes on with what was answered."""

    def __init__(self, paid: str) -> None:
        super().__init__("hopeful")
        service = ResourceDescriptor(clazz=Refusing, paid=paid)
        self.add_resource("service", ResourceType.CHAT_MODEL_CONNECTION, service)

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service")

    @action(InputEvent)
    @staticmethod
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        for question in "abc":
            ctx.send_event(ChatRequestEvent("model", f"{ctx.key} {question}"))

    @action(ChatResponseEvent)
    @staticmethod
    def answered(event: ChatResponseEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((ctx.key, event.response.content)))

    @action(ErrorEvent)
    @staticmethod
    def failed(event: ErrorEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((ctx.key, event.message)))


class Calling(Agent):
    """Lets a sub-agent ask."""

    def __init__(self, paid: str) -> None:
        super().__init__("calling")
        self.add_resource("hopeful", ResourceType.AGENT, Hopeful(paid))

    @action(InputEvent)
    @staticmethod
    async def ask(event: InputEvent, ctx: RunnerContext) -> None:
        for output in await ctx.call_agent("hopeful", "go"):
            ctx.send_event(OutputEvent(output))


ANSWERED = {key: [(key, f"{key} b"), (key, f"{key} c"), (key, "not this one")] for key in ("ann", "bob")}


def check_paid_once(host: Host, agent: type[Agent], folder: Path, options: dict[str, Any]) -> None:
    paid = folder / "paid"

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return applied(env, env.from_collection([("ann", 1), ("bob", 1)]), agent(str(paid)))

    outputs = host.run(build, options=options)
    assert {key: sorted(values) for key, values in per_key(outputs).items()} == {
        key: sorted(values) for key, values in ANSWERED.items()
    }
    assert Counter(paid.read_text().splitlines()) == {
        f"{key} {name}": 1 for key in ("ann", "bob") for name in "abc"
    }


@on_every_host(nightly=[SPARK])
@pytest.mark.parametrize("agent", [Hopeful, Calling])
def test_answers_outlive_the_failure_of_the_request_before_them(
    host: Host, agent: type[Agent], tmp_path: Path
) -> None:
    check_paid_once(host, agent, tmp_path, {})


@on_every_host(hosts=[SPARK])
def test_answers_outlive_a_failure_that_a_later_batch_learns_of(host: Host, tmp_path: Path) -> None:
    """The run is parked while its action is in flight: the outcome is found in the log."""
    check_paid_once(host, Hopeful, tmp_path, {"deadline_ms": 50})
