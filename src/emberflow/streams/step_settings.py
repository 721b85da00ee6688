"""What can be set of the step that made a stream, or of a sink. Every method returns the object itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from emberflow.errors import InvalidArgument, NotSupported
from emberflow.streams.missing_steps import ExplainsMissingSteps
from emberflow.streams.settings.parallelism import checked_max_parallelism, checked_parallelism
from emberflow.streams.slot_sharing import SlotSharingGroup

if TYPE_CHECKING:
    from emberflow.streams.environment import StreamExecutionEnvironment
    from emberflow.streams.settings.execution_config import ExecutionConfig


class StepSettings(ExplainsMissingSteps):
    """Base of `DataStream` and `DataStreamSink`."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._env = env

    def _only(self, what: str) -> int:
        """The step that `what` sets something of; raises InvalidArgument if there is not exactly one."""
        raise NotImplementedError

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment whose program the step belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """As `env.get_config()`."""
        return self._env.get_config()

    def name(self, name: str) -> Self:
        """The step's name in plans, metrics and errors."""
        return self._set("name()", name=name)

    def get_name(self) -> str:
        """The step's name."""
        return self._env._program.name_of(self._only("get_name()"))

    def set_description(self, description: str) -> Self:
        """Kept for PyFlink's programs: plans show the name."""
        self._only("set_description()")
        return self

    def uid(self, uid: str) -> Self:
        """A stable identity for the step's state across program changes.

        Without one it is derived from the step's place in the program. Two steps with one uid are an error when the
        program runs; an empty uid raises `InvalidArgument`.
        """
        self._env._program.set_uid(self._only("uid()"), uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Raises `NotSupported`: state is found by its uid, not by a hash of Flink's."""
        raise NotSupported(
            f"a step cannot be given the hash {uid_hash!r}", way_out="give it a stable identity with uid()"
        )

    def set_parallelism(self, parallelism: int) -> Self:
        """How many tasks run this step; less than 1 raises `InvalidArgument`.

        A step without keys whose parallelism differs from that of the step before gets its records in turn, as behind
        `rebalance()`. Sinks write in the tasks of the step before them. On Spark all keyed steps have the parallelism of the
        environment.
        """
        parallelism = checked_parallelism(parallelism)
        node = self._env._program.node(self._only("set_parallelism()"))
        if node.max_parallelism == 1 and parallelism > 1:
            raise InvalidArgument(
                f"step {node.name!r} cannot have a parallelism of {parallelism}",
                way_out="leave out force_non_parallel() or set_max_parallelism(1)",
            )
        return self._set("set_parallelism()", parallelism=parallelism)

    def force_non_parallel(self) -> Self:
        """One task runs this step, now and after later changes of the parallelism."""
        return self._set("force_non_parallel()", parallelism=1, max_parallelism=1)

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The highest parallelism the step may have. The number of key groups is that of the environment."""
        return self._set("set_max_parallelism()", max_parallelism=checked_max_parallelism(max_parallelism))

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Accepted and shown in plans: neither engine has slots. On Spark, cores and memory of tasks are settings of the
        session."""
        given: Any = slot_sharing_group
        group = given.get_name() if isinstance(given, SlotSharingGroup) else given
        return self._set("slot_sharing_group()", slot_sharing_group=group)

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Kept for PyFlink's programs: records are not held back in network buffers."""
        self._only("set_buffer_timeout()")
        return self

    def start_new_chain(self) -> Self:
        """The step does not run in one task with the steps before it."""
        return self._set("start_new_chain()", starts_chain=True)

    def disable_chaining(self) -> Self:
        """The step runs in a task of its own."""
        return self._set("disable_chaining()", never_chains=True)

    def _set(self, called: str, **fields: Any) -> Self:
        self._env._program.change(self._only(called), **fields)
        return self
