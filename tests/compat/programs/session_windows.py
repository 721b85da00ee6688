"""Session windows with a fixed gap and with one that depends on the record; sessions that touch are one."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    TimeWindow,
)


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class GapOfRecord(SessionWindowTimeGapExtractor):
    def extract(self, element) -> int:
        return element[1]


class Count(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(self, key, context, elements):
        return [(key, context.window().start, context.window().end, len(list(elements)))]


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
pair = Types.TUPLE([Types.STRING(), Types.INT()])
result = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])
events = env.from_collection(
    [("hi", 1), ("hi", 2), ("hi", 3), ("hi", 8), ("hi", 14), ("yo", 14), ("hi", 15)], type_info=pair
)
keyed = events.assign_timestamps_and_watermarks(strategy).key_by(
    lambda event: event[0], key_type=Types.STRING()
)
keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).process(Count(), result).print("gap")
keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).reduce(
    lambda left, right: (left[0], left[1] + right[1])
).print("reduce")
keyed.window(EventTimeSessionWindows.with_dynamic_gap(GapOfRecord())).process(Count(), result).print(
    "dynamic"
)
keyed.window(DynamicEventTimeSessionWindows.with_dynamic_gap(GapOfRecord())).process(Count(), result).print(
    "class"
)
env.execute("session windows")
