"""A model that loads a skill and follows it with the shell tool."""

import os
from pathlib import Path

from flink_agents.api.agents.agent import Agent
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.decorators import action, chat_model_connection, chat_model_setup, skills
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName
from flink_agents.api.runner_context import RunnerContext
from flink_agents.api.skills import Skills
from pyflink.datastream import StreamExecutionEnvironment

FOLDER = str(Path(__file__).parent / "skills")


class Calculator(Agent):
    @skills
    @staticmethod
    def my_skills() -> Skills:
        return Skills.from_local_dir(FOLDER)

    @chat_model_connection
    @staticmethod
    def server() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_CONNECTION, base_url=os.environ["OLLAMA_HOST"]
        )

    @chat_model_setup
    @staticmethod
    def calculator() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_SETUP,
            connection="server",
            model="qwen3.5:9b",
            skills=["multiplication"],
            allowed_commands=["expr"],
        )

    @action(EventType.InputEvent)
    @staticmethod
    def ask(event: Event, ctx: RunnerContext) -> None:
        text = InputEvent.from_event(event).input
        ctx.send_event(
            ChatRequestEvent(model="calculator", messages=[ChatMessage(role=MessageRole.USER, content=text)])
        )

    @action(EventType.ChatResponseEvent)
    @staticmethod
    def answer(event: Event, ctx: RunnerContext) -> None:
        ctx.send_event(OutputEvent(output=ChatResponseEvent.from_event(event).response.content))


env = StreamExecutionEnvironment.get_execution_environment()
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
questions = env.from_collection(["How much is six times seven?"])
agents_env.from_datastream(input=questions, key_selector=lambda x: x).apply(
    Calculator()
).to_datastream().print()
agents_env.execute("skills")
