"""The keyed and partitioned stages of one level inside `transformWithState`: one call per key group and micro-batch.

With awaited calls there are two phases: all groups of a partition start their calls first; a timer at the batch's own
timestamp, which Spark fires after the last group, then waits for them. State is accessed on the task's thread only.

A batch waits for agents' calls until its deadline. What is then unfinished is parked: stored with its key, and checked
in every batch until its action has ended somewhere. Stages that make such decisions are recorded, and a repeated batch
replays the record (`batch_record.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from emberflow.engines.spark.wire.initial_state import fill
from emberflow.engines.spark.wire.packet_rows import LATE, PARKED, PacketRow, count_row
from emberflow.engines.spark.worker.batch_record import RecordedState, TaskRecord, check_query
from emberflow.engines.spark.worker.level_stages import LevelStages, OpenGroup, SparkTask, StageState
from emberflow.engines.spark.worker.packet_delivery import deliver
from emberflow.engines.spark.worker.worker_process import decisions
from emberflow.events.packets import Packet, decode_packet
from emberflow.operators.group_layout import GroupLayout
from emberflow.operators.scope import Scope

CLEANED_KEYS = 64
"""Keys of a group whose expired state is removed in one batch, beyond two for each record of the batch."""
_LATEST_MS = 2**62
"""The latest time of Spark's timers: a pair of them must fit into 64 bits."""


