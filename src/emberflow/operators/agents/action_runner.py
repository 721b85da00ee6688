"""Running an agent's actions: one after another per key, a waiting one as a call; what an action did counts when it has
ended, and nothing of it if it fails."""

from __future__ import annotations

import logging
from typing import Any

from emberflow.errors import CallLogFailed, describe_cause
from emberflow.events.agent_events import ErrorEvent, Event, OutputEvent
from emberflow.events.copies import copied, copied_event
from emberflow.events.identity import PLAIN, identity_of
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators.agents.action_errors import check_result, explained, too_many_steps
from emberflow.operators.agents.agent_run import AgentRun
from emberflow.operators.agents.calls.durable_calls import CallLog
from emberflow.operators.agents.event_recorder import AgentRecorder
from emberflow.operators.agents.guards.attempts import unwrapped
from emberflow.operators.agents.guards.budgets import Budgets
from emberflow.operators.agents.guards.context_guards import Beyond
from emberflow.operators.agents.guards.delayed_events import Due, keep
from emberflow.operators.agents.guards.failures import deals_with, letter_of
from emberflow.operators.agents.guards.questions import Approvals
from emberflow.operators.agents.outcome import leave_behind
from emberflow.operators.agents.resources import resource_cache
from emberflow.operators.agents.routes import Routes, RunnableAction
from emberflow.operators.agents.runner_context import RunnerContext
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import CallService, Step
from emberflow.plan.agents.guards import DEAD_LETTERS
from emberflow.plan.agents.options import (
    AgentExecutionOptions,
    ErrorHandling,
    ReplayMismatchHandling,
    ShortTermMemoryTtlUpdate,
)
from emberflow.plan.specs import AgentSpec

_log = logging.getLogger("emberflow.agents")
_OUTPUT = OutputEvent.EVENT_TYPE
_ERROR = ErrorEvent.EVENT_TYPE


