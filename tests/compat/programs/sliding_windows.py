"""Sliding event-time windows: a record is in several of them."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows, TimeWindow


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Count(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(self, key, context, elements):
        return [(key, context.window().start, context.window().end, len(list(elements)))]


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection(
    [("hi", 1), ("hi", 2), ("hi", 3), ("yo", 4), ("hi", 8), ("hi", 9), ("hi", 15)],
    type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
)
keyed = events.assign_timestamps_and_watermarks(strategy).key_by(
    lambda event: event[0], key_type=Types.STRING()
)
result = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])
keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2))).process(
    Count(), result
).print("process")
keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(6), Time.milliseconds(3))).reduce(
    lambda left, right: (left[0], left[1] + right[1])
).print("reduce")
keyed.window(
    SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(4), Time.milliseconds(1))
).process(Count(), result).print("offset")
env.execute("sliding windows")
