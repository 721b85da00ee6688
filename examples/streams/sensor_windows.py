"""Average temperature per sensor and minute of event time; late readings go to a separate stream.

python examples/streams/sensor_windows.py
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from emberflow.streams import (
    AggregateFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)


class Reading(NamedTuple):
    sensor: str
    second: int
    celsius: float


# In order of arrival. Two of the roof's readings took too long: their minute was over.
READINGS = [
    Reading("roof", 5, 21.0),
    Reading("cellar", 12, 12.0),
    Reading("roof", 31, 22.0),
    Reading("cellar", 28, 12.5),
    Reading("roof", 64, 24.0),
    Reading("cellar", 75, 12.4),
    Reading("roof", 58, 23.0),
    Reading("roof", 118, 26.0),
    Reading("cellar", 131, 12.6),
    Reading("roof", 42, 22.5),
    Reading("roof", 140, 27.0),
]

LATE = OutputTag("late")


class SplitOffLate(ProcessFunction):
    """A reading is late if its minute is over: its window no longer accepts it."""

    def process_element(self, value: Reading, ctx: ProcessFunction.Context) -> Iterable[Any]:
        end_of_minute_ms = (value.second // 60 + 1) * 60_000 - 1
        if end_of_minute_ms <= ctx.timer_service().current_watermark():
            yield LATE, value
        else:
            yield value


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: Reading, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value.celsius, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]


class Describe(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[float]
    ) -> Iterable[str]:
        for average in elements:
            yield f"minute {context.window().start // 60_000}  {key:<7} {average:5.2f} °C"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=10)).with_timestamp_assigner(
        lambda reading, _: reading.second * 1000
    )
    readings = (
        env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy).process(SplitOffLate())
    )
    averages = (
        readings.key_by(lambda reading: reading.sensor)
        .window(TumblingEventTimeWindows.of(timedelta(minutes=1)))
        .aggregate(Average(), Describe())
    )
    averages.print()
    late = readings.get_side_output(LATE)
    late.map(
        lambda reading: f"too late  {reading.sensor:<7} {reading.celsius:5.2f} °C of second {reading.second}"
    ).print()
    env.execute("sensor windows")


if __name__ == "__main__":
    main()