class ActionRunner(KeyedOperator):
    """The lowest part of the agent operator: knows runs and actions, not where runs come from."""

    def __init__(self, step: Step, spec: AgentSpec) -> None:
        super().__init__(step)
        self.plan = spec.plan
        self._plan_id = spec.plan_id
        self._takes_pairs = spec.takes_pairs
        self._may_wait = self.parks = spec.plan.is_async
        self.routes = Routes(spec.plan)
        options = spec.plan.config
        self.max_event_bytes: int = options.get(AgentExecutionOptions.MAX_EVENT_BYTES)
        self.max_memory_bytes: int = options.get(AgentExecutionOptions.MAX_MEMORY_BYTES)
        self.ttl_ms: int = options.get(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_MS)
        update = options.get(AgentExecutionOptions.SHORT_TERM_MEMORY_STATE_TTL_UPDATE_TYPE)
        self.refresh_on_read = update is ShortTermMemoryTtlUpdate.ON_READ_AND_WRITE
        self._max_steps: int = options.get(AgentExecutionOptions.MAX_STEPS)
        self._max_in_flight: int = options.get(AgentExecutionOptions.MAX_IN_FLIGHT)
        self._on_error: ErrorHandling = options.get(AgentExecutionOptions.ON_ERROR)
        self.keeps_first = self._on_error is ErrorHandling.DEAD_LETTER
        """Whether a run must know what began it."""
        self.budgets = Budgets(spec.plan.budgets)
        self.approvals: Approvals | None = None
        self.metrics = MetricGroup(spec.plan.name)
        self.resources: resource_cache.ResourceCache
        self.calls: CallService
        self.log: CallLog | None = None
        mismatch = options.get(AgentExecutionOptions.ON_REPLAY_MISMATCH)
        self.restarts_on_mismatch = mismatch is ReplayMismatchHandling.RESTART
        self.in_flight = 0
        self.background = 0
        self._attached: set[AgentRun] = set()
        self._waiting: int = 0
        self._digests: dict[Any, str] = {}
        self._keeps_events = self.keeps_first or self.routes.handles_errors
        """Whether an event is looked at again when its last action has had it."""
        self._keeps_outputs = any(
            _OUTPUT in item.types or item.matches for item in self.routes.actions.values()
        )
        """Whether an output is looked at again when it has left."""
        self.recorder: AgentRecorder | None = None

    # life

    def connect(
        self, calls: CallService, log: CallLog | None = None, approvals: Approvals | None = None
    ) -> None:
        self.calls = calls
        self.log = log
        self.decides = log is not None
        self.approvals = approvals

    def open(self, context: Any) -> None:
        # First what may fail: an operator that could not be opened is not closed.
        self.recorder = AgentRecorder.of(self.plan)
        if self.recorder is not None:
            # It writes events down some time after they were sent.
            self._keeps_events = self._keeps_outputs = True
        self.resources = resource_cache.acquire(self._plan_id, self.plan, context._ledgers, self.metrics)

    def sync(self) -> None:
        if self.recorder is not None:
            self.recorder.flush()

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()
        resource_cache.release(self._plan_id)

    @property
    def full(self) -> bool:  # type: ignore[override]
        return self.in_flight + self.background + self._waiting >= self._max_in_flight

    def key_digest(self, key: Any) -> str:
        """The key's identity: part of the ids of its runs, calls and events."""
        if key.__class__ not in PLAIN:
            # Not remembered: a class may take keys for equal that are not the same.
            return identity_of(key, self.step.uid)
        found = self._digests.get(key)
        if found is None:
            if len(self._digests) >= 100_000:
                self._digests.clear()
            found = self._digests[key] = identity_of(key, self.step.uid)
        return found

    # running actions

    def _drive(self, run: AgentRun) -> bool:
        """Runs the key's tasks until none is left (True) or one waits (False)."""
        tasks = run.tasks
        while tasks:
            action, event = tasks.popleft()
            run.steps += 1
            context = RunnerContext(run, action, event)
            try:
                if run.steps > self._max_steps:
                    raise too_many_steps(self._max_steps)
                if self.budgets.counts_steps and run.failure is None and event.type != _ERROR:
                    # What deals with an error may still be done when nothing else may.
                    context.charge_step()
                if action.is_async:
                    run.current = (action, event)
                    self._call(run, action, event, context)
                    return False
                # The last that looks at an event may have it; whoever comes later must find it as it was sent.
                given = event
                if self._keeps_events or action.keeps_event or (tasks and tasks[0][1] is event):
                    given = copied_event(event)
                if action.convert is not None and not isinstance(given, action.convert):
                    given = action.convert.from_event(given)
                result = action.call(given, context)
                if result is not None:
                    check_result(result)
                self._finish_action(run, context)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:
                # Of any class: libraries raise some that are no Exception (SystemExit, a panic of a Rust extension).
                self._action_failed(run, action, event, context, error)
        return True

    def _call(self, run: AgentRun, action: RunnableAction, event: Event, context: RunnerContext) -> None:
        if self.log is not None and not self.log.claim(run.action_id):
            # The batch is repeated, and what it began before still goes on.
            run.put_back()
            run.dormant = True
            return
        self.in_flight += 1
        self._attached.add(run)
        run.context = context

        def done(result: Any, error: BaseException | None) -> None:
            if run.detached:
                self.background -= 1
                return
            self.in_flight -= 1
            self._attached.discard(run)
            run.current = run.context = None
            before = self.scope
            self.enter(run.scope)
            try:
                if error is None:
                    try:
                        check_result(result)
                        self._finish_action(run, context)
                    except Exception as failure:
                        error = failure
                if error is not None:
                    self._action_failed(run, action, event, context, error)
                self.continue_run(run)
                self.flush()
            finally:
                self.enter(before)

        self.calls.start(
            self.step.uid, self._max_in_flight, lambda: self._act(run, action, event, context), done
        )

    async def _act(self, run: AgentRun, action: RunnableAction, event: Event, context: RunnerContext) -> Any:
        """The action, on the event loop. A run that nobody has let go of must not be waited for after its action: it
        is decided at rest which runs are let go."""
        log = self.log
        if log is None:
            return await self._started(action, event, context)
        try:
            result: Any = None
            failure: Exception | None = None
            try:
                result = await self._started(action, event, context)
                if run.detached:
                    check_result(result)
            except Exception as error:
                failure = error
            except BaseException as error:
                if not run.detached or isinstance(error, GeneratorExit):
                    raise
                # Nobody else would say that it has ended, and it would begin again for ever.
                failure = RuntimeError(f"the action ended with {describe_cause(error)}")
            if run.detached:
                context.ended = True
                if failure is not None:
                    context.fail()
                await leave_behind(log, run, action.name, context.sent, failure, context.beyond)
            if failure is not None:
                raise failure
            return result
        finally:
            log.ended(run.action_id)

    @staticmethod
    def _started(action: RunnableAction, event: Event, context: RunnerContext) -> Any:
        """An action that waits, with an event of its own: the run is stored with the event as it was sent."""
        if action.guards.waits:
            return action.call(event, context)
        return action.call(action.given(copied_event(event)), context)

    def continue_run(self, run: AgentRun) -> None:
        """Goes on with a key whose call has ended."""
        raise NotImplementedError(type(self).__name__)

    def _finish_action(self, run: AgentRun, context: RunnerContext) -> None:
        """What the action did becomes visible."""
        context.ended = True
        # All conditions are decided before anything happens: one that fails leaves nothing half done.
        tasks = [(action, event) for event in context.sent for action in self.routes.triggered_by(event)]
        outputs = [(run.key, event.attributes["output"]) for event in context.sent if event.type == _OUTPUT]
        if outputs and self._keeps_outputs:
            outputs = [(key, copied(output)) for key, output in outputs]
        if self.recorder is not None:
            for event in context.sent:
                self.recorder.event(run, event)
        if outputs:
            self.collect(outputs, run.timestamp, run.scope.watermark)
        if context.beyond is not None:
            self._settle(run, context.beyond)
            if not run.early:
                self._keep(run, context.beyond.later)
        run.failure = None
        run.tasks.extend(tasks)
        run.journal.clear()
        if self.log is not None:
            self.log.done(context.call_prefix)

    # failures

    def _action_failed(
        self,
        run: AgentRun,
        action: RunnableAction,
        event: Event,
        context: RunnerContext,
        error: BaseException,
    ) -> None:
        context.fail()
        self.failed = True
        if self.parks:
            failed = run.scope.work.failed
            failed[run.key] = (*failed.get(run.key, ()), context.call_prefix)
        run.journal.undo()
        run.take_back(context.sent)
        if context.beyond is not None:
            self._settle(run, context.beyond)
        if self.log is not None:
            self.log.done(context.call_prefix)
        error, attempts = unwrapped(error)
        if not isinstance(error, CallLogFailed) and deals_with(self, run, action, event, error, attempts):
            self.metrics.get_counter("handled_failures").inc()
            return
        self._run_failed(run, action.name, event, error, attempts)
        if self.log is not None:
            self.log.gave_up(context.call_prefix)

    def _run_failed(
        self, run: AgentRun, action: str, event: Event, error: BaseException, attempts: int = 1
    ) -> None:
        # A log that cannot be written is no fault of the input.
        skips = self._on_error is not ErrorHandling.FAIL and not isinstance(error, CallLogFailed)
        failure = explained(self.plan.name, action, run.key, event, error, skipped=skips, attempts=attempts)
        shows_secret = self.resources.hide_secrets(failure)
        if self.recorder is not None:
            self.recorder.failure(run, action, event, failure)
        if not skips:
            raise failure from (None if shows_secret else error)
        if self._on_error is ErrorHandling.DEAD_LETTER:
            letter = letter_of(self, run, action, error, attempts)
            self.collect([(DEAD_LETTERS, letter)], run.timestamp, run.scope.watermark)
            taken = DEAD_LETTERS.tag_id in self.output.side
            _log.warning(
                "the input goes to the dead letters%s: %s", "" if taken else ", which nobody takes", failure
            )
        else:
            _log.warning("the input is skipped: %s", failure)
        self.metrics.get_counter("failed_runs").inc()
        run.tasks.clear()

    # budgets and delayed events

    def _settle(self, run: AgentRun, beyond: Beyond) -> None:
        """What an action spent is spent when it has ended, well or not."""
        if beyond.spent:
            run.count_spent(beyond.spent, self.budgets)

    def _keep(self, run: AgentRun, later: list[Due]) -> None:
        if later:
            keep(run.entry, later)
            for due_ms, _, _ in later:
                run.scope.processing_timers.register(due_ms, run.key)
            self.on_timer_set()
