"""State of a window and state of a key inside a ProcessWindowFunction; clear() when the window is gone."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

FIRED = ValueStateDescriptor("fired", Types.INT())
EVER = ValueStateDescriptor("ever", Types.INT())


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Firings(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    def process(self, key, context, elements):
        own = context.window_state().get_state(FIRED)
        own.update((own.value() or 0) + 1)
        overall = context.global_state().get_state(EVER)
        overall.update((overall.value() or 0) + 1)
        yield f"{key} {context.window().start} {len(list(elements))} {own.value()} {overall.value()}"

    def clear(self, context):
        context.window_state().get_state(FIRED).clear()


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection(
    [("a", 1), ("a", 2), ("b", 2), ("a", 7), ("b", 8), ("a", 13)],
    type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
)
keyed = events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0], Types.STRING())
keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).process(Firings(), Types.STRING()).print()
env.execute("window state")
