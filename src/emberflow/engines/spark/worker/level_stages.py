"""The stages of one level as one task of Spark serves them.

A keyed stage has one set of functions per process, whatever group is served. Each task of a partitioned stage has its own:
task n is key group n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emberflow.engines.spark.wire.job_spec import JobSpec, load_spec
from emberflow.engines.spark.wire.packet_rows import PacketRow
from emberflow.engines.spark.worker.batch_record import RecordedState
from emberflow.engines.spark.worker.packing import key_groups
from emberflow.engines.spark.worker.worker_process import WorkerStage, close_stage, open_stage
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.scope import Scope
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.operator_state import keeps_operator_state


@dataclass(slots=True)
class OpenGroup:
    """A group that is being worked on."""

    layout: GroupLayout
    scope: Scope
    held: int | None
    """The watermark at which the group stayed behind when it was stored."""


class StageState:
    """One stage of the level with its Spark state variables."""

    def __init__(
        self,
        number: int,
        stage: WorkerStage,
        variables: RecordedState,
        channels: list[ChannelId],
        idle: dict[int, int],
        task: int | None = None,
    ) -> None:
        assert stage.task.head is not None
        self.number = number
        self.stage = stage
        self.head: KeyedOperator = stage.task.head
        self.variables = variables
        self.channels = channels
        self.idle = idle
        self.task = task
        """Of a partitioned stage: which of its tasks this is."""
        self.parked: list[PacketRow] = []
        """Tell how many runs groups have parked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTask:
    """Which task of which micro-batch this is."""

    partition: int
    batch_id: int
    attempt: int


class LevelStages:
    """Opens stages and tasks for one micro-batch."""

    def __init__(
        self, data: bytes, stage_ids: list[int], variables: dict[int, RecordedState], at: SparkTask
    ) -> None:
        self._data = data
        self._at = at
        self._place = f"{stage_ids[0]}/{at.partition}"
        self.spec: JobSpec = load_spec(data)
        self.groups = key_groups(self.spec.max_parallelism)
        self.group_of = {number: group for group, number in enumerate(self.spec.group_numbers)}
        """Spark's number of a key group -> the group"""
        self.variables = variables
        self.keyed: dict[int, StageState] = {}
        self._tasks: dict[tuple[int, int], StageState] = {}
        whole = [number for number in stage_ids if self.spec.tasks_of(number) is None]
        opened = {number: open_stage(data, number, at.partition)[1] for number in whole}
        for stage in opened.values():
            # All of them first: none may receive completions of calls that another one has not abandoned yet.
            stage.abandon()
        for number, stage in opened.items():
            self.keyed[number] = self._begun(number, stage, None)
            stage.exits.sent_by(at.partition, self.spec.parallelism, at.batch_id)

    def state(self, number: int, kg: int) -> StageState:
        """The stage as it serves this group; a task of a partitioned stage begins with its first packet."""
        found = self.keyed.get(number)
        if found is not None:
            return found
        task = self.group_of[kg]
        found = self._tasks.get((number, task))
        if found is None:
            if self._anew(number):
                close_stage(self._data, number, task)
            stage = open_stage(self._data, number, task)[1]
            found = self._tasks[(number, task)] = self._begun(number, stage, task)
            stage.exits.sent_by(task, self.spec.tasks_of(number) or 1, self._at.batch_id)
        return found

    def _anew(self, number: int) -> bool:
        """Whether functions are created for every micro-batch: another process, or an attempt that was given up, may have
        changed the operator state that an object of an earlier one has read."""
        return keeps_operator_state(self.spec.graph, self.spec.graph.stages[number])

    def all(self) -> list[StageState]:
        return [*self.keyed.values(), *self._tasks.values()]

    def owns(self, state: StageState, kg: int) -> Any:
        """Whether a key belongs to the group that is served."""
        group, groups = self.group_of[kg], self.groups
        if state.task is None:
            return lambda key: groups[key] == group
        return lambda key: key == group

    def leads(self, state: StageState, kg: int) -> bool:
        return state.task is not None or self.group_of[kg] in self.spec.leading_groups

    def close(self, ended: set[tuple[int, int | None]]) -> None:
        """Ends the functions of stages and tasks whose input has ended, and those with operator state."""
        for number, task in ended | {key for key in self._tasks if self._anew(key[0])}:
            state = self.keyed[number] if task is None else self._tasks[(number, task)]
            state.stage.calls.hand_over()
            # Calls in the background still use resources that close() would release.
            if not state.stage.task.calls_in_background:
                close_stage(self._data, number, task)

    def _begun(self, number: int, stage: WorkerStage, task: int | None) -> StageState:
        variables = self.variables[number]
        if task is None:
            variables.known = stage.stored
        stage.exits.new_batch(self._at.partition << 32, 0)
        if stage.task.head is not None:
            stage.task.head.failed = False
            # Of an attempt that was given up, if any.
            stage.task.head.take_late()
        stage.begin_batch(self._at.batch_id, self._place, self._at.attempt)
        channels, idle = self.spec.input_channels(number), self.spec.idle_of(number)
        return StageState(number, stage, variables, channels, idle, task)
