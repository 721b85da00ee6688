"""`env.get_checkpoint_config()`: when checkpoints are taken and how long they are kept."""

from __future__ import annotations

from typing import Any

from emberflow.errors import InvalidArgument, shorten
from emberflow.event_time.clock import Interval, to_ms
from emberflow.plan.job_contract import CheckpointingMode


class CheckpointConfig:
    """Settings of one environment. On Spark every micro-batch is a checkpoint: there `trigger_ms` sets the pace, and
    only the history's length counts."""

    def __init__(self) -> None:
        self._interval_ms: int | None = None
        self._timeout_ms: int | None = None
        self._pause_ms = 0
        self._retained = 2
        self._mode = CheckpointingMode.EXACTLY_ONCE

    def set_checkpoint_interval(self, interval: Interval) -> CheckpointConfig:
        """How often state, positions and outputs are committed together."""
        self._interval_ms = _positive(interval, "checkpoint interval")
        return self

    def set_checkpointing_mode(self, mode: CheckpointingMode) -> CheckpointConfig:
        """Whether `print()` and `collect()` wait for checkpoints (`local`)."""
        given: Any = mode
        if not isinstance(given, CheckpointingMode):
            raise InvalidArgument(
                f"the checkpointing mode cannot be {shorten(given)}",
                way_out="CheckpointingMode.EXACTLY_ONCE or CheckpointingMode.AT_LEAST_ONCE",
            )
        self._mode = mode
        return self

    def set_checkpoint_timeout(self, timeout: Interval) -> CheckpointConfig:
        """A checkpoint for which the job does not come to rest in this time is given up; the next one is tried after
        the interval."""
        self._timeout_ms = _positive(timeout, "checkpoint timeout")
        return self

    def set_min_pause_between_checkpoints(self, pause: Interval) -> CheckpointConfig:
        """The least time between the end of a checkpoint and the beginning of the next."""
        self._pause_ms = to_ms(pause, "pause")
        if self._pause_ms < 0:
            raise InvalidArgument(
                f"the pause between checkpoints must not be negative, got {self._pause_ms} ms"
            )
        return self

    def set_retained_checkpoints(self, count: int) -> CheckpointConfig:
        """How many checkpoints stay on the disk (`memory` backend of `local`; SQLite and Spark keep their own)."""
        if count < 1:
            raise InvalidArgument(f"at least one checkpoint must be kept, got {count}")
        self._retained = count
        return self

    def get_checkpoint_interval(self) -> int | None:
        """Milliseconds between checkpoints; None if none was set."""
        return self._interval_ms

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Whether `print()` and `collect()` wait for checkpoints."""
        return self._mode

    def get_checkpoint_timeout(self) -> int | None:
        """Milliseconds after which a checkpoint is given up; None if it never is."""
        return self._timeout_ms

    def get_min_pause_between_checkpoints(self) -> int:
        """The least milliseconds between two checkpoints."""
        return self._pause_ms

    def get_retained_checkpoints(self) -> int:
        """How many checkpoints stay on the disk."""
        return self._retained


def _positive(value: Interval, what: str) -> int:
    milliseconds = to_ms(value, what.rpartition(" ")[2])
    if milliseconds <= 0:
        raise InvalidArgument(f"the {what} must be positive, got {milliseconds} ms")
    return milliseconds
