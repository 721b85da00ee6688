"""JSON lines in, records out."""

import json

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
lines = [
    '{"id": 1, "tel": 123, "addr": {"city": "Rome"}}',
    '{"id": 2, "tel": 456, "addr": {"city": "Bern"}}',
    '{"id": 1, "tel": 789, "addr": {"city": "Rome"}}',
]


def longer(record):
    return {**record, "tel": record["tel"] + 1}


records = env.from_collection(lines, type_info=Types.STRING()).map(json.loads)
records.map(longer).map(lambda record: json.dumps(record, sort_keys=True), Types.STRING()).print()
by_city = records.map(lambda record: (record["addr"]["city"], record["tel"]))
by_city.key_by(lambda pair: pair[0]).sum(1).map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING()).print(
    "sum"
)
env.execute("json")
