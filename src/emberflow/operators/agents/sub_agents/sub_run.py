"""One call of a sub-agent: a run of its own inside an action of the agent that calls it.

The sub-agent has its own plan, resources, memory, events and failures. Its durable calls are calls of the calling action,
whose ids they extend, and what it spends counts there: a crash, a checkpoint or a retry sees one action. The coroutine of
that action drives it, one action of the sub-agent after another.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from emberflow.errors import EmberflowError, InvalidArgument
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.events.copies import copied
from emberflow.events.event_ids import current_ids
from emberflow.events.run_ids import format_sub_run
from emberflow.operators.agents.action_errors import check_input, check_result, explained, too_many_steps
from emberflow.operators.agents.agent_run import AgentRun
from emberflow.operators.agents.calls.durable_calls import ActionCalls
from emberflow.operators.agents.calls.failed_calls import current_asker
from emberflow.operators.agents.execution import ActionExecution
from emberflow.operators.agents.guards.attempts import run_guarded, unwrapped
from emberflow.operators.agents.guards.error_kinds import log_failure
from emberflow.operators.agents.guards.failures import deals_with
from emberflow.operators.agents.outcome import keep_failure, raise_kept_failure
from emberflow.operators.agents.sub_agents.sub_memory import SubMemory
from emberflow.state.entry import Entry

if TYPE_CHECKING:
    from emberflow.operators.agents.agent_runtime import AgentRuntime
    from emberflow.operators.agents.routes import RunnableAction

_OUTPUT = OutputEvent.EVENT_TYPE

Path = tuple[int, ...]


class SubRun(AgentRun):
    """The run of the sub-agent. Never stored: when the calling action is repeated, so is the call."""

    __slots__ = ("_sub_memory", "caller", "calls", "outputs", "path")

    def __init__(
        self, runtime: AgentRuntime, caller: ActionExecution, calls: ActionCalls | None, path: Path
    ) -> None:
        above = caller.run
        super().__init__(runtime, above.scope, above.key, Entry())
        self.caller: ActionExecution | None = caller
        self.calls = calls
        """A branch of the durable calls of the calling action; None without a log."""
        self.path = path
        self.outputs: list[Any] = []
        self._sub_memory: SubMemory | None = None

    def begin_call(self, value: Any) -> Event:
        """The input event, which belongs to the calling action."""
        caller = self.caller
        assert caller is not None
        top = caller.outermost
        event = self.begin(
            value, caller.run.timestamp, format_sub_run(top.run.run_id, top.run.steps, self.path)
        )
        self.origin = (caller.run.runtime.plan.name, caller.event.id)
        event.upstream_event_id = caller.event.id
        event.upstream_action_name = caller.action.name
        return event

    @property
    def memory(self) -> Any:
        found = self._sub_memory
        if found is None:
            assert self.caller is not None
            name = self.runtime.plan.name
            found = self._sub_memory = SubMemory(self.runtime.settings, self.caller.run.memory, name)
        return found

    def keep_writes(self) -> None:
        if self._sub_memory is not None:
            self._sub_memory.keep()

    def undo_writes(self) -> None:
        if self._sub_memory is not None:
            self._sub_memory.journal.undo()

    def hand_over_writes(self) -> None:
        """The call has succeeded: its memory writes become writes of the calling action."""
        if self._sub_memory is not None:
            self._sub_memory.hand_over()

    def action_number(self, step: int) -> str:
        assert self.caller is not None
        return self.caller.call_prefix

    def now_ms(self) -> int:
        assert self.caller is not None
        return self.caller.run.now_ms()


class SubExecution(ActionExecution):
    """The execution of an action of a sub-agent."""

    __slots__ = ()

    run: SubRun

    @property
    def outermost(self) -> ActionExecution:
        assert self.run.caller is not None
        return self.run.caller.outermost

    @property
    def path(self) -> Path:
        return (*self.run.path, self.run.steps)

    @property
    def stopped(self) -> bool:
        caller = self.run.caller
        return super().stopped or (caller is not None and caller.stopped)

    def durable_calls(self) -> ActionCalls | None:
        self.check_running("makes a durable call")
        if self._durable is None:
            calls, log = self.run.calls, None
            if self.action.guards.retry is not None:
                log = self.guarded().log_of_attempts(None if calls is None else calls.log)
                calls = calls or ActionCalls(log, self.call_prefix, restarts=False, path=self.run.path)
            if calls is not None:
                secrets = self.run.runtime.resources.secrets
                self._durable = calls.child(self.run.steps, secrets, log)
        return self._durable

    def fail(self) -> None:
        # The calls that raised stay recorded: the calling action may go on, and must fare the same when it is repeated.
        self.ended = True
        self.hand_over_raised()

    def hand_over_raised(self) -> None:
        """They are forgotten if the calling action fails."""
        if self._durable is not None and self.run.calls is not None:
            self.run.calls.failed += self._durable.failed

    def raise_kept_failure(self) -> None:
        """As in an action that no other agent has called."""
        if self.run.calls is not None and self.run.runtime.routes.goes_on_after_failures:
            raise_kept_failure(self.run.calls.log, self)

    def keep_failure(self, error: BaseException, attempts: int) -> None:
        calls = self.run.calls
        if calls is not None:
            askers = (current_asker(), *calls.askers)
            calls.failed.append(keep_failure(calls.log, self, error, attempts, askers))


async def run_sub_agent(
    runtime: AgentRuntime, caller: ActionExecution, calls: ActionCalls | None, path: Path, value: Any
) -> list[Any]:
    """The outputs of a sub-agent for an input. Raises ActionFailed, or another EmberflowError, if it fails."""
    run = SubRun(runtime, caller, calls, path)
    event = run.begin_call(value)
    if runtime.recorder is not None:
        runtime.recorder.event(run, event)
    try:
        check_input(event, runtime.settings.max_event_bytes)
        run.tasks.extend((action, event) for action in runtime.routes.triggered_by(event))
    except Exception as error:
        raise _failed(run, None, event, error, 1) from None
    while run.tasks:
        action, event = run.tasks.popleft()
        caller.check_running("calls an agent")
        run.steps += 1
        await _run_action(run, SubExecution(run, action, event))
    run.hand_over_writes()
    return run.outputs


async def _run_action(run: SubRun, execution: SubExecution) -> None:
    action, event, runtime = execution.action, execution.event, run.runtime
    before = current_ids.set(execution)
    try:
        if run.steps > runtime.settings.max_steps:
            raise too_many_steps(runtime.settings.max_steps)
        execution.raise_kept_failure()
        check_result(await run_guarded(execution))
        execution.check_replay()
        _finish(run, execution)
    except asyncio.CancelledError:
        execution.hand_over_raised()
        raise
    except Exception as raised:
        execution.fail()
        run.undo_writes()
        run.repeat_kept(execution.kept)
        run.take_back(execution.sent)
        error, attempts = unwrapped(execution.cause_of(raised))
        lost = log_failure(error)
        if lost is not None:
            raise lost from None
        if deals_with(runtime, run, action, event, error, attempts):
            execution.keep_failure(error, attempts)
            return
        raise _failed(run, action, event, error, attempts) from None
    finally:
        # A coroutine that is dropped before its end is closed in another context, where there is nothing to reset.
        with contextlib.suppress(ValueError):
            current_ids.reset(before)


def _finish(run: SubRun, execution: SubExecution) -> None:
    """Applies the effects of an action that has ended."""
    runtime = run.runtime
    execution.ended = True
    tasks = [(action, event) for event in execution.sent for action in runtime.routes.triggered_by(event)]
    if runtime.recorder is not None:
        for event in execution.sent:
            runtime.recorder.event(run, event)
    run.outputs += [copied(event.attributes["output"]) for event in execution.sent if event.type == _OUTPUT]
    run.failure = None
    run.tasks.extend(tasks)
    run.keep_writes()
    execution.hand_over_raised()


def _failed(
    run: SubRun, action: RunnableAction | None, event: Event, error: BaseException, attempts: int
) -> EmberflowError:
    runtime, name = run.runtime, "" if action is None else action.name
    failure = explained(runtime.plan.name, name, run.key, event, error, skipped=True, attempts=attempts)
    runtime.resources.hide_secrets(failure)
    if runtime.recorder is not None:
        runtime.recorder.failure(run, name, event, failure)
    return failure


def result_of(outputs: list[Any]) -> Any:
    """The only output, None without one, else all of them."""
    if not outputs:
        return None
    return outputs[0] if len(outputs) == 1 else outputs


def check_may_wait(execution: ActionExecution, name: str) -> None:
    """Raises InvalidArgument in a plain action, which cannot await an agent."""
    if not execution.action.awaits:
        raise InvalidArgument(
            f"action {execution.action.name!r} cannot wait for the agent {name!r}: it is a plain function",
            way_out=f"write it as: async def act(event, ctx), and: await ctx.call_agent({name!r}, …)",
        )
