"""Decorators for the body of an agent class. They only mark; `AgentPlan.from_agent` reads the marks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from emberflow.errors import InvalidAgent, shorten
from emberflow.plan.agents.guards import Retry
from emberflow.plan.agents.injected_args import InjectedArgs, check_names, injected_args_of
from emberflow.plan.agents.python_function import PythonFunction
from emberflow.plan.agents.resources import ResourceType

F = TypeVar("F")


def action(
    *trigger_conditions: Any,
    retry: Retry | None = None,
    timeout_ms: int | None = None,
    fallback: str | None = None,
    target: PythonFunction | None = None,
) -> Callable[[F], F]:
    """Marks a method of an `Agent` class as an action: `@action(InputEvent)`, `@action("score > 5")`, `@action(lambda event: …)`.

    Any one of several conditions is sufficient. An action that is only the `fallback` of another one needs none:
    `@action()`. `retry` is how often a failed action is retried, `timeout_ms` how long it may take, `fallback` the name of
    the action that runs instead when it has failed permanently. `target` names a function that is run in place of the
    decorated one. Raises `InvalidAgent` without parentheses.
    """
    if len(trigger_conditions) == 1 and _takes_two(trigger_conditions[0]):
        raise InvalidAgent(
            "@action needs to know what triggers it", way_out="@action(InputEvent), or another event class"
        )
    if target is not None and not isinstance(target, PythonFunction):
        raise InvalidAgent(
            f"the target of an action is a PythonFunction, got {shorten(target)}",
            way_out="@action(InputEvent, target=PythonFunction.from_callable(check))",
        )

    def mark(function: F) -> F:
        if target is not None:
            _function_of(function)._target = target
        _function_of(function)._trigger_conditions = trigger_conditions
        _function_of(function)._guards = {"retry": retry, "timeout_ms": timeout_ms, "fallback": fallback}
        return function

    return mark


def _takes_two(condition: Any) -> bool:
    """Whether `@action` was written without parentheses: predicates take one argument, actions two."""
    code = getattr(_function_of(condition), "__code__", None)
    return code is not None and code.co_argcount >= 2


def _function_of(member: Any) -> Any:
    """The function behind @staticmethod, whichever decorator comes first."""
    return getattr(member, "__func__", member)


def _marks(kind: ResourceType) -> Callable[[F], F]:
    def mark(function: F) -> F:
        _function_of(function)._resource_type = kind
        return function

    mark.__doc__ = f"Marks a function that returns the descriptor of a {kind.value.replace('_', ' ')}."
    return mark


chat_model_connection = _marks(ResourceType.CHAT_MODEL_CONNECTION)
chat_model_setup = _marks(ResourceType.CHAT_MODEL)
embedding_model_connection = _marks(ResourceType.EMBEDDING_MODEL_CONNECTION)
embedding_model_setup = _marks(ResourceType.EMBEDDING_MODEL)
vector_store = _marks(ResourceType.VECTOR_STORE)
prompt = _marks(ResourceType.PROMPT)
mcp_server = _marks(ResourceType.MCP_SERVER)
skills = _marks(ResourceType.SKILLS)
_mark_tool = _marks(ResourceType.TOOL)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, injected_args: InjectedArgs | None = None) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, injected_args: InjectedArgs | None = None) -> Any:
    """Marks a function that is itself the tool: `@tool`, or `@tool(injected_args={"tenant": InjectedArg.from_config("tenant")})`.

    Injected arguments are filled in by the framework and hidden from the model. Raises `InvalidAgent` for one that the
    function does not take.
    """

    def mark(member: Any) -> Any:
        inner = _function_of(member)
        owner = f"tool {getattr(inner, '__name__', inner)!r}"
        parameters = inspect.signature(inner).parameters
        sources = injected_args_of(injected_args, owner)
        if not any(item.kind is item.VAR_KEYWORD for item in parameters.values()):
            check_names(sources, parameters, owner)
        if sources:
            inner._injected_args = sources
        return _mark_tool(member)

    return mark if function is None else mark(function)
