"""`CompletableFuture`: what PyFlink's `JobClient` returns. It waits for a job that runs elsewhere; it runs nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from emberflow.streams.program.tracebacks import user_frames_only

T = TypeVar("T", covariant=True)
V = TypeVar("V")


class CompletableFuture(Generic[T]):
    """A result that may not be there yet.

    ```python
    from emberflow.streams import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1, 2]).print()
    client = env.execute_async("numbers")
    assert client.get_job_execution_result().result().metrics.records_in == 2
    ```
    """

    def __init__(
        self,
        wait: Callable[[], T],
        *,
        is_done: Callable[[], bool],
        is_cancelled: Callable[[], bool] = lambda: False,
        cancel: Callable[[], object] | None = None,
    ) -> None:
        self._wait = wait
        self._is_done = is_done
        self._is_cancelled = is_cancelled
        self._cancel = cancel

    @user_frames_only
    def result(self) -> T:
        """Waits for the result; raises what made the job fail."""
        return self._wait()

    def exception(self) -> BaseException | None:
        """Waits for the end and returns what `result()` would raise; None if it would not."""
        try:
            self._wait()
        except Exception as error:
            return error
        return None

    def done(self) -> bool:
        """Whether `result()` returns or raises without waiting."""
        return self._is_done()

    def cancelled(self) -> bool:
        """Whether the job was canceled."""
        return self._is_cancelled()

    def cancel(self) -> bool:
        """Cancels the job, if this future waits for one that still runs; returns whether it did."""
        if self._cancel is None or self._is_done():
            return False
        self._cancel()
        return True


def completed(value: V) -> CompletableFuture[V]:
    """A future whose result is already there."""
    return CompletableFuture(lambda: value, is_done=lambda: True)
