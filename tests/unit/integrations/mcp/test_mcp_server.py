"""Tools and prompts of real MCP servers, as processes and over HTTP (A22)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Generator
from typing import Any

import psutil
import pytest

from emberflow.agents import (
    Agent,
    BaseChatModelSetup,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Secret,
    ToolType,
)
from emberflow.errors import InvalidArgument, ToolFailed, UnknownResource
from emberflow.integrations.mcp import MCPServer, MCPTool
from emberflow.testing import ScriptedChatModel, run_agent
from tests.support.mcp_servers import free_port, http_server, stdio_arguments

TOOLS = ["add", "fail", "crash", "sleep", "environment", "pid"]


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Generator[MCPServer]:
    if request.param == "stdio":
        made = MCPServer(**stdio_arguments())
        yield made
        made.close()
        return
    with http_server() as (address, _):
        made = MCPServer(address)
        yield made
        made.close()


def call(server: MCPServer, name: str, /, **arguments: Any) -> Any:
    return asyncio.run(server.call_tool_async(name, arguments))


def test_tools_are_listed_and_called(server: MCPServer) -> None:
    assert [item.name for item in server.list_tools()] == TOOLS
    found = server.get_tool("add")
    assert found.metadata.description == "Adds two numbers."
    assert found.metadata.get_parameters_dict()["required"] == ["a", "b"]
    assert found.tool_type() is ToolType.MCP
    assert asyncio.run(found.call({"a": 1, "b": 2})) == asyncio.run(found.call(a=1, b=2)) == "3"


def test_a_process_that_prints_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    prints = (
        "print('starting up\\n' * 500, flush=True); import runpy; runpy.run_module({!r}, run_name='__main__')"
    )
    arguments = stdio_arguments()
    server = MCPServer(**{**arguments, "args": ["-c", prints.format(arguments["args"][1])]})
    try:
        assert call(server, "add", a=1, b=2) == "3"
    finally:
        server.close()
    logged = [item for item in caplog.records if "that is not a message" in item.getMessage()]
    assert 1 <= len(logged) < 250
    assert "starting up" in logged[0].getMessage()
    assert not any(item.exc_info for item in caplog.records)


def test_prompts(server: MCPServer) -> None:
    (found,) = server.list_prompts()
    assert [(item.role.value, item.content) for item in server.get_prompt("review", {"product": "tea"})] == [
        ("user", "Review tea in a calm tone.")
    ]
    assert found.format_string(product=5, tone="sharp", other=1) == "Review 5 in a sharp tone."
    with pytest.raises(ToolFailed, match="needs the argument 'product'"):
        server.get_prompt("review")


def test_errors_of_tools(server: MCPServer) -> None:
    with pytest.raises(ToolFailed, match="it failed: no"):
        call(server, "fail", why="no")
    with pytest.raises(ToolFailed, match="valid integer"):
        call(server, "add", a="x", b=1)
    with pytest.raises(UnknownResource, match="did you mean 'add'"):
        server.get_tool("ad")
    assert call(server, "add", a=1, b=1) == "2", "the session continues"


def test_calls_run_side_by_side(server: MCPServer) -> None:
    async def several() -> list[Any]:
        return await asyncio.gather(*(server.call_tool_async("add", a=n, b=n) for n in range(20)))

    assert asyncio.run(several()) == [str(2 * n) for n in range(20)]


def test_a_cancelled_call_leaves_the_session_usable(server: MCPServer) -> None:
    async def give_up() -> str:
        sleeping = asyncio.ensure_future(server.call_tool_async("sleep", seconds=600))
        await server.call_tool_async("add", a=1, b=1)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        return await server.call_tool_async("add", a=2, b=2)

    assert asyncio.run(give_up()) == "4"


def test_a_process_that_dies_in_the_middle_of_a_call() -> None:
    server = MCPServer(**stdio_arguments())
    first = call(server, "pid")
    with pytest.raises(ToolFailed, match="was lost while it was asked to call the tool 'crash'"):
        call(server, "crash")
    second = call(server, "pid")
    assert first != second, "the next call starts another process"
    os.kill(int(second), 9)
    psutil.wait_procs([psutil.Process(int(second))] if psutil.pid_exists(int(second)) else [])
    server.close()
    assert not psutil.pid_exists(int(second))


def test_no_process_is_left_behind() -> None:
    server = MCPServer(**stdio_arguments())
    process = psutil.Process(int(call(server, "pid")))
    server.close()
    assert not process.is_running()


def test_a_server_that_is_down_at_first() -> None:
    port = free_port()
    server = MCPServer(f"http://127.0.0.1:{port}/mcp", max_retries=0)
    with pytest.raises(ToolFailed, match="cannot be reached"):
        call(server, "add", a=1, b=2)
    with http_server(port):
        assert call(server, "add", a=1, b=2) == "3"
    with pytest.raises(ToolFailed):
        call(server, "add", a=1, b=2)
    with http_server(port):
        assert call(server, "add", a=2, b=2) == "4"
        server.close()


def test_a_server_that_comes_up_while_it_is_retried() -> None:
    port = free_port()
    server = MCPServer(f"http://127.0.0.1:{port}/mcp", max_retries=1000, max_backoff_ms=100)
    found: list[str] = []
    caller = threading.Thread(target=lambda: found.append(call(server, "add", a=1, b=2)))
    caller.start()
    with http_server(port):
        caller.join()
        server.close()
    assert found == ["3"]


def test_credentials() -> None:
    with http_server(token="sesame") as (address, _):
        for token in (None, "wrong"):
            refused = MCPServer(address, max_retries=0, bearer_token=token)
            with pytest.raises(ToolFailed, match="HTTP 401 Unauthorized") as raised:
                refused.list_tools()
            assert "wrong" not in str(raised.value)
            refused.close()
        for allowed in (
            MCPServer(address, bearer_token="sesame"),
            MCPServer(address, headers={"Authorization": "Bearer sesame"}),
        ):
            assert len(allowed.list_tools()) == len(TOOLS)
            allowed.close()


def test_a_call_that_takes_too_long() -> None:
    with http_server() as (address, _):
        server = MCPServer(address, timeout=3)
        with pytest.raises(ToolFailed, match="timed out"):
            call(server, "sleep", seconds=600)
        server.close()


def test_a_process_does_not_inherit_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKERS_SECRET", "s3cret")
    server = MCPServer(**stdio_arguments(), env={"GIVEN": "yes"})
    assert call(server, "environment", name="WORKERS_SECRET") == "not set"
    assert call(server, "environment", name="GIVEN") == "yes"
    server.close()


def test_only_some_tools() -> None:
    server = MCPServer(**stdio_arguments(), tools=["add"])
    assert [item.name for item in server.list_tools()] == ["add"]
    with pytest.raises(ToolFailed, match="may not use the tool 'crash'"):
        call(server, "crash")
    server.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "either an endpoint or a command"),
        ({"endpoint": "http://x/mcp", "command": "x"}, "either an endpoint or a command"),
        ({"endpoint": "x/mcp"}, "an address like"),
        ({"endpoint": "ftp://x/mcp"}, "an address like"),
    ],
)
def test_addresses_that_cannot_be(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        MCPServer(**arguments)


def test_addresses_are_shown_without_credentials() -> None:
    assert repr(MCPServer("http://ann:pw@host:80/mcp?key=1")) == "MCPServer('http://host:80/mcp')"


async def act(event: InputEvent, ctx: RunnerContext) -> None:
    found = ctx.get_resource("add", ResourceType.TOOL)
    assert isinstance(found, MCPTool)
    total = await ctx.call_tool("add", a=event.input, b=1)
    failed = ""
    try:
        await ctx.call_tool("crash")
    except ToolFailed as error:
        failed = error.message
    answer = await ctx.chat("model", [], {"product": "tea"})
    ctx.send_event(OutputEvent([total, await found.call(a=total, b=1), failed, answer.content]))


def agent(**server: Any) -> Agent:
    model = ResourceDescriptor(
        clazz=BaseChatModelSetup, connection="scripted", prompt="review", tools=["add"]
    )
    scripted = ResourceDescriptor(clazz=ScriptedChatModel, replies=["done"])
    return (
        Agent("mcp")
        .add_action("act", [InputEvent], act)
        .add_resource("server", ResourceType.MCP_SERVER, ResourceDescriptor(clazz=MCPServer, **server))
        .add_resource("model", ResourceType.CHAT_MODEL, model)
        .add_resource("scripted", ResourceType.CHAT_MODEL_CONNECTION, scripted)
    )


def test_in_an_agent() -> None:
    before = {item.pid for item in psutil.Process().children(recursive=True)}
    ((total, more, failed, said),) = run_agent(agent(**stdio_arguments()), [1]).outputs
    assert (total, more, said) == ("2", "3", "done")
    assert "was lost while it was asked to call the tool 'crash'" in failed
    assert {item.pid for item in psutil.Process().children(recursive=True)} <= before


def test_secrets_are_read_on_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", "sesame")
    with http_server(token="sesame") as (address, _):

        async def only(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent(await ctx.call_tool("add", a=1, b=1)))

        asking = Agent("asking").add_action("only", [InputEvent], only)
        asking.add_resource(
            "server",
            ResourceType.MCP_SERVER,
            ResourceDescriptor(clazz=MCPServer, endpoint=address, bearer_token=Secret("MCP_TOKEN")),
        )
        assert run_agent(asking, [0]).outputs == ["2"]


def test_a_chat_does_without_a_server_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    made = agent(endpoint=f"http://127.0.0.1:{port}/mcp", max_retries=0)
    replies = ResourceDescriptor(clazz=ScriptedChatModel, replies=["without", "with"], name="down")

    async def chat(event: InputEvent, ctx: RunnerContext) -> None:
        model = ctx.get_resource("model", ResourceType.CHAT_MODEL)
        ctx.send_event(OutputEvent((await model.chat("hi")).content))

    down = (
        Agent("down")
        .add_action("chat", [InputEvent], chat)
        .add_resource("server", ResourceType.MCP_SERVER, made.resources[ResourceType.MCP_SERVER]["server"])
        .add_resource("scripted", ResourceType.CHAT_MODEL_CONNECTION, replies)
        .add_resource(
            "model",
            ResourceType.CHAT_MODEL,
            ResourceDescriptor(clazz=BaseChatModelSetup, connection="scripted", tools=["add"]),
        )
    )
    calls = ScriptedChatModel.calls_of("down")
    calls.clear()
    assert run_agent(down, [0]).outputs == ["without"]
    assert "is called without the tool 'add'" in caplog.text
    with http_server(port):
        run_agent(down, [0])
    assert [call.tools for call in calls] == [[], ["add"]]


def test_a_chat_with_a_tool_that_no_server_has() -> None:
    made = agent(**stdio_arguments())

    async def chat(event: InputEvent, ctx: RunnerContext) -> None:
        await ctx.get_resource("wrong", ResourceType.CHAT_MODEL).chat("hi")

    wrong = ResourceDescriptor(clazz=BaseChatModelSetup, connection="scripted", tools=["ad"])
    made.add_resource("wrong", ResourceType.CHAT_MODEL, wrong)
    asking = Agent("asking").add_action("chat", [InputEvent], chat)
    for kind, named in made.resources.items():
        for name, item in named.items():
            asking.add_resource(name, kind, item)
    with pytest.raises(UnknownResource, match="did you mean 'add'"):
        run_agent(asking, [0])
