"""Which memory events an agent's options ask for, and which names in memory they never show."""

from __future__ import annotations

from emberflow.events.agent_events import EventType
from emberflow.plan.agents.config import ConfigOption, Configuration
from emberflow.plan.agents.options import AgentExecutionOptions, MemoryEventOptions

_OPTIONS: dict[str, tuple[ConfigOption[bool | None], bool]] = {
    EventType.ShortTermWriteEvent: (MemoryEventOptions.SHORT_TERM_WRITE, True),
    EventType.ShortTermReadEvent: (MemoryEventOptions.SHORT_TERM_READ, False),
    EventType.SensoryWriteEvent: (MemoryEventOptions.SENSORY_WRITE, True),
    EventType.SensoryReadEvent: (MemoryEventOptions.SENSORY_READ, False),
}
"""Event type -> its option and default."""
CHATS = "_chats"
WAITING_CHATS = "_chats_waiting"
CALLS_AHEAD = "_calls_ahead"
OWN_NAMES = frozenset({CHATS, WAITING_CHATS, CALLS_AHEAD})
"""What emberflow itself keeps in the sensory memory of a run: no action has written it."""
_BEGIN = AgentExecutionOptions.AGENT_RUN_BEGIN_EVENT
_LONG_TERM = frozenset(
    {EventType.LongTermUpdateEvent, EventType.LongTermGetEvent, EventType.LongTermSearchEvent}
)


def generated_kinds(config: Configuration) -> frozenset[str]:
    """The types of memory events that are switched on."""
    master = config.get(MemoryEventOptions.MEMORY_GENERATE_EVENT)
    found: set[str] = set()
    for kind, (option, default) in _OPTIONS.items():
        own = config.get(option)
        if own if own is not None else default if master is None else master:
            found.add(kind)
    return frozenset(found)


def why_not_sent(kind: str, config: Configuration) -> str:
    """What keeps an agent from sending events of this type; an empty string if nothing does."""
    if kind in _LONG_TERM:
        return "which needs long-term memory; this version has none"
    if kind in _OPTIONS and kind not in generated_kinds(config):
        return f"which is switched off: set the option {_OPTIONS[kind][0].get_key()!r} to true"
    if kind == EventType.AgentRunBeginEvent and config.get(_BEGIN) is not True:
        return f"which is switched off: set the option {_BEGIN.get_key()!r} to true"
    return ""
