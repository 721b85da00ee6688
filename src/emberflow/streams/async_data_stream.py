"""`AsyncDataStream`: one asynchronous call per record, many in flight."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.plan.graphs.stream_graph import StreamEdge
from emberflow.plan.specs import AsyncSpec
from emberflow.streams.async_retries import AsyncRetryStrategy, retries_of
from emberflow.streams.data_stream import DataStream
from emberflow.streams.functions.function import AsyncFunction
from emberflow.streams.functions.methods import check_object

T = TypeVar("T")
R = TypeVar("R")

AsyncCall = AsyncFunction[T, R] | Callable[[T], Awaitable[R]]
"""An `AsyncFunction`, whose call returns a list, or an `async def f(value)` that returns one result."""


class AsyncDataStream:
    """Adds a step that makes an asynchronous call for each record, many at the same time."""

    @staticmethod
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncCall[T, R],
        timeout: Interval,
        capacity: int = 100,
        output_type: Any = None,
        *,
        retry: AsyncRetryStrategy[Any] | None = None,
    ) -> DataStream[R]:
        """Results leave as they come, but none overtakes a watermark: where one follows every record, they leave in order.

        `async_function` is an `async def f(value)` that returns one result, or an `AsyncFunction`, which returns a list;
        what else it returns, `None` included, fails the step.
        `timeout` is for one record with all its attempts, `capacity` the calls in flight in one task. Something else
        than a coroutine function, or a capacity below 1, raises `InvalidArgument`.

        ```python
        from datetime import timedelta

        from emberflow.streams import AsyncDataStream, StreamExecutionEnvironment


        async def doubled(number: int) -> int:
            return number * 2


        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        numbers = env.from_collection([1, 2, 3])
        answers = AsyncDataStream.unordered_wait(numbers, doubled, timedelta(seconds=10))
        assert sorted(answers.execute_and_collect()) == [2, 4, 6]
        ```
        """
        return _wait(data_stream, async_function, timeout, capacity, retry, ordered=False)._typed(output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncCall[T, R],
        timeout: Interval,
        capacity: int = 100,
        output_type: Any = None,
        *,
        retry: AsyncRetryStrategy[Any] | None = None,
    ) -> DataStream[R]:
        """Results leave in the order of their records; the arguments are those of `unordered_wait`."""
        return _wait(data_stream, async_function, timeout, capacity, retry, ordered=True)._typed(output_type)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncCall[T, R],
        timeout: Interval,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream[R]:
        """`unordered_wait` with PyFlink's place for the retry strategy."""
        return _wait(
            data_stream, async_function, timeout, capacity, async_retry_strategy, ordered=False
        )._typed(output_type)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncCall[T, R],
        timeout: Interval,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream[R]:
        """`ordered_wait` with PyFlink's place for the retry strategy."""
        return _wait(
            data_stream, async_function, timeout, capacity, async_retry_strategy, ordered=True
        )._typed(output_type)


def _wait(
    stream: DataStream[Any],
    function: Any,
    timeout: Interval,
    capacity: int,
    retry: AsyncRetryStrategy[Any] | None,
    *,
    ordered: bool,
) -> DataStream[Any]:
    if capacity < 1:
        raise InvalidArgument(f"the capacity must be at least 1, got {capacity}")
    spec = AsyncSpec(
        function=function,
        call=_call(function),
        ordered=ordered,
        capacity=capacity,
        timeout_ms=to_ms(timeout, "timeout"),
        retry=retries_of(retry),
        on_timeout=getattr(function, "timeout", None) if _overrides_timeout(function) else None,
    )
    edges = tuple(StreamEdge(source=node, side_tag=tag) for node, tag in stream._outlets)
    return DataStream(stream._env, ((stream._env._program.add(spec, edges, "async_wait"), None),))


def _overrides_timeout(function: Any) -> bool:
    own: Any = AsyncFunction[Any, Any].timeout
    return hasattr(function, "timeout") and getattr(function.__class__, "timeout", None) is not own


def _call(function: Any) -> Callable[[Any], Awaitable[Any]]:
    check_object(function, "async_invoke", "an asynchronous step")
    invoke = getattr(function, "async_invoke", None)
    if invoke is not None:
        return invoke
    method: Any = dict[str, Any](vars(function.__class__)).get("__call__")  # pyright: ignore[reportUnknownArgumentType]
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
