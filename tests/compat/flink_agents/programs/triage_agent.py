"""An agent with an action for the input and one for the model's answer; also used by the YAML program."""

import json

from flink_agents.api.agents.agent import Agent
from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.decorators import action, chat_model_setup, prompt, tool
from flink_agents.api.events.chat_event import ChatRequestEvent, ChatResponseEvent
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.events.event_type import EventType
from flink_agents.api.prompts.prompt import Prompt
from flink_agents.api.resource import ResourceDescriptor, ResourceName
from flink_agents.api.runner_context import RunnerContext
from tickets import Ticket, Triage, report_damage, triage_prompt


class TriageAgent(Agent):
    """Asks a model how urgent a ticket is."""

    @prompt
    @staticmethod
    def triage_prompt() -> Prompt:
        """The prompt of the model."""
        return triage_prompt

    @tool
    @staticmethod
    def report_damage(id: str, text: str) -> str:
        """Report a damaged parcel to the carrier.

        Parameters
        ----------
        id : str
            The id of the ticket
        text : str
            What the customer wrote
        """
        return report_damage(id=id, text=text)

    @chat_model_setup
    @staticmethod
    def triage_model() -> ResourceDescriptor:
        """The model that sorts."""
        return ResourceDescriptor(
            clazz=ResourceName.ChatModel.OLLAMA_SETUP,
            connection="ollama_server",
            model="qwen3:8b",
            prompt="triage_prompt",
            tools=["report_damage"],
            extract_reasoning=True,
        )

    @action(EventType.InputEvent)
    @staticmethod
    def ask(event: Event, ctx: RunnerContext) -> None:
        """Send the ticket to the model."""
        ticket = Ticket.model_validate(InputEvent.from_event(event).input)
        ctx.short_term_memory.set("id", ticket.id)
        ctx.send_event(
            ChatRequestEvent(
                model="triage_model",
                messages=[ChatMessage(role=MessageRole.USER)],
                prompt_args={"input": f"{ticket.id}: {ticket.text}"},
            )
        )

    @action(EventType.ChatResponseEvent)
    @staticmethod
    def answer(event: Event, ctx: RunnerContext) -> None:
        """Read the model's answer."""
        found = json.loads(ChatResponseEvent.from_event(event).response.content)
        ctx.send_event(
            OutputEvent(
                output=Triage(
                    id=ctx.short_term_memory.get("id"), urgency=found["urgency"], tags=found["tags"]
                ).model_dump()
            )
        )
