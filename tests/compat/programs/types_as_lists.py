"""A list of types stands for a row wherever a type is declared."""

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import AggregateFunction, KeyedProcessFunction, ProcessFunction

ASIDE = OutputTag("aside", [Types.STRING(), Types.INT()])
PAIR = [Types.STRING(), Types.INT()]


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield Row(value[1])
        yield ASIDE, Row(*value)


class SumAndCount(AggregateFunction):
    def create_accumulator(self):
        return Row(0, 0)

    def add(self, value, accumulator):
        return Row(accumulator[0] + value[1], accumulator[1] + 1)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, one, other):
        return Row(one[0] + other[0], one[1] + other[1])


class Number(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield Row(ctx.get_current_key(), value[1])


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
words = env.from_collection([("to", 1), ("be", 2), ("to", 3)], Types.TUPLE(PAIR))
rows = words.map(lambda pair: Row(*pair), output_type=PAIR)
rows.print("rows")
rows.key_by(lambda row: row[0]).sum(1).print("sums")
split = words.process(Split(), output_type=[Types.INT()])
split.print("main")
split.get_side_output(ASIDE).print("aside")
words.key_by(lambda pair: pair[0]).process(Number(), PAIR).print("keyed")
pairs = words.key_by(lambda pair: pair[0]).count_window(2)
pairs.aggregate(SumAndCount(), accumulator_type=[Types.INT()] * 2, output_type=[Types.INT()] * 2).print(
    "both"
)
env.execute("types as lists")
