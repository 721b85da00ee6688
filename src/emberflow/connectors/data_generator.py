"""A source that computes its records, as fast as possible or at a fixed rate.

The generator function is called with 0, 1, 2, … and must return the same value for the same index each time, so that
the source can restart anywhere. Nothing here sleeps: engines ask `available` and `due_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil, floor
from typing import Any, Protocol, TypeVar

from emberflow.connectors.source import Chunk, Position, Source
from emberflow.errors import InvalidArgument, SourceFailed, describe_cause

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class GeneratorFunction(Protocol[T_co]):
    """A generator function as an object with a `map` method, as in Flink."""

    def map(self, value: int, /) -> T_co: ...


class RateLimiterStrategy:
    """The rate limit of a data generator, over all its channels together."""

    def __init__(self, records_per_second: Fraction | None) -> None:
        self.records_per_second = records_per_second

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """Record number i is due i / `records_per_second` seconds after the start."""
        if not records_per_second > 0 or records_per_second == float("inf"):
            raise InvalidArgument(
                f"a rate of {records_per_second!r} records per second is invalid",
                way_out="give a number greater than zero, or RateLimiterStrategy.no_op() for no limit",
            )
        return RateLimiterStrategy(Fraction(records_per_second))

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """No limit."""
        return RateLimiterStrategy(None)


class DataGeneratorSource(Source[T]):
    """`generator_function(index)` for index 0, 1, …; with `count=None` it is unbounded.

    Channel c of n generates the indices c, c + n, c + 2n, …, so that a rate is spread evenly; a position is
    `[next index, n]`. `type_info` is accepted for compatibility with Flink; `parallelism` fixes the number of channels.
    """

    def __init__(
        self,
        generator_function: Callable[[int], T] | GeneratorFunction[T],
        type_info: Any = None,
        count: int | None = None,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        parallelism: int | None = None,
    ) -> None:
        # Flink's GeneratorFunction is an object with a `map` method.
        given: Any = generator_function
        self._function: Callable[[int], T] = getattr(given, "map", given)
        if not callable(self._function):
            raise InvalidArgument(
                f"a data generator needs a function of the index, not {generator_function!r}",
                way_out="write DataGeneratorSource(lambda index: ...)",
            )
        if count is not None and count < 0:
            raise InvalidArgument(
                f"a data generator cannot generate {count} records",
                way_out="give a count of zero or more, or None for an unbounded source",
            )
        if parallelism is not None and parallelism < 1:
            raise InvalidArgument(
                f"a data generator cannot have {parallelism} channels",
                way_out="give a parallelism of 1 or more",
            )
        self.type_info = type_info
        self.bounded = count is not None
        self._count = count
        self._rate = rate_limiter_strategy.records_per_second if rate_limiter_strategy else None
        self._parallelism = parallelism

    def describe(self) -> str:
        return f"Data generator ({'unbounded' if self._count is None else self._count})"

    def start(self, parallelism: int) -> list[Position]:
        wanted = self._parallelism or parallelism
        channels = max(1, wanted if self._count is None else min(wanted, self._count))
        return [[channel, channels] for channel in range(channels)]

    def read(self, channel: int, position: Position, limit: int) -> Iterator[Chunk[T]]:
        while True:
            (first, step), (behind, end) = position, self._behind(position, limit)
            values: list[T] = []
            try:
                # extend keeps the values before an error, so that they can still be delivered.
                numbers = range(first, behind, step)
                values.extend(map(self._function, numbers))
                if len(values) < len(numbers):
                    raise RuntimeError("it raised StopIteration")  # Which ends a map() without an error.
            except Exception as error:
                failed = first + len(values) * step
                yield Chunk(values, [failed, step])
                raise _generator_failed(failed, error) from error
            position = [behind, step]
            yield Chunk(values, position, end=end)
            if end:
                return

    def plan(self, channel: int, position: Position, limit: int) -> tuple[Position, bool]:
        behind, end = self._behind(position, limit)
        return [behind, position[1]], end

    def available(self, channel: int, position: Position, elapsed_ms: int) -> int | None:
        if self._rate is None:
            return None
        first, step = position
        newest_due = floor(elapsed_ms * self._rate / 1000)
        return max(0, (newest_due - first) // step + 1)

    def due_ms(self, channel: int, position: Position) -> int:
        return 0 if self._rate is None else ceil(position[0] * 1000 / self._rate)

    def _behind(self, position: Position, limit: int) -> tuple[int, bool]:
        """The index after the next `limit` records of a channel, and whether it is the end of the channel."""
        first, step = position
        behind = first + max(limit, 1) * step
        if self._count is None:
            return behind, False
        # The channel's first index past the end: it must not depend on how the channel was split into batches.
        past_end = first + max(0, ceil((self._count - first) / step)) * step
        return min(behind, past_end), behind >= past_end


def _generator_failed(index: int, error: Exception) -> SourceFailed:
    return SourceFailed(
        f"the data generator's function failed for index {index}",
        cause=describe_cause(error),
        way_out="fix the function; it is called with 0, 1, 2, … and must return a value for each of them",
    )
