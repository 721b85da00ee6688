"""B17: asynchronous calls. Barriers, not clocks, show whether calls run concurrently."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from emberflow.errors import InvalidArgument, StepFailed
from emberflow.streams import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    KeyedProcessFunction,
    RuntimeContext,
    WatermarkGenerator,
    WatermarkStrategy,
)
from emberflow.testing import LOCAL, SPARK, SPARK_BATCH, Host, on_every_host

SECONDS_20 = timedelta(seconds=20)


class Meet(AsyncFunction):
    """Answers only when `parties` calls are in flight together."""

    def __init__(self, parties: int) -> None:
        self._parties = parties

    def open(self, runtime_context: RuntimeContext) -> None:
        self._barrier: asyncio.Barrier | None = None

    async def async_invoke(self, value: int) -> list[Any]:
        if self._barrier is None:
            self._barrier = asyncio.Barrier(self._parties)
        await self._barrier.wait()
        return [value]


class Backwards(AsyncFunction):
    """The first record's call ends last: each waits for the one after it."""

    def __init__(self, count: int) -> None:
        self._count = count

    def open(self, runtime_context: RuntimeContext) -> None:
        self._done: dict[int, asyncio.Event] = {}

    def _event(self, number: int) -> asyncio.Event:
        return self._done.setdefault(number, asyncio.Event())

    async def async_invoke(self, value: int) -> list[Any]:
        if value + 1 < self._count:
            await self._event(value + 1).wait()
        self._event(value).set()
        return [value]


