"""When a failed asynchronous call is retried: the contract that a step asks."""

from __future__ import annotations

from typing import Any, Protocol


class Retries(Protocol):
    """How often and when a call is made again."""

    def can_retry(self, attempts: int) -> bool:
        """Whether another attempt may follow this many."""
        ...

    def wants_retry(self, result: Any, error: BaseException | None) -> bool:
        """Whether this outcome is tried again."""
        ...

    def delay_before(self, attempt: int) -> float:
        """Seconds to wait before the given attempt (the second is number 2)."""
        ...


class Never:
    """A call is made once."""

    def can_retry(self, attempts: int) -> bool:
        return False

    def wants_retry(self, result: Any, error: BaseException | None) -> bool:
        return False

    def delay_before(self, attempt: int) -> float:
        return 0.0


NO_RETRY: Retries = Never()
