"""A check that the built-in events share."""

from __future__ import annotations

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import Event


def check_attributes(event: Event, kind: type[Event], *needed: str) -> None:
    """Raises InvalidArgument if an event lacks an attribute that the class needs."""
    for name in needed:
        if name not in event.attributes:
            raise InvalidArgument(
                f"an event of type {event.type!r} has no attribute {name!r}, which {kind.__name__} needs",
                cause=f"its attributes: {', '.join(map(repr, event.attributes)) or 'none'}",
                way_out=f"send a {kind.__name__}",
            )
