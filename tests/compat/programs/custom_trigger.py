"""A trigger with state of its own: fires with every second record of a window, and when the window ends."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment, Trigger, TriggerResult
from pyflink.datastream.functions import ReduceFunction
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Add(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class EverySecond(Trigger[tuple, TimeWindow]):
    def __init__(self):
        self._count = ReducingStateDescriptor("count", Add(), Types.LONG())

    def on_element(self, element, timestamp, window, ctx: Trigger.TriggerContext):
        ctx.register_event_time_timer(window.max_timestamp())
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() >= 2:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx: Trigger.TriggerContext):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx: Trigger.TriggerContext):
        return TriggerResult.FIRE_AND_PURGE

    def on_merge(self, window, ctx: Trigger.OnMergeContext):
        pass

    def clear(self, window, ctx: Trigger.TriggerContext):
        ctx.get_partitioned_state(self._count).clear()


class Listed(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start} {[value[1] for value in elements]}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection(
    [("a", 1), ("a", 2), ("b", 2), ("a", 3), ("a", 7), ("a", 8), ("a", 9)],
    type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
)
keyed = events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0], Types.STRING())
keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).trigger(EverySecond()).process(
    Listed(), Types.STRING()
).print()
env.execute("custom trigger")
