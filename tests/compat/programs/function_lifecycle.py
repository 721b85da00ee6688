"""open() is called on every function that is handed over: map, filter, reduce and key selector."""

from pyflink.common import Types
from pyflink.datastream import (
    FilterFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)


class Opened(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.task = runtime_context.get_index_of_this_subtask()
        self.tasks = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value):
        return value[0], value[1] * 10 + self.task, self.tasks


class Positive(FilterFunction):
    def open(self, runtime_context):
        self.limit = 0

    def filter(self, value):
        return value[1] > self.limit


class ByName(KeySelector):
    def open(self, runtime_context):
        self.field = 0

    def get_key(self, value):
        return value[self.field]


class Add(ReduceFunction):
    def open(self, runtime_context):
        self.bonus = 1000

    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1] + self.bonus, value1[2]


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
pairs = env.from_collection([("a", 1), ("b", -2), ("a", 3), ("b", 4)])
opened = pairs.filter(Positive()).map(Opened(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]))
opened.key_by(ByName(), Types.STRING()).reduce(Add()).print()
env.execute("life cycle")
