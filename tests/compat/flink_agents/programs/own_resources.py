"""Agents with chat models of the user's own: asked by events and directly."""

from flink_agents.api.agents.agent import Agent
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.decorators import action, chat_model_connection, chat_model_setup, prompt, tool
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.prompts.prompt import Prompt
from flink_agents.api.resource import ResourceDescriptor, ResourceType
from flink_agents.api.runner_context import RunnerContext
from own_classes import EchoConnection, EchoSetup, WholeSetup
from pyflink.datastream import StreamExecutionEnvironment


def path(clazz) -> str:
    return f"{clazz.__module__}.{clazz.__name__}"


class Echoing(Agent):
    @prompt
    @staticmethod
    def task() -> Prompt:
        return Prompt.from_text(text="The task is {task}")

    @chat_model_connection
    @staticmethod
    def service() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=path(EchoConnection), greeting="hello")

    @chat_model_setup
    @staticmethod
    def by_event() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=path(EchoSetup), connection="service", model="echo", tools=["add"], temperature=0.1
        )

    @chat_model_setup
    @staticmethod
    def directly() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=path(WholeSetup), connection="service", model="echo", prompt="task", host="here"
        )

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        """Add two numbers.

        Parameters
        ----------
        a : int
            The first
        b : int
            The second
        """
        return a + b

    @action(EventType.InputEvent)
    @staticmethod
    def ask(event: Event, ctx: RunnerContext) -> None:
        text = InputEvent.from_event(event).input
        message = ChatMessage(role=MessageRole.USER, content=text)
        if "direct" in text:
            model = ctx.get_resource(name="directly", type=ResourceType.CHAT_MODEL)
            ctx.send_event(OutputEvent(output=model.chat([message], prompt_args={"task": 7}).content))
        else:
            name = "directly" if "whole" in text else "by_event"
            ctx.send_event(ChatRequestEvent(model=name, messages=[message], prompt_args={"task": "this"}))

    @action(EventType.ChatResponseEvent)
    @staticmethod
    def answer(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(output=ChatResponseEvent.from_event(event).response.content))


env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
texts = env.from_collection(["a sum", "words", "a direct question", "a whole setup"])
agents_env.from_datastream(input=texts, key_selector=lambda x: x).apply(Echoing()).to_datastream().print()
agents_env.execute("own resources")
