"""Plain actions, as Flink Agents' programs write them: models and tools block and return their answers."""

from __future__ import annotations

from typing import Any

from emberflow.agents import (
    Agent,
    AgentExecutionOptions,
    AgentsExecutionEnvironment,
    BaseChatModelConnection,
    BaseChatModelSetup,
    ChatMessage,
    InputEvent,
    OutputEvent,
    Resource,
    ResourceDescriptor,
    ResourceType,
    Retry,
    RunnerContext,
    action,
    chat_model_connection,
    chat_model_setup,
    tool,
)
from emberflow.streams import DataStream, StreamExecutionEnvironment
from emberflow.testing import SPARK, Host, on_every_host, per_key
from tests.support.small_agents import applied


class Echo(BaseChatModelConnection):
    async def chat(self, messages: Any, tools: Any = None, **kwargs: Any) -> ChatMessage:
        return ChatMessage(role="assistant", content=f"echo {messages[-1].content}")


class OwnModel(Resource):
    """A model whose `chat` blocks."""

    def chat(self, text: str) -> str:
        return f"own {text}"


class WithModels(Agent):
    @chat_model_connection
    @staticmethod
    def echo() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=Echo, max_concurrent=1)

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=BaseChatModelSetup, connection="echo")

    @chat_model_setup
    @staticmethod
    def own() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=OwnModel)

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @tool
    @staticmethod
    async def times(a: int, b: int) -> int:
        """Multiplies two numbers."""
        return a * b


class Plain(WithModels):
    @action(InputEvent)
    @staticmethod
    def work(event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        model = ctx.get_resource("model", ResourceType.CHAT_MODEL)
        add, times = (ctx.get_resource(name, ResourceType.TOOL) for name in ("add", "times"))
        said = model.chat([ChatMessage(content=str(number))]).content
        recorded = ctx.durable_execute(model.chat, "recorded").content

        def inside() -> str:
            return model.chat("inside").content

        chatted: Any = ctx.chat("model", "chatted")
        found = (
            said,
            recorded,
            ctx.durable_execute(inside),
            add.call(a=number, b=1),
            times.call(a=number, b=2),
            chatted.content,
            ctx.chat("model", "5", output=str),
        )
        ctx.send_event(OutputEvent((key, *found)))

    @action(InputEvent, retry=Retry(attempts=2, backoff_ms=1))
    @staticmethod
    def retried(event: InputEvent, ctx: RunnerContext) -> None:
        said = ctx.get_resource("model", ResourceType.CHAT_MODEL).chat("again").content
        if ctx.attempt == 1:
            raise ValueError("the first attempt fails")
        ctx.send_event(OutputEvent((event.input[0], said)))

    @action(InputEvent)
    @staticmethod
    async def waiting(event: InputEvent, ctx: RunnerContext) -> None:
        own = ctx.get_resource("own", ResourceType.CHAT_MODEL)
        model = ctx.get_resource("model", ResourceType.CHAT_MODEL)

        def inside() -> str:
            return model.chat("thread").content

        found = await ctx.durable_execute_async(own.chat, "call"), await ctx.durable_execute_async(inside)
        ctx.send_event(OutputEvent((event.input[0], *found, (await model.chat("awaited")).content)))


@on_every_host
def test_plain_actions_get_the_answers_of_models_and_tools(host: Host) -> None:
    inputs = [("a", 1), ("b", 2)]
    found = host.run(lambda env: applied(env, env.from_collection(inputs), Plain()))
    assert per_key(found) == {
        key: [
            (
                key,
                f"echo {number}",
                "echo recorded",
                "echo inside",
                number + 1,
                2 * number,
                "echo chatted",
                "echo 5",
            ),
            (key, "echo again"),
            (key, "own call", "echo thread", "echo awaited"),
        ]
        for key, number in inputs
    }


class Blocking(WithModels):
    """Written for Flink Agents: calls return their answers in asynchronous actions, too."""

    @action(InputEvent)
    @staticmethod
    async def act(event: InputEvent, ctx: RunnerContext) -> None:
        key, number = event.input
        model = ctx.get_resource("model", ResourceType.CHAT_MODEL)
        add, times = (ctx.get_resource(name, ResourceType.TOOL) for name in ("add", "times"))
        found = (
            model.chat([ChatMessage(content=str(number))]).content,
            (await ctx.durable_execute_async(model.chat, "awaited")).content,
            add.call(a=number, b=1),
            times.call(a=number, b=2),
            await ctx.durable_execute_async(times.call, a=number, b=3),
            (await ctx.chat("model", "chatted")).content,
        )
        ctx.send_event(OutputEvent((key, *found)))


@on_every_host(nightly=[SPARK])
def test_calls_may_block_in_asynchronous_actions(host: Host) -> None:
    inputs = [("a", 1), ("b", 2), ("a", 3)]

    def build(env: StreamExecutionEnvironment) -> DataStream[Any]:
        agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
        agents_env.get_config().set(AgentExecutionOptions.CALLS_BLOCK, True)
        stream = env.from_collection(inputs)
        return agents_env.from_datastream(stream, lambda value: value[0]).apply(Blocking()).to_datastream()

    assert per_key(host.run(build)) == {
        key: [
            (key, f"echo {number}", "echo awaited", number + 1, 2 * number, 3 * number, "echo chatted")
            for of, number in inputs
            if of == key
        ]
        for key in ("a", "b")
    }
