"""The actions of an agent and their triggers: read from an `Agent`, stored in its plan."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_type_hints

from emberflow.errors import InvalidAgent
from emberflow.events.agent_events import Event
from emberflow.plan import json_functions
from emberflow.plan.agents.guards import NO_GUARDS, Guards
from emberflow.plan.agents.python_function import PythonFunction
from emberflow.plan.json_values import from_json_value, to_json_value

_TYPE_NAME = re.compile(r"^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*$")
_QUOTED_TYPE = re.compile(r"""^(?P<quote>['"])(?P<type>[^\s'"\\\x00-\x1f\x7f]+)(?P=quote)$""")
"""A type that is no bare name, such as 'order:created'."""


@dataclass(frozen=True, slots=True)
class Written:
    """Where a condition is written in a file, and the short names of event types that it may use there."""

    place: str = ""
    names: frozenset[str] = frozenset()


class WrittenCondition(str):
    """An event type or expression of a file: messages about it begin with its place."""

    written: Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger condition; exactly one of the three fields is set."""

    type: str = ""
    expression: str = ""
    predicate: Callable[[Event], bool] | None = None
    event_class: type[Event] | None = field(default=None, compare=False, repr=False)
    """The class the type was taken from, for the checks; not part of a serialized plan."""
    written: Written = field(default=Written(), compare=False, repr=False)
    """For the checks; not part of a serialized plan."""

    @staticmethod
    def of(condition: Any, where: str) -> Trigger:
        given: object = condition
        if isinstance(condition, type) and issubclass(condition, Event):
            if condition is Event:
                return Trigger(predicate=_any_event)
            return Trigger(type=condition.EVENT_TYPE, event_class=condition)
        if isinstance(condition, str) and condition.strip():
            text = condition.strip()
            written = condition.written if isinstance(condition, WrittenCondition) else Written()
            quoted = _QUOTED_TYPE.match(text)
            if quoted is not None:
                return Trigger(type=quoted["type"], written=written)
            # As in Flink Agents: a bare name is an event type, anything else an expression.
            if _TYPE_NAME.match(text):
                return Trigger(type=text, written=written)
            return Trigger(expression=text, written=written)
        if callable(given):
            return Trigger(predicate=cast("Callable[[Event], bool]", given))
        raise InvalidAgent(
            f"{where}: {condition!r} is not a trigger condition",
            way_out='give an event class, an event type, an expression such as "score > 5", or a function of the event',
        )

    def __str__(self) -> str:
        return self.type or self.expression or f"{json_functions.name_of(self.predicate)}()"

    def to_json(self) -> dict[str, Any]:
        if self.predicate is not None:
            return {"predicate": json_functions.to_json(self.predicate)}
        return {"type": self.type} if self.type else {"expression": self.expression}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Trigger:
        if "predicate" in data:
            return Trigger(predicate=json_functions.from_json(data["predicate"]))
        return Trigger(type=data.get("type", ""), expression=data.get("expression", ""))


def _any_event(event: Event) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A function that events trigger. `event_class` is the annotation of its event parameter."""

    name: str
    triggers: tuple[Trigger, ...]
    function: Callable[..., Any]
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    event_class: type[Event] | None = None
    guards: Guards = NO_GUARDS

    @property
    def trigger_conditions(self) -> list[str]:
        """The conditions as they are shown: event types, expressions, and functions by their names."""
        return [str(trigger) for trigger in self.triggers]

    @property
    def may_wait(self) -> bool:
        """Whether it runs concurrently with other keys: an `async` action, or one with retry or timeout."""
        return self.is_async or self.guards.waits

    @property
    def is_async(self) -> bool:
        # A callable object is allowed too.
        called = inspect.getattr_static(self.function, "__call__", None)
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)

    def to_json(self) -> dict[str, Any]:
        kind = self.event_class
        guards = self.guards.to_json()
        return {
            "name": self.name,
            "triggers": [trigger.to_json() for trigger in self.triggers],
            "function": json_functions.to_json(self.function),
            "event_class": None if kind is None else json_functions.to_json(kind),
            "config": to_json_value(self.config),
            **({"guards": guards} if guards else {}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Action:
        kind: Any = None if data["event_class"] is None else json_functions.from_json(data["event_class"])
        return Action(
            name=data["name"],
            triggers=tuple(Trigger.from_json(trigger) for trigger in data["triggers"]),
            function=json_functions.from_json(data["function"]),
            config=from_json_value(data["config"]),
            event_class=kind,
            guards=Guards.from_json(data.get("guards", {})),
        )


def actions_of(agent: Any, agent_name: str) -> Iterable[Action]:
    """The actions that the class declares, then those that were added; raises InvalidAgent."""
    seen: set[str] = set()
    found = [*_declared(agent), *_added(agent)]
    fallbacks = {given.get("fallback") for *_, given in found}
    for name, conditions, function, config, guards in found:
        where = f"agent {agent_name!r}, action {name!r}"
        if name in seen:
            raise InvalidAgent(f"{where} is defined twice", way_out="give actions different names")
        seen.add(name)
        if not conditions and name not in fallbacks:
            raise InvalidAgent(
                f"{where} has no trigger condition", way_out="@action(InputEvent), or another event class"
            )
        yield Action(
            name=name,
            triggers=tuple(Trigger.of(condition, where) for condition in conditions),
            function=(called := _callable(agent, function, where)),
            config=dict(config or {}),
            event_class=_event_class(called),
            guards=Guards.of(guards, where),
        )


Given = tuple[str, tuple[Any, ...], Any, Mapping[str, Any] | None, Mapping[str, Any]]
"""name, trigger conditions, function, config, guards"""


def _declared(agent: Any) -> Iterable[Given]:
    """Methods marked with @action, base classes first, each in the order of the class body."""
    found: dict[str, Any] = {}
    for base in reversed(type(agent).__mro__):
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if hasattr(function, "_trigger_conditions"):
                found[name] = function
            elif name in found:
                # A subclass replaced the action by something else.
                del found[name]
    for name, function in found.items():
        conditions: tuple[Any, ...] = function._trigger_conditions
        # The function itself, or the one that runs in its place.
        target = getattr(function, "_target", None) or function
        yield name, conditions, target, None, getattr(function, "_guards", {})


def _added(agent: Any) -> Iterable[Given]:
    added: dict[str, tuple[tuple[Any, ...], Any, dict[str, Any]]] = getattr(agent, "actions", {})
    for name, (conditions, function, config) in added.items():
        yield name, conditions, function, config, getattr(agent, "guards", {}).get(name, {})


def _callable(agent: Any, function: Any, where: str) -> Callable[..., Any]:
    """Actions take (event, ctx); if `self` comes first, the agent itself is passed too."""
    if isinstance(function, PythonFunction):
        function = function.as_callable()
    if not callable(function):
        raise InvalidAgent(
            f"{where} is {function!r}, which cannot be called", way_out="def act(event, ctx): ..."
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function
    if next(iter(signature.parameters), "") == "self" and _accepts(signature, 3):
        return function.__get__(agent)
    if _accepts(signature, 2):
        return function
    raise InvalidAgent(
        f"{where} takes {len(signature.parameters)} parameters",
        cause=f"its signature is {signature}",
        way_out="an action takes the event and the context: def act(event, ctx)",
    )


def _accepts(signature: inspect.Signature, arguments: int) -> bool:
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True


def _event_class(function: Any) -> type[Event] | None:
    """The class in `def act(event: MyEvent, ctx)`."""
    named: Any = getattr(function, "__func__", function)
    if isinstance(named, functools.partial):
        named = named.func
    try:
        first = next(name for name in inspect.signature(named).parameters if name != "self")
    except (TypeError, ValueError, StopIteration):
        return None
    try:
        hint: Any = get_type_hints(named).get(first)
    except Exception:
        # Other annotations are for type checkers only; this one may still be a plain name.
        hint = _by_name(getattr(named, "__annotations__", {}).get(first), getattr(named, "__globals__", {}))
    if isinstance(hint, type) and issubclass(hint, Event) and hint is not Event:
        return hint
    return None


def _by_name(annotation: Any, names: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    first, *others = annotation.split(".")
    found = names.get(first)
    for name in others:
        found = getattr(found, name, None)
    return found
