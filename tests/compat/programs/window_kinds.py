"""Windows of every kind with triggers and state, on records that are out of order by less than the watermark's delay."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment, Trigger, TriggerResult
from pyflink.datastream.functions import AggregateFunction
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Elements(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    """In order of size: the order in which merged sessions join their elements is not promised."""

    def __init__(self, name):
        self.name = name

    def process(self, key, context, elements):
        return [
            f"{self.name} {key} {context.window().max_timestamp()} {sorted(value[1] for value in elements)}"
        ]


class Firings(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    OF_WINDOW = ValueStateDescriptor("of window", Types.INT())
    OF_KEY = ValueStateDescriptor("of key", Types.INT())

    def process(self, key, context: ProcessWindowFunction.Context[TimeWindow], elements):
        of_window = context.window_state().get_state(self.OF_WINDOW)
        of_key = context.global_state().get_state(self.OF_KEY)
        of_window.update((of_window.value() or 0) + 1)
        of_key.update((of_key.value() or 0) + 1)
        return [f"state {key} {context.window().start} {of_window.value()} {of_key.value()}"]

    def clear(self, context):
        context.window_state().get_state(self.OF_WINDOW).clear()


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class EverySecond(Trigger[tuple, TimeWindow]):
    SEEN = ReducingStateDescriptor("seen", lambda one, other: one + other, Types.INT())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        seen = ctx.get_partitioned_state(self.SEEN)
        seen.add(1)
        return TriggerResult.FIRE if seen.get() % 2 == 0 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.SEEN).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
events = env.from_collection(
    [
        *[("a", 1), ("a", 4), ("b", 4), ("a", 3), ("a", 5), ("b", 12), ("a", 10), ("a", 21), ("c", 30)],
        *[("c", 38), ("c", 34), ("c", 44), ("d", 50), ("c", 41), ("a", 47), ("d", 55), ("d", 61), ("e", 1)],
    ],
    type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
)
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
keyed = events.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondField())).key_by(
    lambda event: event[0], key_type=Types.STRING()
)
text, twenty = Types.STRING(), TumblingEventTimeWindows.of(Time.milliseconds(20))
sliding = SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(5))
keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).process(
    Elements("session"), text
).print()
keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3))).process(
    Elements("tumbling"), text
).print()
keyed.window(sliding).process(Elements("sliding"), text).print()
keyed.window(sliding).aggregate(Mean(), output_type=Types.DOUBLE()).print("mean")
keyed.count_window(2).process(Elements("count"), text).print()
keyed.count_window(3, 2).process(Elements("sliding count"), text).print()
keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(3))).process(
    Elements("purging"), text
).print()
keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Elements("growing"), text).print()
keyed.window(twenty).trigger(EverySecond()).process(Elements("own trigger"), text).print()
keyed.window(twenty).trigger(CountTrigger.of(2)).process(Firings(), text).print()
env.execute("window kinds")
