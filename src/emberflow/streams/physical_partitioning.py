"""Which task of the next step a record goes to: the partitioners of a `DataStream`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from emberflow.plan.graphs.partitioning import PartitionerKind
from emberflow.plan.specs import function_name
from emberflow.state.descriptors import MapStateDescriptor
from emberflow.streams.functions.function import KeySelector, Partitioner
from emberflow.streams.functions.methods import method_of

if TYPE_CHECKING:
    from emberflow.streams.broadcast_stream import BroadcastStream
    from emberflow.streams.data_stream import DataStream

T = TypeVar("T", covariant=True)
R = TypeVar("R")


class PhysicalPartitioning(Generic[T]):
    """Base of `DataStream`. The partitioner belongs to the edge to the next step, whose tasks are as many as its parallelism."""

    def _partitioned(self, kind: PartitionerKind, **parts: Any) -> DataStream[Any]:
        raise NotImplementedError(type(self).__name__)

    def shuffle(self) -> DataStream[T]:
        """Records go to any task of the next step, evenly; where a repeated batch sends them does not change."""
        return self._partitioned(PartitionerKind.SHUFFLE)

    def rebalance(self) -> DataStream[T]:
        """Records go to each task of the next step in turn.

        ```python
        from emberflow.streams import MapFunction, RuntimeContext, StreamExecutionEnvironment


        class Task(MapFunction[int, int]):
            def open(self, runtime_context: RuntimeContext) -> None:
                self.number = runtime_context.get_index_of_this_subtask()

            def map(self, value: int) -> int:
                return self.number


        env = StreamExecutionEnvironment.get_execution_environment(engine="local")
        tasks = env.from_collection(range(6)).rebalance().map(Task()).set_parallelism(3)
        assert sorted(tasks.execute_and_collect()) == [0, 0, 1, 1, 2, 2]
        ```
        """
        return self._partitioned(PartitionerKind.REBALANCE)

    def rescale(self) -> DataStream[T]:
        """Records go in turn to those tasks of the next step that belong to the task they come from."""
        return self._partitioned(PartitionerKind.RESCALE)

    def forward(self) -> DataStream[T]:
        """Records stay in their task; a next step with another parallelism raises `InvalidArgument` when the program
        runs."""
        return self._partitioned(PartitionerKind.FORWARD)

    def global_(self) -> DataStream[T]:
        """All records go to the first task of the next step."""
        return self._partitioned(PartitionerKind.GLOBAL)

    def partition_custom(
        self,
        partitioner: Partitioner[R] | Callable[[R, int], int],
        key_selector: KeySelector[T, R] | Callable[[T], R],
    ) -> DataStream[T]:
        """`partitioner(key, number of tasks)` returns the number of the task of the next step, from 0 on. Another number, or
        an error, fails the job with `KeySelectorFailed`, which names the value."""
        return self._partitioned(
            PartitionerKind.CUSTOM,
            key=method_of(key_selector, "get_key", "partition_custom()"),
            function=method_of(partitioner, "partition", "partition_custom()"),
            name=function_name(partitioner),
        )

    @overload
    def broadcast(self) -> DataStream[T]: ...
    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream[T]: ...
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> DataStream[T] | BroadcastStream[T]:
        """Every record goes to every task of the next step.

        With descriptors of map state the result is for `connect()`: records may change that state, which is the same in
        every task (`BroadcastProcessFunction`).
        """
        from emberflow.streams.broadcast_stream import BroadcastStream

        all_tasks = self._partitioned(PartitionerKind.BROADCAST)
        if broadcast_state_descriptor is None:
            return all_tasks
        stream: Any = self
        return BroadcastStream(stream, (broadcast_state_descriptor, *other_broadcast_state_descriptors))
