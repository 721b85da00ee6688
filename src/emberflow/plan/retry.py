"""When a failed asynchronous call is retried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and when a failed call is retried."""

    max_attempts: int = 1
    delay_ms: float = 0
    multiplier: float = 1.0
    max_delay_ms: float | None = None
    on_result: Callable[[Any], bool] | None = None
    on_error: Callable[[BaseException], bool] | None = None

    def wants_retry(self, result: Any, error: BaseException | None) -> bool:
        if error is None:
            return self.on_result is not None and self.on_result(result)
        return self.on_error is None or self.on_error(error)

    def delay_before(self, attempt: int) -> float:
        """Seconds to wait before the given attempt (the second is number 2)."""
        delay = self.delay_ms * self.multiplier ** (attempt - 2)
        return min(delay, self.max_delay_ms if self.max_delay_ms is not None else delay) / 1000


NO_RETRY = RetryPolicy()
