"""Decorators for the body of an agent class. They only mark; `AgentPlan.from_agent` reads the marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from emberflow.errors import InvalidAgent
from emberflow.plan.agents.guards import Retry
from emberflow.plan.agents.resources import ResourceType

F = TypeVar("F")


def action(
    *trigger_conditions: Any,
    retry: Retry | None = None,
    timeout_ms: int | None = None,
    fallback: str | None = None,
) -> Callable[[F], F]:
    """Marks a method of an `Agent` class as an action: `@action(InputEvent)`, `@action("score > 5")`, `@action(lambda event: …)`.

    Any one of several conditions is sufficient. An action that is only the `fallback` of another one needs none:
    `@action()`. `retry` is how often a failed action is retried, `timeout_ms` how long it may take, `fallback` the name of
    the action that runs instead when it has failed permanently. Raises `InvalidAgent` without parentheses.
    """
    if len(trigger_conditions) == 1 and _takes_two(trigger_conditions[0]):
        raise InvalidAgent(
            "@action needs to know what triggers it", way_out="@action(InputEvent), or another event class"
        )

    def mark(function: F) -> F:
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
tool = _marks(ResourceType.TOOL)
"""Marks a function that is itself the tool."""
