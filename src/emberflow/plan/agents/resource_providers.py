"""Reads the resources that an agent declares into its plan."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from emberflow.errors import InvalidAgent, NotSerializable, shorten
from emberflow.events.codecs import encode
from emberflow.plan.agents.resource_checks import check_resource_arguments
from emberflow.plan.agents.resource_names import check_resource_names
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType
from emberflow.plan.json_values import from_json_value, to_json_value


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProvider:
    """How a worker gets a resource: from a descriptor, as a serialized instance, or as a function that is the tool."""

    name: str
    type: ResourceType
    descriptor: ResourceDescriptor | None = None
    instance: Any = None

    def to_json(self) -> dict[str, Any]:
        if self.type is ResourceType.AGENT:
            return {"agent": json.loads(self.instance.to_json())}
        if self.descriptor is None:
            return {"instance": to_json_value(self.instance)}
        made = self.descriptor
        return {"class": made.class_to_json(), "arguments": to_json_value(made.arguments)}

    def describe(self) -> str:
        made = self.descriptor
        if self.type is ResourceType.AGENT:
            return f"an agent with {len(self.instance.actions)} actions"
        return type(self.instance).__name__ if made is None else made.target_clazz


_CHATTING = (ResourceType.CHAT_MODEL, ResourceType.CHAT_MODEL_CONNECTION)
Providers = dict[ResourceType, dict[str, ResourceProvider]]


def providers_from(agent_name: str, agent: Any, shared: Any = None) -> Providers:
    """The agent's resources, and those of its environment that it does not override."""
    made: Providers = {kind: {} for kind in ResourceType}
    given: dict[ResourceType, dict[str, Any]] = shared or {}
    for kind, named in given.items():
        for name, value in named.items():
            made[kind][name] = _provider(agent_name, kind, name, value)
    _take_out(made, made)
    own: Providers = {kind: {} for kind in ResourceType}
    for kind, name, value in [*_declared(agent), *_added(agent)]:
        if name in own[kind]:
            raise InvalidAgent(f"agent {agent_name!r} defines the {kind.value} {name!r} twice")
        own[kind][name] = _provider(agent_name, kind, name, value)
    _take_out(own, made)
    # What a test substitutes for the agent's own.
    replacements: dict[tuple[str, ResourceType], Any] = getattr(agent, "replacements", {})
    for (name, kind), value in replacements.items():
        own[kind][name] = _provider(agent_name, kind, name, value)
    for kind, named in own.items():
        made[kind].update(named)
    check_resource_arguments(agent_name, made)
    check_resource_names(agent_name, own, made)
    return made


def providers_from_json(
    data: dict[str, dict[str, Any]], load_agent: Callable[[dict[str, Any]], Any]
) -> Providers:
    """`load_agent` reads the plan of a sub-agent."""
    made: Providers = {kind: {} for kind in ResourceType}
    for kind_name, named in data.items():
        kind = ResourceType(kind_name)
        for name, body in named.items():
            if "agent" in body:
                made[kind][name] = ResourceProvider(name=name, type=kind, instance=load_agent(body["agent"]))
            elif "instance" in body:
                instance = from_json_value(body["instance"])
                made[kind][name] = ResourceProvider(name=name, type=kind, instance=instance)
            else:
                descriptor = ResourceDescriptor.from_json(body["class"], from_json_value(body["arguments"]))
                made[kind][name] = ResourceProvider(name=name, type=kind, descriptor=descriptor)
    return made


_INSIDE: dict[ResourceType, dict[str, ResourceType]] = {
    ResourceType.CHAT_MODEL: {
        "connection": ResourceType.CHAT_MODEL_CONNECTION,
        "fallback": ResourceType.CHAT_MODEL,
    },
    ResourceType.EMBEDDING_MODEL: {"connection": ResourceType.EMBEDDING_MODEL_CONNECTION},
}
"""Arguments that may be descriptors themselves instead of names."""


