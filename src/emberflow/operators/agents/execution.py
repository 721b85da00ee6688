"""One execution of an action: what it has sent so far, its durable calls and its guards.

Created by the action runner for every action it runs. Actions themselves see only the `RunnerContext` in front of it. Its
effects are applied only when the action has ended.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.events.agent_events import Event
from emberflow.events.run_ids import format_call
from emberflow.operators.agents.calls.durable_calls import ActionCalls, takes_idempotency_key
from emberflow.operators.agents.guards.action_guards import ActionGuards
from emberflow.operators.agents.resources.durable_views import (
    NamedFunction,
    function_of,
    inside_a_call,
    part_of_a_call,
)

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.routes import RunnableAction


class Attempt:
    """One attempt of an action."""

    __slots__ = ("failed",)

    def __init__(self) -> None:
        self.failed = False


_attempt: ContextVar[Attempt | None] = ContextVar("emberflow-attempt", default=None)
"""The attempt that the running code belongs to. Tasks inherit it, so that a task that outlives its attempt, such as the
rest of a failed `gather`, can be told apart from those of the next attempt."""


class ActionExecution:
    __slots__ = ("_attempt", "_durable", "_unrecorded", "action", "ended", "event", "guards", "run", "sent")

    def __init__(self, run: AgentRun, action: RunnableAction, event: Event) -> None:
        self.run = run
        self.action = action
        self.event = event
        self.sent: list[Event] = []
        self.ended = False
        self.guards: ActionGuards | None = None
        """Attempts, budgets, delayed events and questions; None until the action uses one of them."""
        self._attempt: Attempt | None = None
        """The current attempt of an action with retries."""
        self._durable: ActionCalls | None = None
        self._unrecorded = 0

    @property
    def call_prefix(self) -> str:
        """The prefix of the ids of this action's durable calls."""
        return self.run.action_number(self.run.steps)

    def guarded(self) -> ActionGuards:
        found = self.guards
        if found is None:
            found = self.guards = ActionGuards(self)
        return found

    def send(self, event: Event) -> None:
        self.check_running("sends an event")
        self.sent.append(self.run.identified(event, self.event, self.action))

    @property
    def stopped(self) -> bool:
        """Whether the calling code was left behind: the action has ended, or the attempt that started it has failed."""
        if self._attempt is None or self.ended:
            return self.ended
        asking = _attempt.get()
        return asking is not None and asking.failed

    def check_running(self, what: str) -> None:
        """Raises in a task that its action has left behind."""
        if self.stopped:
            raise InvalidArgument(
                f"action {self.action.name!r} {what} after {'it has ended' if self.ended else 'its attempt has failed'}",
                way_out="await everything the action starts before it returns or raises",
            )

    def fail(self) -> None:
        """The action has failed."""
        self.ended = True
        if self._durable is not None:
            self._durable.fail()

    def begin_attempt(self) -> None:
        """Called by the coroutine that will run the attempt."""
        self._attempt = Attempt()
        _attempt.set(self._attempt)

    def start_over(self) -> None:
        """An attempt has failed: reverts everything it did. Calls that returned will be answered from the log."""
        run = self.run
        if self._attempt is not None:
            self._attempt.failed = True
            self.begin_attempt()
        if self._durable is not None:
            self._durable.fail()
        run.undo_writes()
        run.take_back(self.sent)
        self.sent = []
        self._durable = None
        self._unrecorded = 0

    # durable calls

    def durable_calls(self) -> ActionCalls | None:
        """None if there is no log in which answers would be found again."""
        # Its number would be that of a call of the next action or attempt.
        self.check_running("makes a durable call")
        found = self._durable
        if found is None:
            runtime = self.run.runtime
            log = runtime.log if self.action.guards.retry is None else self.guarded().log_of_attempts()
            if log is not None:
                found = self._durable = ActionCalls(
                    log,
                    self.call_prefix,
                    restarts=runtime.settings.restarts_on_mismatch,
                    secrets=runtime.resources.secrets,
                )
        return found

    def call_now(
        self,
        func: Callable[..., Any] | NamedFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reconciler: Callable[[], Any] | None,
    ) -> Any:
        function = function_of(func)
        if inspect.iscoroutinefunction(function):
            inner = function.func if isinstance(function, partial) else function
            raise InvalidArgument(
                f"action {self.action.name!r}: {getattr(inner, '__name__', shorten(inner))} is a coroutine function",
                way_out="make the action async and write: await ctx.durable_execute_async(…)",
            )
        durable = self.durable_calls()
        if durable is None:
            return part_of_a_call(function, *args, **_with_key(func, kwargs, self._count_call()))
        call = durable.next(func, args, kwargs)
        make = partial(part_of_a_call, function, *args, **_with_key(func, kwargs, call.call_id))
        return durable.run_now(call, make, reconciler)

    def call_async(
        self,
        func: Callable[..., Any] | NamedFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reconciler: Callable[[], Any] | None,
    ) -> Awaitable[Any]:
        # Numbered here and not when it is awaited: the order of the calls in the code decides.
        durable = self.durable_calls()
        if durable is None:
            return self._make_call(func, args, _with_key(func, kwargs, self._count_call()))
        call = durable.next(func, args, kwargs)
        make = partial(self._make_call, func, args, _with_key(func, kwargs, call.call_id))
        return durable.run(call, make, reconciler)

    async def _make_call(
        self, func: Callable[..., Any] | NamedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        function = function_of(func)
        with inside_a_call():
            if inspect.iscoroutinefunction(function):
                return await function(*args, **kwargs)
            runtime = self.run.runtime
            blocking = partial(copy_context().run, function, *args, **kwargs)
            result = await runtime.calls.in_thread(blocking, runtime.settings.threads)
            return await result if inspect.isawaitable(result) else result

    def _count_call(self) -> str:
        self._unrecorded += 1
        return format_call(self.call_prefix, self._unrecorded)


def _with_key(func: Any, kwargs: dict[str, Any], call_id: str) -> dict[str, Any]:
    inner = function_of(func)
    inner = inner.func if isinstance(inner, partial) else inner
    wanted = getattr(func, "wants_idempotency_key", False)
    if "idempotency_key" in kwargs or not (
        wanted or takes_idempotency_key(getattr(inner, "__func__", inner))
    ):
        return kwargs
    return {**kwargs, "idempotency_key": call_id}
