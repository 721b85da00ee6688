"""Calls that fail or find nothing are made again, and how often."""

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment
from pyflink.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate


class Flaky(AsyncFunction):
    def __init__(self, failures, result):
        self.failures = failures
        self.result = result
        self.calls = 0

    async def async_invoke(self, value):
        self.calls += 1
        if self.calls <= self.failures:
            if self.result == "error":
                raise ValueError("not yet")
            return []
        return [f"{value} after {self.calls} calls"]


def fixed(attempts):
    return AsyncRetryStrategy.fixed_delay(
        max_attempts=attempts,
        backoff_time_millis=10,
        result_predicate=empty_result_predicate,
        exception_predicate=has_exception_predicate,
    )


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
one = env.from_collection([7], type_info=Types.INT())
for name, function, attempts in [
    ("error", Flaky(2, "error"), 3),
    ("empty", Flaky(2, "empty"), 3),
    ("last", Flaky(3, "error"), 3),
    ("gives up", Flaky(9, "empty"), 3),
]:
    AsyncDataStream.unordered_wait_with_retry(
        one, function, Time.seconds(20), fixed(attempts), 2, Types.STRING()
    ).print(name)
backoff = AsyncRetryStrategy.exponential_backoff(
    3, 5, 50, 2.0, empty_result_predicate, has_exception_predicate
)
AsyncDataStream.unordered_wait_with_retry(
    one, Flaky(1, "error"), Time.seconds(20), backoff, 2, Types.STRING()
).print("backoff")
env.execute("retry")
