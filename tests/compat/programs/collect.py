"""Results in the client: execute_and_collect, with a limit and as an iterator."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
numbers = env.from_source(
    NumberSequenceSource(1, 6), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
)
squares = numbers.map(lambda number: number * number, Types.LONG())
with squares.execute_and_collect() as results:
    print("all>", sorted(results))
print("type>", type(env.from_collection([1, 2, 3]).execute_and_collect(limit=2)).__name__)
pairs = env.from_collection([("a", 1), ("b", 2)], type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
with pairs.execute_and_collect() as results:
    print("pairs>", sorted(tuple(pair) for pair in results))
