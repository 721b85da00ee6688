"""Arguments that the model does not see, and a key written into the program."""

import os

from flink_agents.api.agents.agent import Agent
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.decorators import action, chat_model_connection, chat_model_setup, tool
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName
from flink_agents.api.runner_context import RunnerContext
from flink_agents.api.tools import InjectedArg
from pyflink.datastream import StreamExecutionEnvironment


class Orders(Agent):
    @chat_model_connection
    @staticmethod
    def server() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_CONNECTION,
            base_url=os.environ["OLLAMA_HOST"],
            default_headers={"Authorization": "Bearer written-here"},
        )

    @chat_model_setup
    @staticmethod
    def clerk() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz="flink_agents.integrations.chat_models.ollama_chat_model.OllamaChatModelSetup",
            connection="server",
            model="qwen3:8b",
            tools=["status"],
        )

    @tool(
        injected_args={
            "tenant": InjectedArg.from_config("tenant"),
            "trace": InjectedArg.from_sensory_memory("request.trace"),
        }
    )
    @staticmethod
    def status(order: str, tenant: str, trace: str) -> str:
        """Look up an order.

        Parameters
        ----------
        order : str
            The number of the order
        """
        return f"{order} of {tenant} is shipped ({trace})"

    @action(EventType.InputEvent)
    @staticmethod
    def ask(event: Event, ctx: RunnerContext) -> None:
        ctx.sensory_memory.set("request.trace", "abc")
        text = InputEvent.from_event(event).input
        ctx.send_event(
            ChatRequestEvent(model="clerk", messages=[ChatMessage(role=MessageRole.USER, content=text)])
        )

    @action(EventType.ChatResponseEvent)
    @staticmethod
    def answer(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(output=ChatResponseEvent.from_event(event).response.content))


env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
agents_env.get_config().set_str("tenant", "acme")
questions = env.from_collection(["Where is order 17?"])
agents_env.from_datastream(input=questions, key_selector=lambda x: x).apply(Orders()).to_datastream().print()
agents_env.execute("orders")
