"""Builds the agents of a YAML file: reads it, checks it against the schema, imports the functions it names.

Knows one file at a time; `registry.py` brings files together.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from emberflow.agents.agent import Agent
from emberflow.agents.built_in.react_agent import ReActAgent
from emberflow.agents.yaml.aliases import condition_of
from emberflow.agents.yaml.arguments import action_config
from emberflow.agents.yaml.checked_arguments import PlacedSettings, placed_settings
from emberflow.agents.yaml.named_functions import function_named, object_named
from emberflow.agents.yaml.nodes import Node, Place, read_file, wrong
from emberflow.agents.yaml.resource_sections import (
    Declared,
    Reference,
    descriptor_of,
    prompt_of,
    references_of,
    refuse_java,
    resources_of,
)
from emberflow.agents.yaml.schema import check
from emberflow.errors import InvalidAgent, ProgramError
from emberflow.plan.agents import checks
from emberflow.plan.agents.actions import actions_of
from emberflow.plan.agents.agent_plan import AgentPlan
from emberflow.plan.agents.built_in_actions import built_in_actions
from emberflow.plan.agents.resources import ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedAgent:
    """An agent of a file, and the names that it uses and does not declare itself."""

    agent: Agent
    place: Place
    references: list[Reference]
    shared_actions: list[tuple[str, Place]]
    sub_agents: list[tuple[str, Place]]
    """The names of the agents that it may call."""
    settings: list[PlacedSettings]
    """Those of its chat models."""


@dataclass(slots=True, kw_only=True)
class LoadedFile:
    """What a file declares."""

    agents: dict[str, LoadedAgent] = field(default_factory=dict[str, LoadedAgent])
    shared: list[Declared] = field(default_factory=list[Declared])
    actions: dict[str, Node] = field(default_factory=dict[str, Node])
    """Actions that agents refer to by name."""


def load_file(path: str | os.PathLike[str]) -> LoadedFile:
    """Reads, checks and builds; raises InvalidAgent with file, line and column."""
    root = read_file(path)
    check(root)
    loaded = LoadedFile(shared=list(resources_of(root)))
    for entry in root.items("actions"):
        name = entry.text("name")
        if name in loaded.actions:
            raise _twice(entry, "action", name, loaded.actions[name].place)
        # Its function is imported even if no agent refers to it, so that mistakes are found.
        _function(entry, f"the shared action {name!r}")
        loaded.actions[name] = entry
    for section, make in (("agents", _agent), ("react_agents", _react_agent)):
        for entry in root.items(section):
            name = entry.text("name")
            if name in loaded.agents:
                raise _twice(entry, "agent", name, loaded.agents[name].place)
            loaded.agents[name] = make(entry, name)
    return loaded


def add_action(agent: Agent, entry: Node, owner: str) -> None:
    """Adds an action that a file declares."""
    name = entry.text("name")
    function = _function(entry, f"{owner}, action {name!r}")
    conditions = [condition_of(item) for item in entry.items("trigger_conditions")]
    config = entry.get("config")
    try:
        agent.add_action(name, conditions, function)
    except InvalidAgent as error:
        raise wrong(entry.place, error.message, cause=error.cause, way_out=error.way_out) from None
    if config is not None:
        # Not as keyword arguments, which are checked for misspelt guards: here nothing else could be meant.
        agent.actions[name][2].update(action_config(config, f"{owner}, action {name!r}"))


def check_conditions_of(loaded: LoadedAgent) -> None:
    """Checks the trigger conditions of an agent that has all its actions."""
    agent = loaded.agent
    if not agent.actions:
        return
    places = [str(loaded.place)]
    try:
        actions = {item.name: item for item in actions_of(agent, agent.name)}
        places += [item.written.place for action in actions.values() for item in action.triggers]
        providers: Any = agent.resources
        built_in = built_in_actions(agent, agent.name, actions, providers)
        plan = AgentPlan(name=agent.name, actions={**actions, **built_in}, resource_providers={})
        checks.check_conditions(plan)
    except InvalidAgent as error:
        if error.message.startswith(tuple(filter(None, places))):
            raise
        raise wrong(loaded.place, error.message, cause=error.cause, way_out=error.way_out) from None


def _agent(entry: Node, name: str) -> LoadedAgent:
    shared: list[tuple[str, Place]] = []
    agent = Agent(name)
    for action in entry.items("actions"):
        if action.kind == "string":
            shared.append((action.value, action.place))
        else:
            add_action(agent, action, f"agent {name!r}")
    return _with_resources(agent, entry, [], shared, [])


def _react_agent(entry: Node, name: str) -> LoadedAgent:
    owner = f"agent {name!r}"
    references: list[Reference] = []
    settings: list[PlacedSettings | None] = []
    model, prompt, schema = entry.value["chat_model"], entry.get("prompt"), entry.get("output_schema")
    steps = entry.get("max_steps")
    given: Any = model.value
    if model.kind == "object":
        refuse_java(model, owner)
        given = descriptor_of(model, ResourceType.CHAT_MODEL, owner)
        references += references_of(model, "chat_model_setups", owner)
        settings.append(placed_settings(model, given, owner))
    else:
        references.append(Reference(ResourceType.CHAT_MODEL, model.value, model.place, owner))
    if prompt is not None and prompt.kind == "string":
        references.append(Reference(ResourceType.PROMPT, prompt.value, prompt.place, owner))
    try:
        agent = ReActAgent(
            chat_model=given,
            prompt=None if prompt is None else prompt.value if prompt.kind == "string" else prompt_of(prompt),
            output_schema=None
            if schema is None
            else object_named(schema, owner)
            if schema.kind == "string"
            else schema.plain(),
            max_steps=None if steps is None else steps.value,
            name=name,
        )
    except ProgramError as error:
        place = entry.place if schema is None else schema.place
        raise wrong(place, f"{owner}: {error.message}", cause=error.cause, way_out=error.way_out) from None
    return _with_resources(agent, entry, references, [], settings)


def _with_resources(
    agent: Agent,
    entry: Node,
    references: list[Reference],
    shared: list[tuple[str, Place]],
    settings: list[PlacedSettings | None],
) -> LoadedAgent:
    for declared in resources_of(entry):
        agent.add_resource(declared.name, declared.kind, declared.value)
        references += declared.references
        settings.append(declared.settings)
    agent.description = entry.text("description")
    return LoadedAgent(
        agent=agent,
        place=entry.place,
        references=references,
        shared_actions=shared,
        sub_agents=[(item.value, item.place) for item in entry.items("sub_agents")],
        settings=[item for item in settings if item is not None],
    )


def _function(entry: Node, owner: str) -> Any:
    refuse_java(entry, owner)
    return function_named(entry.get("function"), owner, entry.place)


def _twice(entry: Node, what: str, name: str, first: Place) -> InvalidAgent:
    return wrong(
        entry.place,
        f"the {what} {name!r} is declared twice",
        cause=f"the first: {first}",
        way_out=f"give the {what}s different names",
    )
