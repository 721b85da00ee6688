"""Words of two lines, counted with every word that arrives."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

LINES = ["the quick fox", "the lazy dog and the fox"]

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def split(line):
    yield from line.split()


counts = (
    env.from_collection(LINES, type_info=Types.STRING())
    .flat_map(split, output_type=Types.STRING())
    .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
    .key_by(lambda pair: pair[0], key_type=Types.STRING())
    .reduce(lambda left, right: (left[0], left[1] + right[1]))
)
counts.print()
env.execute("word count")
