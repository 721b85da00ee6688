"""`Prompt`: text or messages with `{name}` placeholders. It is part of the plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from emberflow.agents.chat_message import ChatMessage, MessageRole
from emberflow.errors import InvalidAgent, shorten
from emberflow.plan.agents.resources import ResourceType, SerializableResource

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class Prompt(SerializableResource):
    """A template. Placeholders without a value and all other braces are left unchanged: JSON needs no escaping."""

    def __init__(self, template: str | Sequence[ChatMessage]) -> None:
        if not isinstance(template, str):
            template = tuple(template)
            wrong = [item for item in template if not isinstance(item, ChatMessage)]
            if wrong:
                raise InvalidAgent(
                    f"a prompt is made of ChatMessages, got {shorten(wrong[0])}",
                    way_out="Prompt.from_text('…') or Prompt.from_messages([ChatMessage(role='system', content='…')])",
                )
        self.template: str | tuple[ChatMessage, ...] = template

    @staticmethod
    def from_text(text: str) -> Prompt:
        """A prompt of one message."""
        return Prompt(text)

    @staticmethod
    def from_messages(messages: Sequence[ChatMessage]) -> Prompt:
        """A prompt of several messages."""
        return Prompt(messages)

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.PROMPT`."""
        return ResourceType.PROMPT

    def format_string(self, /, **kwargs: Any) -> str:
        """As one string; messages as `role: content`, one per line."""
        if isinstance(self.template, str):
            return _fill(self.template, kwargs)
        return "\n".join(
            f"{message.role.value}: {_fill(message.content, kwargs)}" for message in self.template
        )

    def format_messages(
        self, /, role: MessageRole | str = MessageRole.SYSTEM, **kwargs: Any
    ) -> list[ChatMessage]:
        """As messages; `role` applies to a text, messages keep theirs."""
        return self.fill_messages(kwargs, MessageRole(role))

    def fill_messages(
        self, values: Mapping[str, Any], role: MessageRole = MessageRole.SYSTEM
    ) -> list[ChatMessage]:
        """Like `format_messages`, with the values in one mapping, so that a placeholder may also be called `role`."""
        if isinstance(self.template, str):
            return [ChatMessage(role=role, content=_fill(self.template, values))]
        return [replace(message, content=_fill(message.content, values)) for message in self.template]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prompt) and self.template == other.template

    def __hash__(self) -> int:
        return hash(str(self.template))

    def __repr__(self) -> str:
        return f"Prompt({shorten(self.template)})"

    def __getstate__(self) -> dict[str, Any]:
        # The context belongs to the process that opened the prompt.
        return {name: value for name, value in self.__dict__.items() if name != "resource_context"}


def _fill(text: str, values: Mapping[str, Any]) -> str:
    # One pass: braces inside a value are text, never placeholders.
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), text)
