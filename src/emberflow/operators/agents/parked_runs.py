"""Runs that outlive the process, or this process's interest in them: stored with their key, let go, taken up again.

A run is stored with its key while its action waits (`before_save`). Either the process goes on with it (`after_save`),
or it lets go of it: the action runs to its end in the background and leaves its outcome in the log, and whoever serves
the key then takes the outcome from there. An action that was lost with its process is begun again; its finished calls
are answered from the log.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from emberflow.events.batch import MAX_WATERMARK
from emberflow.events.run_ids import format_outcome
from emberflow.operators.agents.action_runner import ActionRunner
from emberflow.operators.agents.agent_run import AgentRun
from emberflow.operators.agents.guards.attempts import apart
from emberflow.operators.agents.guards.context_guards import Beyond
from emberflow.operators.agents.outcome import ActionOutcome, raised_by
from emberflow.operators.agents.runner_context import RunnerContext
from emberflow.operators.scope import Scope
from emberflow.operators.watermark_holds import Segment, WatermarkHolds

_BEFORE_PARKING = 0
"""State of the first version has a timer at this time for every key whose run is stored."""


class Work:
    """What is in flight in one scope."""

    __slots__ = ("failed", "holds", "parked", "runs")

    def __init__(self) -> None:
        self.runs: dict[Any, AgentRun] = {}
        self.holds = WatermarkHolds()
        self.parked: dict[Any, Segment] = {}
        """Keys whose stored run has not been looked at yet."""
        self.failed: dict[Any, tuple[str, ...]] = {}
        """By key: actions that have failed since the scope was stored."""


class RunKeeper(ActionRunner):
    """The middle part of the agent operator: what is in flight in a scope, through checkpoints, batches and crashes."""

    def new_run(self, scope: Scope, key: Any) -> AgentRun:
        run = AgentRun(self, scope, key, scope.entry(key))
        if self.parks:
            run.read_pages()
        return run

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
            self._tell_apart(scope.parked)
            work.parked = {key: work.holds.start() for key in scope.parked}
            if work.parked:
                held = max(scope.watermark, scope.channels.minimum(scope.clock.now_ms()))
                work.holds.hold(held)
                if held == MAX_WATERMARK:
                    self.read_delayed()

    def read_delayed(self) -> None:
        """The end of input waits for runs in flight. With the last of them, all that was sent for later comes at once,
        while the engine's store may be serving another scope: what its keys hold is read now."""
        if self.parks:
            for _, keys in self.scope.processing_timers.saved():
                for key in keys:
                    self.new_run(self.scope, key)

    def _tell_apart(self, parked: dict[Any, str]) -> None:
        """In state of the first version, keys with equal hashes share their ids, and so their answers in the log: their
        actions are begun again, under ids of their own."""
        if len(set(parked.values())) == len(parked):
            return
        shared = {action for action, count in Counter(parked.values()).items() if count > 1}
        for key in [key for key, action in parked.items() if action in shared]:
            parked[key] = ""
        if self.log is not None:
            for action in shared - {""}:
                self.log.done(action)

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
        scope.work.failed.clear()

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
                self.restore(work, key)
            except Exception as error:
                raise self.step.failed(f"key {key!r}", error) from error
        for run in [run for run in work.runs.values() if run.dormant]:
            self._go_on(run)
        self.flush()

    def restore(self, work: Work, key: Any) -> None:
        """A key that was in flight when its state was stored."""
        segment = work.parked.pop(key)
        action_id = self.scope.parked.pop(key)
        run = work.runs[key] = self.new_run(self.scope, key)
        run.segment = segment
        waiting = run.restore()
        run.keep_id(action_id)
        for value, stamp in waiting:
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
        found = None if self.log is None else self.log.find(format_outcome(action_id))
        if found is not None and self.log is not None and found.value.base != run.failures:
            # Of an attempt that was given up, in which other actions had failed: it worked on another memory.
            self.log.forget([format_outcome(action_id)])
            found = None
        if found is not None:
            # A copy: what the run does to it must not be found in the log if the batch is repeated.
            self._take(run, apart(found.value))
        self.continue_run(run)

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
            error = raised_by(outcome)
            if error is not None:
                if self.log is not None:
                    # Or the failure would be repeated for ever; the action may go well the next time.
                    self.log.forget([format_outcome(context.call_prefix)])
                raise error
            run.repeat(outcome.writes)
            run.adopt(outcome.sent)
            context.sent = outcome.sent
            self._finish_action(run, context)
        except Exception as failure:
            self._action_failed(run, action, event, context, failure)
