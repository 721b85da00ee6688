"""Runs that outlive the process, or the batch that started them: stored with their key, detached, resumed.

A run is stored with its key while its action is in flight (`before_save`). Then the process either continues with it
(`after_save`) or detaches it: the action continues and records its outcome in the log, where the process that later serves
the key finds it (`resume`). An action that was lost with its process is started again; its finished calls are answered
from the log. The agent operator *has* a `ParkedRuns`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from emberflow.events.batch import MAX_WATERMARK
from emberflow.events.run_ids import format_outcome
from emberflow.operators.agents.action_runner import ActionRunner
from emberflow.operators.agents.agent_run import AgentRun, RunState
from emberflow.operators.agents.agent_runtime import AgentRuntime
from emberflow.operators.agents.execution import ActionExecution
from emberflow.operators.agents.guards.attempts import apart
from emberflow.operators.agents.outcome import ActionOutcome, raised_by
from emberflow.operators.agents.run_memory import read_pages
from emberflow.operators.scope import Scope
from emberflow.operators.watermarks.watermark_holds import Segment, WatermarkHolds

_BEFORE_PARKING = 0
"""State of the first version has a timer at this time for every key with a stored run."""


class Work:
    """What is in flight in one scope."""

    __slots__ = ("failed", "holds", "parked", "runs")

    def __init__(self) -> None:
        self.runs: dict[Any, AgentRun] = {}
        self.holds = WatermarkHolds()
        self.parked: dict[Any, Segment] = {}
        """Keys whose stored run has not been restored yet."""
        self.failed: dict[Any, tuple[str, ...]] = {}
        """key -> actions that have failed since the scope was stored"""


class ParkingOperator(Protocol):
    """The operator that owns the runs."""

    scope: Scope
    parks: bool

    def continue_run(self, run: AgentRun) -> None: ...

    def flush(self) -> None: ...


class ParkedRuns:
    """What is in flight in a scope, across checkpoints, batches and crashes."""

    def __init__(self, runtime: AgentRuntime, operator: ParkingOperator, runner: ActionRunner) -> None:
        self._runtime = runtime
        self._operator = operator
        self._runner = runner

    def new_run(self, scope: Scope, key: Any) -> AgentRun:
        run = AgentRun(self._runtime, scope, key, scope.entry(key))
        if self._operator.parks:
            read_pages(run.entry, scope)
        return run

    def find_parked(self, scope: Scope) -> None:
        """Called when a scope is entered for the first time: event time is held back for the runs stored in it."""
        scope.work = work = Work()
        for time_ms, keys in scope.processing_timers.saved():
            if time_ms == _BEFORE_PARKING:
                for key in keys:
                    scope.processing_timers.delete(time_ms, key)
                    scope.parked[key] = ""
        self._tell_apart(scope.parked)
        work.parked = {key: work.holds.start() for key in scope.parked}
        if work.parked:
            held = max(scope.watermark, scope.channels.minimum(scope.clock.now_ms()))
            work.holds.hold(held)
            if held == MAX_WATERMARK:
                self.read_delayed(scope)

    def read_delayed(self, scope: Scope) -> None:
        """The end of input waits for runs in flight. After the last of them, all delayed events become due at once, while
        the engine's store may be serving another scope: so the entries of their keys are read now."""
        if self._operator.parks:
            for _, keys in scope.processing_timers.pending():
                for key in keys:
                    self.new_run(scope, key)

    def _tell_apart(self, parked: dict[Any, str]) -> None:
        """In state of the first version, keys with equal hashes share their ids, and so their answers in the log: their
        actions are started again, under separate ids."""
        if len(set(parked.values())) == len(parked):
            return
        shared = {action for action, count in Counter(parked.values()).items() if count > 1}
        for key in [key for key, action in parked.items() if action in shared]:
            parked[key] = ""
        if self._runtime.log is not None:
            for action in shared - {""}:
                self._runtime.log.done(action)

    # checkpoints

    def before_save(self, scope: Scope) -> None:
        runs: dict[Any, AgentRun] = scope.work.runs
        for key, run in runs.items():
            run.save()
            scope.parked[key] = run.action_id
        if self._runtime.log is not None and runs:
            self._runtime.log.park({scope.parked[key]: len(run.waiting) for key, run in runs.items()})

    def after_save(self, scope: Scope) -> None:
        for key, run in scope.work.runs.items():
            run.unsave()
            del scope.parked[key]
            # A store may have evicted entries from memory; this one is still written to.
            scope.entries[key] = run.entry
        scope.work.failed.clear()

    # detaching

    def detach(self, scope: Scope) -> None:
        """The scope was stored and will be loaded again; its actions continue."""
        for run in scope.work.runs.values():
            self._runtime.in_flight.waiting -= len(run.waiting)
            if run.current is not None:
                self._detach(run)
                # Its action continues with the memory that it had written.
                run.unsave()

    def detach_all(self) -> None:
        """Detaches the runs of every scope; nothing of them was stored."""
        for run in [*self._runtime.in_flight.attached]:
            self._runtime.in_flight.waiting -= len(run.waiting)
            self._detach(run)

    def _detach(self, run: AgentRun) -> None:
        in_flight = self._runtime.in_flight
        run.state = RunState.DETACHED
        in_flight.attached.discard(run)
        in_flight.detached += 1

    # resuming

    def resume(self, scope: Scope) -> None:
        """Continues the scope's stored runs whose actions do not run elsewhere."""
        work: Work = scope.work
        for key in [key for key in work.parked if not self._runs_elsewhere(scope.parked[key])]:
            try:
                self.restore(scope, key)
            except Exception as error:
                raise self._runtime.step.failed(f"key {key!r}", error) from error
        for run in [run for run in work.runs.values() if run.state is RunState.DORMANT]:
            self._continue(run)
        self._operator.flush()

    def restore(self, scope: Scope, key: Any) -> None:
        """Restores the run of a key that was in flight when its state was stored."""
        work: Work = scope.work
        segment = work.parked.pop(key)
        action_id = scope.parked.pop(key)
        run = work.runs[key] = self.new_run(scope, key)
        run.segment = segment
        waiting = run.restore()
        run.keep_id(action_id)
        for value, stamp, origin in waiting:
            segment.unfinished += 1
            run.waiting.append((value, stamp, segment, origin))
            self._runtime.in_flight.waiting += 1
        self._continue(run)

    def _continue(self, run: AgentRun) -> None:
        """Continues from the outcome in the log, or starts the action again; does nothing while it runs elsewhere."""
        action_id, log = run.action_id, self._runtime.log
        if self._runs_elsewhere(action_id):
            run.state = RunState.DORMANT
            return
        run.state = RunState.ATTACHED
        found = None if log is None else log.find(format_outcome(action_id))
        if found is not None and log is not None and found.value.base != run.failures:
            # Left by an abandoned attempt, in which other actions had failed: it used different memory.
            log.forget([format_outcome(action_id)])
            found = None
        if found is not None:
            # A copy, so that changes that the run makes are not in the log if the batch is repeated.
            self._take(run, apart(found.value))
        self._operator.continue_run(run)

    def _runs_elsewhere(self, action_id: str) -> bool:
        return self._runtime.log is not None and self._runtime.log.running(action_id)

    def _take(self, run: AgentRun, outcome: ActionOutcome) -> None:
        """Applies the outcome of an action that ended after its run was detached."""
        action, event = run.tasks.popleft()
        run.steps += 1
        execution = ActionExecution(run, action, event)
        if outcome.spent or outcome.later:
            guards = execution.guarded()
            guards.spent, guards.later = outcome.spent, outcome.later
        try:
            error = raised_by(outcome)
            if error is not None:
                execution.kept = outcome.writes
                raise error
            if outcome.writes:
                run.memory.repeat(outcome.writes)
            if outcome.reads:
                run.memory.journal.reads = outcome.reads
            run.adopt(outcome.sent)
            execution.sent = outcome.sent
            self._runner.finish(execution)
        except Exception as failure:
            self._runner.fail(execution, failure)
