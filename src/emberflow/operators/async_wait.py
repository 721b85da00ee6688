"""Asynchronous I/O: one call per record, many concurrently, results in order or as they complete.

The operator only keeps the queue: the engine's call service runs the coroutines and reports each completion on the
operator's own thread. Watermarks keep their position relative to the records that arrived before and after them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from emberflow.errors import shorten
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.operators.host_services import CallService, HostServices
from emberflow.operators.operator import Operator, Step, close_function, open_function
from emberflow.plan.retry import Retries
from emberflow.plan.specs import function_name


async def call_with_retry(call: Callable[[Any], Any], value: Any, timeout_ms: int, retry: Retries) -> Any:
    """The call's result. The timeout covers all attempts together, as in Flink."""

    async def attempts() -> tuple[Any, BaseException | None]:
        """Returns the exception: wait_for() runs this in a task, and a SystemExit raised by a task ends the event loop of all
        other calls."""
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
            if not retry.can_retry(attempt) or not retry.wants_retry(result, failure):
                return result, failure
            attempt += 1
            await asyncio.sleep(retry.delay_before(attempt))

    waiting = attempts()
    try:
        result, failure = await (waiting if timeout_ms <= 0 else asyncio.wait_for(waiting, timeout_ms / 1000))
    except TimeoutError:
        # Not the function's own, which is among the results.
        raise CallTimedOut(f"no answer within {timeout_ms} ms") from None
    if failure is not None:
        raise failure
    return result


class CallTimedOut(TimeoutError):
    """The step's timeout, unlike a TimeoutError that the function raised."""


class _Segment:
    """Records between two watermarks. Their results may be emitted in any order, but not before those of earlier segments:
    a result never overtakes a watermark. If results keep the order of their records, each record is a segment."""

    __slots__ = ("after", "in_flight", "stamps", "values", "watermark")

    def __init__(self, watermark: int) -> None:
        self.watermark = watermark
        """In force before its records."""
        self.after: int | None = None
        """To be emitted after them."""
        self.in_flight = 0
        self.values: list[Any] = []
        """Results that have not been emitted yet."""
        self.stamps: list[int | None] = []


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
        retry: Retries,
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
        self._segments: deque[_Segment] = deque()
        self._seen_watermark = MIN_WATERMARK
        self._batch_mode = False
        self.in_flight = 0

    @property
    def full(self) -> bool:
        return self.in_flight >= self._capacity

    def connect(self, host: HostServices) -> None:
        assert host.calls is not None, "a step that waits needs a call service"
        self._calls = host.calls
        self._batch_mode = host.batch

    def open(self, context: Any) -> None:
        open_function(self._function, context)

    def close(self) -> None:
        close_function(self._function)

    def reset(self, channel: int | None = None, start: Any = None) -> None:
        """Another channel or another micro-batch starts: the event time that the previous one had reached does not count."""
        if not self._segments:
            self._seen_watermark = MIN_WATERMARK

    def on_batch(self, batch: Batch) -> None:
        # In batch mode event time advances only at the end of the input: nothing can be overtaken before.
        timestamps, watermarks = batch.timestamps, None if self._batch_mode else batch.watermarks
        for i, value in enumerate(batch.values):
            if self.in_turn:
                self._seen_watermark = MIN_WATERMARK if watermarks is None else watermarks[i]
            elif watermarks is not None and watermarks[i] > self._seen_watermark:
                self._seen_watermark = watermarks[i]
            self._start(value, None if timestamps is None else timestamps[i], self._segment())

    def on_watermark(self, watermark: int) -> None:
        if self.in_turn:
            # It takes effect when all results of the micro-batch were received.
            self.output.watermark(watermark)
            return
        if self._batch_mode and watermark != MAX_WATERMARK:
            return
        self._seen_watermark = max(self._seen_watermark, watermark)
        if self._segments:
            self._segments[-1].after = self._seen_watermark
        else:
            self.output.watermark(watermark)

    def _segment(self) -> _Segment:
        """The segment of the next record."""
        segments, watermark = self._segments, self._seen_watermark
        if self._ordered or not segments or watermark != segments[-1].watermark:
            segments.append(_Segment(watermark))
        return segments[-1]

    def _start(self, value: Any, stamp: int | None, segment: _Segment) -> None:
        self.in_flight += 1
        segment.in_flight += 1

        def done(results: Any, error: BaseException | None) -> None:
            self.in_flight -= 1
            method = "async_invoke()"
            if isinstance(error, CallTimedOut) and self._on_timeout is not None:
                method = "timeout()"
                try:
                    results, error = self._on_timeout(value), None
                except BaseException as failure:
                    error = failure
            if error is None and not isinstance(results, list):
                error = self._not_a_list(method, results)
            if error is not None:
                raise self.step.failed(value, error) from error
            segment.in_flight -= 1
            found = cast(list[Any], results)
            # The function may keep them, in a cache for instance.
            self.isolation.extend(segment.values, found)
            segment.stamps.extend([stamp] * len(found))
            self._emit_finished(segment)

        assert self._calls is not None, "connect() comes before the first record"
        self._calls.start(
            self.step.uid,
            self._capacity,
            lambda: call_with_retry(self._call, value, self._timeout_ms, self._retry),
            done,
        )

    def _not_a_list(self, method: str, results: Any) -> TypeError:
        hint = "return [] for no result" if results is None else "return [result] for one result"
        return TypeError(
            f"{method} of {function_name(self._function)} returned {shorten(results)}, "
            f"which is {_with_article(type(results).__name__)}, not a list; {hint}"
        )

    def _emit_finished(self, segment: _Segment) -> None:
        segments = self._segments
        if segment is not segments[0]:
            return
        self._emit(segment)
        while segments and not segments[0].in_flight:
            first = segments.popleft()
            if first.after is not None:
                self.output.watermark(first.after)
            if segments:
                self._emit(segments[0])

    def _emit(self, segment: _Segment) -> None:
        values, stamps = segment.values, segment.stamps
        if not values:
            return
        segment.values, segment.stamps = [], []
        timed = any(stamp is not None for stamp in stamps)
        marks = None if segment.watermark == MIN_WATERMARK else [segment.watermark] * len(values)
        self.output.batch(Batch(values, stamps if timed else None, marks))


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
