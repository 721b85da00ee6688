"""Two questions side by side, then one about both answers; typed replies, sensory memory."""

import os
from typing import Dict

from flink_agents.api.agents.agent import STRUCTURED_OUTPUT, Agent
from flink_agents.api.agents.types import OutputSchema
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.decorators import action, chat_model_connection, chat_model_setup
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceName
from flink_agents.api.runner_context import RunnerContext
from pydantic import BaseModel
from pyflink.datastream import StreamExecutionEnvironment

SIDES = ("price", "quality")
SPLIT = "split"


class Opinion(BaseModel):
    """About one side."""

    side: str
    verdict: str


class Summary(BaseModel):
    """About both."""

    text: str


def question(side: str, text: str) -> ChatRequestEvent:
    return ChatRequestEvent(
        model="critic",
        messages=[
            ChatMessage(
                role=MessageRole.SYSTEM, content='Answer with JSON: {"side": "…", "verdict": "good|bad"}'
            ),
            ChatMessage(role=MessageRole.USER, content=f"What about its {side}? {text}"),
        ],
        output_schema=OutputSchema(output_schema=Opinion),
    )


def question_about(verdicts: Dict[str, str]) -> ChatRequestEvent:
    said = " ".join(f"{side}={verdicts[side]}" for side in SIDES)
    return ChatRequestEvent(
        model="critic",
        messages=[ChatMessage(role=MessageRole.USER, content=f"Sum up: {said}")],
        output_schema=OutputSchema(output_schema=Summary),
    )


class Critic(Agent):
    """Asks about each side."""

    @chat_model_connection
    @staticmethod
    def server() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_CONNECTION,
            base_url=os.environ["OLLAMA_HOST"],
            request_timeout=60.0,
        )

    @chat_model_setup
    @staticmethod
    def critic() -> ResourceDescriptor:
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_SETUP,
            connection="server",
            model="qwen3:1.7b",
            think=False,
            extract_reasoning=False,
        )

    @action(InputEvent.EVENT_TYPE)
    @staticmethod
    def split(event: Event, ctx: RunnerContext) -> None:
        given = InputEvent.from_event(event).input
        ctx.sensory_memory.set("id", given["id"])
        ctx.send_event(Event(type=SPLIT, attributes={"text": given["text"]}))

    @action(SPLIT)
    @staticmethod
    def ask_price(event: Event, ctx: RunnerContext) -> None:
        request = question("price", event.get_attr("text"))
        ctx.sensory_memory.set(f"asked.{request.id}", "price")
        ctx.send_event(request)

    @action(SPLIT)
    @staticmethod
    def ask_quality(event: Event, ctx: RunnerContext) -> None:
        request = question("quality", event.get_attr("text"))
        ctx.sensory_memory.set(f"asked.{request.id}", "quality")
        ctx.send_event(request)

    @action(ChatResponseEvent.EVENT_TYPE)
    @staticmethod
    def collect(event: Event, ctx: RunnerContext) -> None:
        response = ChatResponseEvent.from_event(event)
        found = response.response.extra_args[STRUCTURED_OUTPUT]
        if isinstance(found, dict):
            found = Summary(**found) if "text" in found else Opinion(**found)
        if isinstance(found, Summary):
            ctx.send_event(OutputEvent(output={"id": ctx.sensory_memory.get("id"), "text": found.text}))
            return
        side = ctx.sensory_memory.get(f"asked.{response.request_id}")
        ctx.sensory_memory.set(f"verdicts.{side}", found.verdict)
        if all(ctx.sensory_memory.is_exist(f"verdicts.{each}") for each in SIDES):
            ctx.send_event(
                question_about({each: ctx.sensory_memory.get(f"verdicts.{each}") for each in SIDES})
            )


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
reviews = env.from_collection(collection=[{"id": 1, "text": "Cheap, but it broke."}])
agents_env.from_datastream(input=reviews, key_selector=lambda x: x["id"]).apply(
    Critic()
).to_datastream().print()
agents_env.execute()
