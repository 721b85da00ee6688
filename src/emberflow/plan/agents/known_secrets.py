"""The values of the secrets of a plan, its sub-agents' included, as far as this process can find them.

Used to mask them wherever they turn up: an agent may pass the secret of one resource to a tool, to another agent, or to an
event that a process handles in which the resource does not exist. Called on workers; what is found never enters a plan.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

from emberflow.errors import ResourceFailed
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType, Secret, is_secret_name

_DEEPEST = 6
_MOST_ITEMS = 1_000
"""Larger containers of a resource are data."""
_SHORTEST_LITERAL = 4
"""A shorter one is found in ordinary words, and protects nothing."""


def secret_values(plan: AgentPlan) -> set[str]:
    """Without those that this process cannot read: whoever needs one of them reports it."""
    found: set[str] = set()
    for kind, named in plan.resource_providers.items():
        for provider in named.values():
            if kind is ResourceType.AGENT:
                found |= secret_values(provider.instance)
            elif provider.descriptor is not None:
                found.update(_in(provider.descriptor))
            else:
                found.update(_in(getattr(provider.instance, "__dict__", None), _DEEPEST - 2))
    return found


def _in(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST or (isinstance(value, dict | list | tuple) and len(cast("Any", value)) > _MOST_ITEMS):
        return
    if isinstance(value, Secret):
        yield from _resolved(value)
    elif isinstance(value, ResourceDescriptor):
        yield from _of_environment(value)
        yield from _in(value.arguments, depth + 1)
    elif isinstance(value, dict):
        for item in cast("dict[Any, Any]", value).values():
            yield from _in(item, depth + 1)
    elif isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        yield from _after_flags(items)
        for item in items:
            yield from _in(item, depth + 1)


def _resolved(secret: Secret) -> Iterator[str]:
    try:
        found = secret.resolve().strip()
    except ResourceFailed:
        return
    if found:
        yield found


def _of_environment(descriptor: ResourceDescriptor) -> Iterator[str]:
    """The key that a connection takes from its usual variable if it is given none."""
    try:
        variable: Any = getattr(descriptor.clazz, "key_variable", "")
    except Exception:
        return  # The class cannot be imported here; whoever creates the resource reports that.
    if isinstance(variable, str) and variable:
        found = os.environ.get(variable, "").strip()
        if found:
            yield found


def _after_flags(items: list[Any]) -> Iterator[str]:
    """Secrets in the arguments of a command: `--token VALUE`, `--api-key=VALUE`."""
    for item, following in pairwise([*items, None]):
        if not isinstance(item, str) or not item.startswith("-"):
            continue
        flag, has_value, value = item.partition("=")
        if not is_secret_name(flag.lstrip("-").replace("-", "_")):
            continue
        literal = value if has_value else following
        if isinstance(literal, str) and len(literal) >= _SHORTEST_LITERAL:
            yield literal
