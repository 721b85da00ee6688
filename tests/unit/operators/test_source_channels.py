"""Steps in a source's chain, which serves one channel after another in a Spark worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from emberflow.streams import AsyncDataStream, ProcessFunction, WatermarkStrategy
from emberflow.testing import OperatorHarness


class AtOnce:
    """Every call has ended when it was started."""

    def start(
        self,
        limiter: str,
        capacity: int,
        call: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        done([limiter], None)


async def never(value: Any) -> Any:
    raise AssertionError("AtOnce does not run it")


def test_event_time_of_one_channel_does_not_make_another_late() -> None:
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)

    def build(stream: Any) -> Any:
        timed = stream.assign_timestamps_and_watermarks(in_time)
        return AsyncDataStream.unordered_wait(timed, never, timedelta(seconds=1))

    harness = OperatorHarness(build, calls=AtOnce())  # pyright: ignore[reportArgumentType]
    harness.stage.new_channel()
    harness.send([1000, 2000])
    harness.stage.new_channel()
    harness.send([5, 6])
    assert [(item.timestamp, item.watermark) for item in harness.outlet().records] == [
        (1000, None),
        (2000, 999),
        (5, None),
        (6, 4),
    ]
    assert harness.outlet().watermarks == [1999, 5]


class Watermark(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_function_sees_the_watermark_of_its_channel_also_when_a_batch_is_repeated() -> None:
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    harness = OperatorHarness(
        lambda stream: stream.assign_timestamps_and_watermarks(in_time).process(Watermark())
    )
    for channel, start, values in [(0, 0, [10, 20]), (1, 0, [5]), (0, 2, [30]), (0, 2, [30]), (0, 3, [40])]:
        harness.stage.new_channel(channel, start)
        harness.send(values)
    lowest = -(2**63)
    assert harness.outlet().values == [(10, lowest), (20, 9), (5, lowest), (30, 19), (30, 19), (40, 29)]
