"""Checks the arguments of resources when an agent is applied, or loaded from a file, and not when a worker creates them.

Only what is certain is refused: what a class of the user's does with arguments that it does not name is for it to decide, and a
class that cannot be imported here is left to the worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidAgent, did_you_mean
from emberflow.plan.agents.resource_arguments import (
    ArgumentProblem,
    accepted_by,
    argument_problem,
    is_ours,
    unfitting_value,
)
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType

if TYPE_CHECKING:
    from emberflow.plan.agents.resource_providers import Providers

LIMITS = ("max_concurrent", "requests_per_minute", "tokens_per_minute", "throttle_retries", "max_waiting")
"""Arguments of descriptors that limit calls; they are not arguments of the class."""
LIMITED = frozenset(
    {
        ResourceType.CHAT_MODEL_CONNECTION, ResourceType.EMBEDDING_MODEL_CONNECTION, ResourceType.CHAT_MODEL,
        ResourceType.EMBEDDING_MODEL, ResourceType.TOOL,
    }
)  # fmt: skip
_ANY = "additional_kwargs"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings that a setup passes on to its connection with each call."""

    connection: str
    given: Mapping[str, Any]


def check_resource_arguments(agent_name: str, providers: Providers) -> None:
    """Raises InvalidAgent for an argument that a class of emberflow does not accept, or of which the value does not fit; also
    for a setting that the calls of a chat model's connection do not accept."""
    connections = providers.get(ResourceType.CHAT_MODEL_CONNECTION, {})
    for kind, named in providers.items():
        for name, provider in named.items():
            described = provider.descriptor
            if described is None:
                continue
            clazz = class_of(described)
            if clazz is None or not is_ours(clazz):
                # A class of the user's is created, and checked, on a worker that needs it.
                continue
            problem = descriptor_problem(described, kind)
            settings = settings_of(described) if kind is ResourceType.CHAT_MODEL else None
            if problem is None and settings is not None and settings.connection in connections:
                problem = setting_problem(settings, connections[settings.connection].descriptor)
            if problem is not None:
                raise InvalidAgent(
                    f"agent {agent_name!r}, {kind.value.replace('_', ' ')} {name!r}: {problem.message}",
                    cause=problem.cause,
                    way_out=problem.way_out,
                )


def descriptor_problem(described: ResourceDescriptor, kind: ResourceType) -> ArgumentProblem | None:
    """What is wrong with a descriptor's arguments; None also for a class that cannot be imported here."""
    clazz = class_of(described)
    if clazz is None:
        return None
    return argument_problem(clazz, described.arguments, LIMITS if kind in LIMITED else ())


def class_of(described: ResourceDescriptor) -> type[Any] | None:
    """The class, None if it cannot be imported here."""
    try:
        # Of a copy: a descriptor that names its class stays one.
        return described.with_arguments({}).clazz
    except Exception:
        return None


def settings_of(described: ResourceDescriptor) -> ModelSettings | None:
    """What a setup passes on to its connection; None if that is for code of the user's to decide."""
    clazz, connection = class_of(described), described.arguments.get("connection")
    accepted = None if clazz is None else accepted_by(clazz)
    if accepted is None or accepted.own or not accepted.others or not isinstance(connection, str):
        return None
    named = {*accepted.names, *LIMITS} - {_ANY}
    given = {name: value for name, value in described.arguments.items() if name not in named}
    return ModelSettings(connection, given) if given else None


def setting_problem(settings: ModelSettings, connection: Any) -> ArgumentProblem | None:
    """The first setting that calls of this connection do not accept, or whose value does not fit."""
    clazz: Any = class_of(connection) if isinstance(connection, ResourceDescriptor) else None
    if clazz is None or not hasattr(clazz, "known_settings"):
        return None
    known: Mapping[str, Any] | None = clazz.known_settings()
    if known is None:
        return None
    for name, value in settings.given.items():
        if name == _ANY:
            hint: Any = dict[str, Any] | None
        elif name in known:
            hint = known[name]
        else:
            return ArgumentProblem(
                name,
                f"the connection {settings.connection!r} has no setting {name!r}"
                f"{did_you_mean(name, [*known, *LIMITS])}",
                way_out=f"to pass it on unchecked, write it under {_ANY}",
                unknown=True,
            )
        problem = None if value is None else unfitting_value(name, value, hint)
        if problem is not None:
            return problem
    return None
