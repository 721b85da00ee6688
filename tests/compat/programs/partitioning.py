"""Partitioners change where a record is processed, never which records there are."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
numbers = env.from_collection(list(range(6)), type_info=Types.INT())


def passed(name):
    return lambda number: f"{name} {number}"


def show(stream, name):
    stream.map(passed(name), output_type=Types.STRING()).set_parallelism(2).print().set_parallelism(1)


show(numbers.shuffle(), "shuffle")
show(numbers.rebalance(), "rebalance")
show(numbers.rescale(), "rescale")
show(numbers.broadcast(), "broadcast")
show(numbers.partition_custom(lambda key, partitions: key % partitions, lambda number: number), "custom")
env.execute("partitioning")
