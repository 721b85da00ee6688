"""`Prompt`: text or messages with `{name}` placeholders. It is part of the plan.

What is sent to a model is checked: `{name}` without a value is a mistake that a model would not report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Self, cast

from emberflow.agents.models.chat_message import ChatMessage, MessageRole
from emberflow.errors import InvalidAgent, InvalidArgument, shorten
from emberflow.plan.agents.resources import ResourceType, SerializableResource

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_CHECKED_PLACEHOLDER = re.compile(r"\{\{([^\W\d]\w*)\}\}|\{([^{}]+)\}")
"""The first group is an escaped name."""


class Prompt(SerializableResource):
    """A template. `{name}` is replaced by the value of that name; all other braces are text: JSON needs no escaping.

    Where a prompt is sent to a model, each `{name}` must have a value, and `{{name}}` is the text `{name}`. The methods
    `format_…` leave both unchanged if there is no value, as in Flink Agents.

    ```python
    from emberflow.agents import Prompt

    prompt = Prompt.from_text('Rate {product} as {"score": 5}.')

    assert prompt.format_string(product="tea") == 'Rate tea as {"score": 5}.'
    ```
    """

    def __init__(self, template: str | Sequence[ChatMessage]) -> None:
        if not isinstance(template, str):
            template = tuple(template)
            wrong = [item for item in template if not isinstance(item, ChatMessage)]
            if wrong:
                raise InvalidAgent(
                    f"a prompt must consist of ChatMessages, got {shorten(wrong[0])}",
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

    def messages_to_send(
        self, values: Mapping[str, Any], role: MessageRole = MessageRole.SYSTEM, *, named: str = ""
    ) -> list[ChatMessage]:
        """Like `fill_messages`, for a model. Raises InvalidArgument, with the name of the prompt, for a `{name}` without a
        value."""

        def fill(text: str) -> str:
            return self._filled_to_send(text, values, named)

        if isinstance(self.template, str):
            return [ChatMessage(role=role, content=fill(self.template))]
        return [replace(message, content=fill(message.content)) for message in self.template]

    async def messages_for(self, values: Mapping[str, Any], *, named: str = "") -> list[ChatMessage]:
        """Like `messages_to_send`, for prompts that someone else fills in."""
        return self.messages_to_send(values, named=named)

    def _filled_to_send(self, text: str, values: Mapping[str, Any], named: str) -> str:
        def value_of(found: re.Match[str]) -> str:
            escaped, name = found[1], found[2]
            if escaped is not None:
                return f"{{{escaped}}}"
            if name not in values and name.isidentifier():
                raise _no_value(name, values, repr(named) if named else shorten(text))
            return str(values.get(name, found[0]))

        return _CHECKED_PLACEHOLDER.sub(value_of, text)

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        template = fields.get("template")
        if isinstance(template, list | tuple):
            messages = [ChatMessage.model_validate(item) for item in cast("list[Any]", template)]
            return super()._from_shape({**fields, "template": messages})
        return super()._from_shape(fields)

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


def _no_value(name: str, values: Mapping[str, Any], prompt: str) -> InvalidArgument:
    near = get_close_matches(name, list(map(str, values)), 1)
    return InvalidArgument(
        f"the prompt {prompt} has no value for {{{name}}}"
        + (f"; did you mean {{{near[0]}}}, which is given?" if near else ""),
        cause=f"given: {', '.join(map(repr, values))}" if values else "no values were given",
        way_out=f"give a value for {name!r}; if the braces are part of the text, write {{{{{name}}}}}",
    )
