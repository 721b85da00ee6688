"""The agent operator: an input becomes an `InputEvent`, the events of a key trigger actions until none is left.

One input of a key at a time, in order; different keys side by side. A plain action runs at once. An `async` action
is handed to the call service as a whole; while it waits, later inputs of its key queue up behind it (`AgentRun`) and
watermarks stay behind it (`WatermarkHolds`). What an action did counts when it has ended.

A run is stored with its key while its action waits (`before_save`). Either the process goes on with it (`after_save`),
or it lets go of it: the action runs to its end in the background and leaves its outcome in the log, and whoever serves
the key then takes the outcome from there. An action that was lost with its process is begun again; its finished calls
are answered from the log.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Sequence
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import ErrorEvent, Event, OutputEvent
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.events.key_groups import stable_hash
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators import resource_cache
from emberflow.operators.agent_errors import check_result, explained, too_many_steps
from emberflow.operators.agent_guards import apart, unwrapped
from emberflow.operators.agent_outcome import ActionOutcome, leave_behind, outcome_id
from emberflow.operators.agent_recorder import AgentRecorder
from emberflow.operators.agent_routes import Routes, RunnableAction
from emberflow.operators.agent_run import AgentRun
from emberflow.operators.budgets import Budgets
from emberflow.operators.durable import CallLog
from emberflow.operators.guard_approvals import Approvals
from emberflow.operators.guard_context import Beyond
from emberflow.operators.guard_failures import deals_with, letter_of
from emberflow.operators.guard_timers import Delayed, Due, keep, take_due
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import CallService, Step
from emberflow.operators.runner_context import RunnerContext
from emberflow.operators.scope import Scope
from emberflow.operators.watermark_holds import Segment, WatermarkHolds
from emberflow.plan.agent_guards import DEAD_LETTERS
from emberflow.plan.agent_options import (
    AgentExecutionOptions,
    ErrorHandling,
    ReplayMismatchHandling,
    ShortTermMemoryTtlUpdate,
)
from emberflow.plan.specs import AgentSpec
from emberflow.state.entry import Entry

_log = logging.getLogger("emberflow.agents")
_OUTPUT = OutputEvent.EVENT_TYPE
_ERROR = ErrorEvent.EVENT_TYPE
_BEFORE_PARKING = 0
"""State of the first version has a timer at this time for every key whose run is stored."""


class Work:
    """What is in flight in one scope."""

    __slots__ = ("holds", "parked", "runs")

    def __init__(self) -> None:
        self.runs: dict[Any, AgentRun] = {}
        self.holds = WatermarkHolds()
        self.parked: dict[Any, Segment] = {}
        """Keys whose stored run has not been looked at yet."""


class AgentOperator(KeyedOperator):
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
        self._waiting = 0
        self._digests: dict[Any, str] = {}
        self.recorder: AgentRecorder | None = None

    # life

    def connect(
        self, calls: CallService, log: CallLog | None = None, approvals: Approvals | None = None
    ) -> None:
        self.calls = calls
        self.log = log
        self.approvals = approvals

    def open(self, context: Any) -> None:
        # First what may fail: an operator that could not be opened is not closed.
        self.recorder = AgentRecorder.of(self.plan)
        self.resources = resource_cache.acquire(self._plan_id, self.plan, context.ledgers, self.metrics)

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

    @property
    def busy(self) -> bool:
        return any(run.current is not None for run in self.scope.work.runs.values())

    def enter(self, scope: Scope) -> None:
        super().enter(scope)
        if scope.work is None:
            scope.work = work = Work()
            for time_ms, keys in scope.processing_timers.saved():
                if time_ms == _BEFORE_PARKING:
                    for key in keys:
                        scope.processing_timers.delete(time_ms, key)
                        scope.parked[key] = ""
            work.parked = {key: work.holds.start() for key in scope.parked}
            if work.parked:
                work.holds.hold(max(scope.watermark, scope.channels.minimum(scope.clock.now_ms())))

    # input

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope = self.scope
        work: Work = scope.work
        current = scope.watermark
        stamps = batch.timestamps
        for i, key in enumerate(batch.keys or ()):
            if watermarks is not None and watermarks[i] > current:
                current = watermarks[i]
                self._move(work, current)
            stamp = None if stamps is None else stamps[i]
            if key in work.parked:
                self._restore(work, key)
                # What it lets pass counts for the rest of the batch.
                current = max(current, scope.watermark)
            if key != key:
                self._refuse(scope, key, batch.values[i], stamp)
                continue
            self._accept(work, key, batch.values[i], stamp)

    def _accept(self, work: Work, key: Any, value: Any, stamp: int | None) -> None:
        """An input, or a delayed event: now, or when what came before it is done."""
        waiting = work.runs.get(key)
        if waiting is not None:
            waiting.waiting.append((value, stamp, work.holds.start()))
            self._waiting += 1
            return
        run = self._new_run(self.scope, key)
        if not self._start_input(run, value, stamp):
            run.segment = work.holds.start()
            work.runs[key] = run

    def _new_run(self, scope: Scope, key: Any) -> AgentRun:
        run = AgentRun(self, scope, key, scope.entry(key))
        if self._may_wait:
            run.read_pages()
        return run

    def _refuse(self, scope: Scope, key: Any, value: Any, stamp: int | None) -> None:
        """A key that is not equal to itself, such as NaN: nothing stored under it would ever be found again."""
        run = AgentRun(self, scope, key, Entry())
        event = run.begin(value[1] if self._takes_pairs else value, stamp)
        problem = InvalidArgument(
            f"the key {key!r} is not equal to itself, so nothing stored under it would be found again",
            way_out="let the key selector return something else for such inputs, or filter them out",
        )
        self._run_failed(run, "", event, problem)

    def _start_input(self, run: AgentRun, value: Any, stamp: int | None) -> bool:
        """Whether the input is finished at once."""
        self._begin(run, value, stamp)
        return self._drive(run)

    def _begin(self, run: AgentRun, value: Any, stamp: int | None) -> None:
        delayed = value.__class__ is Delayed
        event = run.begin(value[1] if self._takes_pairs and not delayed else value, stamp)
        if self.recorder is not None:
            self.recorder.event(run, event)
        if delayed and event.type == _OUTPUT:
            self.collect([(run.key, event.attributes["output"])], stamp, run.scope.watermark)
        try:
            run.tasks.extend([(action, event) for action in self.routes.triggered_by(event)])
        except Exception as error:
            self._run_failed(run, "", event, error)

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
                if action.convert is not None and not isinstance(event, action.convert):
                    event = action.convert.from_event(event)
                if action.is_async:
                    run.current = (action, event)
                    self._call(run, action, event, context)
                    return False
                result = action.call(event, context)
                if result is not None:
                    check_result(result)
                self._finish_action(run, context)
            except (Exception, CancelledError) as error:
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
                self._continue(run)
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
            return await action.call(event, context)
        try:
            result: Any = None
            failure: Exception | None = None
            try:
                result = await action.call(event, context)
                if run.detached:
                    check_result(result)
            except Exception as error:
                failure = error
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

    def _continue(self, run: AgentRun) -> None:
        """Goes on with a key whose call has ended."""
        work: Work = run.scope.work
        while not run.dormant and self._drive(run):
            self._pass(run.segment and work.holds.finish(run.segment))
            if not run.waiting:
                del work.runs[run.key]
                return
            value, stamp, run.segment = run.waiting.popleft()
            self._waiting -= 1
            self._begin(run, value, stamp)

    def _finish_action(self, run: AgentRun, context: RunnerContext) -> None:
        """What the action did becomes visible."""
        context.ended = True
        # All conditions are decided before anything happens: one that fails leaves nothing half done.
        tasks = [(action, event) for event in context.sent for action in self.routes.triggered_by(event)]
        outputs = [(run.key, event.attributes["output"]) for event in context.sent if event.type == _OUTPUT]
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
        run.journal.undo()
        run.take_back(context.sent)
        if context.beyond is not None:
            self._settle(run, context.beyond)
        if self.log is not None:
            self.log.done(context.call_prefix)
        error, attempts = unwrapped(error)
        if deals_with(self, run, action, event, error, attempts):
            self.metrics.get_counter("handled_failures").inc()
            return
        self._run_failed(run, action.name, event, error, attempts)

    def _run_failed(
        self, run: AgentRun, action: str, event: Event, error: BaseException, attempts: int = 1
    ) -> None:
        skips = self._on_error is not ErrorHandling.FAIL
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

    def on_processing_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self._fire_delayed(time_ms, key, early=False)

    def _fire_delayed(self, time_ms: int, key: Any, *, early: bool) -> None:
        work: Work = self.scope.work
        if key in work.parked:
            self._restore(work, key)
        run = work.runs.get(key)
        entry = self.scope.entry(key) if run is None else run.entry
        for _, event, stamp in take_due(entry, time_ms):
            self._accept(work, key, Delayed(event, early), stamp)

    def _fire_early(self) -> None:
        """The input has ended: what was sent for later comes now."""
        timers = self.scope.processing_timers
        pending = timers.saved()
        for time_ms, keys in pending:
            for key in keys:
                timers.delete(time_ms, key)
        for time_ms, keys in pending:
            for key in keys:
                self._fire_delayed(time_ms, key, early=True)

    # event time

    def _move(self, work: Work, watermark: int) -> None:
        if work.holds.empty:
            self.advance(watermark)
        else:
            work.holds.hold(watermark)

    def on_watermark(self, watermark: int) -> None:
        work: Work = self.scope.work
        if not work.holds.empty:
            work.holds.hold(watermark)
            return
        if watermark == MAX_WATERMARK:
            self._fire_early()
            if not work.holds.empty:
                # What came early has to be finished before the end.
                work.holds.hold_again(watermark)
                return
        super().on_watermark(watermark)

    def _pass(self, watermark: int | None) -> None:
        """Inputs before this watermark are finished."""
        if watermark is not None and watermark > MIN_WATERMARK:
            self.flush()
            if watermark == MAX_WATERMARK:
                self.on_watermark(watermark)
            else:
                super().on_watermark(watermark)

    # checkpoints, parking and recovery

    def before_save(self) -> None:
        scope = self.scope
        runs: dict[Any, AgentRun] = scope.work.runs
        for key, run in runs.items():
            run.save()
            scope.parked[key] = run.action_id
        if self.log is not None and runs:
            self.log.park({scope.parked[key]: len(run.waiting) for key, run in runs.items()})

    def after_save(self) -> None:
        scope = self.scope
        for key, run in scope.work.runs.items():
            run.unsave()
            del scope.parked[key]
            # A store may have dropped entries from memory; this one is still written to.
            scope.entries[key] = run.entry

    def let_go(self) -> None:
        for run in self.scope.work.runs.values():
            self._waiting -= len(run.waiting)
            if run.current is not None:
                self._detach(run)
                # Its action goes on with what it had written.
                run.unsave()

    def abandon(self) -> None:
        for run in [*self._attached]:
            self._waiting -= len(run.waiting)
            self._detach(run)

    def _detach(self, run: AgentRun) -> None:
        run.detached = True
        self._attached.discard(run)
        self.in_flight -= 1
        self.background += 1

    def resume(self) -> None:
        scope = self.scope
        work: Work = scope.work
        for key in [key for key in work.parked if not self._runs_elsewhere(scope.parked[key])]:
            try:
                self._restore(work, key)
            except Exception as error:
                raise self.step.failed(f"key {key!r}", error) from error
        for run in [run for run in work.runs.values() if run.dormant]:
            self._go_on(run)
        self.flush()

    def _restore(self, work: Work, key: Any) -> None:
        """A key that was in flight when its state was stored."""
        segment = work.parked.pop(key)
        del self.scope.parked[key]
        run = work.runs[key] = self._new_run(self.scope, key)
        run.segment = segment
        for value, stamp in run.restore():
            segment.unfinished += 1
            run.waiting.append((value, stamp, segment))
            self._waiting += 1
        self._go_on(run)

    def _go_on(self, run: AgentRun) -> None:
        """From what the action left in the log, or from its beginning; not while it runs elsewhere."""
        action_id = run.action_id
        run.dormant = self._runs_elsewhere(action_id)
        if run.dormant:
            return
        found = None if self.log is None else self.log.find(outcome_id(action_id))
        if found is not None:
            # A copy: what the run does to it must not be found in the log if the batch is repeated.
            self._take(run, apart(found.value))
        self._continue(run)

    def _runs_elsewhere(self, action_id: str) -> bool:
        return self.log is not None and self.log.running(action_id)

    def _take(self, run: AgentRun, outcome: ActionOutcome) -> None:
        """An action that ended after its run was let go."""
        action, event = run.tasks.popleft()
        run.steps += 1
        context = RunnerContext(run, action, event)
        if outcome.spent or outcome.later:
            context.beyond = beyond = Beyond()
            beyond.spent, beyond.later = outcome.spent, outcome.later
        try:
            if outcome.error is not None:
                if self.log is not None:
                    # Or the failure would be repeated for ever; the action may go well the next time.
                    self.log.forget([outcome_id(context.call_prefix)])
                raise outcome.error
            run.repeat(outcome.writes)
            run.adopt(outcome.sent)
            context.sent = outcome.sent
            self._finish_action(run, context)
        except Exception as error:
            self._action_failed(run, action, event, context, error)

    def key_digest(self, key: Any) -> str:
        found = self._digests.get(key)
        if found is None:
            if len(self._digests) >= 100_000:
                self._digests.clear()
            found = self._digests[key] = f"{stable_hash(key):08x}{stable_hash((key, 1)):08x}"
        return found
