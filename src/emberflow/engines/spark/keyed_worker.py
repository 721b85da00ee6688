"""The keyed stages of one level inside `transformWithState`: one call per key group and micro-batch.

Two phases where calls are awaited: all groups of a partition start their calls first; a timer at the batch's own
timestamp, which Spark fires after the last group, then waits for them. State is touched on the task's thread only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from emberflow.engines.spark.job_spec import load_spec
from emberflow.engines.spark.packing import Row, key_groups
from emberflow.engines.spark.rows import group_ids
from emberflow.engines.spark.worker import WorkerStage, close_stage, open_stage
from emberflow.events.batch import Batch
from emberflow.events.packets import Packet, decode_packet
from emberflow.operators.channels import ChannelId
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.scope import Scope

_EMPTY = Batch([])


class _MapBuckets:
    """Cold buckets in a MapState of the current group."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, bucket: int) -> bytes | None:
        found = self._state.getValue((bucket,))
        return None if found is None else bytes(found[0])

    def put(self, bucket: int, data: bytes) -> None:
        self._state.updateValue((bucket,), (data,))

    def remove(self, bucket: int) -> None:
        self._state.removeKey((bucket,))


class _StageState:
    """One stage of the level with its Spark state variables."""

    def __init__(
        self, stage: WorkerStage, hot: Any, cold: Any, channels: list[ChannelId], idle: dict[int, int]
    ) -> None:
        assert stage.task.head is not None
        self.stage = stage
        self.head: KeyedOperator = stage.task.head
        self.hot = hot
        self.cold = _MapBuckets(cold)
        self.channels = channels
        self.idle = idle


