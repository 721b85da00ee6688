"""A running average of every two values of a key, in value state."""

from pyflink.common import Types
from pyflink.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class AverageOfTwo(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("average", Types.PICKLED_BYTE_ARRAY())
        self.state = runtime_context.get_state(descriptor)

    def flat_map(self, value):
        count, total = self.state.value() or (0, 0)
        count, total = count + 1, total + value[1]
        if count == 2:
            self.state.clear()
            yield value[0], total / count
        else:
            self.state.update((count, total))


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
readings = [(1, 3), (1, 5), (2, 10), (1, 7), (2, 20), (1, 4), (1, 2)]
env.from_collection(readings).key_by(lambda reading: reading[0]).flat_map(AverageOfTwo()).print()
env.execute("average")
