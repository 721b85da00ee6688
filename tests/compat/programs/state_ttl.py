"""A counter that is forgotten a second after it was last written."""

import time

from pyflink.common import Configuration, Time, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("count", Types.INT())
        ttl = (
            StateTtlConfig.new_builder(Time.seconds(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        descriptor.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        time.sleep(value[1])
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value[0]} {count}"


# Flink's Python workers keep state in a cache that knows nothing of time to live.
config = Configuration()
config.set_integer("python.state.cache-size", 0)
config.set_integer("python.fn-execution.bundle.size", 1)
env = StreamExecutionEnvironment.get_execution_environment(config)
env.set_parallelism(1)
records = env.from_collection([("a", 0), ("a", 0), ("a", 3), ("a", 0)])
records.key_by(lambda record: record[0]).process(Count(), Types.STRING()).print()
env.execute("time to live")
