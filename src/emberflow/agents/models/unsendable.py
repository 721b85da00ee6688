"""Text that cannot be sent to a service: unpaired surrogates, which Python's strings may contain and UTF-8 cannot express."""

from __future__ import annotations

import json
from collections.abc import Sequence

from emberflow.agents.models.chat_message import ChatMessage
from emberflow.errors import NotSerializable, shorten

_AROUND = 30


def unsendable(
    service: str, error: UnicodeEncodeError, messages: Sequence[ChatMessage] = ()
) -> NotSerializable:
    """For a request that could not be encoded; names the message that is to blame."""
    return _problem(service, _message_to_blame(messages) or f"the request contains {surrogate_in(error)}")


def check_encodable(service: str, messages: Sequence[ChatMessage]) -> None:
    """The same in advance, for a client that reports it in its own way. Raises NotSerializable."""
    cause = _message_to_blame(messages)
    if cause:
        raise _problem(service, cause)


def _problem(service: str, cause: str) -> NotSerializable:
    return NotSerializable(
        f"the request to {service} was not sent: it cannot be encoded as UTF-8",
        cause=cause,
        way_out="replace such characters: text.encode('utf-8', 'replace').decode()",
    )


def _message_to_blame(messages: Sequence[ChatMessage]) -> str:
    for number, message in enumerate(messages, 1):
        found = _surrogate(message)
        if found is not None:
            return (
                f"message {number} of {len(messages)} ({message.role.value}) contains {surrogate_in(found)}"
            )
    return ""


def _surrogate(message: ChatMessage) -> UnicodeEncodeError | None:
    try:
        message.content.encode()
        json.dumps(message.tool_calls, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        return error
    return None


def surrogate_in(error: UnicodeEncodeError) -> str:
    """What could not be encoded, and where."""
    text, at = error.object, error.start
    around = shorten(text[max(0, at - _AROUND) : at + _AROUND])
    return f"an unpaired surrogate, {text[at]!r} at position {at:,}, in {around}"
