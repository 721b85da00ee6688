"""When the next checkpoint of a local job is due."""

from __future__ import annotations

import time

from emberflow.plan.job_contract import JobConfig

_DEFAULT_INTERVAL_MS = 1_000


class CheckpointPace:
    """Once per interval, measured from start to start, but never sooner than the minimum pause after the last one ended."""

    def __init__(self, config: JobConfig) -> None:
        self._interval_s = (config.checkpoint_interval_ms or _DEFAULT_INTERVAL_MS) / 1000
        self._pause_s = config.checkpoint_pause_ms / 1000
        self._due = time.monotonic() + self._interval_s

    def wait_s(self) -> float:
        return max(0.0, self._due - time.monotonic())

    def ended(self) -> None:
        """A checkpoint has completed or was aborted."""
        now = time.monotonic()
        # Do not catch up on checkpoints that are long overdue.
        self._due = max(self._due + self._interval_s, now + self._pause_s)
        if self._due <= now:
            self._due = now + self._interval_s
