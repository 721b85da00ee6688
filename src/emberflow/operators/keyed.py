"""The keyed operator: what all steps after key_by() share.

It works on one scope at a time (`enter`). Batches are passed to `receive`, channel by channel; the merged watermark
advances between records exactly where the channel's own watermark did. Results of timers that a watermark fires are
emitted before that watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emberflow.errors import shorten
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch, Origin
from emberflow.operators.operator import Operator, Step
from emberflow.operators.scope import Scope
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.state.entry import Cursor
from emberflow.state.ttl_handles import expire


class KeyedOperator(Operator):
    has_keys = True
    """False for the head of a partitioned stage, which serves a numbered task."""
    first_input = 0
    """The input whose packets of a micro-batch are processed before those of the other."""
    batch_mode = False
    """Whether the input is bounded and event time moves once, to its end."""
    leads = True
    """Set by an engine that serves a task's keys in several scopes: true for one of them. What a broadcast record makes
    leaves once per task."""
    parks = False
    """Whether what is in flight may be stored, and detached."""
    decides = False
    """Whether processing the same input again may have another result, depending on what calls answer, and when."""
    failed = False
    """Whether something failed, and was handled, since the engine last reset this: it may succeed the next time."""

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.cursor = Cursor(step.name)
        self.scope: Scope = None  # pyright: ignore[reportAttributeAccessIssue]
        self.input_of: dict[int, int] = {}
        """exchange -> input of the step (0, or 1 for the second stream of a connect)"""
        self.on_ended: Callable[[], None] = lambda: None
        """Called when the scope's input has ended."""
        self.on_timer_set: Callable[[], None] = lambda: None
        """Called when a processing-time timer was set by the end of a call, which the engine does not see."""
        self.check_canceled: Callable[[], None] = lambda: None
        """Set by an engine that cannot interrupt a running step: raises if the job is to end now."""
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._origins: list[Origin | None] | None = None
        self._watermarks: list[int] = []

    # implemented by the kinds of keyed steps

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        """Process records; call `advance` whenever the effective watermark moves; collect results with `collect`."""
        raise NotImplementedError(type(self).__name__)

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        """An event-time timer is due; the cursor points at its key, results are emitted after `watermark`."""

    def on_processing_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        """The same for a processing-time timer."""

    # what engines call

    def enter(self, scope: Scope) -> None:
        self.scope = scope
        cursor = self.cursor
        cursor.clock = scope.clock
        cursor.dropped = scope.dropped
        cursor.cleanup = scope.cleanup
        scope.pageable = cursor.pageable
        if scope.forms is None:
            scope.forms = {}
            expires = scope.cleanup.next_time() is not None
            cursor.forms.check_unnamed(scope.entries, expires=expires)
        cursor.forms.enter(scope.forms)

    def enter_unfilled(self, scope: Scope) -> None:
        """Enters a scope that is still being filled with restored state: functions must not read it yet."""
        self.enter(scope)

    def receive(self, input_index: int, channel: ChannelId, batch: Batch, watermark: int | None) -> None:
        scope = self.scope
        channels, now_ms = scope.channels, scope.clock.now_ms()
        channels.spoke(channel, now_ms)
        if channels.can_idle:
            # Other channels may have become idle since event time was last computed.
            self.merge_watermarks()
        if batch.values:
            watermarks = batch.watermarks
            if watermarks is not None:
                floor = channels.minimum(now_ms, without=channel)
                last = watermarks[-1]
                channels.advance(channel, last)
                if floor <= scope.watermark:
                    watermarks = None
                elif floor < last:
                    watermarks = [mark if mark < floor else floor for mark in watermarks]
            self.process(batch, watermarks, input_index)
            self.flush()
        if watermark is not None:
            channels.advance(channel, watermark)
            self.merge_watermarks()

    def merge_watermarks(self) -> None:
        """Advances event time as far as the channels allow."""
        scope = self.scope
        merged = scope.channels.minimum(scope.clock.now_ms())
        if merged > scope.watermark:
            self.on_watermark(merged)

    def on_watermark(self, watermark: int) -> None:
        before = self.scope.watermark
        self.advance(watermark)
        if watermark == MAX_WATERMARK:
            self._end(before)
            self._fire_event_timers(watermark, before)
        self.flush()
        self.output.watermark(watermark)
        if watermark == MAX_WATERMARK:
            self.on_ended()

    def fire_processing_timers(self) -> None:
        """Fires what is due by the scope's clock."""
        self._fire_processing(self.scope.clock.now_ms())
        self.flush()

    def remove_expired(self, limit: int) -> None:
        """Removes expired state of up to `limit` keys that are due for it, whether they have input or not."""
        scope, cursor = self.scope, self.cursor
        now_ms = scope.clock.now_ms()
        for _ in range(limit):
            due = scope.cleanup.pop_due(now_ms)
            if due is None:
                return
            cursor.key = due[1]
            cursor.entry = scope.entry(due[1])
            expire(cursor, due[0])
            if not cursor.entry:
                scope.prune((due[1],))

    def resume(self) -> None:
        """Continues what the stored scope had started, as far as possible here."""

    @property
    def busy(self) -> bool:
        """Whether the entered scope has calls in flight."""
        return False

    def before_save(self) -> None:
        """The scope is about to be stored: puts what is in flight into its entries."""

    def after_save(self) -> None:
        """The scope was stored; work continues as before."""

    def detach(self) -> None:
        """Instead of `after_save`: the scope will be loaded again from where it was stored. Calls continue, and record
        their results in the log."""

    def abandon(self) -> None:
        """An attempt at a batch was abandoned: what was started and not stored will be started again. Calls continue."""

    def take_late(self) -> int:
        """How many records were dropped because they were late, since the last call."""
        return 0

    # for the kinds of keyed steps

    def advance(self, watermark: int) -> None:
        """Sets event time and fires the timers that are due. Their results are emitted before the watermark."""
        before = self.scope.watermark
        self.scope.watermark = watermark
        self._fire_event_timers(watermark, before)

    def _fire_event_timers(self, watermark: int, before: int) -> None:
        timers = self.scope.event_timers
        ends = watermark == MAX_WATERMARK
        due = timers.pop_due(watermark)
        while due is not None:
            if ends:
                # At the end of event time, a timer that registers itself again fires forever, as in Flink.
                self.check_canceled()
            self._fire(self.on_event_timer, *due, before)
            due = timers.pop_due(watermark)

    def collect(self, results: Any, timestamp: int | None, watermark: int) -> None:
        """Adds what a user's function returned to what the step emits next; mutable values are copied, unless
        the program reuses objects."""
        before = len(self._values)
        self.isolation.extend(self._values, results)
        self._stamp(len(self._values) - before, timestamp, watermark)

    def collect_owned(
        self, results: Any, timestamp: int | None, watermark: int, origins: Sequence[Origin] | None = None
    ) -> None:
        """The same for values that neither a function nor the state holds any more."""
        before = len(self._values)
        if origins is not None:
            known = self._origins or []
            self._origins = [*known, *[None] * (before - len(known)), *origins]
        self._values.extend(results)
        self._stamp(len(self._values) - before, timestamp, watermark)

    def _stamp(self, count: int, timestamp: int | None, watermark: int) -> None:
        if count == 1:
            self._timestamps.append(timestamp)
            self._watermarks.append(watermark)
        elif count:
            self._timestamps.extend([timestamp] * count)
            self._watermarks.extend([watermark] * count)

    def flush(self) -> None:
        values = self._values
        if not values:
            return
        timestamps, watermarks = self._timestamps, self._watermarks
        self._values, self._timestamps, self._watermarks = [], [], []
        timed = any(stamp is not None for stamp in timestamps)
        if self.in_turn:
            watermarks = [self.scope.loaded_at] * len(values)
        moving = watermarks[-1] != MIN_WATERMARK
        origins, self._origins = self._origins, None
        if origins is not None:
            origins.extend([None] * (len(values) - len(origins)))
        self.output.mixed(
            Batch(values, timestamps if timed else None, watermarks if moving else None, None, origins)
        )

    def _fire(self, handler: Callable[[int, Any, int], None], time_ms: int, key: Any, watermark: int) -> None:
        self.cursor.key = key
        self.cursor.entry = self.scope.entry(key)
        try:
            handler(time_ms, key, watermark)
        except BaseException as error:
            raise self.step.failed_in(f"the timer at {time_ms} of key {shorten(key)}", error) from error
        if not self.cursor.entry:
            self.scope.prune((key,))

    def _fire_processing(self, now_ms: int) -> None:
        timers, scope = self.scope.processing_timers, self.scope
        due = timers.pop_due(now_ms)
        while due is not None:
            self._fire(self.on_processing_timer, *due, scope.watermark)
            due = timers.pop_due(now_ms)

    def _end(self, before: int) -> None:
        """The input has ended: pending processing-time timers fire once, early; timers that they register are dropped,
        because a timer that registers itself again would keep a bounded job running forever.

        Their results are emitted with the watermark `before` the end, as those of event-time timers: a record that
        carried the end would end the steps behind before their input has ended."""
        scope = self.scope
        scope.ended = True
        pending = scope.processing_timers.pending()
        for time_ms, keys in pending:
            for key in keys:
                scope.processing_timers.delete(time_ms, key)
        for time_ms, keys in pending:
            for key in keys:
                self._fire(self.on_processing_timer, time_ms, key, before)
        for time_ms, keys in scope.processing_timers.pending():
            for key in keys:
                scope.processing_timers.delete(time_ms, key)
