"""Events that ask a chat model: `ChatRequestEvent`, and `ChatResponseEvent` with the final answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from emberflow.agents.built_in.event_attributes import check_attributes
from emberflow.agents.built_in.messages import as_messages
from emberflow.agents.models.chat_message import ChatMessage
from emberflow.agents.models.output_schema import OutputSchema
from emberflow.errors import InvalidArgument, shorten
from emberflow.events.agent_events import Event
from emberflow.events.stored_types import stored_type


@stored_type()
class ChatRequestEvent(Event):
    """Asks a chat model; the tools that it wants are called, and the answer arrives as a `ChatResponseEvent`.

    The models of requests that follow each other in a run are called concurrently; their answers take effect in the order of
    the requests.
    """

    EVENT_TYPE: ClassVar[str] = "_chat_request_event"
    ATTRIBUTES: ClassVar[tuple[str, ...]] = (
        "model",
        "messages",
        "prompt_args",
        "output_schema",
        "max_steps",
    )

    def __init__(
        self,
        model: str,
        messages: str | Sequence[ChatMessage],
        prompt_args: Mapping[str, Any] | None = None,
        output_schema: Any = None,
        *,
        max_steps: int | None = None,
    ) -> None:
        """`output_schema` is an `OutputSchema`, or the type itself; `max_steps` limits how often the model is called, by
        default the option `chat.max-steps`."""
        if not isinstance(model, str):
            raise InvalidArgument(
                f"model must be the name of a chat model, got {shorten(model)}",
                way_out="use the name of one of the agent's chat models",
            )
        if output_schema is not None and not isinstance(output_schema, OutputSchema):
            output_schema = OutputSchema(output_schema)
        self.attributes: dict[str, Any] = {
            "model": model,
            "messages": as_messages(messages),
            "prompt_args": dict(prompt_args or {}),
            "output_schema": output_schema,
        }
        if max_steps is not None:
            self.attributes["max_steps"] = max_steps

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """The request in an event of any class; raises InvalidArgument if an attribute is missing."""
        check_attributes(event, cls, "model", "messages")
        return super().from_event(event)

    @property
    def model(self) -> str:
        """The name of the chat model."""
        return self.attributes["model"]

    @property
    def messages(self) -> list[ChatMessage]:
        """What the model is asked."""
        return as_messages(self.attributes["messages"])

    @property
    def prompt_args(self) -> dict[str, Any]:
        """Values for the placeholders in the prompt of the model."""
        return self.attributes.get("prompt_args") or {}

    @property
    def output_schema(self) -> OutputSchema | None:
        """The type that the answer must have."""
        given: Any = self.attributes.get("output_schema")
        return OutputSchema.model_validate(given) if isinstance(given, dict) else given

    @property
    def max_steps(self) -> int | None:
        """How often the model may be called."""
        return self.attributes.get("max_steps")


@stored_type()
class ChatResponseEvent(Event):
    """The final answer to a `ChatRequestEvent`."""

    EVENT_TYPE: ClassVar[str] = "_chat_response_event"
    ATTRIBUTES: ClassVar[tuple[str, ...]] = (
        "request_id",
        "response",
        "retry_count",
        "total_retry_wait_sec",
    )

    def __init__(
        self,
        request_id: Any,
        response: ChatMessage,
        retry_count: int = 0,
        total_retry_wait_sec: float = 0,
    ) -> None:
        self.attributes: dict[str, Any] = {
            "request_id": request_id,
            "response": response,
            "retry_count": retry_count,
            "total_retry_wait_sec": total_retry_wait_sec,
        }

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """The answer in an event of any class; raises InvalidArgument if an attribute is missing."""
        check_attributes(event, cls, "request_id", "response")
        return super().from_event(event)

    @property
    def request_id(self) -> Any:
        """The id of the request."""
        return self.attributes["request_id"]

    @property
    def response(self) -> ChatMessage:
        """The answer; with an output schema, its `extra_args[STRUCTURED_OUTPUT]` is the typed value."""
        return as_messages([self.attributes["response"]])[0]

    @property
    def retry_count(self) -> int:
        """How often the model was called again because a call had failed."""
        return self.attributes.get("retry_count", 0)

    @property
    def total_retry_wait_sec(self) -> float:
        """How long these retries waited."""
        return self.attributes.get("total_retry_wait_sec", 0)
