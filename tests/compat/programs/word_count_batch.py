"""In batch mode a reduce gives one value per key: the final one."""

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_runtime_mode(RuntimeExecutionMode.BATCH)
env.set_parallelism(1)

pairs = env.from_collection(
    [("a", 1), ("b", 5), ("a", 2), ("a", 3), ("b", 6)], type_info=Types.TUPLE([Types.STRING(), Types.INT()])
)
keyed = pairs.key_by(lambda pair: pair[0], key_type=Types.STRING())
keyed.reduce(lambda left, right: (left[0], left[1] + right[1])).print()
keyed.sum(1).print("sum")
keyed.max(1).print("max")
env.execute("batch word count")
