"""Which plans get the built-in actions: those of agents that use their events, or may.

The actions themselves belong to the public API above this layer: the agent supplies them (`Agent.built_in_actions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from emberflow.errors import InvalidAgent
from emberflow.events.agent_events import EventType
from emberflow.plan.agents.action_code import look_into
from emberflow.plan.agents.actions import Action, Trigger
from emberflow.plan.agents.resource_providers import Providers
from emberflow.plan.agents.resources import ResourceType

_TYPES = frozenset(
    {
        EventType.ChatRequestEvent,
        EventType.ChatResponseEvent,
        EventType.ToolRequestEvent,
        EventType.ToolResponseEvent,
    }
)
_NEEDED = (ResourceType.CHAT_MODEL, ResourceType.TOOL, ResourceType.MCP_SERVER)
"""Without one of them there is nothing to chat with, and nothing to call."""

Supplied = tuple[str, tuple[Any, ...], Callable[..., Any]]
"""name, trigger conditions, function"""


def built_in_actions(
    agent: Any, name: str, actions: Mapping[str, Action], providers: Providers
) -> dict[str, Action]:
    """The built-in actions that this agent needs, by name."""
    supply: Callable[[], Iterable[Supplied]] | None = getattr(agent, "built_in_actions", None)
    may_chat = any(providers.get(kind) for kind in _NEEDED)
    if supply is None or not any(_uses(action, may_chat) for action in actions.values()):
        return {}
    made: dict[str, Action] = {}
    for given, conditions, function in supply():
        where = f"agent {name!r}, action {given!r}"
        if given in actions:
            raise InvalidAgent(
                f"{where} has the name of a built-in action",
                cause="the agent uses the events of chat models and tools, which the built-in actions handle",
                way_out="rename the action",
            )
        triggers = tuple(Trigger.of(condition, where) for condition in conditions)
        made[given] = Action(name=given, triggers=triggers, function=function)
    return made


def _uses(action: Action, may_chat: bool) -> bool:
    for trigger in action.triggers:
        if trigger.type in _TYPES or any(item in trigger.expression for item in _TYPES):
            return True
    code = look_into(action.function)
    mentioned = {kind.EVENT_TYPE for kind in code.classes.values()}
    return not _TYPES.isdisjoint(mentioned | code.strings) or (may_chat and code.unknown)
