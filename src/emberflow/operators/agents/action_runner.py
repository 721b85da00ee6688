"""Runs an agent's actions: one after another per key, asynchronous ones as calls. The effects of an action are applied
when it has ended, and discarded if it fails.

The agent operator *has* one; it knows runs and actions, not where runs come from or how they are stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from emberflow.errors import CallLogFailed, ReplayMismatch, describe_cause
from emberflow.events.agent_events import ErrorEvent, Event, OutputEvent
from emberflow.events.batch import Origin
from emberflow.events.copies import copied, copied_event
from emberflow.events.event_ids import current_ids
from emberflow.events.run_ids import format_outcome
from emberflow.operators.agents.action_errors import check_result, explained, too_many_steps
from emberflow.operators.agents.agent_run import AgentRun, RunState, Task
from emberflow.operators.agents.agent_runtime import AgentRuntime
from emberflow.operators.agents.calls.failed_calls import ids_of
from emberflow.operators.agents.execution import ActionExecution
from emberflow.operators.agents.guards.attempts import run_guarded, unwrapped
from emberflow.operators.agents.guards.delayed_events import Due, keep
from emberflow.operators.agents.guards.failures import deals_with, letter_of
from emberflow.operators.agents.outcome import keep_failure, leave_behind, raise_kept_failure
from emberflow.operators.agents.runner_context import RunnerContext
from emberflow.operators.operator import Output
from emberflow.operators.scope import Scope
from emberflow.plan.agents.guards import DEAD_LETTERS
from emberflow.plan.agents.options import ErrorHandling

_log = logging.getLogger("emberflow.agents")
_OUTPUT = OutputEvent.EVENT_TYPE
_ERROR = ErrorEvent.EVENT_TYPE


class RunDriver(Protocol):
    """The operator that owns the runs."""

    scope: Scope
    output: Output
    parks: bool
    failed: bool
    on_timer_set: Callable[[], None]

    def enter(self, scope: Scope) -> None: ...

    def collect_owned(
        self, results: Any, timestamp: int | None, watermark: int, origins: Sequence[Origin] | None = None
    ) -> None: ...

    def flush(self) -> None: ...

    def continue_run(self, run: AgentRun) -> None:
        """Continues with a key whose action has ended."""
        ...


class ActionRunner:
    def __init__(self, runtime: AgentRuntime, driver: RunDriver) -> None:
        self._runtime = runtime
        self._driver = driver
        self._keeps_failures = runtime.routes.goes_on_after_failures

    def drive(self, run: AgentRun) -> bool:
        """Runs the key's tasks until none is left (True) or one is in flight (False)."""
        runtime, tasks, log = self._runtime, run.tasks, self._runtime.log
        while tasks:
            action, event = tasks.popleft()
            run.steps += 1
            execution = ActionExecution(run, action, event)
            try:
                if run.steps > runtime.settings.max_steps:
                    raise too_many_steps(runtime.settings.max_steps)
                if self._keeps_failures and log is not None and not log.is_empty():
                    raise_kept_failure(log, execution)
                if runtime.budgets.counts_steps and run.failure is None and event.type != _ERROR:
                    # Error handling is still allowed when the step budget is used up.
                    execution.guarded().count({"steps": 1})
                if action.is_async:
                    run.current = (action, event)
                    self._call(execution)
                    return False
                # The last action may have the event itself; a later reader must find it as it was sent.
                given = event
                if runtime.keeps_events or action.keeps_event or (tasks and tasks[0][1] is event):
                    given = copied_event(event)
                if action.convert is not None and not isinstance(given, action.convert):
                    given = action.convert.from_event(given)
                current_ids.set(execution)
                result = action.function(given, RunnerContext(execution))
                if result is not None:
                    check_result(result)
                if log is not None:
                    execution.check_replay()
                self.finish(execution)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:
                # Of any class: libraries raise some that do not derive from Exception (SystemExit, a Rust panic).
                self.fail(execution, error)
        return True

    # asynchronous actions

    def _call(self, execution: ActionExecution) -> None:
        runtime, run = self._runtime, execution.run
        if runtime.log is not None and not runtime.log.claim(run.action_id):
            # The batch is repeated, and the action that it started before is still running.
            run.put_back()
            run.state = RunState.DORMANT
            return
        runtime.in_flight.attached.add(run)
        run.execution = execution
        runtime.calls.start(
            runtime.step.uid,
            runtime.settings.max_in_flight,
            lambda: self._act(execution),
            lambda result, error: self._ended(execution, result, error),
        )

    def _ended(self, execution: ActionExecution, result: Any, error: BaseException | None) -> None:
        """Called by the call service on the operator's thread when an action has ended."""
        driver, run, in_flight = self._driver, execution.run, self._runtime.in_flight
        if run.state is RunState.DETACHED:
            in_flight.detached -= 1
            return
        in_flight.attached.discard(run)
        run.current = run.execution = None
        before = driver.scope
        driver.enter(run.scope)
        try:
            if error is None:
                try:
                    check_result(result)
                    self.finish(execution)
                except Exception as failure:
                    error = failure
            if error is not None:
                self.fail(execution, error)
            driver.continue_run(run)
            driver.flush()
        finally:
            driver.enter(before)

    async def _act(self, execution: ActionExecution) -> Any:
        """The action, on the event loop. Whether a run is detached is decided while no coroutine runs, so if an action
        finds its run attached, its result will be received."""
        run, log = execution.run, self._runtime.log
        current_ids.set(execution)
        if log is None:
            try:
                return await self._started(execution)
            finally:
                execution.ended = True
        try:
            result: Any = None
            failure: Exception | None = None
            try:
                result = await self._started(execution)
                execution.check_replay()
                if run.state is RunState.DETACHED:
                    check_result(result)
            except Exception as error:
                failure = error
            except BaseException as error:
                if run.state is not RunState.DETACHED or isinstance(error, GeneratorExit):
                    raise
                # The end would never be recorded otherwise, and the action would be started over and over.
                failure = RuntimeError(f"the action ended with {describe_cause(error)}")
            # Set before its end is delivered: tasks that it left behind may run until then.
            execution.ended = True
            if run.state is RunState.DETACHED:
                if failure is not None:
                    execution.forget_raised()
                await leave_behind(log, execution, failure)
            if failure is not None:
                raise failure
            return result
        finally:
            log.ended(run.action_id)

    @staticmethod
    def _started(execution: ActionExecution) -> Any:
        """Starts an asynchronous action with a copy of its event: the run is stored with the event as it was sent."""
        action = execution.action
        if action.guards.waits:
            return run_guarded(execution)
        return action.function(action.given(copied_event(execution.event)), RunnerContext(execution))

    # the end of an action

    def finish(self, execution: ActionExecution) -> None:
        """Applies the effects of the action."""
        runtime, driver, run = self._runtime, self._driver, execution.run
        execution.ended = True
        sent = execution.sent
        if runtime.observation is not None:
            sent = [*sent, *runtime.observation.events(execution)]
        # Evaluate all conditions before anything is changed: one that fails must not leave partial effects.
        tasks: list[Task] = []
        outputs: list[tuple[Any, Any]] = []
        for event in sent:
            if event.type == _OUTPUT:
                outputs.append((run.key, event.attributes["output"]))
            else:
                tasks += [(action, event) for action in runtime.routes.triggered_by(event)]
        if outputs and runtime.keeps_outputs:
            outputs = [(key, copied(output)) for key, output in outputs]
        if runtime.recorder is not None:
            for event in sent:
                runtime.recorder.event(run, event)
        if outputs:
            driver.collect_owned(outputs, run.timestamp, run.scope.watermark, runtime.origins_of(sent))
        guards = execution.guards
        if guards is not None:
            if guards.spent:
                run.count_spent(guards.spent, runtime.budgets)
            if guards.later and not run.early:
                self._keep(run, guards.later)
        run.failure = None
        run.tasks.extend(tasks)
        run.keep_writes()
        if runtime.log is not None:
            runtime.log.done(execution.call_prefix)

    def _keep(self, run: AgentRun, later: list[Due]) -> None:
        keep(run.entry, later)
        for due_ms, _, _ in later:
            run.scope.processing_timers.register(due_ms, run.key)
        self._driver.on_timer_set()

    def fail(self, execution: ActionExecution, error: BaseException) -> None:
        """Discards the effects of the action except what it spent; the run continues if the agent handles the error."""
        runtime, run = self._runtime, execution.run
        execution.fail()
        self._driver.failed = True
        if self._driver.parks:
            failed = run.scope.work.failed
            failed[run.key] = (*failed.get(run.key, ()), execution.call_prefix)
        run.undo_writes()
        run.repeat_kept(execution.kept)
        run.take_back(execution.sent)
        if execution.guards is not None and execution.guards.spent:
            run.count_spent(execution.guards.spent, runtime.budgets)
        error, attempts = unwrapped(execution.cause_of(error))
        handled = not isinstance(error, CallLogFailed) and deals_with(
            runtime, run, execution.action, execution.event, error, attempts
        )
        if runtime.log is not None:
            if handled:
                run.handled.append(keep_failure(runtime.log, execution, error, attempts))
            runtime.log.done(execution.call_prefix)
        if handled:
            runtime.metrics.get_counter("handled_failures").inc()
            return
        try:
            self.fail_run(run, execution.action.name, execution.event, error, attempts)
        except BaseException:
            # The job fails, and repeats the run, which may succeed then: also the actions whose failures it handled, unless what
            # followed is recorded. In any other case what they raised stays recorded: the batch goes on, and must have the same
            # result if it is repeated.
            execution.forget_raised()
            if runtime.log is not None:
                runtime.log.forget([*ids_of(run.handled), format_outcome(execution.call_prefix)])
            raise
        if runtime.log is not None:
            runtime.log.gave_up(execution.call_prefix)

    def fail_run(
        self, run: AgentRun, action: str, event: Event, error: BaseException, attempts: int = 1
    ) -> None:
        """Ends the run: its input is skipped or becomes a dead letter, or the job fails."""
        runtime, on_error = self._runtime, self._runtime.settings.on_error
        # Neither a log that cannot be written nor code that has changed is the input's fault.
        skips = on_error is not ErrorHandling.FAIL and not isinstance(error, CallLogFailed | ReplayMismatch)
        failure = explained(
            runtime.plan.name, action, run.key, event, error, skipped=skips, attempts=attempts
        )
        shows_secret = runtime.resources.hide_secrets(failure)
        if runtime.recorder is not None:
            runtime.recorder.failure(run, action, event, failure)
        if not skips:
            raise failure from (None if shows_secret else error)
        if on_error is ErrorHandling.DEAD_LETTER:
            letter = letter_of(runtime, run, action, error, attempts)
            self._driver.collect_owned([(DEAD_LETTERS, letter)], run.timestamp, run.scope.watermark)
            taken = DEAD_LETTERS.tag_id in self._driver.output.side
            _log.warning(
                "the input goes to the dead letters%s: %s",
                "" if taken else ", which no stream consumes",
                failure,
            )
        else:
            _log.warning("the input is skipped: %s", failure)
        runtime.metrics.get_counter("failed_runs").inc()
        run.tasks.clear()
