"""Ids of events that are read before the event is sent: deterministic inside an action, random elsewhere.

Most events get their id when they are sent (`operators/agents/agent_run.py`), and nobody reads it before.
"""

from __future__ import annotations

import uuid
from contextvars import ContextVar
from typing import Any, Protocol


class IdSource(Protocol):
    """An action that is running."""

    def new_event_id(self) -> str | None:
        """The same id when the action is repeated; None if the action has ended or a durable call is running."""
        ...


current_ids: ContextVar[IdSource | None] = ContextVar("emberflow-event-ids", default=None)
"""Where the running code gets ids from; set by the action runner for each action."""


class EventId:
    """The class attribute `Event.id`. An id that was assigned is found in the event before this."""

    def __get__(self, event: Any, owner: Any = None) -> Any:
        if event is None:
            return ""
        source = current_ids.get()
        made = None if source is None else source.new_event_id()
        event.__dict__["id"] = found = made or str(uuid.uuid4())
        return found
