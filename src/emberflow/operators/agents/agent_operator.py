"""The agent operator: an input becomes an `InputEvent`, and the events of a key trigger actions until none is left.

One input of a key at a time, in order; different keys concurrently. A synchronous action runs at once. An `async` action
is passed to the call service as a whole; while it is in flight, later inputs of its key are queued behind it (`AgentRun`)
and watermarks are held back (`WatermarkHolds`). `action_runner.py` runs the actions, `parked_runs.py` keeps what is in
flight across checkpoints and crashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.events.agent_events import Event, OutputEvent
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch, Origin
from emberflow.events.identity import PLAIN, fingerprint
from emberflow.events.run_ids import format_run
from emberflow.operators.agents.action_errors import check_input
from emberflow.operators.agents.action_runner import ActionRunner
from emberflow.operators.agents.agent_run import AgentRun, RunState
from emberflow.operators.agents.agent_runtime import AgentRuntime
from emberflow.operators.agents.guards.delayed_events import Delayed, take_due
from emberflow.operators.agents.parked_runs import ParkedRuns, Work
from emberflow.operators.host_services import HostServices
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step
from emberflow.operators.scope import Scope
from emberflow.plan.specs import AgentSpec
from emberflow.state.entry import Entry

_OUTPUT = OutputEvent.EVENT_TYPE


class AgentOperator(KeyedOperator):
    def __init__(self, step: Step, spec: AgentSpec) -> None:
        super().__init__(step)
        self.parks = spec.plan.is_async
        self.runtime = AgentRuntime(step, spec)
        self._takes_pairs = spec.takes_pairs
        self._runner = ActionRunner(self.runtime, self)
        self._parked = ParkedRuns(self.runtime, self, self._runner)

    # life cycle

    def connect(self, host: HostServices) -> None:
        self.runtime.connect(host)
        self.decides = host.log is not None

    def open(self, context: Any) -> None:
        self.runtime.open()

    def sync(self) -> None:
        self.runtime.flush()

    def close(self) -> None:
        self.runtime.close()

    # load

    @property
    def in_flight(self) -> int:
        return len(self.runtime.in_flight.attached)

    @property
    def background(self) -> int:
        return self.runtime.in_flight.detached

    @property
    def full(self) -> bool:
        return self.runtime.full

    @property
    def busy(self) -> bool:
        return any(run.current is not None for run in self.scope.work.runs.values())

    # scopes, checkpoints and recovery: `parked_runs.py`

    def enter(self, scope: Scope) -> None:
        super().enter(scope)
        if scope.work is None:
            self._parked.find_parked(scope)

    def before_save(self) -> None:
        self._parked.before_save(self.scope)

    def after_save(self) -> None:
        self._parked.after_save(self.scope)

    def detach(self) -> None:
        self._parked.detach(self.scope)

    def abandon(self) -> None:
        self._parked.detach_all()

    def resume(self) -> None:
        self._parked.resume(self.scope)

    # input

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope = self.scope
        work: Work = scope.work
        current = scope.watermark
        stamps, origins = batch.timestamps, batch.origins
        for i, key in enumerate(batch.keys or ()):
            if watermarks is not None and watermarks[i] > current:
                current = watermarks[i]
                self._move(work, current)
            stamp = None if stamps is None else stamps[i]
            if key in work.parked:
                self._parked.restore(scope, key)
                # A watermark that this releases applies to the rest of the batch.
                current = max(current, scope.watermark)
            if key.__class__ not in PLAIN and not self._accepts(scope, key, batch.values[i], stamp):
                continue
            self._accept(work, key, batch.values[i], stamp, None if origins is None else origins[i])

    def _accept(
        self, work: Work, key: Any, value: Any, stamp: int | None, origin: Origin | None = None
    ) -> None:
        """Processes an input or a delayed event, now or after the unfinished inputs of its key."""
        waiting = work.runs.get(key)
        if waiting is not None:
            waiting.waiting.append((value, stamp, work.holds.start(), origin))
            self.runtime.in_flight.waiting += 1
            return
        run = self._parked.new_run(self.scope, key)
        self._begin(run, value, stamp, origin)
        if not self._runner.drive(run):
            run.segment = work.holds.start()
            work.runs[key] = run

    def _accepts(self, scope: Scope, key: Any, value: Any, stamp: int | None) -> bool:
        """Rejects an input whose key has no stable identity, such as NaN: nothing stored under it would be found again."""
        try:
            self.runtime.key_digest(key)
            return True
        except InvalidArgument as problem:
            run = AgentRun(self.runtime, scope, key, Entry())
            # Identified by the input, because the key has no identity.
            given = value[1] if self._takes_pairs else value
            event = run.begin(given, stamp, format_run(fingerprint((key, value, stamp)), 1))
            self._runner.fail_run(run, "", event, problem)
            return False

    def _begin(self, run: AgentRun, value: Any, stamp: int | None, origin: Origin | None) -> None:
        run.origin = origin
        delayed = value.__class__ is Delayed
        event = run.begin(value[1] if self._takes_pairs and not delayed else value, stamp)
        runtime = self.runtime
        if runtime.recorder is not None:
            runtime.recorder.event(run, event)
        if delayed and event.type == _OUTPUT:
            outputs = [(run.key, event.attributes["output"])]
            self.collect_owned(outputs, stamp, run.scope.watermark, runtime.origins_of([event]))
        try:
            if not delayed:
                check_input(event, runtime.settings.max_event_bytes)
                if runtime.observation is not None and runtime.observation.begins:
                    self._tell_beginning(run, runtime.observation.begin_event(run, event))
            run.tasks.extend([(action, event) for action in runtime.routes.triggered_by(event)])
        except Exception as error:
            self._runner.fail_run(run, "", event, error)

    def _tell_beginning(self, run: AgentRun, event: Event) -> None:
        """Before any action of the run."""
        if self.runtime.recorder is not None:
            self.runtime.recorder.event(run, event)
        run.tasks.extend([(action, event) for action in self.runtime.routes.triggered_by(event)])

    def continue_run(self, run: AgentRun) -> None:
        """Continues with a key whose call has ended."""
        work: Work = run.scope.work
        while run.state is not RunState.DORMANT and self._runner.drive(run):
            self._pass(run.segment and work.holds.finish(run.segment))
            if not run.waiting:
                del work.runs[run.key]
                return
            value, stamp, run.segment, origin = run.waiting.popleft()
            self.runtime.in_flight.waiting -= 1
            self._begin(run, value, stamp, origin)

    # delayed events

    def on_processing_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self._fire_delayed(time_ms, key, early=False)

    def _fire_delayed(self, time_ms: int, key: Any, *, early: bool) -> None:
        work: Work = self.scope.work
        if key in work.parked:
            self._parked.restore(self.scope, key)
        run = work.runs.get(key)
        entry = self.scope.entry(key) if run is None else run.entry
        for _, event, stamp in take_due(entry, time_ms):
            self._accept(work, key, Delayed(event, early), stamp)

    def _fire_early(self) -> None:
        """Fires all delayed events, because the input has ended."""
        timers = self.scope.processing_timers
        pending = timers.pending()
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
            if watermark == MAX_WATERMARK:
                self._parked.read_delayed(self.scope)
            return
        if watermark == MAX_WATERMARK:
            self._fire_early()
            if not work.holds.empty:
                # Events fired early must be finished before the end.
                work.holds.hold_again(watermark)
                return
        super().on_watermark(watermark)

    def _pass(self, watermark: int | None) -> None:
        """Advances event time: inputs before this watermark are finished."""
        if watermark is not None and watermark > MIN_WATERMARK:
            self.flush()
            holds = self.scope.work.holds
            if watermark < MAX_WATERMARK:
                super().on_watermark(watermark)
            elif holds.empty:
                self.on_watermark(watermark)
            else:
                # A delayed event became due while the last input was in flight: the end waits for it as well.
                holds.hold_again(watermark)
