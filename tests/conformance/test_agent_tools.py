"""A model that loads a skill, runs its script, and calls a tool of an MCP server and one with an injected argument, on every
host (A22, A23, A37)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emberflow.agents import (
    Agent,
    AgentsExecutionEnvironment,
    BaseChatModelSetup,
    ChatMessage,
    InjectedArg,
    InputEvent,
    OutputEvent,
    ResourceDescriptor,
    ResourceType,
    RunnerContext,
    Skills,
    tool,
)
from emberflow.integrations.mcp import MCPServer
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import (
    LOCAL,
    SPARK,
    SPARK_BATCH,
    Host,
    Reply,
    ScriptedChatModel,
    When,
    on_every_host,
    per_key,
    tool_call,
)
from tests.support.mcp_servers import stdio_arguments
from tests.support.skill_folders import write_skill


@tool(injected_args={"tenant": InjectedArg.from_config("tenant")})
def lookup(order: int, tenant: str) -> str:
    """Finds an order."""
    return f"{tenant}-{order}"


async def assist(event: InputEvent, ctx: RunnerContext) -> None:
    model = ctx.get_resource("model", ResourceType.CHAT_MODEL)
    messages = [ChatMessage(content=event.input[1])]
    results: list[Any] = []
    while True:
        reply = await model.chat(messages)
        messages.append(reply)
        if not reply.tool_calls:
            break
        for call in reply.tool_calls:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            if name in ("lookup", "add"):
                said = await ctx.call_tool(name, **arguments)
            else:
                found = {item.name: item for item in model.offered_tools()}[name]
                said = await ctx.durable_execute_async(found.call, arguments)
            results.append(str(said).splitlines()[0])
            messages.append(
                ChatMessage(role="tool", content=str(said), extra_args={"external_id": call["id"]})
            )
    ctx.send_event(OutputEvent((event.input[0], [*results, reply.content])))


def script(folder: Path) -> list[When]:
    calls = [
        tool_call("load_skill", name="greeter"),
        tool_call("bash", command=f"{folder}/greeter/scripts/ask.sh Hello | cat", timeout=600),
        tool_call("add", a=2, b=3),
        tool_call("lookup", order=7, tenant="stolen"),
        tool_call("bash", command="cat /etc/hostname; rm -rf /", timeout=600),
    ]
    return [When(reply=[*(Reply(tool_calls=[call]) for call in calls), Reply("done")])]


def assistant(folder: Path) -> Agent:
    setup = ResourceDescriptor(
        clazz=BaseChatModelSetup,
        connection="scripted",
        tools=["add", "lookup"],
        skills=["greeter"],
        allowed_commands=["cat"],
    )
    scripted = ResourceDescriptor(clazz=ScriptedChatModel, replies=script(folder))
    server = ResourceDescriptor(clazz=MCPServer, **stdio_arguments(), timeout=500)
    return (
        Agent("assistant")
        .add_action("assist", [InputEvent], assist)
        .add_resource("model", ResourceType.CHAT_MODEL, setup)
        .add_resource("scripted", ResourceType.CHAT_MODEL_CONNECTION, scripted)
        .add_resource("lookup", ResourceType.TOOL, lookup)
        .add_resource("server", ResourceType.MCP_SERVER, server)
        .add_resource("skills", ResourceType.SKILLS, Skills.from_local_dir(folder))
    )


@on_every_host(hosts=(LOCAL, SPARK_BATCH, SPARK), nightly=(SPARK,))
def test_a_model_uses_a_skill_the_shell_and_an_mcp_server(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    write_skill(folder, "greeter")

    def build(env: StreamExecutionEnvironment) -> DataStream:
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set_str("tenant", "acme")
        inputs = env.from_collection([("a", "greet"), ("b", "greet")])
        return (
            agents_env.from_datastream(inputs, lambda value: value[0])
            .apply(assistant(folder))
            .to_datastream()
        )

    said = [
        '<skill_content name="greeter">',
        "Hello, and why not?",
        "5",
        "acme-7",
        "Command rejected: the command 'rm' is not allowed; "
        f"allowed commands: cat; programs below: {folder}/greeter",
        "done",
    ]
    assert per_key(host.run(build)) == per_key([("a", said), ("b", said)])
