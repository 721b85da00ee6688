from __future__ import annotations

from typing import Any

import pytest

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import Event
from emberflow.observability.listeners import EventContext, EventListener, listener_calls


class Remembers:
    def __init__(self) -> None:
        self.seen: list[tuple[Event, EventContext]] = []

    def on_event(self, event: Event, context: EventContext) -> None:
        self.seen.append((event, context))


def test_objects_and_functions_are_notified_in_order() -> None:
    remembers = Remembers()
    reported: list[str] = []
    event, context = Event("A"), EventContext("scorer", "k", "r1", None)
    for call in listener_calls(
        [remembers, lambda event, context: reported.append(f"{event.type} {context.agent}")]
    ):
        call(event, context)
    assert isinstance(remembers, EventListener)
    assert remembers.seen == [(event, context)]
    assert reported == ["A scorer"]


@pytest.mark.parametrize("wrong", [3, "name", None, Remembers])
def test_invalid_listeners_are_rejected(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="is not an event listener"):
        listener_calls([wrong])
