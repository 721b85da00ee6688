"""Events that call tools: `ToolRequestEvent`, and `ToolResponseEvent` with the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from emberflow.agents.built_in.event_attributes import check_attributes
from emberflow.events.agent_events import Event
from emberflow.events.stored_types import stored_type


@stored_type()
class ToolRequestEvent(Event):
    """Calls tools, concurrently; the results arrive as one `ToolResponseEvent`."""

    EVENT_TYPE: ClassVar[str] = "_tool_request_event"
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ("model", "tool_calls")

    def __init__(self, model: str, tool_calls: Sequence[dict[str, Any]]) -> None:
        """`tool_calls` as in a `ChatMessage`: `{"id": …, "function": {"name": …, "arguments": {…}}}`."""
        self.attributes: dict[str, Any] = {"model": model, "tool_calls": list(tool_calls)}

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """The request in an event of any class; raises InvalidArgument if an attribute is missing."""
        check_attributes(event, cls, "model", "tool_calls")
        return super().from_event(event)

    @property
    def model(self) -> str:
        """The name of the chat model that asked for the calls."""
        return self.attributes["model"]

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The calls to make."""
        return self.attributes["tool_calls"]


@stored_type()
class ToolResponseEvent(Event):
    """The results of a `ToolRequestEvent`, by the id of the tool call."""

    EVENT_TYPE: ClassVar[str] = "_tool_response_event"
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ("request_id", "responses", "success", "error", "external_ids")

    def __init__(
        self,
        request_id: Any,
        responses: Mapping[Any, Any],
        external_ids: Mapping[Any, str | None] | None = None,
        success: Mapping[Any, bool] | None = None,
        error: Mapping[Any, str] | None = None,
    ) -> None:
        self.attributes: dict[str, Any] = {
            "request_id": request_id,
            "responses": dict(responses),
            "success": dict.fromkeys(responses, True) if success is None else dict(success),
            "error": dict(error or {}),
            "external_ids": dict(external_ids or {}),
        }

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """The results in an event of any class; raises InvalidArgument if an attribute is missing."""
        check_attributes(event, cls, "request_id", "responses")
        return super().from_event(event)

    @property
    def request_id(self) -> Any:
        """The id of the request."""
        return self.attributes["request_id"]

    @property
    def responses(self) -> dict[Any, Any]:
        """The results as plain data; for a call that failed, the text that the model receives."""
        return self.attributes["responses"]

    @property
    def success(self) -> dict[Any, bool]:
        """Whether each call succeeded."""
        return self.attributes.get("success") or dict.fromkeys(self.responses, True)

    @property
    def error(self) -> dict[Any, str]:
        """What went wrong in the calls that failed."""
        return self.attributes.get("error") or {}

    @property
    def external_ids(self) -> dict[Any, str | None]:
        """The ids that the model's service gave the calls."""
        return self.attributes.get("external_ids") or {}
