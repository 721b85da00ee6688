"""Event-time timers: one per key and time, and one that is deleted again."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, TimeDomain
from pyflink.datastream.state import ValueStateDescriptor


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Remind(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        self.last.update(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_event_time_timer(1000)
        ctx.timer_service().register_event_time_timer(2000)
        ctx.timer_service().delete_event_time_timer(2000)
        yield f"record {value[0]} at {ctx.timestamp()}"

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        event_time = ctx.time_domain() == TimeDomain.EVENT_TIME
        yield f"timer {ctx.get_current_key()} at {timestamp} {ctx.timestamp()} {event_time} after {self.last.value()}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
events = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
timed = events.assign_timestamps_and_watermarks(strategy)
timed.key_by(lambda event: event[0]).process(Remind()).print()
env.execute("timers")
