"""State descriptors and time-to-live settings: what a function declares in `open()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms
from emberflow.events.type_information import TypeInformation

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN", contravariant=True)
ACC = TypeVar("ACC")
OUT = TypeVar("OUT", covariant=True)


class UpdateType(Enum):
    """What refreshes a value's time to live."""

    ON_CREATE_AND_WRITE = "on_create_and_write"
    ON_READ_AND_WRITE = "on_read_and_write"


class StateVisibility(Enum):
    """Whether an expired value that was not yet removed may still be read."""

    NEVER_RETURN_EXPIRED = "never_return_expired"
    RETURN_EXPIRED_IF_NOT_CLEANED_UP = "return_expired_if_not_cleaned_up"


@dataclass(frozen=True, slots=True)
class StateTtlConfig:
    """Values expire `ttl_ms` of processing time after they were last refreshed."""

    ttl_ms: int
    update_type: UpdateType = UpdateType.ON_CREATE_AND_WRITE
    visibility: StateVisibility = StateVisibility.NEVER_RETURN_EXPIRED

    UpdateType = UpdateType
    StateVisibility = StateVisibility

    @staticmethod
    def new_builder(ttl: Interval) -> StateTtlConfigBuilder:
        """Starts building a configuration; a time to live that is not positive raises `InvalidArgument`."""
        return StateTtlConfigBuilder(to_ms(ttl, "ttl"))


class StateTtlConfigBuilder:
    """PyFlink's builder of a `StateTtlConfig`."""

    def __init__(self, ttl_ms: int) -> None:
        if ttl_ms <= 0:
            raise InvalidArgument(f"a time to live must be positive, got {ttl_ms} ms")
        self._ttl_ms = ttl_ms
        self._update_type = UpdateType.ON_CREATE_AND_WRITE
        self._visibility = StateVisibility.NEVER_RETURN_EXPIRED

    def set_update_type(self, update_type: UpdateType) -> StateTtlConfigBuilder:
        """What refreshes a value."""
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> StateTtlConfigBuilder:
        """Only writing refreshes a value (default)."""
        return self.set_update_type(UpdateType.ON_CREATE_AND_WRITE)

    def update_ttl_on_read_and_write(self) -> StateTtlConfigBuilder:
        """Reading refreshes a value too."""
        return self.set_update_type(UpdateType.ON_READ_AND_WRITE)

    def set_state_visibility(self, visibility: StateVisibility) -> StateTtlConfigBuilder:
        """Sets whether expired values may still be read."""
        self._visibility = visibility
        return self

    def never_return_expired(self) -> StateTtlConfigBuilder:
        """Expired values are never returned (default)."""
        return self.set_state_visibility(StateVisibility.NEVER_RETURN_EXPIRED)

    def return_expired_if_not_cleaned_up(self) -> StateTtlConfigBuilder:
        """Expired values are returned until they are removed."""
        return self.set_state_visibility(StateVisibility.RETURN_EXPIRED_IF_NOT_CLEANED_UP)

    def build(self) -> StateTtlConfig:
        """The finished configuration."""
        return StateTtlConfig(self._ttl_ms, self._update_type, self._visibility)


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
        self.name = name
        self.type_info = type_info
        self.ttl: StateTtlConfig | None = None

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Sets the time to live; call it before the descriptor is used."""
        self.ttl = ttl_config

    def get_name(self) -> str:
        """The state's name."""
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Declares one value per key, for `runtime_context.get_state()`.

    The type is given as `ValueStateDescriptor[int]("count")` or as `type_info`.

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

    def __init__(self, name: str, type_info: TypeInformation[T] | type[T] | None = None) -> None:
        super().__init__(name, type_info)


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Declares a list per key, for `runtime_context.get_list_state()`; `type_info` is the type of one element."""

    kind = "list"

    def __init__(self, name: str, type_info: TypeInformation[T] | type[T] | None = None) -> None:
        super().__init__(name, type_info)


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Declares a dictionary per key, for `runtime_context.get_map_state()`."""

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation[K] | type[K] | None = None,
        value_type_info: TypeInformation[V] | type[V] | None = None,
    ) -> None:
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
