"""Counters, meters, distributions and gauges of a function."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Measured(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        group = runtime_context.get_metrics_group().add_group("mine").add_group("kind", "test")
        self.counter = group.counter("records")
        self.meter = group.meter("rate", time_span_in_seconds=60)
        self.sizes = group.distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, value):
        self.counter.inc()
        self.counter.inc(2)
        self.counter.dec()
        self.meter.mark_event()
        self.meter.mark_event(3)
        self.sizes.update(value)
        self.last = value
        return f"{value} {self.counter.get_count()} {self.meter.get_count()}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection([5, 7], type_info=Types.INT()).map(Measured(), Types.STRING()).print()
env.execute("metrics")
