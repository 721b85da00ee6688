"""What all ways to run windows share: the functions, what a window emits, and what happens to late records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberflow.errors import StepFailed, shorten
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.operator import Step, close_function, function_behind, has_own_open, open_function
from emberflow.operators.windows.contents import contents_of
from emberflow.operators.windows.window_context import WindowContext
from emberflow.plan.window_specs import WindowSpec
from emberflow.state.entry import Entry

WINDOWS = "$windows"
"""The state of a key: its windows, and what each of them holds."""
PANES = "$panes"
"""The same for sliding windows that share panes: the start of a pane, and what it holds."""
NEXT_WINDOW = "$next-window"
"""When the next window over a key's panes ends."""
WINDOW_TIMERS = "$window-timers"
"""(domain, time) -> windows of a key whose trigger is to be called."""


class WindowOperator(KeyedOperator):
    """Base of the operators of window steps."""

    def __init__(self, step: Step, spec: WindowSpec) -> None:
        super().__init__(step)
        self.contents = contents_of(spec)
        self.context: WindowContext[Any] = WindowContext(self, merging=spec.merging)
        self._process = spec.process
        self._clear = getattr(spec.process, "clear", None)
        self._late_tag = spec.late_tag
        extractor = getattr(spec.assigner, "extractor", None)
        made_of = (extractor, function_behind(spec.reduce, "reduce"), spec.aggregate, spec.process)
        self._functions = [function for function in made_of if function is not None]
        self._uses_state = any(has_own_open(function) for function in made_of[:3])
        """Whether a function that is called for a record may use state, which it can only get in `open()`."""
        self._late = 0

    def open(self, context: Any) -> None:
        self.context._runtime_context = context
        for function in self._functions:
            open_function(function, context)

    def close(self) -> None:
        for function in self._functions:
            close_function(function)

    def known(self) -> Callable[[Any], Entry | None]:
        """How a record finds its key's entry. Only a function that may use state pays for the cursor."""
        return self._pointed if self._uses_state else self.scope.entries.get

    def _pointed(self, key: Any) -> Entry:
        cursor = self.cursor
        cursor.key = key
        cursor.entry = entry = self.scope.entry(key)
        return entry

    def take_late(self) -> int:
        late, self._late = self._late, 0
        return late

    def emit(self, key: Any, window: Any, elements: Any, time_ms: int, watermark: int) -> None:
        """Gives a window's contents to the window function; `time_ms` is the event time of what it returns."""
        if self._process is not None:
            self.context._window = window
            elements = self._process.process(key, self.context, elements)
        if elements is not None:
            self.collect(elements, time_ms, watermark)

    def finish(self, window: Any) -> None:
        """The window of the current key is removed."""
        if self._clear is not None:
            self.context._window = window
            self._clear(self.context)
        self.context._forget(window)

    def late(self, value: Any, stamp: int | None, watermark: int) -> None:
        """A record that belongs to no window any more."""
        if self._late_tag is None:
            self._late += 1
        else:
            self.collect(((self._late_tag, value),), stamp, watermark)

    def no_timestamp(self, value: Any) -> Exception:
        where = f" ({self.step.location})" if self.step.location else ""
        return StepFailed(
            f"step {self.step.name!r}{where} got the value {shorten(value)}, which has no event time",
            way_out="call assign_timestamps_and_watermarks() before window(), with a strategy that has a "
            "timestamp assigner if the source gives records no event time",
        )


def beyond_time(start: int, end: int) -> ValueError:
    return ValueError(
        f"its window [{start}, {end}) ends after the last timestamp, 2**63-1, so it would never fire"
    )
