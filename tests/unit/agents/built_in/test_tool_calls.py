"""Whatever goes wrong with a tool becomes text for the model (A19); no other key notices."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    InputEvent,
    MessageRole,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
    Tool,
    ToolMetadata,
    ToolRequestEvent,
    ToolResponseEvent,
    ToolType,
)
from emberflow.agents.built_in.tool_results import MOST_CHARACTERS
from emberflow.errors import ToolFailed
from emberflow.testing import Reply, ScriptedChatModel, When, run_agent, tool_call
from tests.support.chat_agents import FORMS, chatting, with_model

in_every_form = pytest.mark.parametrize("form", FORMS)
Form = Callable[..., Agent]


@pytest.fixture(autouse=True)
def _forget() -> None:
    ScriptedChatModel.calls_of("scripted").clear()


def results(form: Form, *calls: dict[str, Any], options: Any = None, **given: Any) -> list[str]:
    """What the model was told about these calls."""
    agent = form([Reply(tool_calls=calls), "done"], name="scripted", **given)
    assert run_agent(agent, ["go"], options=options).outputs == ["done"]
    last = ScriptedChatModel.calls_of("scripted")[-1].messages
    return [message.content for message in last if message.role is MessageRole.TOOL]


@in_every_form
def test_a_tool_that_raises(form: Form) -> None:
    assert results(form, tool_call("fails", x=3), tool_call("add", a=1, b=2)) == [
        "Error: ValueError: no 3",
        "3",
    ]


@in_every_form
def test_a_tool_that_ends_the_program(form: Form) -> None:
    assert results(form, tool_call("leaves")) == ["Error: SystemExit: 3"]


@in_every_form
def test_a_tool_that_hangs(form: Form) -> None:
    options = {AgentExecutionOptions.TOOL_CALL_TIMEOUT: 50}
    found = results(form, tool_call("hangs"), tool_call("long_text", size=2), options=options)
    assert found == ["Error: the tool 'hangs' did not answer within 0.05 s", "xx"]


@in_every_form
def test_a_result_that_cannot_be_sent(form: Form) -> None:
    (found,) = results(form, tool_call("locked"))
    assert found == "Error: the tool 'locked' returned a lock, which cannot be converted to text"


@in_every_form
@pytest.mark.parametrize("value", ["half \ud83d", {"deep": ["half \ud83d"]}])
def test_a_result_that_cannot_be_encoded(form: Form, value: Any) -> None:
    def halves() -> Any:
        """Returns half of a surrogate pair."""
        return value

    agent = form([Reply(tool_calls=[tool_call("halves")]), "done"], name="scripted", tools=["halves"])
    assert run_agent(agent.add_resource("halves", ResourceType.TOOL, halves), ["go"]).outputs == ["done"]
    told = ScriptedChatModel.calls_of("scripted")[-1].messages[-1].content
    assert told.startswith("Error: the tool 'halves' returned text that cannot be encoded as UTF-8")
    assert "'\\ud83d' at position" in told


def test_an_error_that_cannot_be_encoded_is_escaped() -> None:
    def halves() -> Any:
        """Fails with half of a surrogate pair."""
        raise ToolFailed("half \ud83d")

    agent = chatting([Reply(tool_calls=[tool_call("halves")]), "done"], name="scripted", tools=["halves"])
    run_agent(agent.add_resource("halves", ResourceType.TOOL, halves), ["go"])
    told = ScriptedChatModel.calls_of("scripted")[-1].messages[-1].content
    assert told == "Error: half \\ud83d"


@in_every_form
def test_a_tool_that_does_not_exist(form: Form) -> None:
    (found,) = results(form, tool_call("ad", a=1, b=2))
    assert found.startswith("Error: there is no tool 'ad'; your tools: add, ")
    assert "did you mean 'add'?" in found


@in_every_form
def test_a_tool_that_the_model_was_not_given_cannot_be_called(form: Form) -> None:
    (found,) = results(form, tool_call("fails"), tools=["add"])
    assert found == "Error: there is no tool 'fails'; your tools: add"


@in_every_form
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"a": 1}, "needs 'b'"),
        ({"a": 1, "b": "x"}, "arguments.b must be a whole number, got 'x'"),
        ({"a": 1, "b": 2, "c": 3}, "c"),
        ('{"a": 1, ', "are not JSON"),
        ([1, 2], "must be a JSON object, got [1, 2]"),
        (7, "must be a JSON object, got 7"),
        (None, "needs 'a'"),
    ],
)
def test_arguments_that_do_not_fit(form: Form, arguments: Any, told: str) -> None:
    (found,) = results(
        form, {"id": "1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    )
    assert found.startswith("Error: ")
    assert told in found


@in_every_form
def test_arguments_may_be_json_in_a_string(form: Form) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    assert results(form, call) == ["3"]


@in_every_form
def test_a_call_without_a_function(form: Form) -> None:
    (found,) = results(form, {"id": "1"})
    assert found.startswith("Error: there is no tool ''")


@in_every_form
def test_a_result_that_is_too_long_is_shortened(form: Form) -> None:
    (found,) = results(form, tool_call("long_text", size=MOST_CHARACTERS + 1_000))
    assert len(found) < MOST_CHARACTERS + 100
    assert found.endswith("[1,000 more characters were left out]")


def test_tools_of_one_reply_run_side_by_side() -> None:
    running: list[int] = []
    complete = asyncio.Event()

    async def together() -> int:
        """Ends when three of it run."""
        running.append(1)
        if len(running) == 3:
            complete.set()
        await complete.wait()
        return len(running)

    agent = chatting([Reply(tool_calls=[tool_call("together")] * 3), "done"], tools=["together"])
    agent.add_resource("together", ResourceType.TOOL, together)
    assert run_agent(agent, ["go"]).outputs == ["done"]


def test_a_blocking_tool_blocks_no_other_key() -> None:
    order: list[str] = []

    def slow() -> str:
        """Blocks its thread until the other key is done."""
        until = time.monotonic() + 60
        while "quick" not in order and time.monotonic() < until:
            time.sleep(0.01)
        order.append("slow")
        return "slow"

    def quick() -> str:
        """Does not."""
        order.append("quick")
        return "quick"

    replies = [
        When(contains="slow", reply=[Reply(tool_calls=[tool_call("slow")]), "slow"]),
        When(contains="quick", reply=[Reply(tool_calls=[tool_call("quick")], delay_s=0.02), "quick"]),
    ]
    agent = chatting(replies, tools=["slow", "quick"])
    agent.add_resource("slow", ResourceType.TOOL, slow).add_resource("quick", ResourceType.TOOL, quick)
    run_agent(agent, [{"key": "a", "value": "slow"}, {"key": "b", "value": "quick"}])
    assert order == ["quick", "slow"]


class Guarded(Tool):
    """Repeats its secret in an error."""

    metadata = ToolMetadata(name="guarded", description="", args_schema={"type": "object", "properties": {}})

    def __init__(self, key: str) -> None:
        self._key = key

    @classmethod
    def tool_type(cls) -> ToolType:
        return ToolType.REMOTE_FUNCTION

    async def call(self, arguments: dict[str, Any]) -> Any:
        raise ConnectionError(f"the service rejected {self._key}")


def test_secrets_are_masked_in_what_the_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_KEY", "hunter2-hunter2")
    agent = chatting([Reply(tool_calls=[tool_call("guarded")]), "done"], name="scripted", tools=["guarded"])
    agent.add_resource(
        "guarded", ResourceType.TOOL, ResourceDescriptor(clazz=Guarded, key=Secret("TOOL_KEY"))
    )
    run_agent(agent, ["go"])
    told = ScriptedChatModel.calls_of("scripted")[-1].messages[-1].content
    assert told.startswith("Error: ConnectionError: the service rejected")
    assert "hunter2" not in told


def test_an_action_may_call_any_tool_of_the_agent_with_an_event() -> None:
    def ask(event: InputEvent, ctx: RunnerContext) -> None:
        calls = [{"id": "1", **tool_call("add", a=1, b=2)}, {"id": "2", **tool_call("nope")}]
        ctx.send_event(ToolRequestEvent("", calls))

    def told(event: ToolResponseEvent, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent((event.responses, event.success, event.error)))

    agent = Agent("direct").add_action("ask", [InputEvent], ask).add_action("told", [ToolResponseEvent], told)
    (output,) = run_agent(with_model(agent, ["unused"], tools=[]), ["go"]).outputs
    assert output == (
        {"1": 3, "2": "Error: there is no tool 'nope'"},
        {"1": True, "2": False},
        {"2": "there is no tool 'nope'"},
    )


_release = threading.Event()


def stuck() -> str:
    """Blocks its thread."""
    _release.wait()
    return "at last"


def test_tools_that_hang_on_all_threads_do_not_fail_those_of_other_keys() -> None:
    """The quick tools wait for a thread as long as the others are allowed to take."""

    def quick() -> str:
        """Answers at once."""
        return "quick"

    def reply(messages: Any) -> Any:
        last = messages[-1]
        if last.role is MessageRole.TOOL:
            return last.content
        return Reply(tool_calls=[tool_call(last.content)])

    agent = chatting(reply, tools=["stuck", "quick"])
    agent.add_resource("stuck", ResourceType.TOOL, stuck).add_resource("quick", ResourceType.TOOL, quick)
    inputs = [{"key": f"{name}-{i}", "value": name} for name in ("stuck", "quick") for i in range(2)]
    options = {AgentExecutionOptions.NUM_ASYNC_THREADS: 2, AgentExecutionOptions.TOOL_CALL_TIMEOUT: 1_000}
    try:
        by_key = run_agent(agent, inputs, options=options).by_key
    finally:
        _release.set()
    late = "Error: the tool 'stuck' did not answer within 1 s"
    assert by_key == {"stuck-0": [late], "stuck-1": [late], "quick-0": ["quick"], "quick-1": ["quick"]}
