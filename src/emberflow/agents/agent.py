"""`Agent`: actions and resources, by decorators in a subclass or by `add_action` and `add_resource`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Self

from emberflow.errors import InvalidAgent
from emberflow.plan.agents.guards import Budget, Retry
from emberflow.plan.agents.python_function import PythonFunction
from emberflow.plan.agents.resources import ResourceDescriptor, ResourceType

_GUARDS = ("retry", "timeout_ms", "fallback")


class Agent:
    """Actions that events trigger, and the resources they use. Subclass it, or add them to an instance.

    Actions added to an instance come after those that its class declares. Agents run per key: the inputs of a key one
    after another, those of different keys concurrently.

    ```python
    from emberflow.agents import Agent, InputEvent, OutputEvent, RunnerContext, action
    from emberflow.testing import run_agent


    class Greeter(Agent):
        @action(InputEvent)
        @staticmethod
        def greet(event: InputEvent, ctx: RunnerContext) -> None:
            ctx.send_event(OutputEvent(f"hello {event.input}"))


    assert run_agent(Greeter(), ["Ann"]).outputs == ["hello Ann"]
    ```
    """

    description: str = ""
    """What the agent does, for models that may call it; by default the docstring of its class."""
    input_type: Any = None
    """The type of the inputs that models give to it, such as a dataclass; None for text."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name or type(self).__name__

    def add_action(
        self,
        name: str,
        trigger_conditions: Sequence[Any],
        func: Callable[..., Any] | PythonFunction,
        *,
        retry: Retry | None = None,
        timeout_ms: int | None = None,
        fallback: str | None = None,
        **config: Any,
    ) -> Self:
        """Adds an action: `func(event, ctx)`, plain or `async`, called for events that meet one of the conditions.

        A condition is an event class, an event type or a trigger expression as a string, or a function of the event.
        `retry`, `timeout_ms` and `fallback` control what happens when it fails; the action can read `config` as
        `ctx.action_config`. Raises `InvalidAgent` if the name is taken.
        """
        for given, value in config.items():
            near = ["retry"] if isinstance(value, Retry) else get_close_matches(given, _GUARDS, 1, 0.85)
            if near:
                raise InvalidAgent(
                    f"agent {self._shown}, action {name!r}: add_action() takes no {given!r}; did you mean {near[0]!r}?",
                    way_out="give a value of the action's own config a name that is less like it",
                )
        if name in self.actions:
            raise InvalidAgent(f"agent {self._shown}, action {name!r} is defined twice")
        conditions: tuple[Any, ...] = (
            tuple(trigger_conditions)
            if isinstance(trigger_conditions, (list, tuple))
            else (trigger_conditions,)
        )
        self.actions[name] = (conditions, func, config)
        self.guards[name] = {"retry": retry, "timeout_ms": timeout_ms, "fallback": fallback}
        return self

    def add_budget(self, budget: Budget) -> Self:
        """Limits what a run or a key may spend; if there are several budgets, all of them apply."""
        self.budgets.append(budget)
        return self

    def add_resource(
        self, name: str, resource_type: ResourceType, instance: ResourceDescriptor | Any
    ) -> Self:
        """Adds a resource, which this agent's actions get by name.

        A resource given as a `ResourceDescriptor` is created on the worker; anything else is sent there as it is. Raises
        `InvalidAgent` if the name is taken or `resource_type` is not a resource type.
        """
        add_resource(self.resources, name, resource_type, instance, f"agent {self._shown}")
        return self

    def built_in_actions(self) -> Sequence[tuple[str, tuple[Any, ...], Callable[..., Any]]]:
        """The actions that answer `ChatRequestEvent` and `ToolRequestEvent`, added to the plan of an agent that uses these
        events: name, trigger conditions and function of each."""
        from emberflow.agents.built_in.event_actions import BUILT_IN_ACTIONS

        return BUILT_IN_ACTIONS

    @property
    def actions(
        self,
    ) -> dict[str, tuple[tuple[Any, ...], Callable[..., Any] | PythonFunction, dict[str, Any]]]:
        """The actions added with `add_action`."""
        # Created on first use: a subclass may have an __init__ that does not call this class's.
        return self.__dict__.setdefault("_actions", {})

    @property
    def guards(self) -> dict[str, dict[str, Any]]:
        """Retry, timeout and fallback of the actions added with `add_action`."""
        return self.__dict__.setdefault("_guards", {})

    @property
    def budgets(self) -> list[Budget]:
        """The budgets added with `add_budget`."""
        return self.__dict__.setdefault("_budgets", [])

    @property
    def resources(self) -> dict[ResourceType, dict[str, Any]]:
        """The resources added with `add_resource`."""
        return self.__dict__.setdefault("_resources", {})

    @property
    def _shown(self) -> str:
        return repr(self.__dict__.get("name") or type(self).__name__)


def add_resource(
    resources: dict[ResourceType, dict[str, Any]], name: str, kind: ResourceType, instance: Any, owner: str
) -> None:
    """Shared by agents and environments."""
    if not isinstance(kind, ResourceType):
        raise InvalidAgent(
            f"{owner}: {kind!r} is not a resource type",
            way_out=f"one of {', '.join(f'ResourceType.{item.name}' for item in ResourceType)}",
        )
    named = resources.setdefault(kind, {})
    if name in named:
        raise InvalidAgent(f"{owner} defines the {kind.value} {name!r} twice")
    named[name] = instance
