"""What functions may return: lists, generators and None, for each kind of function."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
)


class OddOnly(CoMapFunction):
    def map1(self, value):
        return value if value % 2 else None

    def map2(self, value):
        return f"second {value}" if value % 2 else None


class Some(CoFlatMapFunction):
    def flat_map1(self, value):
        return None

    def flat_map2(self, value):
        return [value, value]


class AsList(ProcessFunction):
    def process_element(self, value, ctx):
        return [value, -value] if value > 1 else None


class KeyedAsList(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return [(ctx.get_current_key(), value)] if value > 1 else None


class Counted(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [len(list(elements))] if key else []


class CoAsList(CoProcessFunction):
    def process_element1(self, value, ctx):
        return [value]

    def process_element2(self, value, ctx):
        return None


class KeyedCoAsList(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        return [f"{ctx.get_current_key()} {value}"]

    def process_element2(self, value, ctx):
        return None


def odd(value):
    return value % 2


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
numbers = env.from_collection([1, 2, 3], Types.INT())
others = env.from_collection([4, 5], Types.INT())
numbers.map(lambda n: None if n == 2 else n).print("map")
numbers.flat_map(lambda n: range(n)).print("flat_map")
numbers.filter(lambda n: n - 1).print("filter")
numbers.process(AsList()).print("process")
numbers.key_by(odd).process(KeyedAsList()).print("keyed process")
numbers.key_by(odd).map(lambda n: None if n == 2 else n).print("keyed map")
numbers.key_by(odd).filter(lambda n: n - 1).print("keyed filter")
numbers.key_by(odd).count_window(1).process(Counted()).print("window")
numbers.connect(others).map(OddOnly()).print("co map")
numbers.connect(others).flat_map(Some()).print("co flat map")
numbers.connect(others).process(CoAsList()).print("co process")
numbers.key_by(odd).connect(others.key_by(odd)).map(OddOnly()).print("keyed co map")
numbers.key_by(odd).connect(others.key_by(odd)).flat_map(Some()).print("keyed co flat map")
numbers.key_by(odd).connect(others.key_by(odd)).process(KeyedCoAsList()).print("keyed co process")
env.execute("returned values")
