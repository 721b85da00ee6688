"""What several programs share: the records, their types, and a tool."""

from typing import List

from flink_agents.api.chat_message import ChatMessage, MessageRole
from flink_agents.api.prompts.prompt import Prompt
from pydantic import BaseModel

TRIAGE = """
You sort customers' tickets. Answer with JSON only, for example:
{
  "urgency": 3,
  "tags": ["delivery"]
}
If a parcel was damaged, call the tool report_damage first.
"""


class Ticket(BaseModel):
    """One ticket of a customer."""

    id: str
    text: str


class Triage(BaseModel):
    """What the model made of it."""

    id: str
    urgency: int
    tags: List[str]


triage_prompt = Prompt.from_messages(
    messages=[
        ChatMessage(role=MessageRole.SYSTEM, content=TRIAGE),
        ChatMessage(role=MessageRole.USER, content="ticket: {input}"),
    ],
)
fields_prompt = Prompt.from_messages(
    messages=[
        ChatMessage(role=MessageRole.SYSTEM, content=TRIAGE),
        ChatMessage(role=MessageRole.USER, content='"id": {id}, "text": {text}'),
    ],
)


def report_damage(id: str, text: str) -> str:
    """Report a damaged parcel to the carrier.

    Parameters
    ----------
    id : str
        The id of the ticket
    text : str
        What the customer wrote
    """
    return f"reported {id}"
