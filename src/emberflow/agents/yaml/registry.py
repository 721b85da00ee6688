"""The agents and shared resources of several YAML files together, for one environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from emberflow.agents.agent import Agent
from emberflow.agents.yaml.checked_arguments import check_settings
from emberflow.agents.yaml.loader import LoadedAgent, LoadedFile, add_action, check_conditions_of, load_file
from emberflow.agents.yaml.nodes import Node, Place, wrong
from emberflow.agents.yaml.resource_sections import Declared, Reference
from emberflow.errors import InvalidAgent, InvalidArgument, did_you_mean, shorten
from emberflow.plan.agents.resources import ResourceType

Resources = Mapping[ResourceType, Mapping[str, Any]]
YamlPath = str | os.PathLike[str]

_OF_SERVERS = frozenset({ResourceType.TOOL, ResourceType.PROMPT})
"""What MCP servers provide under names that are known only at run time."""


class AgentRegistry:
    """Names are unique over all files. A file that is rejected leaves nothing behind, nor do those loaded with it."""

    def __init__(self) -> None:
        self._agents: dict[str, LoadedAgent] = {}
        self._shared: dict[tuple[ResourceType, str], Declared] = {}
        self._actions: dict[str, Node] = {}

    @property
    def agents(self) -> dict[str, Agent]:
        """The agents by name, in the order of the files."""
        return {name: loaded.agent for name, loaded in self._agents.items()}

    def load(self, paths: YamlPath | Sequence[YamlPath], known: Resources) -> list[Declared]:
        """Adds the agents of the files; returns the shared resources, which the caller keeps. `known` are resources that
        it has already."""
        agents, shared, actions = dict(self._agents), dict(self._shared), dict(self._actions)
        added: list[Declared] = []
        files = [load_file(path) for path in _paths(paths)]
        for file in files:
            for declared in file.shared:
                _check_new(declared, shared, known)
                shared[declared.kind, declared.name] = declared
                added.append(declared)
            for name, entry in file.actions.items():
                if name in actions:
                    raise _taken("shared action", name, entry.place, actions[name].place)
                actions[name] = entry
        for file in files:
            _add_agents(file, agents, actions)
        for file in files:
            for name, loaded in file.agents.items():
                _add_sub_agents(name, loaded, agents)
        _check_settings(agents.values(), shared, known)
        self._agents, self._shared, self._actions = agents, shared, actions
        return added

    def agent_named(self, name: str, shared: Resources) -> Agent:
        """The agent, after checking that the resources exist to which it refers."""
        loaded = self._agents.get(name)
        if loaded is None:
            raise InvalidArgument(
                f"there is no agent named {name!r}{did_you_mean(name, self._agents)}",
                cause=f"loaded agents: {', '.join(map(repr, self._agents)) or 'none'}",
                way_out="load the YAML file that declares it: env.load_yaml(path)",
            )
        self._check_references(loaded, shared)
        return loaded.agent

    def _check_references(
        self, loaded: LoadedAgent, shared: Resources, checked: tuple[LoadedAgent, ...] = ()
    ) -> None:
        own = loaded.agent.resources
        of_others = [item.references for item in self._shared.values()]
        if any(
            ResourceType.MCP_SERVER in items and items[ResourceType.MCP_SERVER] for items in (own, shared)
        ):
            unknown: frozenset[ResourceType] = _OF_SERVERS
        else:
            unknown = frozenset()
        for reference in loaded.references:
            _check(reference, [own, shared], unknown)
        for name, _ in loaded.sub_agents:
            if self._agents[name] not in checked:
                self._check_references(self._agents[name], shared, (*checked, loaded))
        everywhere = [shared, *(item.agent.resources for item in self._agents.values())]
        for reference in (item for references in of_others for item in references):
            # A shared resource may refer to what each agent declares itself.
            _check(reference, everywhere, unknown)


def load_agents(paths: YamlPath | Sequence[YamlPath]) -> dict[str, Agent]:
    """The agents that YAML files declare, by name, each with the files' shared resources: for use without an environment.

    Raises `InvalidAgent` with file, line and column.
    """
    registry = AgentRegistry()
    shared: dict[ResourceType, dict[str, Any]] = {}
    for declared in registry.load(paths, {}):
        shared.setdefault(declared.kind, {})[declared.name] = declared.value
    for name in registry.agents:
        agent = registry.agent_named(name, shared)
        for kind, named in shared.items():
            for key, value in named.items():
                agent.resources.setdefault(kind, {}).setdefault(key, value)
    return registry.agents


def _paths(given: YamlPath | Sequence[YamlPath]) -> Iterable[YamlPath]:
    single = isinstance(given, str | os.PathLike)
    paths = [given] if single else list(given)
    for path in paths:
        if not isinstance(cast("Any", path), str | os.PathLike):
            raise InvalidArgument(
                f"{shorten(path)} is not a path", way_out="load_yaml('agents.yaml'), or a list of paths"
            )
        if Path(path).is_dir():
            raise InvalidArgument(f"{os.fspath(path)} is a folder", way_out="name the YAML files in it")
    return paths


def _add_agents(file: LoadedFile, agents: dict[str, LoadedAgent], actions: dict[str, Node]) -> None:
    for name, loaded in file.agents.items():
        if name in agents:
            raise _taken("agent", name, loaded.place, agents[name].place)
        for action, place in loaded.shared_actions:
            if action not in actions:
                raise wrong(
                    place,
                    f"agent {name!r} refers to the shared action {action!r}, which does not exist"
                    f"{did_you_mean(action, actions)}",
                    way_out="declare it under actions: at the top level of the file",
                )
            add_action(loaded.agent, actions[action], f"agent {name!r}")
        check_conditions_of(loaded)
        agents[name] = loaded


def _add_sub_agents(name: str, loaded: LoadedAgent, agents: Mapping[str, LoadedAgent]) -> None:
    for other, place in loaded.sub_agents:
        if other not in agents:
            raise wrong(
                place,
                f"agent {name!r} refers to the agent {other!r}, which does not exist{did_you_mean(other, agents)}",
                way_out="declare it in the same file, or in one that is loaded before",
            )
        try:
            loaded.agent.add_resource(other, ResourceType.AGENT, agents[other].agent)
        except InvalidAgent as error:
            raise wrong(place, error.message) from None


def _check_settings(
    agents: Iterable[LoadedAgent], shared: Mapping[tuple[ResourceType, str], Declared], known: Resources
) -> None:
    """Against the connections that are known by now; the others are checked by their names, when the agent is applied."""
    kind = ResourceType.CHAT_MODEL_CONNECTION
    common = {
        **known.get(kind, {}),
        **{name: item.value for (of, name), item in shared.items() if of is kind},
    }
    for declared in shared.values():
        if declared.settings is not None:
            check_settings(declared.settings, common.get(declared.settings.connection))
    for loaded in agents:
        connections = {**common, **loaded.agent.resources.get(kind, {})}
        for settings in loaded.settings:
            check_settings(settings, connections.get(settings.connection))


def _check_new(
    declared: Declared, shared: Mapping[tuple[ResourceType, str], Declared], known: Resources
) -> None:
    first = shared.get((declared.kind, declared.name))
    if first is not None:
        raise _taken(f"shared {declared.kind.value}", declared.name, declared.place, first.place)
    if declared.name in known.get(declared.kind, {}):
        raise wrong(
            declared.place,
            f"the environment already has the {declared.kind.value} {declared.name!r}",
            way_out="give it another name",
        )


def _check(reference: Reference, places: Sequence[Resources], unknown: frozenset[ResourceType]) -> None:
    kind, name = reference.kind, reference.name
    # An agent is a tool as well.
    kinds = (kind, ResourceType.AGENT) if kind is ResourceType.TOOL else (kind,)
    names = [item for resources in places for one in kinds for item in resources.get(one, {})]
    if name in names or kind in unknown:
        return
    shown = kind.value.replace("_", " ")
    raise wrong(
        reference.place,
        f"{reference.owner} refers to the {shown} {name!r}, which does not exist{did_you_mean(name, names)}",
        cause=f"declared are: {', '.join(map(repr, dict.fromkeys(names))) or 'none'}",
        way_out="declare it in the agent, or at the top level of a file to share it",
    )


def _taken(what: str, name: str, place: Place, first: Place) -> InvalidAgent:
    return wrong(place, f"the {what} {name!r} is declared twice", cause=f"the first: {first}")
