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
from emberflow.events.run_ids import format_call, format_early_event
from emberflow.operators.agents.calls.call_descriptions import takes_idempotency_key
from emberflow.operators.agents.calls.call_entries import CallEntry
from emberflow.operators.agents.calls.durable_calls import ActionCalls, Recorded
from emberflow.operators.agents.calls.failed_calls import FailedCall
from emberflow.operators.agents.calls.host_threads import threads_of
from emberflow.operators.agents.calls.replay import Replay
from emberflow.operators.agents.guards.action_guards import ActionGuards
from emberflow.operators.agents.resources.durable_views import (
    NamedFunction,
    function_of,
    inside_a_call,
    is_inside_a_call,
    part_of_a_call,
)

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_run import AgentRun
    from emberflow.operators.agents.routes import RunnableAction
    from emberflow.state.memory import Write


class Attempt:
    """One attempt of an action."""

    __slots__ = ("failed",)

    def __init__(self) -> None:
        self.failed = False


_attempt: ContextVar[Attempt | None] = ContextVar("emberflow-attempt", default=None)
"""The attempt that the running code belongs to. Tasks inherit it, so that a task that outlives its attempt, such as the
rest of a failed `gather`, can be told apart from those of the next attempt."""


class ActionExecution:
    __slots__ = (
        "_attempt",
        "_durable",
        "_early",
        "_unrecorded",
        "action",
        "early_ids",
        "ended",
        "event",
        "guards",
        "kept",
        "run",
        "sent",
    )

    def __init__(self, run: AgentRun, action: RunnableAction, event: Event) -> None:
        self.run = run
        self.action = action
        self.event = event
        self.sent: list[Event] = []
        self.ended = False
        self.kept: list[Write] = []
        """Writes to sensory memory that remain if the action fails."""
        self.guards: ActionGuards | None = None
        """Attempts, budgets, delayed events and questions; None until the action uses one of them."""
        self._attempt: Attempt | None = None
        """The current attempt of an action with retries."""
        self._durable: ActionCalls | None = None
        self._unrecorded = 0
        self._early = 0
        self.early_ids: set[str] | None = None
        """Ids of events that have not been sent; None if no id was read before its event was sent."""

    @property
    def call_prefix(self) -> str:
        """The prefix of the ids of this action's durable calls."""
        return self.run.action_number(self.run.steps)

    @property
    def path(self) -> tuple[int, ...]:
        """Where the durable calls are within the outermost action; see `sub_agents/sub_run.py`."""
        return ()

    @property
    def outermost(self) -> ActionExecution:
        """The action in which this one is executed: itself, unless it is one of a sub-agent."""
        return self

    def guarded(self) -> ActionGuards:
        found = self.guards
        if found is None:
            found = self.guards = ActionGuards(self)
        return found

    def send(self, event: Event) -> None:
        if self.ended or self._attempt is not None:
            self.check_running("sends an event")
        self.sent.append(self.run.identified(event, self.event, self.action, self.early_ids))

    def new_event_id(self) -> str | None:
        """For an event whose id is read before it is sent (`events/event_ids.py`)."""
        if self.stopped or is_inside_a_call():
            return None
        self._early += 1
        made = format_early_event(self.run.run_id, self.run.steps, self._early)
        if self.early_ids is None:
            self.early_ids = set()
        self.early_ids.add(made)
        return made

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

    @property
    def failed_calls(self) -> list[FailedCall]:
        """Its durable calls that raised."""
        return [] if self._durable is None else self._durable.failed

    def check_replay(self) -> None:
        """Raises ReplayMismatch if the action has ended as if there were no recorded answers: it has caught that error, or
        made no calls although an action at its place did."""
        if self._durable is not None:
            self._durable.replay.check()
            return
        runtime = self.run.runtime
        log = runtime.log
        if log is None or log.is_empty() or runtime.settings.restarts_on_mismatch:
            return
        found = log.find(format_call(self.call_prefix, *self.path, 1))
        # Attempts and handled failures may differ in what they call.
        if found is not None and not self.run.handled and (self.guards is None or self.guards.attempt == 1):
            raise Replay().differs(
                f"action {self.action.name!r} made no durable call; "
                f"an action at this place of the run made {found.shown} when it was recorded"
            )

    def cause_of(self, error: BaseException) -> BaseException:
        """Why the action failed with this error."""
        mismatch = None if self._durable is None else self._durable.replay.mismatch
        return error if mismatch is None else mismatch

    def forget_raised(self) -> None:
        """The job fails with the action: calls that raised may succeed when it is repeated."""
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
        self.kept = []
        self._durable = None
        self._unrecorded = self._early = 0
        self.early_ids = None

    # durable calls

    def durable_calls(self) -> ActionCalls | None:
        """None if there is no log in which answers would be found again."""
        # Its number would be that of a call of the next action or attempt.
        self.check_running("makes a durable call")
        found = self._durable
        if found is None:
            runtime = self.run.runtime
            log: Recorded | None = runtime.log
            if self.action.guards.retry is not None:
                log = self.guarded().log_of_attempts(log)
            if log is not None:
                found = self._durable = ActionCalls(
                    log,
                    self.call_prefix,
                    restarts=runtime.settings.restarts_on_mismatch,
                    secrets=runtime.resources.secrets,
                    after=self.run.handled,
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
        if inspect.iscoroutinefunction(function) and isinstance(func, NamedFunction):
            # The method of a model or a tool: the action waits for it.
            function = partial(self.blocked_by, function)
        elif inspect.iscoroutinefunction(function):
            inner = function.func if isinstance(function, partial) else function
            raise InvalidArgument(
                f"action {self.action.name!r}: {getattr(inner, '__name__', shorten(inner))} is a coroutine function",
                way_out="make the action async and write: await ctx.durable_execute_async(…)",
            )
        durable = self.durable_calls()
        call = None if durable is None else durable.next(func, args, kwargs)
        call_id = self._count_call() if call is None else call.call_id
        make: Callable[[], Any] = partial(part_of_a_call, function, *args, **_with_key(func, kwargs, call_id))
        entry = self._entry(func, call_id, args, kwargs)
        if entry is not None:
            make = entry.watched(make)
        run = make if durable is None or call is None else partial(durable.run_now, call, make, reconciler)
        return run() if entry is None else entry.ended_now(run)

    def blocked_by(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of a coroutine function, for code that cannot await it."""
        return self.run.runtime.calls.wait_for(partial(function, *args, **kwargs))

    def call_async(
        self,
        func: Callable[..., Any] | NamedFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reconciler: Callable[[], Any] | None,
        branch: ActionCalls | None = None,
    ) -> Awaitable[Any]:
        # Numbered here and not when it is awaited: the order of the calls in the code decides.
        durable = self.durable_calls()
        if branch is not None:
            durable = branch
        call = None if durable is None else durable.next(func, args, kwargs)
        call_id = self._count_call() if call is None else call.call_id
        make: Callable[[], Any] = partial(self.make_call, func, args, _with_key(func, kwargs, call_id))
        entry = self._entry(func, call_id, args, kwargs)
        if entry is not None:
            make = entry.watched(make)
        made = make() if durable is None or call is None else durable.run(call, make, reconciler)
        return made if entry is None else entry.ended(made)

    def _entry(
        self, func: Any, call_id: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> CallEntry | None:
        """For a call of a model or a tool while there is an event log."""
        recorder = self.run.runtime.recorder
        if recorder is None or not recorder.logs_calls or not isinstance(func, NamedFunction):
            return None
        return CallEntry(self, func.durable_name, call_id, args, kwargs, func.event or self.event)

    async def make_call(
        self, func: Callable[..., Any] | NamedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        function = function_of(func)
        runtime = self.run.runtime
        with inside_a_call(), threads_of(runtime.in_thread):
            if inspect.iscoroutinefunction(function):
                return await function(*args, **kwargs)
            blocking = partial(copy_context().run, function, *args, **kwargs)
            result = await runtime.in_thread(blocking)
            return await result if inspect.isawaitable(result) else result

    def count_unrecorded(self) -> int:
        """The number of the next call that is not recorded."""
        self._unrecorded += 1
        return self._unrecorded

    def _count_call(self) -> str:
        return format_call(self.call_prefix, *self.path, self.count_unrecorded())


def _with_key(func: Any, kwargs: dict[str, Any], call_id: str) -> dict[str, Any]:
    inner = function_of(func)
    inner = inner.func if isinstance(inner, partial) else inner
    wanted = getattr(func, "wants_idempotency_key", False)
    if not wanted and getattr(func, "takes_key_itself", True):
        wanted = takes_idempotency_key(getattr(inner, "__func__", inner))
    if "idempotency_key" in kwargs or not wanted:
        return kwargs
    return {**kwargs, "idempotency_key": call_id}
