"""Tables of typed streams and back: whole, with columns chosen and renamed, as views; rows and tuples of a table."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import DataTypes, Schema, StreamTableEnvironment
from pyflink.table.expressions import col

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
t_env = StreamTableEnvironment.create(env)
pairs = env.from_collection([(12, "ann"), (0, "ben")], Types.TUPLE([Types.LONG(), Types.STRING()]))
rows = env.from_collection([Row("ann", 35)], Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]))
numbers = env.from_collection([1, 2], Types.LONG())

TABLES = {
    "pairs": t_env.from_data_stream(pairs),
    "by position": t_env.from_data_stream(pairs, col("n"), col("who")),
    "first": t_env.from_data_stream(pairs, col("n")),
    "by name": t_env.from_data_stream(pairs, col("f1"), col("f0")),
    "renamed": t_env.from_data_stream(pairs, col("f1").alias("who"), col("f0")).select(col("who")),
    "rows": t_env.from_data_stream(rows),
    "rows by position": t_env.from_data_stream(rows, col("who"), col("years")).select(col("years")),
    "rows by name": t_env.from_data_stream(rows, col("age")),
    "numbers": t_env.from_data_stream(numbers),
    "named numbers": t_env.from_data_stream(numbers, col("n")).select(col("n")),
}
for name, table in TABLES.items():
    t_env.to_data_stream(table).print(name)

t_env.create_temporary_view("whole", pairs)
t_env.to_data_stream(t_env.from_path("whole")).print("whole")
schema = Schema.new_builder().column("f0", DataTypes.BIGINT()).column("f1", DataTypes.STRING()).build()
t_env.create_temporary_view("described", pairs, schema)
t_env.to_data_stream(t_env.from_path("described")).print("described")

people = t_env.from_elements([("ann", 35), ("ben", 3)], ["name", "age"])
kinds = [Types.STRING(), Types.LONG()]
t_env.to_append_stream(people, Types.ROW(kinds)).map(lambda row: f"{row.f0} {row.f1}").print("fields")
t_env.to_append_stream(people, Types.ROW(kinds)).print("as rows")
t_env.to_append_stream(people, Types.TUPLE(kinds)).print("as tuples")
env.execute("tables of streams")
