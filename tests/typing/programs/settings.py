"""What a type checker infers for settings, futures and retries."""

from __future__ import annotations

from typing import Any, assert_type

from emberflow.streams import (
    AsyncRetryStrategy,
    CheckpointConfig,
    CompletableFuture,
    Configuration,
    DataStream,
    Duration,
    ExecutionConfig,
    JobExecutionResult,
    JobStatus,
    StreamExecutionEnvironment,
    Types,
)

config = Configuration().set_string("pipeline.name", "typed").set_integer("parallelism.default", 2)
assert_type(config, Configuration)
assert_type(config.get_integer("parallelism.default", 1), int | None)
assert_type(config.to_dict(), dict[str, str])

env = StreamExecutionEnvironment.get_execution_environment(config, engine="local")
assert_type(env.get_config().enable_object_reuse(), ExecutionConfig)
assert_type(env.get_checkpoint_config().set_checkpoint_interval(Duration.of_seconds(1)), CheckpointConfig)
assert_type(env.get_checkpoint_config().get_checkpoint_interval(), int)
assert_type(env.set_parallelism(2), StreamExecutionEnvironment)

pairs = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
assert_type(pairs.project(1), DataStream[tuple[Any, ...]])
assert_type(AsyncRetryStrategy.fixed_delay(3, 10), AsyncRetryStrategy[Any])
pairs.print().name("sink").disable_chaining()

client = env.execute_async("typed")
assert_type(client.get_job_status(), CompletableFuture[JobStatus])
assert_type(client.get_job_execution_result().result(), JobExecutionResult)
assert_type(client.stop_with_savepoint(False, "savepoints").result(), str)
assert_type(client.savepoint("savepoints/monday", stop=True), str)
