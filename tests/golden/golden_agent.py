"""The agent of the stored agent plan. A plan names its functions: do not rename what is here."""

from __future__ import annotations

from typing import Any

from emberflow.agents import (
    Agent,
    Event,
    InputEvent,
    OutputEvent,
    Resource,
    ResourceDescriptor,
    Secret,
    action,
    chat_model_setup,
    tool,
)


class Scored(Event):
    score: int
    reason: str = ""


class Model(Resource):
    """Replaces a chat model."""


def is_large(event: Event) -> bool:
    return event.get_attr("score") == 100


class GoldenAgent(Agent):
    @action(InputEvent)
    @staticmethod
    def score(event: InputEvent, ctx: Any) -> None:
        ctx.send_event(Scored(score=event.input))

    @action("type == 'Scored' && score > 5", "Urgent", is_large)
    @staticmethod
    async def escalate(event: Event, ctx: Any) -> None:
        ctx.send_event(OutputEvent(event.attributes) if event.id else Event(type="Urgent"))

    @chat_model_setup
    @staticmethod
    def model() -> ResourceDescriptor:
        return ResourceDescriptor(clazz=Model, temperature=0.1, api_key=Secret("GOLDEN_KEY"))

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        return a + b


def tell(event: Scored, ctx: Any) -> None:
    ctx.send_event(OutputEvent(event.score))


def golden_agent() -> GoldenAgent:
    agent = GoldenAgent("golden")
    agent.add_action("tell", [Scored], tell, retries=3, labels=["a", None])
    return agent
