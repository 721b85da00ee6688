"""Tumbling event-time windows: process, reduce, aggregate and apply, with an offset, and with generic subscripts."""

from typing import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Count(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        return [(key, context.window().start, context.window().end, len(list(elements)))]


class Sum(WindowFunction[tuple, tuple, str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[tuple]) -> Iterable[tuple]:
        return [(key, window.start, sum(value[1] for value in inputs), window.max_timestamp())]


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithKey(ProcessWindowFunction):
    def process(self, key, context, elements):
        (mean,) = elements
        yield f"{key} {context.window().start} {mean}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection(
    [("hi", 1), ("hi", 2), ("yo", 3), ("hi", 5), ("hi", 8), ("yo", 9), ("hi", 15)],
    type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
)
keyed = events.assign_timestamps_and_watermarks(strategy).key_by(
    lambda event: event[0], key_type=Types.STRING()
)
window = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
counted = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])
window.process(Count(), counted).print("process")
window.apply(Sum(), counted).print("apply")
window.reduce(lambda left, right: (left[0], left[1] + right[1])).print("reduce")
keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).aggregate(
    Mean(), window_function=WithKey(), accumulator_type=Types.PICKLED_BYTE_ARRAY(), output_type=Types.STRING()
).print("aggregate")
keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2))).process(
    Count(), counted
).print("offset")
env.execute("tumbling windows")
