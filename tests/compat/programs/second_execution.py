"""One environment, several executions: each takes the steps that were added before it, whether it succeeds or not."""

from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def attempt(name):
    try:
        env.execute(name)
        print(name, "succeeded")
    except Exception:
        print(name, "failed")


env.from_collection([1, 0]).map(lambda n: n * 2).print("first")
attempt("first")
env.from_collection([1, 0]).map(lambda n: 1 // n).filter(lambda n: False).print("second")
attempt("second")
env.from_collection([3]).map(lambda n: n * 2).print("third")
attempt("third")
print(env.from_collection([4]).execute_and_collect(limit=1))
