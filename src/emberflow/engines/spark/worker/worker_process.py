"""What a Spark Python worker keeps across batches: the call loop and the opened stages.

Module-level on purpose: Spark creates new processor and reader objects for every task, but keeps the process.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from emberflow.approvals.asking import approvals_in
from emberflow.durable.decisions import DecisionStore
from emberflow.durable.location import CallStoreLocation
from emberflow.durable.log import StoredCallLog
from emberflow.engines.job.call_service import CallsOfJob, ThreadCalls
from emberflow.engines.job.garbage_collection import collect_rarely
from emberflow.engines.job.limit_ledger import FileLedgers
from emberflow.engines.spark.wire.job_spec import JobSpec, load_spec
from emberflow.engines.spark.wire.packet_rows import PacketRow
from emberflow.engines.spark.worker.packing import SparkExits
from emberflow.event_time.clock import Clock, FixedClock, SystemClock
from emberflow.operators.admission.gate import Ledgers, MemoryLedgers
from emberflow.operators.host_services import HostServices
from emberflow.operators.stage import StageTask


class BatchClock:
    """The time of the current micro-batch."""

    def __init__(self) -> None:
        self._clock: Clock = SystemClock()

    def set(self, now_ms: int) -> None:
        self._clock = FixedClock(now_ms)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def live_ms(self) -> int:
        """For work that continues after the batch has been committed."""
        return max(self.now_ms(), SystemClock().now_ms())


class WorkerStage:
    """A stage that stays open in this process."""

    def __init__(self, spec: JobSpec, stage_id: int, calls: ThreadCalls, subtask: int) -> None:
        collect_rarely()
        self.clock = BatchClock()
        self.exits = SparkExits(spec)
        self.job_id = spec.job_id
        self._epoch_of = spec.epoch_of
        self._fence = spec.fence
        self.calls = calls
        self.log = None if spec.calls is None else call_log(spec, spec.calls)
        approvals = (
            None if spec.calls is None else approvals_in(str(Path(spec.calls.directory).parent), spec.fence)
        )
        host = HostServices(
            clock=self.clock,
            batch=spec.batch,
            in_turn=True,
            reads_all_tasks=spec.batch,
            calls=CallsOfJob(calls, spec.job_id),
            log=self.log,
            approvals=approvals,
            ledgers=_ledgers(spec),
        )
        self.task = StageTask(spec.graph, stage_id, self.exits, host)
        channels = {channel: number for number, channel in enumerate(spec.input_channels(stage_id))}
        self.task.on_channel_selected(lambda channel: self.exits.select_channel(channels[channel]))
        self._told: set[int] = set()
        self._told_now: set[int] = set()
        self._epoch = -1
        self.stored: set[int] = set()
        """Groups known to have state."""
        self.task.open(subtask, spec.tasks_of(stage_id) or spec.parallelism, spec.parameters)

    def abandon(self) -> None:
        """Stops waiting for what an attempt abandoned by Spark has started."""
        if self.task.head is not None:
            self.task.head.abandon()

    def begin_batch(self, batch_id: int, place: str = "", task_attempt: int = 0) -> None:
        """Starts a micro-batch at one place, possibly again: answers to its earlier calls are known. Earlier batches are
        committed. Of several attempts, Spark commits the one that started last."""
        self._fence.check_if_reachable()
        self.abandon()
        self.calls.hand_over()
        epoch = self._epoch_of(batch_id)
        if epoch == self._epoch:
            # What an abandoned attempt reported was not received.
            self._told -= self._told_now
        self._epoch, self._told_now = epoch, set()
        if self.log is not None:
            self.log.begin(epoch, place, self._fence.epoch * _TASKS_PER_START + task_attempt)

    def hold(self, group: int, before: int | None, now: int | None) -> None:
        """Informs downstream stages of the watermark at which a group is held back, if it is. For a group that is new in
        this process it is repeated: its state may come from a savepoint."""
        if before != now or group not in self._told:
            self._told.add(group)
            self._told_now.add(group)
            self.exits.hold(group, now)

    def wait_for_calls(self, deadline_s: float | None = None) -> None:
        """Waits until no call is in flight; after the deadline, only for calls that cannot continue in the background."""
        if deadline_s is not None:
            self.calls.wait_while(lambda: self.task.calls_in_flight > 0, deadline_s)
            self.calls.wait_while(lambda: self.task.calls_to_drain > 0)
        else:
            self.calls.wait_while(lambda: self.task.calls_in_flight > 0)

    def finish(self) -> list[PacketRow]:
        """Waits for calls; returns everything that is left to send."""
        self.wait_for_calls()
        return self.exits.take_rows()


_calls: ThreadCalls | None = None
_logs: dict[CallStoreLocation, StoredCallLog] = {}
_decisions: dict[CallStoreLocation, DecisionStore] = {}
_stages: dict[tuple[str, int, int | None], WorkerStage] = {}
"""By job, stage and, of a partitioned stage, task."""
_KEPT = 128
_TASKS_PER_START = 10**12
"""More than the number of Spark's tasks in a start: attempts are ordered by start of the job first, then by task."""


def call_log(spec: JobSpec, place: CallStoreLocation) -> StoredCallLog:
    """The job's durable call log, one per process."""
    found = _logs.get(place)
    if found is None:
        used = {id(stage.log) for stage in _stages.values()}
        for other in [key for key, log in _logs.items() if id(log) not in used]:
            _logs.pop(other).close()
        found = _logs[place] = StoredCallLog(place.open_calls(), claims=not spec.batch)
    found.belongs_to(spec.fence)
    return found


def decisions(place: CallStoreLocation) -> DecisionStore:
    """Where the job's micro-batches keep their decisions, one per process."""
    found = _decisions.get(place)
    if found is None:
        while len(_decisions) >= _KEPT:
            del _decisions[next(iter(_decisions))]
        found = _decisions[place] = place.open_decisions()
    return found


def _ledgers(spec: JobSpec) -> Ledgers:
    if spec.limits_dir:
        return FileLedgers(Path(spec.limits_dir))
    return MemoryLedgers(spec.parallelism)


def close_stage(data: bytes, stage_id: int, task: int | None = None) -> None:
    """The job's input has ended for this task: calls close() of its functions. The stage is reopened if needed again."""
    stage = _stages.pop((hashlib.sha256(data).hexdigest(), stage_id, task), None)
    if stage is not None:
        stage.task.close()


def open_stage(data: bytes, stage_id: int, subtask: int) -> tuple[JobSpec, WorkerStage]:
    """The stage of the job, opened once per process."""
    global _calls
    if _calls is None:
        _calls = ThreadCalls()
    spec = load_spec(data)
    task = None if spec.tasks_of(stage_id) is None else subtask
    key = (hashlib.sha256(data).hexdigest(), stage_id, task)
    stage = _stages.get(key)
    if stage is None:
        # The stages of jobs that ended long ago; jobs of one session share the worker.
        idle = [item for item, other in _stages.items() if not other.task.calls_in_background]
        for item in idle[: max(0, len(_stages) - _KEPT + 1)]:
            _stages.pop(item).task.close()
        for other in _stages.values():
            if other.job_id == spec.job_id:
                # From an earlier start of the job in the same session.
                other.abandon()
        stage = WorkerStage(spec, stage_id, _calls, subtask)
    # The most recently used stage comes last.
    _stages.pop(key, None)
    _stages[key] = stage
    return spec, stage
