"""When asynchronous calls are made again: PyFlink's strategies and predicates, and how the step applies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from emberflow.errors import InvalidArgument, shorten
from emberflow.plan.retry import NO_RETRY, Retries

OUT = TypeVar("OUT")

OnResult = Callable[[list[OUT]], bool]
OnError = Callable[[BaseException], bool]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Whether a call found nothing."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether a call failed, whatever the exception."""
    return error is not None


def exception_type_predicate(error: BaseException, expected_error_type: type[BaseException]) -> bool:
    """Whether a call failed with this exception; use it with `functools.partial`, or in a lambda."""
    return isinstance(error, expected_error_type)


class AsyncRetryPredicate(Generic[OUT]):
    """Which outcomes of a call are tried again."""

    def result_predicate(self) -> OnResult[OUT] | None:
        """Called with the list of results; None if no result is tried again."""
        raise NotImplementedError("result_predicate() must be overridden")

    def exception_predicate(self) -> OnError | None:
        """Called with the exception; None if no exception is tried again."""
        raise NotImplementedError("exception_predicate() must be overridden")


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """Two functions as a predicate."""

    def __init__(self, result_predicate: OnResult[OUT] | None, exception_predicate: OnError | None) -> None:
        self._on_result = result_predicate
        self._on_error = exception_predicate

    def result_predicate(self) -> OnResult[OUT] | None:
        """What the constructor was given."""
        return self._on_result

    def exception_predicate(self) -> OnError | None:
        """What the constructor was given."""
        return self._on_error


class AsyncRetryStrategy(Generic[OUT]):
    """When a call is made again; derive from it for a rule of your own.

    `max_attempts` counts the calls after the first one, as in Flink. `exception_predicate` and `result_predicate` choose which
    outcomes are tried again: every exception and no result unless they are given; None stands for none at all.
    """

    def can_retry(self, current_attempts: int) -> bool:
        """Whether a call may be made again that was made this often."""
        raise NotImplementedError("can_retry() must be overridden")

    def get_backoff_time_millis(self, current_attempts: int) -> float:
        """Milliseconds before the next call of one that was made this often."""
        raise NotImplementedError("get_backoff_time_millis() must be overridden")

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes are tried again."""
        raise NotImplementedError("get_retry_predicate() must be overridden")

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """A call is made once."""
        return NoRetryStrategy()

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: float,
        result_predicate: OnResult[Any] | None = None,
        exception_predicate: OnError | None = has_exception_predicate,
    ) -> AsyncRetryStrategy[Any]:
        """A call is made again at most `max_attempts` times, always after the same delay."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: float,
        max_retry_delay: float,
        multiplier: float,
        result_predicate: OnResult[Any] | None = None,
        exception_predicate: OnError | None = has_exception_predicate,
    ) -> AsyncRetryStrategy[Any]:
        """A call is made again at most `max_attempts` times; delays, in milliseconds, grow by `multiplier` up to
        `max_retry_delay`."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """A call is made once."""

    def can_retry(self, current_attempts: int) -> bool:
        """Never."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> float:
        """Always -1."""
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """No outcome is tried again."""
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """A call is made again at most `max_attempts` times, always after the same delay."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: float,
        result_predicate: OnResult[OUT] | None,
        exception_predicate: OnError | None,
    ) -> None:
        _positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._delay_ms = backoff_time_millis
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        """Until there were `max_attempts` calls after the first."""
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> float:
        """Always the same."""
        return self._delay_ms

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """What the constructor was given."""
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(FixedDelayRetryStrategy[OUT]):
    """A call is made again at most `max_attempts` times, after delays that grow."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: float,
        max_retry_delay: float,
        multiplier: float,
        result_predicate: OnResult[OUT] | None,
        exception_predicate: OnError | None,
    ) -> None:
        _positive(initial_delay=initial_delay, max_retry_delay=max_retry_delay, multiplier=multiplier)
        super().__init__(max_attempts, initial_delay, result_predicate, exception_predicate)
        self._max_delay_ms = max_retry_delay
        self._multiplier = multiplier

    def get_backoff_time_millis(self, current_attempts: int) -> float:
        """The initial delay, then `multiplier` times the one before, up to the largest."""
        return min(self._delay_ms * self._multiplier ** (current_attempts - 1), self._max_delay_ms)


@dataclass(frozen=True, slots=True)
class StrategyRetries:
    """A strategy, as the asynchronous step asks it."""

    strategy: AsyncRetryStrategy[Any]

    def can_retry(self, attempts: int) -> bool:
        return self.strategy.can_retry(attempts)

    def wants_retry(self, result: Any, error: BaseException | None) -> bool:
        predicate = self.strategy.get_retry_predicate()
        if error is None:
            on_result = predicate.result_predicate()
            return on_result is not None and on_result(result)
        on_error = predicate.exception_predicate()
        return on_error is not None and on_error(error)

    def delay_before(self, attempt: int) -> float:
        return self.strategy.get_backoff_time_millis(attempt - 1) / 1000


def retries_of(strategy: AsyncRetryStrategy[Any] | None) -> Retries:
    """What a step asks before it makes a call again."""
    if strategy is None:
        return NO_RETRY
    given: Any = strategy
    if not isinstance(given, AsyncRetryStrategy):
        raise InvalidArgument(
            f"{shorten(given)} is not an AsyncRetryStrategy",
            way_out="use AsyncRetryStrategy.fixed_delay(3, 100), or derive from AsyncRetryStrategy",
        )
    return StrategyRetries(strategy)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise InvalidArgument(f"{name} must be greater than 0, got {value}")
