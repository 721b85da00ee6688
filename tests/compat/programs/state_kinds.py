"""List, map, reducing and aggregating state of one key."""

from pyflink.common import Types
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
)


class Largest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.INT()))
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))
        self.largest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("largest", Largest(), Types.INT())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        number = value[1]
        self.seen.add(number)
        parity = "even" if number % 2 == 0 else "odd"
        self.counts.put(parity, (self.counts.get(parity) or 0) + 1)
        self.largest.add(number)
        self.mean.add(number)
        counts = sorted(self.counts.items())
        yield f"{ctx.get_current_key()} {list(self.seen)} {counts} {self.largest.get()} {self.mean.get()}"
        if number == 0:
            self.seen.clear()
            self.counts.remove("even")
            self.largest.clear()
            self.seen.update([100, 200])
            self.seen.add_all([300])
            yield f"{list(self.seen.get())} {self.counts.contains('even')} {self.counts.is_empty()}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
values = [("a", 4), ("a", 1), ("b", 2), ("a", 0), ("a", 9), ("b", 8)]
env.from_collection(values).key_by(lambda value: value[0]).process(Remember(), Types.STRING()).print()
env.execute("kinds of state")
