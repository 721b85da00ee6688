"""What an action is handed besides its event."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from emberflow.errors import InvalidArgument, NotSupported, shorten
from emberflow.events.agent_events import Event
from emberflow.events.run_ids import format_call
from emberflow.operators.agents.calls.durable_calls import ActionCalls, takes_idempotency_key
from emberflow.operators.agents.guards.context_guards import ContextGuards
from emberflow.operators.agents.resources.durable_views import (
    DurableMethod,
    ResourceAccess,
    function_of,
    inside_a_call,
    part_of_a_call,
)
from emberflow.plan.agents.config import Configuration
from emberflow.plan.agents.options import AgentExecutionOptions
from emberflow.state.memory_object import MemoryObject

if TYPE_CHECKING:
    from emberflow.observability.metric_group import MetricGroup
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.routes import RunnableAction

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class WantsKey(Protocol[R_co]):
    """A function that is given the key of its durable call."""

    def __call__(self, *args: Any, idempotency_key: str, **kwargs: Any) -> R_co: ...


class RunnerContext(ResourceAccess, ContextGuards):
    """One action's view of its run: events, memory, resources, calls. Of no use once the action has ended."""

    __slots__ = (
        "_action",
        "_durable",
        "_event",
        "_run",
        "_short_term",
        "_unrecorded",
        "beyond",
        "ended",
        "sent",
    )

    def __init__(self, run: AgentRun, action: RunnableAction, event: Event) -> None:
        self._run = run
        self._action = action
        self._event = event
        self.sent: list[Event] = []
        self.ended = False
        self.beyond = None
        self._durable: ActionCalls | None = None
        self._unrecorded = 0
        self._short_term: MemoryObject | None = None

    def send_event(self, event: Event) -> None:
        """The event triggers its actions when this action has ended; an OutputEvent leaves downstream then."""
        if self.ended:
            raise InvalidArgument(
                f"action {self._action.name!r} sends an event after it has ended",
                way_out="await everything the action starts before it returns",
            )
        self.sent.append(self._run.identified(event, self._event, self._action))

    @property
    def key(self) -> Any:
        """The key whose input this is."""
        return self._run.key

    @property
    def timestamp(self) -> int | None:
        """Event time of the input in milliseconds; outputs leave with the same."""
        return self._run.timestamp

    @property
    def run_id(self) -> str:
        """Names this input's run; the same when the run is repeated."""
        return self._run.run_id

    @property
    def call_prefix(self) -> str:
        """What the ids of this action's durable calls begin with."""
        return self._run.action_number(self._run.steps)

    @property
    def short_term_memory(self) -> MemoryObject:
        """What the agent remembers about the key, across inputs."""
        found = self._short_term
        if found is None:
            found = self._short_term = MemoryObject(self._run.short_term(), "", self)
        return found

    @property
    def sensory_memory(self) -> MemoryObject:
        """What the actions of this run share; gone when the run ends."""
        return MemoryObject(self._run.sensory(), "", self)

    @property
    def long_term_memory(self) -> Any:
        """Not there yet; raises `NotSupported`."""
        raise NotSupported(
            "long-term memory needs a vector store, which this version does not have yet",
            way_out="short_term_memory keeps values per key",
        )

    @property
    def config(self) -> Configuration:
        """The agent's settings."""
        return self._run.agent.plan.config

    @property
    def action_config(self) -> dict[str, Any]:
        """What `add_action(..., **config)` was given."""
        return self._action.config

    def get_action_config_value(self, key: str) -> Any:
        """One value of `action_config`; None if there is none."""
        return self._action.config.get(key)

    @property
    def agent_metric_group(self) -> MetricGroup:
        """Counters and gauges of the agent."""
        return self._run.agent.metrics

    @property
    def action_metric_group(self) -> MetricGroup:
        """Counters and gauges of this action."""
        return self._run.agent.metrics.get_sub_group(self._action.name)

    # Overloads: arguments are checked against the function's; with a reconciler, or for a function that is given its
    # idempotency key, a type checker cannot.

    @overload
    def durable_execute(self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def durable_execute(
        self, func: Callable[..., R], *args: Any, reconciler: Callable[[], object] | None, **kwargs: Any
    ) -> R: ...
    @overload
    def durable_execute(self, func: WantsKey[R], *args: Any, **kwargs: Any) -> R: ...
    def durable_execute(
        self, func: Callable[..., Any], *args: Any, reconciler: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Any:
        """Runs `func(*args, **kwargs)` now and returns its result; when the action is repeated after a crash, the
        recorded result is returned instead.

        It blocks the whole task: prefer `durable_execute_async` for what takes long. `reconciler` and
        `idempotency_key` are as there. A coroutine function raises `InvalidArgument`; a repeated action that makes other
        calls than were recorded raises `ReplayMismatch`.
        """
        if isinstance(func, DurableMethod):
            return func.at_once(args, kwargs, reconciler)
        function = function_of(func)
        if inspect.iscoroutinefunction(function):
            inner = function.func if isinstance(function, partial) else function
            raise InvalidArgument(
                f"action {self._action.name!r}: {getattr(inner, '__name__', shorten(inner))} is a coroutine function",
                way_out="make the action async and write: await ctx.durable_execute_async(…)",
            )
        durable = self._durable_calls()
        if durable is None:
            return part_of_a_call(function, *args, **self._with_key(func, kwargs, self._count_call()))
        call = durable.next(func, args, kwargs)
        make = partial(part_of_a_call, function, *args, **self._with_key(func, kwargs, call.call_id))
        return durable.run_now(call, make, reconciler)

    @overload
    def durable_execute_async(
        self, func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self,
        func: Callable[..., Awaitable[R]],
        *args: Any,
        reconciler: Callable[[], object] | None,
        **kwargs: Any,
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self, func: Callable[..., R], *args: Any, reconciler: Callable[[], object] | None, **kwargs: Any
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(
        self, func: WantsKey[Awaitable[R]], *args: Any, **kwargs: Any
    ) -> Awaitable[R]: ...
    @overload
    def durable_execute_async(self, func: WantsKey[R], *args: Any, **kwargs: Any) -> Awaitable[R]: ...
    def durable_execute_async(
        self, func: Callable[..., Any], *args: Any, reconciler: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Awaitable[Any]:
        """Runs a coroutine function, or a blocking function in a thread, while other keys go on; awaiting it gives what
        the function returns.

        The answer is recorded before it is given, and given again when the action is repeated after a crash. `gather` of
        several is fine. `reconciler` is asked instead of making the call once more, if the call was begun and its end not
        recorded. A function with a parameter `idempotency_key` gets a key that is the same when the call is repeated;
        declare it keyword-only or with a default, so that a type checker accepts the call without it. A repeated action
        that makes other calls than were recorded raises `ReplayMismatch`.
        """
        if isinstance(func, DurableMethod):
            return func.in_time(args, kwargs, reconciler)
        # Numbered here and not when it is awaited: the order of the calls in the code decides.
        durable = self._durable_calls()
        if durable is None:
            return self._run_call(func, args, self._with_key(func, kwargs, self._count_call()))
        call = durable.next(func, args, kwargs)
        make = partial(self._run_call, func, args, self._with_key(func, kwargs, call.call_id))
        return durable.run(call, make, reconciler)

    async def _run_call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = function_of(func)
        with inside_a_call():
            if inspect.iscoroutinefunction(function):
                return await function(*args, **kwargs)
            agent = self._run.agent
            threads = agent.plan.config.get(AgentExecutionOptions.NUM_ASYNC_THREADS)
            here = copy_context()
            result = await agent.calls.in_thread(partial(here.run, function, *args, **kwargs), threads)
            return await result if inspect.isawaitable(result) else result

    def _durable_calls(self) -> ActionCalls | None:
        log = self.log_of_calls()
        if log is not None and self._durable is None:
            agent = self._run.agent
            self._durable = ActionCalls(
                log, self.call_prefix, restarts=agent.restarts_on_mismatch, secrets=agent.resources.secrets
            )
        return self._durable

    def _count_call(self) -> str:
        self._unrecorded += 1
        return format_call(self.call_prefix, self._unrecorded)

    def _with_key(self, func: Any, kwargs: dict[str, Any], call_id: str) -> dict[str, Any]:
        inner = function_of(func)
        inner = inner.func if isinstance(inner, partial) else inner
        wanted = getattr(func, "wants_idempotency_key", False)
        if "idempotency_key" in kwargs or not (
            wanted or takes_idempotency_key(getattr(inner, "__func__", inner))
        ):
            return kwargs
        return {**kwargs, "idempotency_key": call_id}

    def fail(self) -> None:
        """The action has failed."""
        self.ended = True
        if self._durable is not None:
            self._durable.fail()
