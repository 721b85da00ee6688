"""Two inputs in one function object: without keys, and with keys, state and timers."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import MapStateDescriptor


class Sides(CoMapFunction):
    def map1(self, value):
        return f"left {value}"

    def map2(self, value):
        return f"right {value * 10}"


class Lengths(CoFlatMapFunction):
    def flat_map1(self, value):
        for letter in value:
            yield letter

    def flat_map2(self, value):
        if value > 1:
            yield str(value)


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield f"first {value}"

    def process_element2(self, value, ctx):
        yield f"second {value}"


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Together(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.STRING(), Types.INT()))

    def process_element1(self, value, ctx):
        self.seen.put("orders", (self.seen.get("orders") or 0) + 1)
        ctx.timer_service().register_event_time_timer(500)

    def process_element2(self, value, ctx):
        self.seen.put("payments", (self.seen.get("payments") or 0) + 1)
        ctx.timer_service().register_event_time_timer(500)

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} {timestamp} {sorted(self.seen.items())}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
texts = env.from_collection(["ab", "c"], type_info=Types.STRING())
numbers = env.from_collection([1, 2], type_info=Types.INT())
texts.connect(numbers).map(Sides(), Types.STRING()).print("map")
texts.connect(numbers).flat_map(Lengths(), Types.STRING()).print("flat_map")
texts.connect(numbers).process(Both(), Types.STRING()).print("process")

strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
orders = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).assign_timestamps_and_watermarks(strategy)
payments = env.from_collection([("a", 1), ("c", 2)]).assign_timestamps_and_watermarks(strategy)
both = orders.connect(payments).key_by(lambda order: order[0], lambda payment: payment[0])
both.process(Together(), Types.STRING()).print("keyed")
env.execute("connected streams")
