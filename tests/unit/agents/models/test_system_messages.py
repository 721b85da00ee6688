"""Instructions that are added to a chat: one place for all of them."""

from __future__ import annotations

from emberflow.agents import ChatMessage, OutputSchema
from emberflow.agents.models.chat_connection import with_instructions
from emberflow.agents.models.system_messages import leading_system_messages, with_system_message

A, B = ChatMessage(role="system", content="a"), ChatMessage(role="system", content="b")
ASKED = ChatMessage(content="?")
ADDED = ChatMessage(role="system", content="added")


def test_an_instruction_follows_those_at_the_beginning() -> None:
    assert with_system_message([A, B, ASKED, B], "added") == [A, B, ADDED, ASKED, B]
    assert with_system_message([ASKED], "added") == [ADDED, ASKED]
    assert with_system_message([], "added") == [ADDED]
    assert [leading_system_messages(found) for found in ([], [A], [ASKED, A], [A, B, ASKED])] == [0, 1, 0, 2]


def test_the_description_of_an_output_is_one() -> None:
    schema = OutputSchema(int)
    told = ChatMessage(role="system", content=schema.instructions)
    assert with_instructions([A, B, ASKED], schema) == [A, B, told, ASKED]
