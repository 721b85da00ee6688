"""The plan as Flink's JSON: names, kinds and how records travel."""

import json

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
pairs = env.from_collection([("a", 1)], type_info=Types.TUPLE([Types.STRING(), Types.INT()])).name("pairs")
mapped = (
    pairs.map(lambda pair: pair, Types.TUPLE([Types.STRING(), Types.INT()])).name("same").set_parallelism(3)
)
mapped.key_by(lambda pair: pair[0], Types.STRING()).map(lambda pair: pair[1], Types.INT()).name(
    "second"
).print()
plan = json.loads(env.get_execution_plan())
names = {node["id"]: node["type"] for node in plan["nodes"]}
print(sorted(key for key in plan["nodes"][0]), sorted({node["pact"] for node in plan["nodes"]}))
for node in plan["nodes"]:
    if node["pact"] == "Operator" and node["type"] == "second":
        print(node["type"], node["parallelism"], [step["ship_strategy"] for step in node["predecessors"]])
