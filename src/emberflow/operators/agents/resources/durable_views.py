"""Views of models and tools that actions receive: their calls are durable.

Resources are shared by all actions of a process; a view belongs to one action, whose calls it counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from emberflow.operators.agents.resources.resource_views import FunctionToolView, ResourceView
from emberflow.plan.agents.resources import ResourceType

if TYPE_CHECKING:
    from emberflow.events.agent_events import Event
    from emberflow.operators.agents.calls.durable_calls import ActionCalls
    from emberflow.operators.agents.execution import ActionExecution

METHODS = {
    ResourceType.CHAT_MODEL: "chat",
    ResourceType.CHAT_MODEL_CONNECTION: "chat",
    ResourceType.EMBEDDING_MODEL: "embed",
    ResourceType.EMBEDDING_MODEL_CONNECTION: "embed",
    ResourceType.TOOL: "call",
}
"""The methods whose calls are durable."""

_in_call: ContextVar[bool] = ContextVar("_in_call", default=False)


@contextlib.contextmanager
def inside_a_call() -> Generator[None]:
    """Calls made in this block belong to a durable call: they are recorded as part of it, not separately."""
    token = _in_call.set(True)
    try:
        yield
    finally:
        # A coroutine that is dropped before its end is closed in another context, where there is nothing to reset.
        with contextlib.suppress(ValueError):
            _in_call.reset(token)


def is_inside_a_call() -> bool:
    """Whether the running code belongs to a durable call, and is skipped when its action is repeated."""
    return _in_call.get()


def runs_on_a_loop() -> bool:
    """Whether the calling code runs on an event loop, and not on a thread for blocking functions."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def part_of_a_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a plain function like a durable call does."""
    with inside_a_call():
        return function(*args, **kwargs)


def function_of(func: Any) -> Any:
    """The function to be called in the end."""
    return func.durable_function if isinstance(func, NamedFunction) else func


class NamedFunction:
    """A method of a resource as durable calls identify it: by the resource's name, with its settings."""

    __slots__ = (
        "durable_function",
        "durable_name",
        "durable_settings",
        "event",
        "takes_key_itself",
        "wants_idempotency_key",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        resource: Any,
        *,
        takes_key_itself: bool = True,
        event: Event | None = None,
    ) -> None:
        """`takes_key_itself`: whether the function's parameters say that it accepts an idempotency key. `event`: what it is
        called for, None for the event of the action."""
        self.event = event
        self.durable_function = function
        self.takes_key_itself = takes_key_itself
        self.durable_name = name
        settings: Any = getattr(resource, "call_settings", None)
        self.durable_settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self.wants_idempotency_key = bool(getattr(resource, "wants_idempotency_key", False))


class DurableMethod:
    """`model.chat` or `tool.call` of a view."""

    __slots__ = ("_branch", "_costs", "_execution", "_named")

    def __init__(
        self,
        execution: ActionExecution,
        named: NamedFunction,
        *,
        costs: bool,
        branch: ActionCalls | None = None,
    ) -> None:
        self._execution = execution
        self._named = named
        self._costs = costs
        self._branch = branch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._named.durable_function
        is_async = inspect.iscoroutinefunction(function)
        if _in_call.get():
            if is_async and not self._awaits():
                return self._execution.blocked_by(function, *args, **kwargs)
            return function(*args, **kwargs)
        if is_async and self._awaits() and not self._execution.run.runtime.settings.calls_block:
            return self.in_time(args, kwargs, None)
        return self.at_once(args, kwargs, None)

    def _awaits(self) -> bool:
        """Whether the calling code can await: not in a plain action, or on a thread that it has started."""
        if not self._execution.action.awaits:
            return False
        return not _in_call.get() or runs_on_a_loop()

    def in_time(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reconciler: Callable[[], Any] | None
    ) -> Awaitable[Any]:
        self._may_pay()
        # The call is numbered here, and not when it is awaited.
        call = self._execution.call_async(self._named, args, kwargs, reconciler, self._branch)
        return self._paid_for(call)

    async def _paid_for(self, call: Awaitable[Any]) -> Any:
        answer = await call
        self._spend(answer)
        return answer

    def at_once(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reconciler: Callable[[], Any] | None
    ) -> Any:
        self._may_pay()
        answer = self._execution.call_now(self._named, args, kwargs, reconciler)
        self._spend(answer)
        return answer

    def _may_pay(self) -> None:
        """Models are not called when a budget is used up; tools cost nothing themselves."""
        if self._costs:
            self._execution.guarded().check_budgets()

    def _spend(self, answer: Any) -> None:
        """Also for an answer from the log: what an action spends is counted when it ends, however often it was started."""
        usage: Any = getattr(answer, "usage", None)
        if hasattr(usage, "total_tokens"):
            self._execution.guarded().spend(usage.total_tokens, usage.cost or 0)


def resource_view(execution: ActionExecution, name: str, kind: ResourceType, *, durable: bool) -> Any:
    """What an action receives for a resource: models and tools as views with durable calls, others unchanged."""
    cache = execution.run.runtime.resources
    found = cache.get_tool(name) if kind is ResourceType.TOOL else cache.get_resource(name, kind)
    method = METHODS.get(kind)
    if method is None or not callable(getattr(found, method, None)):
        return found
    named = NamedFunction(getattr(found, method), f"{kind.value.replace('_', ' ')} {name!r}", found)
    costs = kind is not ResourceType.TOOL
    answer = DurableMethod(execution, named, costs=costs) if durable else named.durable_function
    is_function = kind is ResourceType.TOOL and not callable(found) and callable(getattr(found, "func", None))
    return (FunctionToolView if is_function else ResourceView)(found, method, answer)
