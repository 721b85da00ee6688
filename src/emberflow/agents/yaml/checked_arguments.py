"""Checks the arguments that a YAML file gives to resource classes, as far as that is possible without creating them.

A class that cannot be imported here is left to the worker.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from emberflow.agents.yaml.nodes import Node, Place, wrong
from emberflow.errors import InvalidAgent, did_you_mean
from emberflow.operators.admission.model_limits import ModelLimits
from emberflow.operators.agents.resources.resource_cache import LIMITED
from emberflow.plan.agents.resource_arguments import (
    ArgumentProblem,
    accepted_by,
    unknown_argument,
    unknown_choice,
)
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType

_LIMITS = tuple(item.name for item in fields(ModelLimits))
_ANY = "additional_kwargs"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings that a setup gives to each call of its connection."""

    connection: str
    given: Mapping[str, Place]
    owner: str


def check_arguments(entry: Node, made: ResourceDescriptor, kind: ResourceType, owner: str) -> None:
    """Raises InvalidAgent for an argument that the class does not accept."""
    clazz = class_of(made)
    if clazz is None:
        _check_class(entry, made, owner)
        return
    unknown = unknown_argument(clazz, made.arguments, _LIMITS if kind in LIMITED else ())
    if unknown is not None:
        raise _wrong(entry.keys[unknown.name], unknown, owner)
    choice = unknown_choice(clazz, made.arguments)
    if choice is not None:
        raise _wrong(entry.value[choice.name].place, choice, owner)


def _wrong(place: Place, problem: ArgumentProblem, owner: str) -> InvalidAgent:
    return wrong(place, f"{owner}: {problem.message}", cause=problem.cause, way_out=problem.way_out)


def class_of(made: ResourceDescriptor) -> type[Any] | None:
    """The class, None if it cannot be imported here."""
    try:
        # Of a copy: a descriptor that names its class stays one.
        return ResourceDescriptor(target_module=made.target_module, target_clazz=made.target_clazz).clazz
    except Exception:
        return None


def _check_class(entry: Node, made: ResourceDescriptor, owner: str) -> None:
    """Refuses a name that a module, which can be imported, does not have."""
    module = sys.modules.get(made.target_module)
    name = made.target_clazz
    if module is not None and "." not in name and not hasattr(module, name):
        raise wrong(
            entry.value["clazz"].place,
            f"{owner}: the module {made.target_module!r} has no {name!r}{did_you_mean(name, dir(module))}",
        )


def settings_of(entry: Node, made: ResourceDescriptor, owner: str) -> ModelSettings | None:
    """What a setup passes on to its connection; None if that is for code of the user's to decide."""
    clazz, connection = class_of(made), made.arguments.get("connection")
    accepted = None if clazz is None else accepted_by(clazz)
    if accepted is None or accepted.own or not accepted.others or not isinstance(connection, str):
        return None
    named = {*accepted.names, *_LIMITS, _ANY}
    given = {name: entry.keys[name] for name in made.arguments if name not in named}
    return ModelSettings(connection, given, owner) if given else None


def check_settings(settings: ModelSettings, connection: Any) -> None:
    """Raises InvalidAgent for a setting that calls of this connection do not accept."""
    clazz = class_of(connection) if isinstance(connection, ResourceDescriptor) else None
    known_settings: Any = getattr(clazz, "known_settings", None)
    known = None if known_settings is None else known_settings()
    for name, place in settings.given.items():
        if known is not None and name not in known:
            raise wrong(
                place,
                f"{settings.owner}: the connection {settings.connection!r} has no setting {name!r}"
                f"{did_you_mean(name, [*known, *_LIMITS])}",
                way_out=f"to pass it on unchecked, write it under {_ANY}",
            )
