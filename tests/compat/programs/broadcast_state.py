"""Rules on a broadcast stream, applied to keyed and to plain records."""

from pyflink.common import Types
from pyflink.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Plain(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        known = sorted(ctx.get_broadcast_state(RULES).items())
        yield f"plain {value[0]} {len(known) <= 2}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield f"rule {value[0]} {ctx.get_broadcast_state(RULES).get(value[0])}"


class Keyed(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield f"key {ctx.get_current_key()} {ctx.get_broadcast_state(RULES).contains('nothing')}"

    def process_broadcast_element(self, value, ctx):
        state = ctx.get_broadcast_state(RULES)
        state.put(value[0], value[1])
        if value[1] == 0:
            state.remove(value[0])
        yield f"rules {sorted(state.items())}"


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
records = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
rules = env.from_collection([("limit", 5), ("floor", 1), ("limit", 0)])
records.connect(rules.broadcast(RULES)).process(Plain(), Types.STRING()).print("plain")
keyed = records.key_by(lambda record: record[0])
keyed.connect(rules.broadcast(RULES)).process(Keyed(), Types.STRING()).print("keyed")
env.execute("broadcast state")
