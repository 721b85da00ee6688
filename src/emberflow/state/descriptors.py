"""State descriptors: what a function declares in `open()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.events.types.type_information import TypeInformation, check_declared
from emberflow.state.ttl_config import StateTtlConfig

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN", contravariant=True)
ACC = TypeVar("ACC")
OUT = TypeVar("OUT", covariant=True)


class Reducer(Protocol[T]):
    """A `ReduceFunction`, or any object with its method."""

    def reduce(self, value1: T, value2: T, /) -> T: ...


class Aggregator(Protocol[IN, ACC, OUT]):
    """An `AggregateFunction`, or any object with its methods."""

    def create_accumulator(self) -> ACC: ...

    def add(self, value: IN, accumulator: ACC, /) -> ACC: ...

    def get_result(self, accumulator: ACC, /) -> OUT: ...


class StateDescriptor:
    """Name, value type (for documentation and type checkers) and time to live of one piece of state.

    A name that is empty or begins with `$` raises `InvalidArgument`. The name identifies the state after a restart:
    within one step it must not change and must belong to one kind of state.
    """

    kind = "state"

    def __init__(self, name: str, type_info: Any = None) -> None:
        if not name or name.startswith("$"):
            raise InvalidArgument(
                f"{name!r} is not a state name", way_out="use a non-empty name without a leading $"
            )
        if self.kind != MapStateDescriptor.kind:
            check_declared(type_info)
        self.name = name
        self.type_info = type_info
        self.ttl: StateTtlConfig | None = None

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Sets the time to live; call it before the descriptor is used."""
        self.ttl = ttl_config if ttl_config.is_enabled() else None

    def get_name(self) -> str:
        """The state's name."""
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Declares one value per key, for `runtime_context.get_state()`.

    The type is given as `ValueStateDescriptor[int]("count")` or as `value_type_info`.

    ```python
    from collections.abc import Iterator

    from emberflow.streams import (
        KeyedProcessFunction,
        RuntimeContext,
        StreamExecutionEnvironment,
        ValueStateDescriptor,
    )


    class Count(KeyedProcessFunction[str, str, tuple[str, int]]):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", int))

        def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
            count = (self.seen.value() or 0) + 1
            self.seen.update(count)
            yield value, count


    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    words = env.from_collection(["a", "a"]).key_by(lambda word: word)
    assert words.process(Count()).execute_and_collect(limit=2) == [("a", 1), ("a", 2)]
    ```
    """

    kind = "value"

    def __init__(self, name: str, value_type_info: TypeInformation[T] | type[T] | None = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a list per key, for `runtime_context.get_list_state()`; `elem_type_info` is the type of one element."""

    kind = "list"

    def __init__(self, name: str, elem_type_info: TypeInformation[T] | type[T] | None = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Declares a dictionary per key, for `runtime_context.get_map_state()`."""

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation[K] | type[K] | None = None,
        value_type_info: TypeInformation[V] | type[V] | None = None,
    ) -> None:
        check_declared(key_type_info)
        check_declared(value_type_info)
        super().__init__(name, (key_type_info, value_type_info))


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a running value per key, for `runtime_context.get_reducing_state()`.

    `reduce_function` is a `ReduceFunction` or a function of the value so far and the next one.
    """

    kind = "reducing"

    def __init__(
        self,
        name: str,
        reduce_function: Reducer[T] | Callable[[T, T], T],
        type_info: TypeInformation[T] | type[T] | None = None,
    ) -> None:
        super().__init__(name, type_info)
        given: Any = reduce_function
        self.reduce: Callable[[T, T], T] = getattr(given, "reduce", given)

    def get_reduce_function(self) -> Callable[[T, T], T]:
        """The function of the value so far and the next one."""
        return self.reduce


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, ACC, OUT]):
    """Declares a running aggregate per key, for `runtime_context.get_aggregating_state()`.

    `agg_function` is an `AggregateFunction`; the accumulator is what is stored.
    """

    kind = "aggregating"

    def __init__(
        self,
        name: str,
        agg_function: Aggregator[IN, ACC, OUT],
        state_type_info: TypeInformation[ACC] | type[ACC] | None = None,
    ) -> None:
        super().__init__(name, state_type_info)
        self.aggregate = agg_function

    def get_agg_function(self) -> Aggregator[IN, ACC, OUT]:
        """The `AggregateFunction`."""
        return self.aggregate
