"""`env.get_config()`: Flink's settings of how a program is executed.

Parallelism, job parameters, chaining, uids, the watermark interval and object reuse have an effect. The others configure
Flink's serializers and processes: they are kept for programs that read them back.
"""

from __future__ import annotations

from typing import Any, Protocol

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms


class ParallelismSettings(Protocol):
    """What an `ExecutionConfig` shares with its environment."""

    def get_parallelism(self) -> int: ...
    def set_parallelism(self, parallelism: int) -> Any: ...
    def get_max_parallelism(self) -> int: ...
    def set_max_parallelism(self, max_parallelism: int) -> Any: ...


class ExecutionConfig:
    """Settings of one environment; every setter returns the object itself.

    ```python
    from emberflow.streams import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.get_config().set_parallelism(2).set_global_job_parameters({"region": "eu"})
    assert env.get_parallelism() == 2
    ```
    """

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self, environment: ParallelismSettings) -> None:
        self._environment = environment
        self._parameters: dict[str, str] = {}
        self._flags: dict[str, bool] = {
            "closure_cleaner": True,
            "generic_types": True,
            "auto_generated_uids": True,
        }
        self._intervals: dict[str, int] = {}

    # with an effect

    def get_parallelism(self) -> int:
        """As `env.get_parallelism()`."""
        return self._environment.get_parallelism()

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """As `env.set_parallelism()`."""
        self._environment.set_parallelism(parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """As `env.get_max_parallelism()`."""
        return self._environment.get_max_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """As `env.set_max_parallelism()`."""
        self._environment.set_max_parallelism(max_parallelism)
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """What functions read with `runtime_context.get_job_parameter(name)`."""
        return dict(self._parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, Any]) -> ExecutionConfig:
        """What functions read with `runtime_context.get_job_parameter(name)`; values are kept as strings."""
        self._parameters = {str(name): str(value) for name, value in global_job_parameters_dict.items()}
        return self

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Steps without `uid()` get one that is derived from their place in the program."""
        return self.set_auto_generated_uids(True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """A step without `uid()` is an error when the program runs."""
        return self.set_auto_generated_uids(False)

    def set_auto_generated_uids(self, enabled: bool) -> ExecutionConfig:
        """Whether steps without `uid()` are given one."""
        return self._flag("auto_generated_uids", enabled)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether steps without `uid()` are given one."""
        return self._flags["auto_generated_uids"]

    def set_auto_watermark_interval(self, interval: Interval) -> ExecutionConfig:
        """If it is not 0, watermarks advance after each batch of records that the engine reads, as Flink's do after an
        interval. By default they follow each record, which makes results independent of batches and of time."""
        return self._interval("auto_watermark", interval)

    def get_auto_watermark_interval(self) -> int:
        """What was set, 0 by default."""
        return self._intervals.get("auto_watermark", 0)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Steps pass on records without copying those that can be changed, such as dictionaries."""
        return self.set_object_reuse(True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Steps copy what they emit if it can be changed; the default."""
        return self.set_object_reuse(False)

    def set_object_reuse(self, enabled: bool) -> ExecutionConfig:
        """Whether steps pass on records that can be changed without copying them. It saves up to a few microseconds per record and
        step; then no function may change a record that it received, emitted or keeps in its state."""
        return self._flag("object_reuse", enabled)

    def is_object_reuse_enabled(self) -> bool:
        """What was set, False by default."""
        return self._flags.get("object_reuse", False)

    # kept for programs that read them back

    def set_latency_tracking_interval(self, interval: Interval) -> ExecutionConfig:
        """Kept for its getter: there are no latency markers."""
        return self._interval("latency_tracking", interval)

    def get_latency_tracking_interval(self) -> int:
        """What was set, 0 by default."""
        return self._intervals.get("latency_tracking", 0)

    def set_task_cancellation_interval(self, interval: Interval) -> ExecutionConfig:
        """Kept for its getter; `cancel_timeout_ms` says how long a job may take to stop."""
        return self._interval("task_cancellation", interval)

    def get_task_cancellation_interval(self) -> int:
        """What was set, 30,000 by default."""
        return self._intervals.get("task_cancellation", 30_000)

    def set_task_cancellation_timeout(self, timeout: Interval) -> ExecutionConfig:
        """Kept for its getter; `cancel_timeout_ms` says how long a job may take to stop."""
        return self._interval("task_cancellation_timeout", timeout)

    def get_task_cancellation_timeout(self) -> int:
        """What was set, 180,000 by default."""
        return self._intervals.get("task_cancellation_timeout", 180_000)

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Kept for its getter: functions are pickled as they are."""
        return self._flag("closure_cleaner", True)

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Kept for its getter: functions are pickled as they are."""
        return self._flag("closure_cleaner", False)

    def is_closure_cleaner_enabled(self) -> bool:
        """What was set, True by default."""
        return self._flags["closure_cleaner"]

    def enable_force_kryo(self) -> ExecutionConfig:
        """Kept for its getter: values are pickled."""
        return self._flag("force_kryo", True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Kept for its getter: values are pickled."""
        return self._flag("force_kryo", False)

    def is_force_kryo_enabled(self) -> bool:
        """What was set, False by default."""
        return self._flags.get("force_kryo", False)

    def enable_force_avro(self) -> ExecutionConfig:
        """Kept for its getter: values are pickled."""
        return self._flag("force_avro", True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Kept for its getter: values are pickled."""
        return self._flag("force_avro", False)

    def is_force_avro_enabled(self) -> bool:
        """What was set, False by default."""
        return self._flags.get("force_avro", False)

    def enable_generic_types(self) -> ExecutionConfig:
        """Kept for its getter: any value travels."""
        return self._flag("generic_types", True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Kept for its getter: any value travels."""
        return self._flag("generic_types", False)

    def has_generic_types_disabled(self) -> bool:
        """What was set, False by default."""
        return not self._flags["generic_types"]

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Kept for its getter: the engine decides what it compresses."""
        return self._flag("snapshot_compression", use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        """What was set, False by default."""
        return self._flags.get("snapshot_compression", False)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty: values are pickled."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Always empty: values are pickled."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Always empty: values are pickled."""
        return []

    def _flag(self, name: str, value: bool) -> ExecutionConfig:
        self._flags[name] = value
        return self

    def _interval(self, name: str, value: Interval) -> ExecutionConfig:
        milliseconds = to_ms(value, "interval")
        if milliseconds < 0:
            raise InvalidArgument(f"an interval must not be negative, got {milliseconds} ms")
        self._intervals[name] = milliseconds
        return self
