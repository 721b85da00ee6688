"""Agents as resources of other agents: compiled with the agent that uses them, into its plan.

A sub-agent shares the settings and the shared resources of the environment, and has its own resources. Found when the plan
is compiled: agents that use each other in a cycle, and nesting that is too deep.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from emberflow.errors import InvalidAgent, ResourceFailed, did_you_mean, shorten
from emberflow.plan.agents.resource_providers import Providers, ResourceProvider
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType

_OURS = __name__.partition(".")[0] + "."
"""The docstrings of our own classes describe no agent."""

DEEPEST = 8
"""How many agents may be nested in each other."""

AGENT = ResourceType.AGENT
Resources = Mapping[ResourceType, Mapping[str, Any]]
Callers = tuple[Any, ...]
"""The agents on the way to a sub-agent, outermost first."""


def shared_with(callers: Callers, shared: Resources | None) -> dict[ResourceType, Mapping[str, Any]]:
    """The environment's resources without the agents that are already running: a shared agent does not use itself."""
    found = dict(shared or {})
    if found.get(AGENT):
        found[AGENT] = {
            name: value for name, value in found[AGENT].items() if not any(value is one for one in callers)
        }
    return found


def compiled_agents(
    owner: str, providers: Providers, callers: Callers, compile_agent: Callable[[Any, str], Any]
) -> Providers:
    """The providers, with the plan of each agent instead of the agent itself."""
    agents = providers[AGENT]
    if not agents:
        return providers
    made = {name: _compiled(owner, provider, callers, compile_agent) for name, provider in agents.items()}
    for name in made:
        if name in providers[ResourceType.TOOL]:
            raise InvalidAgent(
                f"agent {owner!r} has a tool and an agent named {name!r}",
                cause="models call both by name",
                way_out="give one of them another name",
            )
    return {**providers, AGENT: made}


def _compiled(
    owner: str, provider: ResourceProvider, callers: Callers, compile_agent: Callable[[Any, str], Any]
) -> ResourceProvider:
    agent = (
        provider.instance
        if provider.descriptor is None
        else _created(owner, provider.name, provider.descriptor)
    )
    if not hasattr(agent, "actions") or isinstance(agent, type):
        hint = f"; did you mean {agent.__name__}()?" if isinstance(agent, type) else ""
        raise InvalidAgent(f"agent {owner!r}: the agent {provider.name!r} is {shorten(agent)}{hint}")
    names = [*(str(getattr(one, "name", "") or type(one).__name__) for one in callers), provider.name]
    if any(agent is one for one in callers):
        raise InvalidAgent(
            f"agents use each other in a cycle: {' -> '.join(names)}",
            way_out="remove one of the uses; chain agents over a stream for iterative processing",
        )
    if len(callers) >= DEEPEST:
        raise InvalidAgent(f"agents are nested more than {DEEPEST} deep: {' -> '.join(names)}")
    plan = compile_agent(agent, provider.name)
    if plan.budgets:
        raise InvalidAgent(
            f"agent {owner!r}: the agent {provider.name!r} has a budget of its own",
            cause="what it spends counts against the budgets of the agent that calls it",
            way_out="add the budget to the outermost agent",
        )
    return replace(provider, descriptor=None, instance=plan)


def description_of(agent: Any) -> str:
    """The agent's `description`, or the docstring of its own class."""
    given = getattr(agent, "description", None)
    if given:
        return str(given)
    own = type(agent).__doc__ if not type(agent).__module__.startswith(_OURS) else None
    return inspect.cleandoc(own) if own else ""


def _created(owner: str, name: str, descriptor: ResourceDescriptor) -> Any:
    try:
        return descriptor.clazz(**descriptor.arguments)
    except TypeError as error:
        raise InvalidAgent(
            f"agent {owner!r}: the agent {name!r} could not be created", cause=str(error)
        ) from error


def unknown_agent(owner: str, name: str, known: Mapping[str, Any]) -> ResourceFailed:
    """For a call of an agent that is not a resource of the caller."""
    return ResourceFailed(
        f"agent {owner!r} has no agent named {name!r}{did_you_mean(name, known)}",
        cause=f"it may call: {', '.join(map(repr, known)) or 'none'}",
        way_out=f"add_resource({name!r}, ResourceType.AGENT, …), or sub_agents: in YAML",
    )
