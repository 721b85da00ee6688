"""The durable calls of one chat of an action: of its model and of the tools that the model asks for.

Handed to the chat loop of the public API (`agents/built_in/`), which decides what is called. The calls of one branch are
made in a fixed order, whatever else the action does meanwhile: several chats of an action may run concurrently.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from emberflow.events.agent_events import Event
from emberflow.operators.agents.calls.call_descriptions import takes_idempotency_key
from emberflow.operators.agents.calls.masked_errors import mask
from emberflow.operators.agents.resources.durable_views import METHODS, DurableMethod, NamedFunction
from emberflow.operators.agents.resources.injected_arguments import injected_arguments
from emberflow.operators.agents.resources.resource_views import unwrapped
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.resources import ResourceType

if TYPE_CHECKING:
    from emberflow.operators.agents.execution import ActionExecution
    from emberflow.operators.agents.runner_context import RunnerContext


class CallBranch:
    """Takes its number within the action when it is created."""

    __slots__ = ("_calls", "_context", "_event", "_execution")

    def __init__(
        self,
        execution: ActionExecution,
        context: RunnerContext,
        *,
        blocking: bool = False,
        event: Event | None = None,
    ) -> None:
        self._execution = execution
        self._event = event
        self._context = context
        durable = execution.durable_calls()
        self._calls = None if durable is None else durable.branch()
        if blocking and self._calls is not None:
            self._calls.blocking = True

    @property
    def config(self) -> Configuration:
        """The agent's settings."""
        return self._execution.run.runtime.plan.config

    def resource(self, name: str, kind: ResourceType) -> Any:
        """A resource as it is, without durable calls. Raises ResourceFailed if there is none."""
        cache = self._execution.run.runtime.resources
        return cache.get_tool(name) if kind is ResourceType.TOOL else cache.get_resource(name, kind)

    def has_resource(self, name: str, kind: ResourceType) -> bool:
        """Whether the agent declares a resource of this name."""
        return name in self._execution.run.runtime.plan.resource_providers.get(kind, {})

    @property
    def has_mcp_servers(self) -> bool:
        """Whether there may be tools that the agent does not declare."""
        return bool(self._execution.run.runtime.plan.resource_providers.get(ResourceType.MCP_SERVER))

    def call(
        self,
        resource: Any,
        name: str,
        kind: ResourceType,
        make: Callable[..., Coroutine[Any, Any, Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
    ) -> Awaitable[Any]:
        """`make(*args, **kwargs)` as one durable call of the resource with this name; numbered here, not when it is awaited.

        `make` calls the resource itself; an idempotency key is passed to it if the resource accepts one.
        """
        shown = f"{kind.value.replace('_', ' ')} {name!r}"
        named = NamedFunction(make, shown, resource, takes_key_itself=False, event=self._event)
        method: Any = getattr(unwrapped(resource), METHODS[kind], None)
        if takes_idempotency_key(getattr(method, "__func__", method)):
            named.wants_idempotency_key = True
        costs = kind is not ResourceType.TOOL
        durable = DurableMethod(self._execution, named, costs=costs, branch=self._calls)
        return durable.in_time(args, kwargs or {}, None)

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Within a durable call: awaits a coroutine function, runs a blocking function on a thread."""
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        return await self._execution.make_call(function, args, kwargs)

    def injected(self, tool: Any) -> dict[str, Any]:
        """The arguments of a tool that a model does not choose. Raises InvalidArgument if one is missing."""
        return injected_arguments(tool, self._context)

    def call_agent(self, name: str, value: Any) -> Awaitable[Any]:
        """The result of a sub-agent; its calls are numbered as part of this branch."""
        from emberflow.operators.agents.sub_agents.agent_calls import call_agent

        return call_agent(self._execution, name, value, self._calls)

    def masked(self, text: str) -> str:
        """The text without the values of secrets."""
        return mask(text, self._execution.run.runtime.resources.secrets)
