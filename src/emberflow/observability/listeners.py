"""The contract of event listeners, which are notified about an agent's events while it runs.

The agent's operator calls them for every event, on its own thread and in the order of the events: a slow listener
slows down the agent. A listener receives an event again when a micro-batch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.agent_events import Event


@dataclass(frozen=True, slots=True)
class EventContext:
    """Where an event happened."""

    agent: str
    key: Any
    run_id: str
    timestamp: int | None
    """The input's event time in milliseconds, if it has one."""


@runtime_checkable
class EventListener(Protocol):
    """An object that is notified; a plain function `(event, context)` works too."""

    def on_event(self, event: Event, context: EventContext) -> None: ...


ListenerCall: TypeAlias = Callable[[Event, EventContext], object]


def listener_calls(listeners: Iterable[Any]) -> list[ListenerCall]:
    """The function to call for each listener, in order; raises InvalidArgument for one that is not callable."""
    calls: list[ListenerCall] = []
    for listener in listeners:
        # A class has the method too, but without an instance the event would be passed as `self`.
        call: Any = None if isinstance(listener, type) else getattr(listener, "on_event", listener)
        if not callable(call):
            raise InvalidArgument(
                f"{shorten(listener)} is not an event listener",
                way_out="give an instance with a method on_event(event, context), or a function (event, context)",
            )
        calls.append(call)
    return calls