class KeyedLevel:
    """A processor's logic; made anew by Spark for every task."""

    def __init__(self, data: bytes, stage_ids: list[int], *, timed: bool) -> None:
        self._data = data
        self._stage_ids = stage_ids
        self._timed = timed
        self._stages: dict[int, _StageState] = {}
        self._handle: Any = None
        self._ended: set[int] = set()
        self._open: dict[tuple[int, int], tuple[GroupLayout, Scope]] = {}
        """(group, stage) of groups whose calls are in flight: their state is written in phase two."""

    def init(self, handle: Any, make_value: Any, make_map: Any) -> None:
        """`make_value(name)` and `make_map(name)` create Spark's state variables."""
        from pyspark import TaskContext

        self._handle = handle
        context = TaskContext.get()
        assert context is not None, "state is only touched inside tasks"
        partition = context.partitionId()
        variables = {
            number: (make_value(f"hot{number}"), make_map(f"cold{number}")) for number in self._stage_ids
        }
        spec = load_spec(self._data)
        self._groups = key_groups(spec.max_parallelism)
        self._numbers = {
            number: group for group, number in enumerate(group_ids(spec.max_parallelism, spec.parallelism))
        }
        for number, (hot, cold) in variables.items():
            _, stage = open_stage(self._data, number, partition)
            stage.exits.new_batch(partition << 32, 0)
            stage.begin_batch(int(context.getLocalProperty("streaming.sql.batchId") or 0))
            self._stages[number] = _StageState(
                stage, hot, cold, spec.input_channels(number), spec.idle_of(number)
            )

    def on_rows(self, kg: int, rows: Iterable[Any], now_ms: int) -> Iterator[Row]:
        """A group's packets of this batch."""
        packets: dict[int, list[Packet]] = {}
        for row in rows:
            stage = self._stages.get(row[1])
            if stage is None:
                yield (row[0], row[1], row[2], row[3], bytes(row[4]))
            else:
                packets.setdefault(row[1], []).append(decode_packet(bytes(row[4])))
        clock_ms = now_ms if self._timed else int(time.time() * 1000)
        waits = False
        for number, arrived in packets.items():
            state = self._stages[number]
            layout, scope = self._enter(state, kg, clock_ms)
            deliver(state.head, arrived)
            if self._timed:
                state.head.fire_processing_timers()
            if state.head.busy:
                self._open[(kg, number)] = layout, scope
            else:
                self._leave(state, layout, scope, now_ms)
                if scope.ended:
                    self._ended.add(number)
            waits = waits or state.stage.task.calls_in_flight > 0
            yield from self._emit(state, kg)
        if waits:
            if self._timed:
                self._handle.registerTimer(now_ms)
            else:
                yield from self._finish(kg)

    def on_timer(self, kg: int, expiry_ms: int, now_ms: int) -> Iterator[Row]:
        """Either the end of phase one, or a processing-time timer of the program."""
        for number, state in self._stages.items():
            opened = self._open.pop((kg, number), None)
            if opened is not None:
                state.stage.wait_for_calls()
                state.head.enter(opened[1])
                self._leave(state, *opened, now_ms, in_timer=True)
                if opened[1].ended:
                    self._ended.add(number)
                continue
            hot = state.hot.get()
            if hot is None:
                continue
            layout, scope = self._enter(state, kg, now_ms, hot)
            if layout.armed_ms is None or layout.armed_ms > now_ms:
                continue
            layout.armed_ms = None
            state.head.fire_processing_timers()
            self._leave(state, layout, scope, now_ms, in_timer=True)
        yield from self._finish(kg)

    def close(self) -> None:
        """The task is over. Where event time has reached its end, so have the functions."""
        for state in self._stages.values():
            state.stage.task.sync()
        for number in self._ended:
            close_stage(self._data, number)

    def _enter(self, state: _StageState, kg: int, now_ms: int, hot: Any = None) -> tuple[GroupLayout, Scope]:
        stored = hot or state.hot.get()
        layout = GroupLayout(None if stored is None else bytes(stored[0]), state.cold, state.head.step.name)
        state.stage.clock.set(now_ms)
        group, groups = self._numbers[kg], self._groups
        scope = layout.scope(state.channels, state.idle, state.stage.clock, lambda key: groups[key] == group)
        state.head.enter(scope)
        return layout, scope

    def _leave(
        self, state: _StageState, layout: GroupLayout, scope: Scope, now_ms: int, *, in_timer: bool = False
    ) -> None:
        if self._timed:
            self._arm(layout, scope, now_ms, in_timer=in_timer)
        data = layout.commit(scope)
        if data is not None:
            state.hot.update((data,))

    def _arm(self, layout: GroupLayout, scope: Scope, now_ms: int, *, in_timer: bool) -> None:
        """Keeps one Spark timer set for the group's next processing-time timer."""
        due = scope.processing_timers.next_time()
        if due is None or (layout.armed_ms is not None and layout.armed_ms <= due):
            return
        # A timer that is set while timers fire is looked at in the next batch, and one for `now` would be lost.
        layout.armed_ms = max(due, now_ms + 1) if in_timer else max(due, 0)
        scope.processing_timers.changed = True
        self._handle.registerTimer(layout.armed_ms)

    def _emit(self, state: _StageState, kg: int) -> Iterator[Row]:
        for sink in state.stage.exits.sinks:
            sink.kg = kg
        yield from state.stage.exits.take_rows()

    def _finish(self, kg: int) -> Iterator[Row]:
        for state in self._stages.values():
            state.stage.wait_for_calls()
            yield from self._emit(state, kg)


def deliver(head: KeyedOperator, packets: list[Packet]) -> None:
    """A group's packets of one batch, in channel order; watermarks of channels whose tasks do not know of each other
    count when all their records were processed."""
    packets.sort(key=lambda packet: (packet.edge, packet.channel, packet.sequence))
    inputs = head.input_of
    late: dict[ChannelId, int] = {}
    for packet in packets:
        channel = (packet.edge, packet.channel)
        if packet.at_end:
            if packet.watermark is not None:
                late[channel] = max(packet.watermark, late.get(channel, packet.watermark))
            head.receive(inputs[packet.edge], channel, packet.batch, None)
        else:
            head.receive(inputs[packet.edge], channel, packet.batch, packet.watermark)
    for channel, watermark in late.items():
        head.receive(inputs[channel[0]], channel, _EMPTY, watermark)
