"""map, flat_map, filter, union and project on a bounded collection."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

numbers = env.from_collection([1, 2, 3, 4, 5], type_info=Types.INT())
doubled = numbers.map(lambda number: number * 2, output_type=Types.INT())
odd = numbers.filter(lambda number: number % 2 == 1)
doubled.union(odd).print()

lines = env.from_collection(["to be or", "not to be"], type_info=Types.STRING())
words = lines.flat_map(lambda line: line.split(), output_type=Types.STRING())
words.map(lambda word: (word, len(word)), output_type=Types.TUPLE([Types.STRING(), Types.INT()])).print()

people = env.from_collection(
    [("ann", 33, True), ("bob", 44, False)],
    type_info=Types.TUPLE([Types.STRING(), Types.INT(), Types.BOOLEAN()]),
)
people.project(1, 0).print()
env.execute("basic operations")
