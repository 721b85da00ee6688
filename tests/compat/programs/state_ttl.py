"""A counter that is forgotten a second after it was last written."""

import time

from pyflink.common import Duration, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("count", Types.INT())
        ttl = (
            StateTtlConfig.new_builder(Duration.of_seconds(1))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        descriptor.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        if value[1]:
            time.sleep(value[1])
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value[0]} {count}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
records = [("a", 0), ("a", 0), ("a", 2), ("a", 0)]
env.from_collection(records).key_by(lambda record: record[0]).process(Count()).print()
env.execute("time to live")
