"""An agent, compiled: which action answers to which event, with which resources and settings.

Frozen data with functions in it. `plan/agent_checks.py` looks for mistakes when a plan is made,
`operators/agent.py` runs it, `plan/agent_picture.py` draws it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from emberflow.errors import InvalidAgent
from emberflow.events.agent_events import Event
from emberflow.plan import functions
from emberflow.plan.agent_config import Configuration
from emberflow.plan.resource_providers import ResourceProvider, providers_from, providers_from_json
from emberflow.plan.resources import ResourceType

VERSION = 1

_TYPE_NAME = re.compile(r"^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger condition; exactly one of the three is set."""

    type: str = ""
    expression: str = ""
    predicate: Callable[[Event], bool] | None = None

    @staticmethod
    def of(condition: Any, where: str) -> Trigger:
        if isinstance(condition, type) and issubclass(condition, Event):
            if condition is Event:
                return Trigger(predicate=_any_event)
            return Trigger(type=condition.EVENT_TYPE)
        if isinstance(condition, str) and condition.strip():
            text = condition.strip()
            # As in Flink Agents: a bare name is an event type, anything else an expression.
            return Trigger(type=text) if _TYPE_NAME.match(text) else Trigger(expression=text)
        if callable(condition):
            return Trigger(predicate=condition)
        raise InvalidAgent(
            f"{where}: {condition!r} is not a trigger condition",
            way_out='give an event class, an event type, an expression such as "score > 5", or a function of the event',
        )

    def __str__(self) -> str:
        return self.type or self.expression or f"{functions.name_of(self.predicate)}()"

    def to_json(self) -> dict[str, Any]:
        if self.predicate is not None:
            return {"predicate": functions.to_json(self.predicate)}
        return {"type": self.type} if self.type else {"expression": self.expression}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Trigger:
        if "predicate" in data:
            return Trigger(predicate=functions.from_json(data["predicate"]))
        return Trigger(type=data.get("type", ""), expression=data.get("expression", ""))


