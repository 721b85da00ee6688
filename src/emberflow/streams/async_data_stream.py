"""`AsyncDataStream`: one asynchronous call per record, many in flight."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.plan.retry import NO_RETRY, RetryPolicy
from emberflow.plan.specs import AsyncSpec
from emberflow.plan.stream_graph import StreamEdge
from emberflow.streams.data_stream import DataStream
from emberflow.streams.functions import AsyncFunction


class AsyncRetryStrategy:
    """When a call is made again. `exception_predicate` and `result_predicate` choose which outcomes are retried;
    without an `exception_predicate` every exception is."""

    @staticmethod
    def no_restart() -> RetryPolicy:
        return RetryPolicy()

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: float,
        result_predicate: Callable[[Any], bool] | None = None,
        exception_predicate: Callable[[BaseException], bool] | None = None,
    ) -> RetryPolicy:
        return RetryPolicy(
            max_attempts=max_attempts,
            delay_ms=backoff_time_millis,
            on_result=result_predicate,
            on_error=exception_predicate,
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: float,
        max_retry_delay: float,
        multiplier: float,
        result_predicate: Callable[[Any], bool] | None = None,
        exception_predicate: Callable[[BaseException], bool] | None = None,
    ) -> RetryPolicy:
        return RetryPolicy(
            max_attempts=max_attempts,
            delay_ms=initial_delay,
            max_delay_ms=max_retry_delay,
            multiplier=multiplier,
            on_result=result_predicate,
            on_error=exception_predicate,
        )


AsyncCall = AsyncFunction | Callable[[Any], Awaitable[Any]]
"""An `AsyncFunction`, whose call returns a list, or an `async def f(value)` that returns one result."""


class AsyncDataStream:
    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncCall,
        timeout: Interval,
        capacity: int = 100,
        output_type: Any = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> DataStream:
        """Results leave as they come; watermarks are never overtaken."""
        return _wait(data_stream, async_function, timeout, capacity, retry, ordered=False)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncCall,
        timeout: Interval,
        capacity: int = 100,
        output_type: Any = None,
        *,
        retry: RetryPolicy | None = None,
    ) -> DataStream:
        """Results leave in the order of their records."""
        return _wait(data_stream, async_function, timeout, capacity, retry, ordered=True)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncCall,
        timeout: Interval,
        async_retry_strategy: RetryPolicy,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        return _wait(data_stream, async_function, timeout, capacity, async_retry_strategy, ordered=False)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncCall,
        timeout: Interval,
        async_retry_strategy: RetryPolicy,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream:
        return _wait(data_stream, async_function, timeout, capacity, async_retry_strategy, ordered=True)


def _wait(
    stream: DataStream,
    function: Any,
    timeout: Interval,
    capacity: int,
    retry: RetryPolicy | None,
    *,
    ordered: bool,
) -> DataStream:
    if capacity < 1:
        raise InvalidArgument(f"the capacity must be at least 1, got {capacity}")
    spec = AsyncSpec(
        function=function,
        call=_call(function),
        ordered=ordered,
        capacity=capacity,
        timeout_ms=to_ms(timeout, "timeout"),
        retry=retry or NO_RETRY,
        on_timeout=getattr(function, "timeout", None) if _overrides_timeout(function) else None,
    )
    edges = tuple(StreamEdge(source=node, side_tag=tag) for node, tag in stream.outlets)
    return DataStream(stream.env, ((stream.env.program.add(spec, edges, "async_wait"), None),))


def _overrides_timeout(function: Any) -> bool:
    return (
        hasattr(function, "timeout")
        and getattr(function.__class__, "timeout", None) is not AsyncFunction.timeout
    )


def _call(function: Any) -> Callable[[Any], Awaitable[Any]]:
    invoke = getattr(function, "async_invoke", None)
    if invoke is not None:
        return invoke
    method: Any = dict[str, Any](vars(function.__class__)).get("__call__")  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)):
        raise InvalidArgument(
            f"an asynchronous step needs an AsyncFunction or an `async def`, not {function!r}",
            way_out="write `async def call(value): …`",
        )
    return _OneResult(function)


class _OneResult:
    """A plain `async def`: what it returns is one record."""

    def __init__(self, function: Any) -> None:
        self._function = function

    async def __call__(self, value: Any) -> list[Any]:
        return [await self._function(value)]
