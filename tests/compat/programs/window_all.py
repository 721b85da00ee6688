"""Windows over all records of a stream, without keys."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Listed(ProcessAllWindowFunction[tuple, str, TimeWindow]):
    def process(self, context, elements):
        yield f"{context.window().start} {sorted(value[0] for value in elements)}"


class Joined(AllWindowFunction[tuple, str, TimeWindow]):
    def apply(self, window, inputs):
        yield f"{window.end} {sum(value[1] for value in inputs)}"


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection(
    [("a", 1), ("b", 2), ("c", 6), ("d", 7), ("e", 12)], type_info=Types.TUPLE([Types.STRING(), Types.INT()])
)
timed = events.assign_timestamps_and_watermarks(strategy)
window = timed.window_all(TumblingEventTimeWindows.of(Time.milliseconds(5)))
window.process(Listed(), Types.STRING()).print("process")
window.apply(Joined(), Types.STRING()).print("apply")
window.reduce(lambda left, right: (left[0] + right[0], left[1] + right[1])).print("reduce")
window.aggregate(Total(), output_type=Types.INT()).print("aggregate")
env.execute("windows over all")
