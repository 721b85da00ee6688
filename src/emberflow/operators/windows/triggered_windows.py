"""Windows whose trigger decides when they fire: any assigner, merging or not, with lateness and an evictor.

Per key, the state holds the contents of windows, the timers of windows, and the state of trigger and window function
under names of their own. A window is removed when its time and the allowed lateness have passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from emberflow.event_time.timestamps import MAX_TIMESTAMP, NO_TIMESTAMP
from emberflow.events.batch import MIN_WATERMARK, Batch, marks_of
from emberflow.operators.contexts import TimeDomain
from emberflow.operators.operator import Step
from emberflow.operators.windows.adoption import panes_as_windows, windows_without_timers
from emberflow.operators.windows.contents import ElementContents, Held, own_copy
from emberflow.operators.windows.eviction import Eviction
from emberflow.operators.windows.trigger_context import AssignerContext, OperatorTriggerContext
from emberflow.operators.windows.window_operator import (
    PANES,
    WINDOW_TIMERS,
    WINDOWS,
    WindowOperator,
    beyond_time,
)
from emberflow.operators.windows.window_timers import WindowTimers
from emberflow.plan.window_specs import WindowSpec
from emberflow.state.entry import Entry
from emberflow.windowing.triggers import TriggerResult
from emberflow.windowing.windows import CountWindow

_EVENT, _PROCESSING = TimeDomain.EVENT_TIME, TimeDomain.PROCESSING_TIME


class TriggeredWindowOperator(WindowOperator):
    """Follows Flink's window operator step by step."""

    def __init__(self, step: Step, spec: WindowSpec) -> None:
        super().__init__(step, spec)
        self._assigner: Any = spec.assigner
        self._trigger = spec.trigger or spec.assigner.get_default_trigger(None)
        self._by_event_time = spec.assigner.is_event_time()
        self._merging = spec.merging
        self._lateness_ms = spec.allowed_lateness_ms
        self._timers = WindowTimers(self)
        self._trigger_context = OperatorTriggerContext(self, self._timers)
        self._assigner_context = AssignerContext(self)
        self._eviction = None if spec.evictor is None else Eviction(spec.evictor, self.contents, self)
        if self._eviction is not None:
            self.contents = ElementContents()
        self._mark = MIN_WATERMARK
        """The watermark behind which results leave."""

    def open(self, context: Any) -> None:
        super().open(context)
        self._trigger_context.runtime_context = self._assigner_context.runtime_context = context

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        scope, cursor, assign = self.scope, self.cursor, self._assigner.assign_windows
        known, found, context = scope.entries.get, scope.entry, self._assigner_context
        current = scope.watermark
        needs_copies, copied = self.isolation.needs_copies, self.isolation.copied
        marks = marks_of(watermarks, batch)
        stamps = batch.stamps()
        value: Any = None
        emptied: list[Any] = []
        try:
            for key, value, stamp, mark in zip(batch.keys or (), batch.values, stamps, marks, strict=True):
                if mark > current:
                    self.advance(mark)
                    current = mark
                if stamp is None and self._by_event_time:
                    raise self.no_timestamp(value)
                entry = known(key)
                if entry is None:
                    entry = found(key)
                cursor.key, cursor.entry = key, entry
                if WINDOW_TIMERS not in entry and entry:
                    self._adopt(entry, current)
                self._mark = current
                added = False
                windows = tuple(assign(value, NO_TIMESTAMP if stamp is None else stamp, context))
                # A record that can be changed is copied for each of its windows.
                shared = len(windows) > 1 and needs_copies(value)
                for window in windows:
                    added = self._add(window, copied(value) if shared else value, stamp) or added
                if not added and self._is_late(stamp, current):
                    self.late(value, stamp, current)
                if not entry:
                    emptied.append(key)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        scope.prune(emptied)

    def _is_late(self, stamp: int | None, watermark: int) -> bool:
        return self._by_event_time and stamp is not None and stamp + self._lateness_ms <= watermark

    def on_event_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self._mark = watermark
        self._adopt(self.cursor.entry, time_ms - 1)
        for set_for_ms, window in self._timers.take(_EVENT, time_ms):
            self._on_time(window, set_for_ms, self._trigger.on_event_time, ends=self._by_event_time)

    def on_processing_timer(self, time_ms: int, key: Any, watermark: int) -> None:
        self._mark = watermark
        for set_for_ms, window in self._timers.take(_PROCESSING, time_ms):
            self._on_time(window, set_for_ms, self._trigger.on_processing_time, ends=not self._by_event_time)

    def _on_time(self, window: Any, time_ms: int, ask: Any, *, ends: bool) -> None:
        if self._merging and window not in self.cursor.entry.get(WINDOWS, ()):
            # A trigger did not remove the timer of a window that was merged into another one.
            return
        self._trigger_context.window = window
        self._obey(ask(time_ms, window, self._trigger_context), window)
        if ends and time_ms == self._cleanup_time(window):
            self._remove(window)

    def _add(self, window: Any, value: Any, stamp: int | None) -> bool:
        """Whether the record was added to the window: not if that has been removed."""
        entry = self.cursor.entry
        if self._merging:
            window = self._merged(window)
        cleanup_ms = self._cleanup_time(window)
        if self._by_event_time and cleanup_ms <= self.scope.watermark:
            return False
        windows: dict[Any, Held] | None = entry.get(WINDOWS)
        if windows is None:
            windows = entry[WINDOWS] = {}
        item = value if self._eviction is None else (value, stamp)
        windows[window] = self.contents.add(windows.get(window), item)
        entry.dirty = True
        context = self._trigger_context
        context.window = window
        given = NO_TIMESTAMP if stamp is None else stamp
        self._obey(self._trigger.on_element(value, given, window, context), window)
        if cleanup_ms < MAX_TIMESTAMP:
            self._timers.register(_EVENT if self._by_event_time else _PROCESSING, cleanup_ms, window)
        return True

    def _obey(self, result: TriggerResult, window: Any) -> None:
        if result is TriggerResult.CONTINUE:
            return
        if result.__class__ is not TriggerResult:
            name = type(self._trigger).__name__
            raise TypeError(f"the trigger {name} must return a TriggerResult, not {result!r}")
        entry = self.cursor.entry
        windows = entry.get(WINDOWS, {})
        held = windows.get(window)
        if held and result.is_fire():
            self._fire_window(window, held, last=result.is_purge())
        if held is not None and (result.is_purge() or not held):
            entry.dirty = True
            if self._merging:
                # The window itself stays until its time has passed: others may be merged into it.
                windows[window] = []
            else:
                del windows[window]
                if not windows:
                    del entry[WINDOWS]
            if window.__class__ is CountWindow:
                # No time ends it, and it gets no more records.
                self._remove(window)

    def _fire_window(self, window: Any, held: list[Any], *, last: bool) -> None:
        key, time_ms = self.cursor.key, window.max_timestamp()
        if self._eviction is not None:
            elements, after = self._eviction.before(window, held)
            self.emit(key, window, elements, time_ms, self._mark)
            # In place: whoever holds the contents goes on with what is left.
            held[:] = self._eviction.after(window, after)
            self.cursor.entry.dirty = True
            return
        # What is emitted must not change when the window grows.
        elements: Iterable[Any] = self.contents.result(held if last else own_copy(held, self.isolation))
        self.emit(key, window, elements, time_ms, self._mark)

    def _merged(self, new: Any) -> Any:
        """The window that a new one belongs to once windows have been merged."""
        entry, context = self.cursor.entry, self._trigger_context
        windows = entry.get(WINDOWS)
        if not windows:
            return new
        found = _Merges()
        self._assigner.merge_windows([*windows, new], found)
        actual = new
        for group, result in found.groups:
            if new in group:
                actual = result
            olds = [window for window in windows if window in group]
            if not olds or olds == [result]:
                continue
            held: list[Any] | None = None
            for window in olds:
                held = self.contents.merge(held, windows.pop(window))
            windows[result] = held or []
            entry.dirty = True
            context.window, context.merged = result, [window for window in olds if window != result]
            self._trigger.on_merge(result, context)
            for window in context.merged:
                context.window = window
                self._trigger.clear(window, context)
                self._timers.forget(window)
                context.states.forget(window)
        return actual

    def _remove(self, window: Any) -> None:
        """The window has ended: nothing of it is left."""
        entry, context = self.cursor.entry, self._trigger_context
        windows = entry.get(WINDOWS)
        if windows is not None and windows.pop(window, None) is not None:
            entry.dirty = True
            if not windows:
                del entry[WINDOWS]
        context.window = window
        self._trigger.clear(window, context)
        self._timers.forget(window)
        context.states.forget(window)
        self.finish(window)
        self.context._states.forget(window)

    def _cleanup_time(self, window: Any) -> int:
        """When the window is removed; MAX_TIMESTAMP if never."""
        last_ms = window.max_timestamp()
        if last_ms > MAX_TIMESTAMP:
            raise beyond_time(*window)
        return min(last_ms + self._lateness_ms, MAX_TIMESTAMP) if self._by_event_time else last_ms

    def _adopt(self, entry: Entry, watermark: int) -> None:
        """Windows that were stored by a faster way to run them, whose trigger has set no timers."""
        if PANES in entry and self._by_event_time:
            assign = getattr(self._assigner, "assign", None)
            if assign is not None:
                panes_as_windows(entry, assign, self.contents, watermark)
        for window in windows_without_timers(entry):
            # One that the watermark has passed has fired, and is kept for late records: endless lateness sets no timer.
            if window.max_timestamp() > watermark:
                self._timers.register(_EVENT, window.max_timestamp(), window)
            if self._cleanup_time(window) < MAX_TIMESTAMP:
                self._timers.register(_EVENT, self._cleanup_time(window), window)


class _Merges:
    """Collects what an assigner merges."""

    def __init__(self) -> None:
        self.groups: list[tuple[set[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.groups.append((set(to_be_merged), merge_result))
