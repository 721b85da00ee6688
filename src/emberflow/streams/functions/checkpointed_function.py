"""`CheckpointedFunction`: operator state for functions without keys."""

from __future__ import annotations

from emberflow.operators.partitions.operator_state import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
)


class CheckpointedFunction:
    """A second base for functions of steps without keys that keep state per task, with Flink's methods.

    ```python
    from emberflow.streams import (
        CheckpointedFunction,
        FunctionInitializationContext,
        FunctionSnapshotContext,
        ListStateDescriptor,
        MapFunction,
        StreamExecutionEnvironment,
    )


    class Numbered(MapFunction[str, tuple[int, str]], CheckpointedFunction):
        def initialize_state(self, context: FunctionInitializationContext) -> None:
            self.counts = context.get_operator_state_store().get_list_state(ListStateDescriptor[int]("count"))
            self.count = sum(self.counts.get())

        def snapshot_state(self, context: FunctionSnapshotContext) -> None:
            self.counts.update([self.count])

        def map(self, value: str) -> tuple[int, str]:
            self.count += 1
            return self.count, value


    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    words = env.from_collection(["a", "b"]).map(Numbered())
    assert words.execute_and_collect(limit=2) == [(1, "a"), (2, "b")]
    ```
    """

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called once per task before `open()`: gets the state, as it was stored or empty."""
        raise NotImplementedError("initialize_state() must be overridden")

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called before state is stored: puts into it what must last."""
        raise NotImplementedError("snapshot_state() must be overridden")
