"""Asynchronous I/O: one call per record, many at once, results in order or as they come.

The operator only keeps the queue: the engine's call service runs the coroutines and reports each end on the
operator's own thread. Watermarks stay behind the records that arrived before them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from emberflow.events.batch import MIN_WATERMARK, Batch
from emberflow.operators.host_services import CallService, HostServices
from emberflow.operators.operator import Operator, Step, close_function, open_function
from emberflow.plan.retry import RetryPolicy


async def call_with_retry(call: Callable[[Any], Any], value: Any, timeout_ms: int, retry: RetryPolicy) -> Any:
    """The call's result. The timeout covers all attempts together, as in Flink."""

    async def attempts() -> tuple[Any, BaseException | None]:
        """Returns what was raised: wait_for() makes a task of this, and a SystemExit that leaves a task ends the event loop
        that all other calls are on."""
        attempt = 1
        while True:
            result, failure = None, None
            try:
                result = await call(value)
            except Exception as error:
                failure = error
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException as error:
                return None, error
            if attempt >= retry.max_attempts or not retry.wants_retry(result, failure):
                return result, failure
            attempt += 1
            await asyncio.sleep(retry.delay_before(attempt))

    waiting = attempts()
    result, failure = await (waiting if timeout_ms <= 0 else asyncio.wait_for(waiting, timeout_ms / 1000))
    if failure is not None:
        raise failure
    return result


class _Slot:
    """A record in flight, or a watermark waiting behind records."""

    __slots__ = ("done", "is_watermark", "results", "timestamp", "watermark")

    def __init__(self, timestamp: int | None, watermark: int, *, is_watermark: bool = False) -> None:
        self.timestamp = timestamp
        self.watermark = watermark
        self.is_watermark = is_watermark
        self.results: Any = ()
        self.done = is_watermark


class AsyncWaitOperator(Operator):
    def __init__(
        self,
        step: Step,
        function: Any,
        call: Callable[[Any], Any],
        *,
        ordered: bool,
        capacity: int,
        timeout_ms: int,
        retry: RetryPolicy,
        on_timeout: Callable[[Any], Any] | None,
    ) -> None:
        super().__init__(step)
        self._function = function
        self._call = call
        self._ordered = ordered
        self._capacity = capacity
        self._timeout_ms = timeout_ms
        self._retry = retry
        self._on_timeout = on_timeout
        self._calls: CallService | None = None
        self._queue: deque[_Slot] = deque()
        self._seen_watermark = MIN_WATERMARK
        self.in_flight = 0

    @property
    def full(self) -> bool:
        return self.in_flight >= self._capacity

    def connect(self, host: HostServices) -> None:
        assert host.calls is not None, "a step that waits needs a call service"
        self._calls = host.calls

    def open(self, context: Any) -> None:
        open_function(self._function, context)

    def close(self) -> None:
        close_function(self._function)

    def on_batch(self, batch: Batch) -> None:
        timestamps, watermarks = batch.timestamps, batch.watermarks
        for i, value in enumerate(batch.values):
            if watermarks is not None and watermarks[i] > self._seen_watermark:
                self._seen_watermark = watermarks[i]
            slot = _Slot(None if timestamps is None else timestamps[i], self._seen_watermark)
            self._queue.append(slot)
            self._start(value, slot)

    def on_watermark(self, watermark: int) -> None:
        self._seen_watermark = max(self._seen_watermark, watermark)
        if not self._queue:
            self.output.watermark(watermark)
            return
        self._queue.append(_Slot(None, watermark, is_watermark=True))

    def _start(self, value: Any, slot: _Slot) -> None:
        self.in_flight += 1

        def done(results: Any, error: BaseException | None) -> None:
            self.in_flight -= 1
            if isinstance(error, TimeoutError) and self._on_timeout is not None:
                try:
                    results, error = self._on_timeout(value), None
                except BaseException as failure:
                    error = failure
            if isinstance(error, TimeoutError) and not str(error):
                error = TimeoutError(f"no answer within {self._timeout_ms} ms")
            if error is not None:
                raise self.step.failed(value, error) from error
            slot.results = () if results is None else results
            slot.done = True
            self._emit_finished(slot)

        assert self._calls is not None, "connect() comes before the first record"
        self._calls.start(
            self.step.uid,
            self._capacity,
            lambda: call_with_retry(self._call, value, self._timeout_ms, self._retry),
            done,
        )

    def _emit_finished(self, finished: _Slot) -> None:
        queue = self._queue
        if not self._ordered and finished is not queue[0]:
            # It may leave before the oldest call; event time stays where the oldest call holds it.
            self._emit(finished, queue[0].watermark)
            finished.results = ()
        while queue and queue[0].done:
            slot = queue.popleft()
            if slot.is_watermark:
                self.output.watermark(slot.watermark)
            else:
                self._emit(slot, slot.watermark)

    def _emit(self, slot: _Slot, watermark: int) -> None:
        values = list(slot.results)
        if values:
            stamps = None if slot.timestamp is None else [slot.timestamp] * len(values)
            marks = None if watermark == MIN_WATERMARK else [watermark] * len(values)
            self.output.batch(Batch(values, stamps, marks))