class KeyedLevel:
    """The logic of a processor; Spark creates one for every task."""

    def __init__(self, data: bytes, stage_ids: list[int], *, timed: bool) -> None:
        self._data = data
        self._stage_ids = stage_ids
        self._timed = timed
        self._stages: LevelStages = None  # pyright: ignore[reportAttributeAccessIssue]
        self._handle: Any = None
        self._ended: set[tuple[int, int | None]] = set()
        """Stages, or tasks of partitioned stages, whose input has ended."""
        self._open: dict[tuple[int, int], OpenGroup] = {}
        """(group, stage) of groups whose calls are in flight: their state is written in phase two."""
        self._left: set[tuple[int, int]] = set()
        """Groups that are finished in this batch."""
        self._pairs = False
        self._deadline_s = 0.0
        self._record: TaskRecord | None = None
        """The record of the stages that decide something; None if there is no such stage."""
        self._received: dict[int, int] = {}

    def init(self, handle: Any, make_value: Any, make_map: Any) -> None:
        """`make_value(name)` and `make_map(name)` create Spark's state variables."""
        from pyspark import TaskContext

        self._handle = handle
        context = TaskContext.get()
        assert context is not None, "state is only touched inside tasks"
        partition = context.partitionId()
        variables = {
            number: RecordedState(number, make_value(f"hot{number}"), make_map(f"cold{number}"))
            for number in self._stage_ids
        }
        at = SparkTask(
            partition=partition,
            batch_id=int(context.getLocalProperty("streaming.sql.batchId") or 0),
            attempt=context.taskAttemptId(),
        )
        self._stages = LevelStages(self._data, self._stage_ids, variables, at)
        spec, keyed = self._stages.spec, self._stages.keyed.values()
        self._pairs = any(state.head.parks for state in keyed)
        if spec.calls is not None and any(state.head.decides for state in keyed):
            query = context.getLocalProperty("sql.streaming.queryId") or spec.job_id
            place = f"{self._stage_ids[0]}.{partition}"
            store = decisions(spec.calls)
            if spec.for_one_query:
                check_query(store, query)
            self._record = TaskRecord(store, query, spec.epoch_of(at.batch_id), place)
        # From now, not from the batch's timestamp: a repeated batch has an old one.
        self._deadline_s = time.monotonic() + spec.deadline_ms / 1000

    def on_rows(self, kg: int, rows: Iterable[Any], now_ms: int) -> Iterator[PacketRow]:
        """Processes a group's packets of this batch."""
        packets: dict[int, list[Packet]] = {}
        clock_ms = now_ms
        # Without timers, rows have the batch's time as a further column.
        for to_kg, dest, n, wm, packet, *at_ms in rows:
            if not self._timed:
                clock_ms = at_ms[0]
            if dest in self._stages.variables:
                packets.setdefault(dest, []).append(decode_packet(bytes(packet)))
            else:
                yield PacketRow(to_kg, dest, n, wm, bytes(packet))
        yield from self._serve(kg)
        waits = False
        for number, arrived in packets.items():
            state = self._stages.state(number, kg)
            if self._note_received(state, kg, arrived):
                continue
            opened = self._enter(state, kg, clock_ms)
            deliver(state.head, arrived)
            # Every key that expires had a record before, so two keys a record keep up with them.
            self._work(state, kg, opened, now_ms, 2 * sum(len(packet.batch) for packet in arrived))
            waits = waits or state.stage.task.calls_in_flight > 0
            yield from self._emit(state, kg)
        if waits:
            if self._timed:
                self._set_timer(kg, now_ms)
            else:
                yield from self._finish(kg)

    def on_initial(self, kg: int, row: Any, now_ms: int) -> None:
        """Restores state from a savepoint, before a new query's first input."""
        _, stage_id, kind, body = row
        state = self._stages.state(stage_id, kg)
        self._touch(kg)
        if self._replays(state):
            return
        layout, scope = self._load(state, kg, now_ms if self._timed else int(time.time() * 1000))
        state.head.enter_unfilled(scope)
        fill(scope, kind, bytes(body))
        if self._timed and (scope.parked or scope.next_wake_up() is not None):
            # So that the group is processed in this batch, whether it has input or not.
            layout.armed_ms = now_ms - 2
            self._set_pair(kg, layout.armed_ms)
        data = layout.commit(scope)
        if data is not None:
            state.variables.put_hot(kg, data)

    def on_timer(self, kg: int, expiry_ms: int, now_ms: int) -> Iterator[PacketRow]:
        """Either the end of phase one, or a timer of the group. Where runs may be parked, timers are set in pairs: an even
        one to start the work, and an odd one right after it to wait for it."""
        yield from self._serve(kg)
        collects = not self._pairs or expiry_ms % 2 == 1 or expiry_ms == now_ms
        for number, state in self._stages.keyed.items():
            if self._replays(state):
                continue
            if (kg, number) not in self._open and (kg, number) not in self._left:
                self._wake(state, kg, now_ms)
            opened = self._open.pop((kg, number), None) if collects else None
            if opened is not None:
                self._collect(state, kg, opened, now_ms)
        if collects:
            yield from self._finish(kg)
        else:
            for state in self._stages.all():
                yield from self._emit(state, kg)

    def close(self) -> None:
        """Called when the task has ended. Functions are closed if event time has reached its end."""
        for state in self._stages.all():
            state.stage.task.sync()
        self._close_record()
        self._stages.close(self._ended)

    # the record of what was decided

    def _close_record(self) -> None:
        logs = {id(log): log for state in self._stages.all() if (log := state.stage.log)}.values()
        record = self._record
        if record is not None and record.replays:
            record.check_received(self._received)
            self._ended |= {(number, None) for number in record.ended}
            for log in logs:
                log.note_again(record.notes)
        for log in logs:
            # Before the batch can be committed: what is done must not be lost with this process, and the process that
            # serves a key in the next batch must know which actions are running.
            log.publish()
        if record is not None and not record.replays:
            decided = self._pairs or any(log.touched for log in logs)
            # Not every failure is that of a call known to the log.
            decided = decided or any(state.head.failed for state in self._stages.all())
            if decided and record.groups:
                deciding = {number for number, state in self._stages.keyed.items() if state.head.decides}
                record.ended = {number for number, _ in self._ended if number in deciding}
                # Last: an attempt that follows the record must find the answers that it depends on.
                record.store([note for log in logs for note in log.notes()])

    def _replays(self, state: StageState) -> bool:
        return self._record is not None and self._record.replays and state.head.decides

    def _touch(self, kg: int) -> None:
        """Called before a group is processed: prepares recording its writes or, once, replays those recorded when the batch
        ran before."""
        record = self._record
        if record is None:
            return
        if not record.replays:
            noted = record.group(kg)
            for state in self._stages.all():
                state.variables.noted = noted if state.head.decides else None
            return
        found = record.first_touch(kg)
        if found is not None:
            for write in found.writes:
                self._stages.variables[write.stage].write_again(write.bucket, write.data)
            for expiry_ms in found.timers:
                self._handle.registerTimer(expiry_ms)

    def _serve(self, kg: int) -> Iterator[PacketRow]:
        self._touch(kg)
        if self._record is not None and self._record.replays:
            yield from self._record.take_rows()

    def _note_received(self, state: StageState, kg: int, packets: list[Packet]) -> bool:
        """Whether these packets were processed when the batch ran before."""
        if self._record is None or not state.head.decides:
            return False
        count = sum(len(packet.batch) for packet in packets)
        if self._record.replays:
            if count:
                self._received[kg] = self._received.get(kg, 0) + count
        else:
            self._record.group(kg).received += count
        return self._record.replays

    def _set_timer(self, kg: int, at_ms: int) -> None:
        self._handle.registerTimer(at_ms)
        if self._record is not None and not self._record.replays:
            self._record.group(kg).timers.append(at_ms)

    # processing a group

    def _wake(self, state: StageState, kg: int, now_ms: int) -> None:
        """Processes a group without input whose timer is due."""
        hot = state.variables.get_hot(kg)
        if hot is None:
            return
        opened = self._enter(state, kg, now_ms, hot)
        layout, scope = opened.layout, opened.scope
        if not scope.parked and (layout.armed_ms is None or layout.armed_ms > now_ms):
            return
        if layout.armed_ms is not None and layout.armed_ms <= now_ms:
            layout.armed_ms = None
        self._work(state, kg, opened, now_ms)

    def _work(self, state: StageState, kg: int, opened: OpenGroup, now_ms: int, cleaned: int = 0) -> None:
        """Does what is due in the entered group; then stores it, or keeps it open until its calls are awaited."""
        if self._timed:
            state.head.fire_processing_timers()
        state.head.remove_expired(CLEANED_KEYS + cleaned)
        state.head.resume()
        if state.head.busy:
            self._open[(kg, state.number)] = opened
        else:
            self._leave(state, kg, opened, now_ms)

    def _collect(self, state: StageState, kg: int, opened: OpenGroup, now_ms: int) -> None:
        """Waits for the calls of an open group. Calls in flight at the deadline continue in the background."""
        stage = state.stage
        stage.wait_for_calls(self._deadline_s)
        state.head.enter(opened.scope)
        if not state.head.busy:
            self._leave(state, kg, opened, now_ms)
            return
        with stage.calls.at_rest():
            stage.calls.hand_over()
            state.head.enter(opened.scope)
            self._leave(state, kg, opened, now_ms)

    def _enter(self, state: StageState, kg: int, now_ms: int, hot: bytes | None = None) -> OpenGroup:
        layout, scope = self._load(state, kg, now_ms, hot)
        state.head.enter(scope)
        state.head.leads = self._stages.leads(state, kg)
        return OpenGroup(layout, scope, scope.watermark if scope.parked else None)

    def _load(
        self, state: StageState, kg: int, now_ms: int, hot: bytes | None = None
    ) -> tuple[GroupLayout, Scope]:
        layout = GroupLayout(hot or state.variables.get_hot(kg), state.variables, state.head.step.name)
        state.stage.clock.set(now_ms)
        owns = self._stages.owns(state, kg)
        return layout, layout.scope(state.channels, state.idle, state.stage.clock, owns)

    def _leave(self, state: StageState, kg: int, opened: OpenGroup, now_ms: int) -> None:
        layout, scope = opened.layout, opened.scope
        state.head.before_save()
        if self._timed:
            self._arm(state, kg, opened, now_ms)
        data = layout.commit(scope)
        if data is not None:
            state.variables.put_hot(kg, data)
        state.head.detach()
        self._left.add((kg, state.number))
        if scope.parked:
            state.parked.append(count_row(kg, PARKED, len(scope.parked)))
        if scope.parked or opened.held is not None:
            state.stage.hold(
                self._stages.group_of[kg], opened.held, scope.watermark if scope.parked else None
            )
        if scope.ended:
            self._ended.add((state.number, state.task))

    def _arm(self, state: StageState, kg: int, opened: OpenGroup, now_ms: int) -> None:
        """Keeps Spark's timers set for the group's next processing-time timer, and for the next batch while runs are
        parked."""
        layout, scope = opened.layout, opened.scope
        due = scope.next_wake_up()
        if self._pairs:
            if state.stage.log is not None:
                state.stage.log.set_due(f"{state.number}/{kg}", due)
            if scope.parked:
                # Not stored in the layout, so that a group that only waits is not written in every batch.
                self._set_pair(kg, now_ms + 1)
        # A timer that is not in the future fires in this batch, and not again.
        if due is None or (layout.armed_ms is not None and now_ms < layout.armed_ms <= due):
            return
        # What is due by now has been processed, or became due too late for this batch: a timer for `now` would be lost.
        layout.armed_ms = min(max(due, now_ms + 1), _LATEST_MS)
        scope.processing_timers.changed = True
        if self._pairs:
            self._set_pair(kg, layout.armed_ms)
        else:
            self._set_timer(kg, layout.armed_ms)

    def _set_pair(self, kg: int, at_ms: int) -> None:
        at_ms += at_ms % 2
        self._set_timer(kg, at_ms)
        self._set_timer(kg, at_ms + 1)

    def _emit(self, state: StageState, kg: int) -> Iterator[PacketRow]:
        for sink in state.stage.exits.sinks:
            sink.kg = kg
        rows = state.stage.exits.take_rows() + state.parked
        state.parked = []
        late = state.head.take_late()
        if late:
            rows.append(count_row(kg, LATE, late))
        if self._record is not None and not self._record.replays and state.head.decides:
            self._record.rows += rows
        yield from rows

    def _finish(self, kg: int) -> Iterator[PacketRow]:
        for state in self._stages.all():
            state.stage.wait_for_calls(self._deadline_s)
            yield from self._emit(state, kg)
