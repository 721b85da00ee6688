"""Names of other resources in chat models are checked when the agent is applied."""

from __future__ import annotations

from typing import Any

import pytest

from emberflow.agents import (
    Agent,
    AgentPlan,
    BaseChatModelSetup,
    InputEvent,
    Prompt,
    ResourceDescriptor,
    ResourceType,
)
from emberflow.errors import InvalidAgent
from emberflow.testing import ScriptedChatModel

CONNECTION = ResourceType.CHAT_MODEL_CONNECTION


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


def agent(model: Any) -> Agent:
    made = Agent("sums").add_action("act", [InputEvent], lambda event, ctx: None)
    made.add_resource("add", ResourceType.TOOL, add)
    made.add_resource("service", CONNECTION, ResourceDescriptor(clazz=ScriptedChatModel, replies=["x"]))
    return made.add_resource("model", ResourceType.CHAT_MODEL, model)


def described(*tools: Any) -> ResourceDescriptor:
    return ResourceDescriptor(clazz=BaseChatModelSetup, connection="service", tools=list(tools))


@pytest.mark.parametrize(
    "model",
    [described("add", "adds"), BaseChatModelSetup(connection=ScriptedChatModel(["x"]), tools=["adds"])],
    ids=["descriptor", "instance"],
)
def test_an_unknown_tool_is_reported_with_the_closest_name(model: Any) -> None:
    with pytest.raises(InvalidAgent, match=r"'model' lists the tool 'adds'.*did you mean 'add'") as failed:
        AgentPlan.from_agent(agent(model))
    assert "its tools: 'add'" in failed.value.cause


def test_tools_that_the_agent_has() -> None:
    AgentPlan.from_agent(agent(described("add", add)))
    helper = Agent("helper").add_action("act", [InputEvent], lambda event, ctx: None)
    AgentPlan.from_agent(agent(described("helper")).add_resource("helper", ResourceType.AGENT, helper))


def test_an_mcp_server_may_have_any_tool() -> None:
    server = ResourceDescriptor(clazz="emberflow.integrations.mcp.MCPServer", command="server")
    made = agent(described("weather")).add_resource("server", ResourceType.MCP_SERVER, server)
    AgentPlan.from_agent(made)


def test_a_model_of_the_environment_may_be_meant_for_another_agent() -> None:
    shared = {ResourceType.CHAT_MODEL: {"shared": described("elsewhere")}}
    AgentPlan.from_agent(agent(described("add")), resources=shared)


def refused(model: Any, **resources: Any) -> InvalidAgent:
    with pytest.raises(InvalidAgent) as failed:
        AgentPlan.from_agent(agent(model), **resources)
    return failed.value


@pytest.mark.parametrize(
    ("argument", "kind", "shown"),
    [
        ("connection", "CHAT_MODEL_CONNECTION", "connection"),
        ("prompt", "PROMPT", "prompt"),
        ("fallback", "CHAT_MODEL", "fallback (chat model)"),
    ],
)
@pytest.mark.parametrize("instance", [False, True])
def test_an_unknown_name_of_what_a_model_needs_is_reported(
    argument: str, kind: str, shown: str, instance: bool
) -> None:
    wanted: Any = {"connection": "service", argument: "servce" if argument == "connection" else "modle"}
    near = "service" if argument == "connection" else "model"
    made = BaseChatModelSetup(**wanted) if instance else ResourceDescriptor(BaseChatModelSetup, **wanted)
    error = refused(made)
    assert f"the chat model 'model' names the {shown} '{wanted[argument]}', which the agent does not" in str(
        error
    )
    assert f"add_resource('{wanted[argument]}', ResourceType.{kind}, …)" in error.way_out
    if argument != "prompt":
        assert error.message.endswith(f"; did you mean '{near}'?")


def test_the_environment_may_have_what_a_model_needs() -> None:
    wanted = ResourceDescriptor(clazz=BaseChatModelSetup, connection="shared", prompt="p", fallback="other")
    assert "the connection 'shared'" in refused(wanted).message
    shared: Any = {
        CONNECTION: {"shared": ScriptedChatModel(["x"])},
        ResourceType.PROMPT: {"p": Prompt.from_text("Hi.")},
        ResourceType.CHAT_MODEL: {"other": described("elsewhere")},
    }
    AgentPlan.from_agent(agent(wanted), resources=shared)


def test_what_only_the_worker_can_import_is_left_to_it() -> None:
    AgentPlan.from_agent(agent(ResourceDescriptor("not_installed_here.Setup", connection="elsewhere")))


def test_an_mcp_server_may_have_any_prompt() -> None:
    server = ResourceDescriptor(clazz="emberflow.integrations.mcp.MCPServer", command="server")
    made = agent(ResourceDescriptor(BaseChatModelSetup, connection="service", prompt="of the server"))
    AgentPlan.from_agent(made.add_resource("server", ResourceType.MCP_SERVER, server))