def _any_event(event: Event) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A function that events trigger. `event_class` is what its annotation asks for."""

    name: str
    triggers: tuple[Trigger, ...]
    function: Callable[..., Any]
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    event_class: type[Event] | None = None

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    name: str
    actions: dict[str, Action]
    resource_providers: dict[ResourceType, dict[str, ResourceProvider]]
    config: Configuration = field(default_factory=Configuration)
    warnings: tuple[str, ...] = ()

    @staticmethod
    def from_agent(agent: Any, config: Configuration | None = None, resources: Any = None) -> AgentPlan:
        """Compiles and checks an agent; `resources` are those shared by all agents of an environment."""
        from dataclasses import replace

        from emberflow.plan.agent_checks import check

        name = agent_name(agent)
        found = {item.name: item for item in _actions(agent, name)}
        providers = providers_from(name, agent, resources)
        plan = AgentPlan(
            name=name, actions=found, resource_providers=providers, config=config or Configuration()
        )
        return replace(plan, warnings=tuple(check(plan)))

    @property
    def actions_by_event(self) -> dict[str, list[str]]:
        """Event type -> the actions it triggers by its type alone."""
        by_type: dict[str, list[str]] = {}
        for item in self.actions.values():
            for trigger in item.triggers:
                if trigger.type and item.name not in by_type.setdefault(trigger.type, []):
                    by_type[trigger.type].append(item.name)
        return by_type

    def get_actions(self, event_type: str) -> list[Action]:
        return [self.actions[name] for name in self.actions_by_event.get(event_type, [])]

    @property
    def is_async(self) -> bool:
        """Whether any action may wait."""
        return any(item.is_async for item in self.actions.values())

    def to_json(self, indent: int | None = None) -> str:
        from emberflow.plan.json_values import to_json_value

        body = {
            "version": VERSION,
            "name": self.name,
            "actions": [
                {
                    "name": item.name,
                    "triggers": [trigger.to_json() for trigger in item.triggers],
                    "function": functions.to_json(item.function),
                    "event_class": None if item.event_class is None else functions.to_json(item.event_class),
                    "config": to_json_value(item.config),
                }
                for item in self.actions.values()
            ],
            "actions_by_event": self.actions_by_event,
            "resource_providers": {
                kind.value: {name: provider.to_json() for name, provider in named.items()}
                for kind, named in self.resource_providers.items()
                if named
            },
            "config": to_json_value(self.config.to_dict()),
            "warnings": list(self.warnings),
        }
        return json.dumps(body, indent=indent)

    @staticmethod
    def from_json(text: str) -> AgentPlan:
        from emberflow.plan.json_values import from_json_value

        try:
            body = json.loads(text)
            version = body["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidAgent(
                "this is not an agent plan", way_out="write one with plan.to_json()"
            ) from error
        if version != VERSION:
            raise InvalidAgent(
                f"an agent plan of format {version} cannot be read", way_out="update emberflow"
            )
        actions = [
            Action(
                name=item["name"],
                triggers=tuple(Trigger.from_json(trigger) for trigger in item["triggers"]),
                function=functions.from_json(item["function"]),
                config=from_json_value(item["config"]),
                event_class=None if item["event_class"] is None else functions.from_json(item["event_class"]),  # type: ignore[arg-type]
            )
            for item in body["actions"]
        ]
        return AgentPlan(
            name=body["name"],
            actions={item.name: item for item in actions},
            resource_providers=providers_from_json(body["resource_providers"]),
            config=Configuration(from_json_value(body["config"])),
            warnings=tuple(body["warnings"]),
        )

    def explain(self, form: str = "text") -> str:
        """The plan as `text`, `mermaid` or `json`."""
        from emberflow.plan.agent_picture import render_agent

        return self.to_json(indent=2) if form == "json" else render_agent(self, form)


def agent_name(agent: Any) -> str:
    return getattr(agent, "name", None) or type(agent).__name__


def _actions(agent: Any, agent_name: str) -> Iterable[Action]:
    seen: set[str] = set()
    for name, conditions, function, config in [*_declared(agent), *_added(agent)]:
        where = f"agent {agent_name!r}, action {name!r}"
        if name in seen:
            raise InvalidAgent(f"{where} is defined twice", way_out="give actions different names")
        seen.add(name)
        if not conditions:
            raise InvalidAgent(
                f"{where} has no trigger condition", way_out="@action(InputEvent), or another event class"
            )
        yield Action(
            name=name,
            triggers=tuple(Trigger.of(condition, where) for condition in conditions),
            function=_callable(agent, function, where),
            config=dict(config or {}),
            event_class=_event_class(function),
        )


def _declared(agent: Any) -> Iterable[tuple[str, Iterable[Any], Any, None]]:
    """Methods marked with @action, base classes first, each in the order of the class body."""
    found: dict[str, Any] = {}
    for base in reversed(type(agent).__mro__):
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if hasattr(function, "_trigger_conditions"):
                found[name] = function
            elif name in found:
                # A subclass replaced the action by something that is none.
                del found[name]
    for name, function in found.items():
        yield name, function._trigger_conditions, function, None


def _added(agent: Any) -> Iterable[tuple[str, Iterable[Any], Any, Mapping[str, Any] | None]]:
    for name, (conditions, function, config) in getattr(agent, "actions", {}).items():
        yield name, conditions, function, config


def _callable(agent: Any, function: Any, where: str) -> Callable[..., Any]:
    """Actions take (event, ctx); with a third parameter in front it is the agent itself."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return function
    wanted = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    if any(item.kind is item.VAR_POSITIONAL for item in parameters) or len(wanted) == 2:
        return function
    if len(wanted) == 3 and wanted[0].name == "self":
        return function.__get__(agent)
    raise InvalidAgent(
        f"{where} takes {len(wanted)} parameters",
        cause=f"its signature is {inspect.signature(function)}",
        way_out="an action takes the event and the context: def act(event, ctx)",
    )


def _event_class(function: Any) -> type[Event] | None:
    """The class in `def act(event: MyEvent, ctx)`."""
    named = getattr(function, "__func__", function)
    try:
        names = [name for name in inspect.signature(named).parameters if name != "self"]
        hint = get_type_hints(named).get(names[0])
    except Exception:
        # Annotations that only a type checker can resolve ask for nothing at run time.
        annotations: dict[str, Any] = getattr(named, "__annotations__", {})
        hint = getattr(named, "__globals__", {}).get(str(next(iter(annotations.values()), "")))
    if isinstance(hint, type) and issubclass(hint, Event) and hint is not Event:
        return hint
    return None
