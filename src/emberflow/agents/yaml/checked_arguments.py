"""Checks the arguments that a YAML file gives to resource classes, as far as that is possible without creating them.

A class that cannot be imported here is left to the worker.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from emberflow.agents.yaml.nodes import Node, wrong
from emberflow.errors import InvalidAgent, did_you_mean
from emberflow.plan.agents.resource_arguments import ArgumentProblem
from emberflow.plan.agents.resource_checks import (
    ModelSettings,
    class_of,
    descriptor_problem,
    setting_problem,
    settings_of,
)
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType


@dataclass(frozen=True, slots=True)
class PlacedSettings:
    """The settings that a setup gives to each call of its connection."""

    settings: ModelSettings
    entry: Node
    owner: str

    @property
    def connection(self) -> str:
        """Its name."""
        return self.settings.connection


def check_arguments(entry: Node, made: ResourceDescriptor, kind: ResourceType, owner: str) -> None:
    """Raises InvalidAgent for an argument that the class does not accept."""
    if class_of(made) is None:
        _check_class(entry, made, owner)
        return
    problem = descriptor_problem(made, kind)
    if problem is not None:
        raise _wrong(entry, problem, owner)


def _wrong(entry: Node, problem: ArgumentProblem, owner: str) -> InvalidAgent:
    place = entry.place
    if problem.name in entry.value:
        place = entry.keys[problem.name] if problem.unknown else entry.value[problem.name].place
    return wrong(place, f"{owner}: {problem.message}", cause=problem.cause, way_out=problem.way_out)


def _check_class(entry: Node, made: ResourceDescriptor, owner: str) -> None:
    """Refuses a name that a module, which can be imported, does not have."""
    module = sys.modules.get(made.target_module)
    name = made.target_clazz
    if module is not None and "." not in name and not hasattr(module, name):
        raise wrong(
            entry.value["clazz"].place,
            f"{owner}: the module {made.target_module!r} has no {name!r}{did_you_mean(name, dir(module))}",
        )


def placed_settings(entry: Node, made: ResourceDescriptor, owner: str) -> PlacedSettings | None:
    """What a setup passes on to its connection; None if that is for code of the user's to decide."""
    settings = settings_of(made)
    return None if settings is None else PlacedSettings(settings, entry, owner)


def check_settings(placed: PlacedSettings, connection: Any) -> None:
    """Raises InvalidAgent for a setting that calls of this connection do not accept."""
    problem = setting_problem(placed.settings, connection)
    if problem is not None:
        raise _wrong(placed.entry, problem, placed.owner)
