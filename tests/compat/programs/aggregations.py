"""sum, min, max, min_by and max_by of one field, updated with every record."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

sales = env.from_collection(
    [("a", 3, "x"), ("a", 1, "y"), ("b", 7, "z"), ("a", 2, "w"), ("b", 7, "v")],
    type_info=Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()]),
)
keyed = sales.key_by(lambda sale: sale[0], key_type=Types.STRING())
keyed.sum(1).print("sum")
keyed.min(1).print("min")
keyed.max(1).print("max")
keyed.min_by(1).print("min_by")
keyed.max_by(1).print("max_by")
env.execute("aggregations")