def _take_out(own: Providers, others: Providers) -> None:
    """Gives the descriptors inside of descriptors a name: what they describe is then created once per process, limited and
    replaced like any other resource. It has the name of the resource that it was written for; equal ones are shared."""
    for kind, inside in _INSIDE.items():
        waiting = list(own[kind].values())
        while waiting:
            provider = waiting.pop(0)
            found = provider.descriptor
            if found is None:
                continue
            arguments = dict(found.arguments)
            for argument, inner_kind in inside.items():
                value = arguments.get(argument)
                if not isinstance(value, ResourceDescriptor):
                    continue
                base = provider.name if inner_kind is not kind else f"{provider.name}-{argument}"
                name = _name_for(value, base, {**others[inner_kind], **own[inner_kind]})
                inner = own[inner_kind].setdefault(
                    name, ResourceProvider(name=name, type=inner_kind, descriptor=value)
                )
                if inner_kind is kind:
                    waiting.append(inner)
                arguments[argument] = name
            own[kind][provider.name] = replace(provider, descriptor=found.with_arguments(arguments))


def _name_for(descriptor: ResourceDescriptor, base: str, named: dict[str, ResourceProvider]) -> str:
    for name, provider in named.items():
        if provider.descriptor == descriptor:
            return name
    if base not in named:
        return base
    return next(name for number in count(2) if (name := f"{base}-{number}") not in named)


def _declared(agent: Any) -> Iterable[tuple[ResourceType, str, Any]]:
    """Methods marked with @chat_model_setup, @tool, …: a tool is the function itself, others return what to create."""
    found: dict[str, Any] = {}
    for base in reversed(type(agent).__mro__):
        for name, member in vars(base).items():
            found.pop(name, None)
            function = getattr(member, "__func__", member)
            if hasattr(function, "_resource_type"):
                found[name] = function
    for name, function in found.items():
        kind: ResourceType = function._resource_type
        yield kind, name, function if kind is ResourceType.TOOL else _described(agent, name, function)


def _described(agent: Any, name: str, function: Any) -> Any:
    """What a decorated function returns; like an action it may take the agent itself."""
    parameters = list(inspect.signature(function).parameters)
    if parameters == ["self"]:
        return function(agent)
    if parameters:
        raise InvalidAgent(
            f"agent {type(agent).__name__!r}: the function of the resource {name!r} takes {', '.join(parameters)}",
            way_out=f"def {name}() -> ResourceDescriptor: the framework calls it without arguments",
        )
    return function()


def _added(agent: Any) -> Iterable[tuple[ResourceType, str, Any]]:
    added: dict[ResourceType, dict[str, Any]] = getattr(agent, "resources", {})
    for kind, named in added.items():
        for name, value in named.items():
            yield kind, name, value


def _provider(agent_name: str, kind: ResourceType, name: str, value: Any) -> ResourceProvider:
    if isinstance(value, ResourceDescriptor):
        return ResourceProvider(name=name, type=kind, descriptor=value)
    if value is None:
        raise InvalidAgent(
            f"agent {agent_name!r}: the {kind.value} {name!r} is None",
            way_out="the decorated function must return a ResourceDescriptor or a resource",
        )
    if kind in _CHATTING and not callable(getattr(value, "chat", None)):
        raise InvalidAgent(
            f"agent {agent_name!r}: the {kind.value} {name!r} is {shorten(value)}, which has no method chat()",
            way_out="give a model, such as ChatModel.openai('…'), or a ResourceDescriptor of one",
        )
    try:
        encode(value)
    except NotSerializable as error:
        raise InvalidAgent(
            f"agent {agent_name!r}: the {kind.value} {name!r} cannot be sent to workers",
            cause=error.cause,
            way_out="describe it instead: ResourceDescriptor(clazz=MyClass, ...); it is then created on the worker",
        ) from error
    return ResourceProvider(name=name, type=kind, instance=value)
