"""What PyFlink refuses on a keyed stream."""

from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
keyed = env.from_collection([(1, 2)]).key_by(lambda pair: pair[0])


def refused(name, *arguments):
    try:
        getattr(keyed, name)(*arguments)
    except Exception:
        return "refused"
    return "accepted"


for name, *arguments in [
    ("name", "x"),
    ("uid", "x"),
    ("set_parallelism", 2),
    ("set_max_parallelism", 2),
    ("force_non_parallel",),
    ("set_buffer_timeout", 5),
    ("start_new_chain",),
    ("disable_chaining",),
    ("slot_sharing_group", "g"),
    ("shuffle",),
    ("rebalance",),
    ("rescale",),
    ("forward",),
    ("cache",),
]:
    print(name, refused(name, *arguments))
