"""Configuration, execution config and checkpoint config: what is set is read back."""

from pyflink.common import Configuration, Duration
from pyflink.datastream import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    StreamExecutionEnvironment,
)

config = Configuration()
config.set_string("pipeline.name", "settings").set_integer("parallelism.default", 2)
config.set_boolean("pipeline.object-reuse", True)
config.set_float("restart-strategy.exponential-delay.jitter-factor", 0.25)
print(sorted(config.key_set()), config.contains_key("pipeline.name"), config.contains_key("nothing"))
print(config.get_string("pipeline.name", "x"), config.get_string("nothing", "default"))
print(config.get_integer("parallelism.default", 0), config.get_boolean("pipeline.object-reuse", False))
print(
    config.get_float("restart-strategy.exponential-delay.jitter-factor", 0.0),
    config.get_integer("nothing", 7),
)
copy = Configuration(config)
print(copy == config, copy.remove_config("pipeline.name"), copy.remove_config("pipeline.name"))
print(Configuration().add_all(copy, "x.").to_dict().get("x.parallelism.default"))
print(Configuration.from_dict({"a": "1"}).to_dict())

env = StreamExecutionEnvironment.get_execution_environment(config)
print(env.get_parallelism(), env.get_config().is_object_reuse_enabled())
checkpoints = env.get_checkpoint_config()
print(
    checkpoints.is_checkpointing_enabled(),
    checkpoints.get_checkpoint_interval(),
    env.get_checkpoint_interval(),
)
print(checkpoints.get_checkpoint_timeout(), checkpoints.get_min_pause_between_checkpoints())
print(checkpoints.get_max_concurrent_checkpoints(), checkpoints.get_tolerable_checkpoint_failure_number())
env.enable_checkpointing(60000, CheckpointingMode.AT_LEAST_ONCE)
checkpoints.set_checkpoint_timeout(30000).set_min_pause_between_checkpoints(500)
checkpoints.set_max_concurrent_checkpoints(1)
checkpoints.set_tolerable_checkpoint_failure_number(3)
checkpoints.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
checkpoints.set_aligned_checkpoint_timeout(Duration.of_seconds(1))
print(
    checkpoints.is_checkpointing_enabled(),
    checkpoints.get_checkpoint_interval(),
    env.get_checkpoint_interval(),
)
print(checkpoints.get_checkpointing_mode(), env.get_checkpointing_mode())
print(checkpoints.get_checkpoint_timeout(), checkpoints.get_min_pause_between_checkpoints())
print(
    checkpoints.get_tolerable_checkpoint_failure_number(), checkpoints.is_externalized_checkpoints_enabled()
)
print(checkpoints.get_externalized_checkpoint_retention())
print(checkpoints.get_aligned_checkpoint_timeout() == Duration.of_millis(1000))

execution = env.get_config()
execution.set_parallelism(3).set_max_parallelism(64).set_auto_watermark_interval(50)
execution.set_global_job_parameters({"region": "eu", "year": "2025"})
print(env.get_parallelism(), env.get_max_parallelism(), execution.get_auto_watermark_interval())
print(sorted(execution.get_global_job_parameters().items()))
print(execution.is_closure_cleaner_enabled())
print(execution.disable_auto_generated_uids().has_auto_generated_uids_enabled())
env.set_buffer_timeout(12)
env.set_default_savepoint_directory("file:/tmp/savepoints")
print(
    env.get_buffer_timeout(), env.is_chaining_enabled(), env.disable_operator_chaining().is_chaining_enabled()
)
env.configure(
    Configuration.from_dict({"parallelism.default": "4", "execution.checkpointing.interval": "10 s"})
)
print(env.get_parallelism(), env.get_checkpoint_interval())
