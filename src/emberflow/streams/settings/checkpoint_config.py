"""`env.get_checkpoint_config()`: when checkpoints are taken and how long they are kept."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from emberflow.errors import InvalidArgument, shorten
from emberflow.event_time.clock import Duration, Interval, to_ms
from emberflow.plan.job_contract import CheckpointingMode
from emberflow.streams.settings.state_backends import ExternalizedCheckpointRetention

DEFAULT_TIMEOUT_MS = 600_000


class CheckpointConfig:
    """Settings of one environment. On Spark every micro-batch is a checkpoint: there `trigger_ms` sets the pace, and
    only the history's length counts. What only makes sense for Flink's checkpoint barriers is kept and has no effect."""

    def __init__(self) -> None:
        self._interval_ms: int | None = None
        self._timeout_ms = DEFAULT_TIMEOUT_MS
        self._pause_ms = 0
        self._retained = 2
        self._mode = CheckpointingMode.EXACTLY_ONCE
        self._concurrent = 1
        self._tolerable_failures = -1
        self._retention = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        self._unaligned = False
        self._force_unaligned = False
        self._aligned_timeout_ms = 0

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval was set."""
        return self._interval_ms is not None

    def set_checkpoint_interval(self, checkpoint_interval: Interval) -> CheckpointConfig:
        """How often state, positions and outputs are committed together."""
        self._interval_ms = _positive(checkpoint_interval, "checkpoint interval")
        return self

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between checkpoints; -1 if none was set."""
        return -1 if self._interval_ms is None else self._interval_ms

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Whether `print()` and `collect()` wait for checkpoints (`local`)."""
        self._mode = _member(checkpointing_mode, CheckpointingMode, "checkpointing mode")
        return self

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Whether `print()` and `collect()` wait for checkpoints."""
        return self._mode

    def set_checkpoint_timeout(self, checkpoint_timeout: Interval) -> CheckpointConfig:
        """A checkpoint for which the job does not come to rest in this time is given up; the next one is tried after
        the interval."""
        self._timeout_ms = _positive(checkpoint_timeout, "checkpoint timeout")
        return self

    def get_checkpoint_timeout(self) -> int:
        """Milliseconds after which a checkpoint is given up; ten minutes unless another time was set."""
        return self._timeout_ms

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: Interval) -> CheckpointConfig:
        """The least time between the end of a checkpoint and the beginning of the next."""
        self._pause_ms = _at_least_zero(min_pause_between_checkpoints, "pause between checkpoints")
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """The least milliseconds between two checkpoints."""
        return self._pause_ms

    def set_retained_checkpoints(self, count: int) -> CheckpointConfig:
        """How many checkpoints stay on the disk (`memory` backend of `local`; SQLite and Spark keep their own)."""
        if count < 1:
            raise InvalidArgument(f"at least one checkpoint must be kept, got {count}")
        self._retained = count
        return self

    def get_retained_checkpoints(self) -> int:
        """How many checkpoints stay on the disk."""
        return self._retained

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Kept for its getter: there is never more than one checkpoint at a time."""
        if max_concurrent_checkpoints < 1:
            raise InvalidArgument(
                f"the number of concurrent checkpoints must be at least 1, got {max_concurrent_checkpoints}"
            )
        self._concurrent = max_concurrent_checkpoints
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """What was set, 1 by default."""
        return self._concurrent

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Kept for its getter: a checkpoint that is given up never fails the job, one that cannot be written always does."""
        if tolerable_checkpoint_failure_number < 0:
            raise InvalidArgument(
                f"the number of tolerable failures must not be negative, got {tolerable_checkpoint_failure_number}"
            )
        self._tolerable_failures = tolerable_checkpoint_failure_number
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """What was set, 0 by default."""
        return max(self._tolerable_failures, 0)

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Kept for its getter, see `set_tolerable_checkpoint_failure_number()`."""
        self._tolerable_failures = 0 if fail_on_checkpointing_errors else 2**31 - 1
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether no failure of a checkpoint is tolerated."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Kept for its getter: the checkpoints of a canceled job stay in its checkpoint directory."""
        self._retention = _member(retention_mode, ExternalizedCheckpointRetention, "retention")
        return self

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What was set."""
        return self._retention

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether a retention was set."""
        return self._retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Kept for its getter: checkpoints have no barriers that could be aligned."""
        self._unaligned = enabled
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Kept for its getter."""
        return self.enable_unaligned_checkpoints(False)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """What was set."""
        return self._unaligned

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Kept for its getter."""
        self._force_unaligned = force_unaligned_checkpoints
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """What was set."""
        return self._force_unaligned

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Interval) -> CheckpointConfig:
        """Kept for its getter: checkpoints have no barriers that could be aligned."""
        self._aligned_timeout_ms = _at_least_zero(alignment_timeout, "aligned checkpoint timeout")
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """What was set."""
        return Duration.of_millis(self._aligned_timeout_ms)

    def set_alignment_timeout(self, alignment_timeout: Interval) -> CheckpointConfig:
        """As `set_aligned_checkpoint_timeout()`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """As `get_aligned_checkpoint_timeout()`."""
        return self.get_aligned_checkpoint_timeout()


E = TypeVar("E", bound=Enum)


def _member(given: Any, kind: type[E], what: str) -> E:
    if isinstance(given, kind):
        return given
    raise InvalidArgument(
        f"the {what} cannot be {shorten(given)}",
        way_out=f"use {', '.join(f'{kind.__name__}.{item.name}' for item in kind)}",
    )


def _at_least_zero(value: Interval, what: str) -> int:
    milliseconds = to_ms(value, what.rpartition(" ")[2])
    if milliseconds < 0:
        raise InvalidArgument(f"the {what} must not be negative, got {milliseconds} ms")
    return milliseconds


def _positive(value: Interval, what: str) -> int:
    milliseconds = to_ms(value, what.rpartition(" ")[2])
    if milliseconds <= 0:
        raise InvalidArgument(f"the {what} must be positive, got {milliseconds} ms")
    return milliseconds
