"""`ChatMessage`: what is sent to a chat model and what it answers. Plain data: compared, pickled and written as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, cast

from emberflow.agents.token_usage import TokenUsage
from emberflow.errors import InvalidArgument, shorten
from emberflow.events.stored_types import stored_type


@stored_type(write=str, read=lambda _, name: MessageRole(name))
class MessageRole(StrEnum):
    """The sender of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    """The result of a tool, for the model."""


@stored_type()
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message. Immutable; use `dataclasses.replace` for a changed copy."""

    role: MessageRole = MessageRole.USER
    """May also be given by name: `role="system"`."""

    content: str = ""

    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """`{"id": …, "type": "function", "function": {"name": …, "arguments": {…}}}`, the arguments as a dict."""

    extra_args: dict[str, Any] = field(default_factory=dict[str, Any])
    """Additional data for a vendor: `external_id` links a tool's result to the call that it answers, `usage` contains the
    tokens that an answer consumed."""

    if TYPE_CHECKING:
        # For type checkers: a role may be given by its name.
        def __init__(
            self,
            *,
            role: MessageRole | str = ...,
            content: str = ...,
            tool_calls: list[dict[str, Any]] = ...,
            extra_args: dict[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        try:
            # Frozen for users, but not during initialization.
            object.__setattr__(self, "role", MessageRole(self.role))
        except ValueError:
            way_out = f"one of {', '.join(role.value for role in MessageRole)}"
            if not self.content:
                way_out = f"ChatMessage(content={shorten(self.role)}), or a role: {way_out}"
            raise InvalidArgument(f"{self.role!r} is not the role of a message", way_out=way_out) from None
        if not isinstance(self.content, str):
            raise InvalidArgument(
                f"the content of a message is text, got {shorten(self.content)}",
                way_out="json.dumps(...) makes text of data",
            )

    @property
    def usage(self) -> TokenUsage | None:
        """The tokens that an answer consumed, if the service reported them."""
        return TokenUsage.read(self.extra_args) if self.extra_args else None

    def to_dict(self) -> dict[str, Any]:
        """The message as plain data, without empty fields."""
        data: dict[str, Any] = {"role": self.role.value, "content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [dict(call) for call in self.tool_calls]
        if self.extra_args:
            data["extra_args"] = dict(self.extra_args)
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The message from the result of `to_dict`; raises InvalidArgument if it is invalid."""
        if not isinstance(data, dict):
            raise InvalidArgument(f"a message is an object with 'role' and 'content', got {shorten(data)}")
        found = cast("dict[str, Any]", data)
        unknown = [name for name in found if name not in ("role", "content", "tool_calls", "extra_args")]
        if unknown or "role" not in found:
            problem = f"does not know {unknown[0]!r}" if unknown else "needs a 'role'"
            raise InvalidArgument(
                f"a message {problem}: {shorten(found)}",
                way_out="its fields are role, content, tool_calls and extra_args; what is a vendor's goes into extra_args",
            )
        # Vendors send null for empty fields.
        given = {name: value for name, value in found.items() if value is not None}
        calls: Any = given.get("tool_calls", [])
        if not (_is_list_of_objects(calls) and isinstance(given.get("extra_args", {}), dict)):
            raise InvalidArgument(
                f"in a message, tool_calls is a list of objects and extra_args an object: {shorten(found)}"
            )
        return cls(**{**given, "role": found["role"]})

    def __str__(self) -> str:
        return f"{self.role.value}: {self.content}"


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))
