"""A clock that a test advances.

Pass it to a job with `env.set_option("clock", clock)`: the local engine then takes processing time, including
processing-time timers and time to live, from it. Spark uses its own time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from emberflow.errors import InvalidArgument


class ManualClock:
    """Stands still until `advance` is called, from any thread."""

    def __init__(self, start_ms: int = 0) -> None:
        self._now_ms = start_ms
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """The time it was set to."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Advances the time and calls the registered callbacks."""
        if ms < 0:
            raise InvalidArgument(f"a clock cannot go back, got {ms} ms", way_out="advance by zero or more")
        with self._lock:
            self._now_ms += ms
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def on_advance(self, callback: Callable[[], object]) -> None:
        """Registers `callback()` to be called after every advance."""
        with self._lock:
            self._callbacks.append(callback)

    def __repr__(self) -> str:
        return f"ManualClock({self._now_ms})"
