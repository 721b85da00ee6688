"""`ChatModel`: a model in one line, in an agent whose calls reach a service through the official client."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    BaseChatModelSetup,
    ChatModel,
    ErrorHandling,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    Secret,
)
from emberflow.errors import EmberflowError, InvalidAgent, InvalidArgument
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.testing import Reply, ScriptedChatModel, When, run_agent
from tests.support.model_server import Answer, ModelServer
from tests.support.openai_answers import completion, error

KEY = "sk-secret-of-the-shortcut-77"


async def ask(event: InputEvent, ctx: Any) -> None:
    answer = await ctx.chat("judge", event.input)
    ctx.send_event(OutputEvent(answer.content))


def judge(model: ResourceDescriptor, **others: ResourceDescriptor) -> Agent:
    agent = Agent("court").add_resource("judge", ResourceType.CHAT_MODEL, model)
    for name, other in others.items():
        agent.add_resource(name, ResourceType.CHAT_MODEL, other)
    return agent.add_action("ask", [InputEvent], ask)


def test_a_model_is_usable_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer([completion("guilty")]) as server:
        model = ChatModel.openai("gpt-5", base_url=f"{server.url}/v1", max_concurrent=2, temperature=0.1)
        assert run_agent(judge(model), ["theft", "fraud"]).outputs == ["guilty", "guilty"]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[0].body["temperature"] == 0.1
        assert server.connections <= 2


def test_a_throttled_call_is_repeated_by_admission_control() -> None:
    with ModelServer([error(429, "Slow down.", retry_after_ms="20"), completion("guilty")]) as server:
        model = ChatModel.openai_compatible("m", base_url=f"{server.url}/v1")
        assert run_agent(judge(model), ["theft"]).outputs == ["guilty"]
        assert len(server.requests) == 2


def test_a_failure_names_the_model_and_hides_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURT_KEY", KEY)
    with ModelServer([error(401, f"Wrong key {KEY}.")]) as server:
        model = ChatModel.openai("gpt-5", base_url=f"{server.url}/v1", api_key=Secret("COURT_KEY"))
        with pytest.raises(EmberflowError, match="401") as failed:
            run_agent(judge(model), ["theft"])
    shown: list[str] = []
    found: BaseException | None = failed.value
    while found is not None:
        shown.append(f"{found} {found!r} {vars(found)}")
        found = found.__cause__ or found.__context__
    assert KEY not in " ".join(shown)
    assert "it is taken from the variable COURT_KEY" in " ".join(shown)


def test_inline_connections_are_resources_of_the_plan_shared_if_they_are_equal() -> None:
    same = {"api_key": Secret("A_KEY"), "max_concurrent": 3}
    agent = judge(
        ChatModel.openai("gpt-5", fallback=ChatModel.anthropic("claude-sonnet-5"), **same),
        jury=ChatModel.openai("gpt-5-mini", **same),
        clerk=ChatModel.openai("gpt-5-mini", api_key=Secret("B_KEY")),
    )
    providers = AgentPlan.from_agent(agent).resource_providers
    assert set(providers[ResourceType.CHAT_MODEL_CONNECTION]) == {"judge", "clerk", "judge-fallback"}
    named = {name: provider.descriptor for name, provider in providers[ResourceType.CHAT_MODEL].items()}
    connections = {name: found.arguments["connection"] for name, found in named.items() if found is not None}
    assert connections == {
        "judge": "judge",
        "jury": "judge",
        "clerk": "clerk",
        "judge-fallback": "judge-fallback",
    }


def test_limits_of_an_inline_connection_apply_and_a_test_can_replace_it() -> None:
    inner = ResourceDescriptor(clazz=ScriptedChatModel, replies=[When(reply="x")], max_waiting=1)
    agent = judge(ResourceDescriptor(clazz=BaseChatModelSetup, connection=inner))
    other = ScriptedChatModel([When(reply=Reply("replaced"))])
    replaced = {("judge", ResourceType.CHAT_MODEL_CONNECTION): other}
    assert run_agent(agent, ["theft"]).outputs == ["x"]
    assert run_agent(agent, ["theft"], resources=replaced).outputs == ["replaced"]


def test_secrets_and_typing_errors_are_refused_where_they_are_written() -> None:
    with pytest.raises(InvalidAgent, match="'api_key' of OpenAIChatModelConnection is a secret"):
        ChatModel.openai("gpt-5", api_key=KEY)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="no 'max_concurent'; did you mean 'max_concurrent'"):
        ChatModel.openai("gpt-5", max_concurent=3)


def test_a_missing_client_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(EmberflowError, match=r'pip install "emberflow\[openai\]"'):
        run_agent(judge(ChatModel.vllm("m")), ["theft"])


def test_a_refusing_service_does_not_stop_other_keys() -> None:
    def answer(request: Any) -> Answer:
        return error(400, "No.") if "bad" in str(request.body) else completion("fine")

    with ModelServer(answer) as server:
        model = ChatModel.openai_compatible("m", base_url=f"{server.url}/v1")
        inputs = [{"key": 1, "value": "bad"}, {"key": 2, "value": "good"}]
        options = {AgentExecutionOptions.ON_ERROR: ErrorHandling.SKIP}
        found = run_agent(judge(model), inputs, options=options)
    assert found.outputs == ["fine"]
