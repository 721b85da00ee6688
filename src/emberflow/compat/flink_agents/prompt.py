"""`Prompt` as Flink Agents' programs use it: a placeholder without a value is sent to the model as it is."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from emberflow.agents import ChatMessage, MessageRole
from emberflow.agents import Prompt as _Prompt
from emberflow.errors import InvalidArgument

_log = logging.getLogger("emberflow.agents")
_warned: set[str] = set()


class Prompt(_Prompt):
    """Warns once about a placeholder without a value, where `emberflow.agents.Prompt` raises; knows no `{{name}}`."""

    @staticmethod
    def from_text(text: str) -> Prompt:
        """A prompt of one message."""
        return Prompt(text)

    @staticmethod
    def from_messages(messages: Sequence[ChatMessage]) -> Prompt:
        """A prompt of several messages."""
        return Prompt(messages)

    def messages_to_send(
        self, values: Mapping[str, Any], role: MessageRole = MessageRole.SYSTEM, *, named: str = ""
    ) -> list[ChatMessage]:
        """Like `fill_messages`."""
        try:
            super().messages_to_send(values, role, named=named)
        except InvalidArgument as problem:
            if problem.message not in _warned:
                _warned.add(problem.message)
                _log.warning("%s; it is sent as it is, as in Flink Agents", problem.message)
        return self.fill_messages(values, role)
