"""Count windows, tumbling and sliding, keyed; and a global window with a count trigger."""

from pyflink.common import Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import CountTrigger, CountWindow, GlobalWindow, GlobalWindows, PurgingTrigger


class SumOf(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs):
        return [(key, sum(value[0] for value in inputs))]


class Listed(ProcessWindowFunction[tuple, str, str, GlobalWindow]):
    def process(self, key, context, elements):
        yield f"{key} {[value[0] for value in elements]}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
pairs = env.from_collection(
    [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hi"), (7, "hello")],
    type_info=Types.TUPLE([Types.INT(), Types.STRING()]),
)
keyed = pairs.key_by(lambda pair: pair[1], Types.STRING())
result = Types.TUPLE([Types.STRING(), Types.INT()])
keyed.count_window(2).apply(SumOf(), result).print("tumbling")
keyed.count_window(3, 1).apply(SumOf(), result).print("sliding")
keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2))).process(
    Listed(), Types.STRING()
).print("purging")
keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Listed(), Types.STRING()).print(
    "count"
)
env.execute("count windows")
