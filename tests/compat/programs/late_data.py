"""Records behind the watermark: to a side output, or into their window again while lateness is allowed.

Flink emits watermarks every 200 ms, so the source waits between records, and none is late by just one record.
"""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.INT()]))


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Listed(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start} {[value[1] for value in elements]}"


def slowly(value):
    time.sleep(0.7)
    return value


config = Configuration()
config.set_integer("python.fn-execution.bundle.size", 1)
env = StreamExecutionEnvironment.get_execution_environment(config)
env.set_parallelism(1)
pair = Types.TUPLE([Types.STRING(), Types.INT()])
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection(
    [("a", 1), ("a", 7), ("a", 8), ("a", 2), ("a", 30), ("a", 31), ("a", 3)], type_info=pair
)
timed = events.map(slowly, pair).assign_timestamps_and_watermarks(strategy)
keyed = timed.key_by(lambda event: event[0], Types.STRING())
strict = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).side_output_late_data(LATE)
result = strict.process(Listed(), Types.STRING())
result.print("strict")
result.get_side_output(LATE).print("late")
lenient = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).allowed_lateness(10)
lenient.process(Listed(), Types.STRING()).print("lenient")
env.execute("late data")
