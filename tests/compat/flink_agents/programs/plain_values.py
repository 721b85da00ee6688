"""What actions receive and programs get is what JSON holds, whatever was put in."""

import datetime
from dataclasses import dataclass
from typing import Any, List, NamedTuple, Sequence

from flink_agents.api.agents.agent import STRUCTURED_OUTPUT, Agent
from flink_agents.api.agents.types import OutputSchema
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.chat_models.chat_model import BaseChatModelConnection, BaseChatModelSetup
from flink_agents.api.decorators import action, chat_model_connection, chat_model_setup, tool
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.execution_environment import AgentsExecutionEnvironment
from flink_agents.api.resource import ResourceDescriptor, ResourceType
from flink_agents.api.runner_context import RunnerContext
from flink_agents.api.tools.tool import Tool
from pydantic import BaseModel
from pyflink.datastream import StreamExecutionEnvironment


@dataclass
class Trip:
    city: str
    days: int


class Price(NamedTuple):
    amount: int
    currency: str


class Advice(BaseModel):
    text: str


class EchoConnection(BaseChatModelConnection):
    def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: List[Tool] | None = None,
        output_schema: OutputSchema | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        answer = f'{{"text": "{messages[-1].content}"}}'
        return ChatMessage(role=MessageRole.ASSISTANT, content=answer)


class EchoSetup(BaseChatModelSetup):
    @property
    def model_kwargs(self) -> dict:
        return {}


class TripAgent(Agent):
    @chat_model_connection
    @staticmethod
    def echo() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=EchoConnection)

    @chat_model_setup
    @staticmethod
    def adviser() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=EchoSetup, connection="echo")

    @tool
    @staticmethod
    def price_of(city: str, days: int = 1) -> int:
        """The price of a trip.

        Parameters
        ----------
        city : str
            Where to
        days : int
            For how long
        """
        return len(city) * days

    @action(EventType.InputEvent)
    @staticmethod
    def plan_trip(event: Event, ctx: RunnerContext) -> None:
        trip = Trip(**InputEvent.from_event(event).input)
        amount = ctx.get_resource("price_of", ResourceType.TOOL).call(trip.city, trip.days)
        start = datetime.date(2026, 1, trip.days)
        ctx.send_event(
            Event(type="planned", attributes={"price": Price(amount, "EUR"), "start": start, "trip": trip})
        )

    @action("planned")
    @staticmethod
    def ask(event: Event, ctx: RunnerContext) -> None:
        price = event.get_attr("price")
        question = (
            f"{event.get_attr('trip')['city']} {price[0]} {type(price).__name__} {event.get_attr('start')}"
        )
        ctx.send_event(
            ChatRequestEvent(
                model="adviser",
                messages=[ChatMessage(role=MessageRole.USER, content=question)],
                output_schema=OutputSchema(output_schema=Advice),
            )
        )

    @action(EventType.ChatResponseEvent)
    @staticmethod
    def answer(event: Event, ctx: RunnerContext) -> None:
        found = ChatResponseEvent.from_event(event).response.extra_args[STRUCTURED_OUTPUT]
        ctx.send_event(OutputEvent(output=Trip(city=found["text"], days=0)))


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    agents_env = AgentsExecutionEnvironment.get_execution_environment(env)
    trips = env.from_collection([Trip("Ulm", 2), Trip("Paris", 3)])
    agents_env.from_datastream(trips, key_selector=lambda trip: trip.city).apply(
        TripAgent()
    ).to_datastream().map(lambda output: output["city"]).print()
    agents_env.execute("trips")


if __name__ == "__main__":
    main()
