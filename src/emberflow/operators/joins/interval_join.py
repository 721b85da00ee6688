"""The interval join: pairs of records of two keyed streams whose event times are close enough.

Every record first looks for partners among those that the other input has remembered, then is remembered itself. A record
that is not late meets every partner that is not late: the other input's records are kept until event time has passed the
end of their interval. An event-time timer per bucket of records drops them, so memory is bounded by the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emberflow.errors import StepFailed, shorten
from emberflow.events.batch import Batch, marks_of
from emberflow.operators.joins.join_context import JoinContext
from emberflow.operators.joins.time_buckets import MATCHED, STAMP, VALUE, Kept, TimeBuckets
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, open_function
from emberflow.plan.join_specs import LEFT, RIGHT, IntervalJoinSpec, SideOutputs
from emberflow.state.entry import Entry


class _Side:
    """One input: how its records are remembered, and where their partners' times lie."""

    __slots__ = ("from_ms", "kept", "outputs", "to_ms")

    def __init__(self, kept: TimeBuckets, from_ms: int, to_ms: int, outputs: SideOutputs) -> None:
        self.from_ms = from_ms
        self.to_ms = to_ms
        self.kept = kept
        self.outputs = outputs


class IntervalJoinOperator(KeyedOperator):
    """In batch mode nothing is dropped before the end: event time does not move, and state is not stored."""

    def __init__(self, step: Step, spec: IntervalJoinSpec, *, batch: bool = False) -> None:
        super().__init__(step)
        self._function = spec.function
        self._call = spec.call
        lower, upper = spec.lower_ms, spec.upper_ms
        self._sides = (
            _Side(
                TimeBuckets(self.cursor, "left", lower, upper, upper), lower, upper, spec.side_outputs[LEFT]
            ),
            _Side(
                TimeBuckets(self.cursor, "right", lower, upper, -lower),
                -upper,
                -lower,
                spec.side_outputs[RIGHT],
            ),
        )
        # Without timers a batch only remembers; unmatched records are known at its end.
        self._sets_timers = not batch or any(side.outputs.unmatched for side in self._sides)
        self._context = JoinContext()
        self._late = 0

    def open(self, context: Any) -> None:
        open_function(self._function, context)

    def close(self) -> None:
        close_function(self._function)

    def take_late(self) -> int:
        late, self._late = self._late, 0
        return late

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, cursor, side = self.scope, self.cursor, self._sides[input_index]
        known, found, late = scope.entries.get, scope.entry, side.outputs.late
        current = scope.watermark
        marks = marks_of(watermarks, batch)
        stamps = batch.stamps()
        emptied: list[Any] = []
        value: Any = None
        try:
            for key, value, stamp, mark in zip(batch.keys or (), batch.values, stamps, marks, strict=True):
                if mark > current:
                    self.advance(mark)
                    current = mark
                if stamp is None:
                    raise self._no_timestamp(value)
                if stamp < current:
                    if late is None:
                        self._late += 1
                    else:
                        self.collect(((late, value),), stamp, current)
                    continue
                entry = known(key)
                if entry is None:
                    entry = found(key)
                cursor.key = key
                cursor.entry = entry
                self._join(entry, value, stamp, current, input_index)
                if not entry:
                    emptied.append(key)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        scope.prune(emptied)

    def _join(self, entry: Entry, value: Any, stamp: int, watermark: int, input_index: int) -> None:
        """Joins a record with those that came before it, then remembers it."""
        side, other = self._sides[input_index], self._sides[1 - input_index]
        if entry and side.kept.name not in entry:
            self._take_over(watermark)
        partners = other.kept.between(stamp + side.from_ms, stamp + side.to_ms)
        if partners:
            call, context = self._call, self._context
            for time_ms, partner, _ in partners:
                if input_index == LEFT:
                    context._set(stamp, time_ms)
                    results = call(value, partner, context)
                else:
                    context._set(time_ms, stamp)
                    results = call(partner, value, context)
                if results is not None:
                    self.collect(results, time_ms if time_ms > stamp else stamp, watermark)
            if other.outputs.unmatched is not None:
                other.kept.mark_matched(partners)
        due = side.kept.due(stamp)
        if due > watermark:
            if side.kept.add(stamp, value, bool(partners)) and self._sets_timers:
                self.scope.event_timers.register(due, self.cursor.key)
        elif not partners and side.outputs.unmatched is not None:
            # Its whole interval is in the past: nothing that may still come is its partner.
            self.collect(((side.outputs.unmatched, value),), stamp, watermark)

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self._take_over(watermark)
        for side in self._sides:
            dropped = side.kept.drop_due(time_ms)
            # With the timer's time: their own is behind event time, so they would be late.
            self._emit_unmatched(side, dropped, time_ms, watermark)

    def _emit_unmatched(self, side: _Side, dropped: list[Kept], time_ms: int, watermark: int) -> None:
        tag = side.outputs.unmatched
        if tag is not None:
            self.collect([(tag, kept[VALUE]) for kept in dropped if not kept[MATCHED]], time_ms, watermark)

    def _take_over(self, watermark: int) -> None:
        """What a program with another interval has stored is kept as this one would have kept it."""
        now = self.scope.watermark
        for side in self._sides:
            for kept in side.kept.take_over():
                due = side.kept.due(kept[STAMP])
                if due <= now:
                    self._emit_unmatched(side, [kept], now, watermark)
                else:
                    side.kept.add(*kept)
                    self.scope.event_timers.register(due, self.cursor.key)

    def _no_timestamp(self, value: Any) -> Exception:
        where = f" ({self.step.location})" if self.step.location else ""
        return StepFailed(
            f"step {self.step.name!r}{where} got the value {shorten(value)}, which has no event time",
            way_out="call assign_timestamps_and_watermarks() on both streams before interval_join(), with a strategy that has a "
            "timestamp assigner if the source gives records no event time",
        )
