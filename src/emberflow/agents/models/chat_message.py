"""`ChatMessage`: what is sent to a chat model and what it answers. Plain data: compared, pickled and written as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, cast

from emberflow.agents.models.image import Image
from emberflow.agents.models.token_usage import TokenUsage
from emberflow.errors import InvalidArgument, ModelFailed, did_you_mean, shorten
from emberflow.events.model_shape import ReadableAsDict
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
class ChatMessage(ReadableAsDict):
    """One message. Immutable; `model_copy(update={"content": …})` makes a changed copy. May be a field of a Pydantic model."""

    role: MessageRole = MessageRole.USER
    """May also be given by name: `role="system"`."""

    content: str = ""

    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """`{"id": …, "type": "function", "function": {"name": …, "arguments": {…}}}`, the arguments as a dict."""

    extra_args: dict[str, Any] = field(default_factory=dict[str, Any])
    """Additional data for a vendor: `external_id` links a tool's result to the call that it answers, `usage` contains the
    tokens that an answer consumed."""

    images: list[Image] = field(default_factory=list[Image])
    """Images for a vision model; they follow the content."""

    if TYPE_CHECKING:
        # For type checkers: a role may be given by its name.
        def __init__(
            self,
            *,
            role: MessageRole | str = ...,
            content: str = ...,
            tool_calls: list[dict[str, Any]] = ...,
            extra_args: dict[str, Any] = ...,
            images: list[Image] = ...,
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
                f"the content of a message must be a string, got {shorten(self.content)}",
                way_out="use json.dumps(...) for data",
            )
        if self.images and not all(isinstance(image, Image) for image in self.images):
            object.__setattr__(self, "images", [Image.model_validate(image) for image in self.images])

    def __setstate__(self, state: Any) -> None:
        # Like a dataclass with slots does; earlier versions had no images.
        object.__setattr__(self, "images", [])
        for name, value in zip(_FIELDS, state, strict=False):
            object.__setattr__(self, name, value)

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
        if self.images:
            data["images"] = [image.model_dump() for image in self.images]
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The message from the result of `to_dict`; raises InvalidArgument if it is invalid."""
        if not isinstance(data, dict):
            raise InvalidArgument(
                f"a message must be an object with 'role' and 'content', got {shorten(data)}"
            )
        found = cast("dict[str, Any]", data)
        if "role" not in found:
            raise InvalidArgument(f"a message needs a 'role': {shorten(found)}")
        return cls._from_shape(found)

    @classmethod
    def _from_shape(cls, fields: dict[str, Any]) -> Self:
        for name in fields:
            if name not in _FIELDS:
                raise InvalidArgument(
                    f"a message has no field {name!r}{did_you_mean(name, _FIELDS)}: {shorten(fields)}",
                    way_out=f"its fields are {', '.join(_FIELDS)}; vendor-specific data belongs in extra_args",
                )
        # Vendors send null for empty fields.
        given: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None or name == "role"
        }
        calls, images = given.get("tool_calls", []), given.get("images", [])
        if not (_is_list_of_objects(calls) and isinstance(given.get("extra_args", {}), dict)):
            raise InvalidArgument(
                f"in a message, tool_calls must be a list of objects and extra_args an object: {shorten(fields)}"
            )
        if not isinstance(images, list):
            raise InvalidArgument(f"in a message, images must be a list, got {shorten(images)}")
        return cls(**given)

    def _shape_fields(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in _FIELDS}
        if not self.images:
            del fields["images"]
        return fields

    def __str__(self) -> str:
        return f"{self.role.value}: {self.content}"


_FIELDS = ("role", "content", "tool_calls", "extra_args", "images")


def reply_of(model: object, answer: Any) -> ChatMessage:
    """What the `chat` of this model returned, as a message: a string is the content of one, a dictionary its plain data.
    Raises ModelFailed for anything else."""
    if isinstance(answer, ChatMessage):
        return answer
    if isinstance(answer, str):
        return ChatMessage(role=MessageRole.ASSISTANT, content=answer)
    problem, given = "", cast("object", answer)
    if isinstance(answer, dict):
        try:
            return ChatMessage.from_dict(answer)
        except InvalidArgument as error:
            problem = error.message
    raise ModelFailed(
        f"the chat of {type(model).__name__} returned {shorten(given)} instead of a message",
        cause=problem,
        way_out="return a ChatMessage, or its content as a string",
    )


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))
