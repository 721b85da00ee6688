"""execute_async gives a client whose answers are futures."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection([1, 2, 3], type_info=Types.INT()).map(lambda number: number + 1, Types.INT()).print()
client = env.execute_async("in the background")
result = client.get_job_execution_result().result()
print("same id>", str(client.get_job_id()) == str(result.get_job_id()), result.get_net_runtime() > 0)
print("accumulators>", result.get_all_accumulator_results())
