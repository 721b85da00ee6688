"""Side outputs of a process function and of a keyed one, with their own steps."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, ProcessFunction, StreamExecutionEnvironment

ODD = OutputTag("odd", Types.STRING())
LARGE = OutputTag("large", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        yield value
        if value % 2:
            yield ODD, f"odd {value}"
        if value > 3:
            yield LARGE, value * 100


class PerKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield f"main {value}"
        yield ODD, f"key {ctx.get_current_key()} had {value}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
main = env.from_collection([1, 2, 3, 4, 5], type_info=Types.INT()).process(Split(), output_type=Types.INT())
main.print("main")
main.get_side_output(ODD).map(lambda text: text.upper(), output_type=Types.STRING()).print("odd")
main.get_side_output(LARGE).print("large")
keyed = main.key_by(lambda number: number % 2).process(PerKey(), output_type=Types.STRING())
keyed.print("keyed")
keyed.get_side_output(ODD).print("keyed side")
env.execute("side outputs")
