"""A result that is keyed again, and keys of several kinds."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
words = env.from_collection(["a", "bb", "a", "cc", "bb", "a"], type_info=Types.STRING())
counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
lengths = counts.key_by(lambda pair: len(pair[0])).map(
    lambda pair: f"{len(pair[0])} {pair[0]} {pair[1]}", Types.STRING()
)
lengths.print("length")
tuples = words.key_by(lambda word: (len(word), word[0]))
tuples.reduce(lambda left, right: left + right).print("tuple key")
words.key_by(lambda word: len(word) > 1, Types.BOOLEAN()).reduce(lambda left, right: left + right).print(
    "boolean key"
)
words.key_by(lambda word: None).reduce(lambda left, right: left + right).print("no key")
env.execute("keys")