class HighestInFlight(AsyncFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._now = 0

    async def async_invoke(self, value: int) -> list[Any]:
        self._now += 1
        seen = self._now
        await asyncio.sleep(0.005)
        self._now -= 1
        return [seen]


class Slow(AsyncFunction):
    async def async_invoke(self, value: int) -> list[Any]:
        if value < 0:
            await asyncio.sleep(60)
        return [value]

    def timeout(self, value: int) -> list[Any]:
        return [("too slow", value)]


class RaisesATimeoutOfItsOwn(Slow):
    """For example, that of a client."""

    async def async_invoke(self, value: int) -> list[Any]:
        raise TimeoutError("the database did not answer")


class SlowWithoutTimeout(AsyncFunction):
    async def async_invoke(self, value: int) -> list[Any]:
        await asyncio.sleep(60)
        return [value]


class FailsTwice(AsyncFunction):
    """Every record needs three attempts."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._attempts: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[Any]:
        attempt = self._attempts[value] = self._attempts.get(value, 0) + 1
        if attempt < 3:
            raise ConnectionError(f"attempt {attempt}")
        return [(value, attempt)]


class EmptyTwice(FailsTwice):
    async def async_invoke(self, value: int) -> list[Any]:
        attempt = self._attempts[value] = self._attempts.get(value, 0) + 1
        return [(value, attempt)] if attempt >= 3 else []


async def double(value: int) -> int:
    await asyncio.sleep(0)
    return value * 2


@on_every_host(nightly=[SPARK])
def test_a_plain_coroutine_function(host: Host) -> None:
    out = host.run(
        lambda env: AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), double, SECONDS_20, 10)
    )
    assert out == [2, 4, 6]


@on_every_host
def test_calls_run_concurrently(host: Host) -> None:
    out = host.run(
        lambda env: AsyncDataStream.unordered_wait(
            env.from_collection(range(50)), Meet(50), SECONDS_20, capacity=50
        )
    )
    assert sorted(out) == list(range(50))


@on_every_host
def test_ordered_results_keep_the_order_of_their_records(host: Host) -> None:
    out = host.run(
        lambda env: AsyncDataStream.ordered_wait(env.from_collection(range(8)), Backwards(8), SECONDS_20, 10)
    )
    assert out == list(range(8))


@on_every_host(nightly=[SPARK])
def test_unordered_results_are_emitted_as_they_complete(host: Host) -> None:
    out = host.run(
        lambda env: AsyncDataStream.unordered_wait(
            env.from_collection(range(8)), Backwards(8), SECONDS_20, 10
        )
    )
    assert out == list(range(7, -1, -1))


@on_every_host(nightly=[SPARK])
def test_the_capacity_limits_calls_in_flight(host: Host) -> None:
    out = host.run(
        lambda env: AsyncDataStream.unordered_wait(
            env.from_collection(range(40)), HighestInFlight(), SECONDS_20, capacity=3
        )
    )
    assert max(out) == 3
    assert len(out) == 40


@on_every_host(nightly=[SPARK])
def test_a_timeout_may_have_a_result(host: Host) -> None:
    out = host.run(
        lambda env: AsyncDataStream.ordered_wait(
            env.from_collection([1, -2, 3]), Slow(), timedelta(seconds=2)
        )
    )
    assert out == [1, ("too slow", -2), 3]


@on_every_host(nightly=[SPARK])
def test_a_timeout_that_the_function_raises_is_an_error_like_others(host: Host) -> None:
    with pytest.raises(StepFailed, match=r"value 7\b[\s\S]*TimeoutError: the database did not answer"):
        host.run(
            lambda env: AsyncDataStream.ordered_wait(
                env.from_collection([7]), RaisesATimeoutOfItsOwn(), timedelta(seconds=60)
            )
        )


@on_every_host(nightly=[SPARK])
def test_a_timeout_fails_the_step_by_default(host: Host) -> None:
    with pytest.raises(StepFailed, match=r"'lookup'.* value 7\b[\s\S]*no answer within 50 ms"):
        host.run(
            lambda env: AsyncDataStream.unordered_wait(
                env.from_collection([7]), SlowWithoutTimeout(), timedelta(milliseconds=50)
            ).name("lookup")
        )


@on_every_host(nightly=[SPARK])
def test_failed_calls_are_retried(host: Host) -> None:
    fixed = AsyncRetryStrategy.fixed_delay(3, 1)
    exponential = AsyncRetryStrategy.exponential_backoff(5, 1, 5, 2.0)
    for policy in (fixed, exponential):
        out = host.run(
            lambda env, policy=policy: AsyncDataStream.unordered_wait_with_retry(
                env.from_collection([1, 2]), FailsTwice(), SECONDS_20, policy
            )
        )
        assert sorted(out) == [(1, 3), (2, 3)]


@on_every_host(nightly=[SPARK])
def test_results_can_be_retried_too(host: Host) -> None:
    policy = AsyncRetryStrategy.fixed_delay(3, 1, result_predicate=lambda result: not result)
    out = host.run(
        lambda env: AsyncDataStream.ordered_wait_with_retry(
            env.from_collection([5]), EmptyTwice(), SECONDS_20, policy
        )
    )
    assert out == [(5, 3)]


@on_every_host(nightly=[SPARK])
def test_an_error_that_is_not_retried_fails_the_step(host: Host) -> None:
    policy = AsyncRetryStrategy.fixed_delay(
        3, 1, exception_predicate=lambda error: isinstance(error, ValueError)
    )
    with pytest.raises(StepFailed, match=r"value 9\b[\s\S]*ConnectionError: attempt 1"):
        host.run(
            lambda env: AsyncDataStream.unordered_wait_with_retry(
                env.from_collection([9]), FailsTwice(), SECONDS_20, policy
            )
        )


@on_every_host(nightly=[SPARK])
def test_the_step_fails_when_all_attempts_have_failed(host: Host) -> None:
    with pytest.raises(StepFailed, match="ConnectionError: attempt 2"):
        host.run(
            lambda env: AsyncDataStream.unordered_wait_with_retry(
                env.from_collection([9]), FailsTwice(), SECONDS_20, AsyncRetryStrategy.fixed_delay(1, 1)
            )
        )


@on_every_host(nightly=[SPARK_BATCH])
def test_calls_after_and_before_a_keyed_step(host: Host) -> None:
    def build(env: Any) -> Any:
        summed = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda v: v[0]).sum(1)
        called = AsyncDataStream.ordered_wait(summed, call_pair, SECONDS_20)
        return called.key_by(lambda v: v[0]).max(1)

    out = host.run(build)
    assert sorted(out) == [*host.emitted([("a", 10), ("a", 40)]), ("b", 20)]


async def call_pair(value: tuple[str, int]) -> tuple[str, int]:
    await asyncio.sleep(0.001)
    return value[0], value[1] * 10


@on_every_host(nightly=[SPARK])
def test_watermarks_do_not_overtake_their_records(host: Host) -> None:
    class LateOnes(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value, ctx.timer_service().current_watermark() < ctx.timestamp()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)

    def build(env: Any) -> Any:
        timed = env.from_collection(range(8)).assign_timestamps_and_watermarks(strategy)
        called = AsyncDataStream.unordered_wait(timed, Backwards(8), SECONDS_20, 10)
        return called.key_by(lambda v: 0).process(LateOnes())

    assert sorted(host.run(build)) == [(n, True) for n in range(8)]


class PerRecord(WatermarkGenerator):
    """A watermark after every record."""

    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        output.emit_watermark(timestamp)


@on_every_host(nightly=[SPARK_BATCH])
def test_unordered_results_do_not_overtake_a_watermark(host: Host) -> None:
    """Calls end from the last record to the first. Between two watermarks results are emitted as they complete: of two
    records with equal timestamps, the watermark advances after the first."""
    per_record = WatermarkStrategy.for_generator(PerRecord).with_timestamp_assigner(lambda value, _: value)
    in_pairs = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value // 2
    )

    def build(strategy: WatermarkStrategy) -> Any:
        def made(env: Any) -> Any:
            timed = (
                env.set_parallelism(1).from_collection(range(6)).assign_timestamps_and_watermarks(strategy)
            )
            return AsyncDataStream.unordered_wait(timed, Backwards(6), SECONDS_20, 10)

        return made

    # In batch mode there are no watermarks before the end.
    assert host.run(build(per_record)) == ([0, 1, 2, 3, 4, 5] if host.streaming else [5, 4, 3, 2, 1, 0])
    assert host.run(build(in_pairs)) == ([0, 2, 1, 4, 3, 5] if host.streaming else [5, 4, 3, 2, 1, 0])


class Answers(AsyncFunction):
    """Returns what it was made with."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def async_invoke(self, value: int) -> Any:
        return self._answer


class Late(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(20)
        return [value]

    def timeout(self, value: int) -> Any:
        return value


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (None, "None, which is a NoneType, not a list; return [] for no result"),
        (7, "7, which is an int, not a list; return [result] for one result"),
        ("ab", "'ab', which is a str, not a list"),
        ({"a": 1}, "{'a': 1}, which is a dict, not a list"),
        ((1, 2), "(1, 2), which is a tuple, not a list"),
    ],
    ids=["None", "int", "str", "dict", "tuple"],
)
@on_every_host(hosts=(LOCAL,), nightly=[SPARK])
def test_an_answer_that_is_not_a_list_names_the_function_and_the_value(
    host: Host, answer: Any, shown: str
) -> None:
    with pytest.raises(StepFailed) as caught:
        host.run(
            lambda env: AsyncDataStream.ordered_wait(env.from_collection([3]), Answers(answer), SECONDS_20)
        )
    text = str(caught.value)
    assert "could not process the value 3" in text
    assert f"async_invoke() of Answers returned {shown}" in text


@on_every_host(nightly=[SPARK_BATCH])
def test_an_answer_or_a_timeout_that_is_not_a_list_fails_the_step(host: Host) -> None:
    with pytest.raises(StepFailed, match=r"async_invoke\(\) of Answers returned None"):
        host.run(
            lambda env: AsyncDataStream.unordered_wait(env.from_collection([3]), Answers(None), SECONDS_20)
        )
    with pytest.raises(StepFailed, match=r"timeout\(\) of Late returned 3, which is an int, not a list"):
        host.run(
            lambda env: AsyncDataStream.unordered_wait(
                env.from_collection([3]), Late(), timedelta(milliseconds=20)
            )
        )


@on_every_host
def test_a_function_that_is_not_a_coroutine_function_is_rejected(host: Host) -> None:
    env = host.environment()
    with pytest.raises(InvalidArgument, match="async def"):
        AsyncDataStream.ordered_wait(env.from_collection([1]), len, SECONDS_20)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="capacity"):
        AsyncDataStream.ordered_wait(env.from_collection([1]), double, SECONDS_20, capacity=0)
