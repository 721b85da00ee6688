"""Tools of MCP servers that a model, or an event, asks for."""

from __future__ import annotations

from typing import Any

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    ToolRequestEvent,
    ToolResponseEvent,
)
from emberflow.integrations.mcp import MCPServer
from emberflow.testing import Reply, ScriptedChatModel, run_agent, tool_call
from tests.support.mcp_servers import stdio_arguments

KEY = "mcp in chats"


def with_server(made: Agent) -> Agent:
    return made.add_resource(
        "server", ResourceType.MCP_SERVER, ResourceDescriptor(clazz=MCPServer, **stdio_arguments())
    )


async def ask(event: InputEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent((await ctx.chat("model", event.input)).content))


def test_a_model_learns_what_went_wrong_and_goes_on() -> None:
    calls = [
        tool_call("add", a="x", b=1),
        tool_call("fail", why="no"),
        tool_call("crash"),
        tool_call("add", a=1, b=2),
    ]
    replies = [*(Reply(tool_calls=[call]) for call in calls), Reply("done")]
    model = ResourceDescriptor(
        clazz=BaseChatModelSetup, connection="scripted", tools=["add", "fail", "crash"]
    )
    made = (
        with_server(Agent("asking"))
        .add_action("ask", [InputEvent], ask)
        .add_resource("model", ResourceType.CHAT_MODEL, model)
        .add_resource(
            "scripted",
            ResourceType.CHAT_MODEL_CONNECTION,
            ResourceDescriptor(clazz=ScriptedChatModel, replies=replies, name=KEY),
        )
    )
    seen = ScriptedChatModel.calls_of(KEY)
    seen.clear()
    assert run_agent(made, ["go"]).outputs == ["done"]
    said = [item.content for item in seen[-1].messages if item.role.value == "tool"]
    for found, expected in zip(said, ["valid integer", "it failed: no", "was lost while", "3"], strict=True):
        assert expected in found


async def request(event: InputEvent, ctx: RunnerContext) -> None:
    calls: list[Any] = [
        {"id": "1", **tool_call("add", a=1, b=2)},
        {"id": "2", **tool_call("ad", a=1, b=2)},
    ]
    ctx.send_event(ToolRequestEvent("", calls))


async def collect(event: ToolResponseEvent, ctx: RunnerContext) -> None:
    ctx.send_event(OutputEvent([event.responses, event.success]))


def test_an_event_asks_for_a_tool() -> None:
    made = with_server(
        Agent("requesting")
        .add_action("request", [InputEvent], request)
        .add_action("collect", [ToolResponseEvent], collect)
    )
    ((responses, success),) = run_agent(made, [0]).outputs
    assert (responses["1"], success) == ("3", {"1": True, "2": False})
    assert "did you mean 'add'" in responses["2"]
