"""Checks the names of other resources in an agent's chat models when it is applied, and not at the first call of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from emberflow.errors import InvalidAgent, did_you_mean
from emberflow.plan.agents.resources import Resource, ResourceType

if TYPE_CHECKING:
    from emberflow.plan.agents.resource_providers import Providers, ResourceProvider

_OF_SERVERS = frozenset({ResourceType.TOOL, ResourceType.PROMPT})
"""MCP servers may have any tool and prompt: what they offer is not known before they are asked."""


def check_resource_names(agent_name: str, own: Providers, providers: Providers) -> None:
    """Raises InvalidAgent for a name in one of the agent's `own` models of a tool that is neither a tool that it has nor an
    agent that it may call, or of another resource that the model needs and the agent does not have, and for skills in an agent
    without any. Models that it shares may be meant for other agents."""
    served: frozenset[ResourceType] = (
        _OF_SERVERS if providers.get(ResourceType.MCP_SERVER) else frozenset[ResourceType]()
    )
    for model, provider in own.get(ResourceType.CHAT_MODEL, {}).items():
        where = f"agent {agent_name!r}: the chat model {model!r}"
        listed = _given(provider, "tools")
        if ResourceType.TOOL not in served and isinstance(listed, list | tuple):
            known = [*providers.get(ResourceType.TOOL, {}), *providers.get(ResourceType.AGENT, {})]
            for name in cast("list[Any]", listed):
                if isinstance(name, str) and name not in known:
                    raise InvalidAgent(
                        f"{where} lists the tool {name!r}, which the agent does not have{did_you_mean(name, known)}",
                        cause=f"its tools: {', '.join(map(repr, known)) or 'none'}",
                        way_out=f"declare it with @tool or add_resource({name!r}, ResourceType.TOOL, …)",
                    )
        needed = _needed(provider)
        if needed and _given(provider, "skills") and not providers.get(ResourceType.SKILLS):
            raise InvalidAgent(
                f"{where} lists skills, but the agent has none",
                way_out="declare where they are with @skills or add_resource('skills', ResourceType.SKILLS, Skills.from_local_dir(…))",
            )
        for argument, kind in needed.items():
            name, known = _given(provider, argument), list(providers.get(kind, {}))
            if isinstance(name, str) and name not in known and kind not in served:
                raise _unknown(where, argument, name, kind, known)


def _unknown(where: str, argument: str, name: str, kind: ResourceType, known: list[str]) -> InvalidAgent:
    shown = kind.value.replace("_", " ")
    referred = argument if argument == shown.rpartition(" ")[2] else f"{argument} ({shown})"
    return InvalidAgent(
        f"{where} names the {referred} {name!r}, which the agent does not have{did_you_mean(name, known)}",
        cause=f"its {shown}s: {', '.join(map(repr, known)) or 'none'}",
        way_out=f"declare it in the agent with add_resource({name!r}, ResourceType.{kind.name}, …), or in the environment "
        "before the agent is applied",
    )


def _given(provider: ResourceProvider, argument: str) -> Any:
    described = provider.descriptor
    if described is None:
        return getattr(provider.instance, argument, None)
    return described.arguments.get(argument)


def _needed(provider: ResourceProvider) -> dict[str, ResourceType]:
    try:
        described = provider.descriptor
        found: type[Any] = provider.instance.__class__ if described is None else described.clazz
    except Exception:
        # Only the worker has the class.
        return {}
    return found.needed_resources() if issubclass(found, Resource) else {}
