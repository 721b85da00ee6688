"""State descriptors and time-to-live settings: what a function declares in `open()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from emberflow.errors import InvalidArgument
from emberflow.event_time.clock import Interval, to_ms


class UpdateType(Enum):
    """What refreshes a value's time to live."""

    ON_CREATE_AND_WRITE = "on_create_and_write"
    ON_READ_AND_WRITE = "on_read_and_write"


class StateVisibility(Enum):
    """Whether an expired value that was not yet removed may still be seen."""

    NEVER_RETURN_EXPIRED = "never_return_expired"
    RETURN_EXPIRED_IF_NOT_CLEANED_UP = "return_expired_if_not_cleaned_up"


@dataclass(frozen=True, slots=True)
class StateTtlConfig:
    """Values disappear `ttl_ms` of processing time after they were last refreshed."""

    ttl_ms: int
    update_type: UpdateType = UpdateType.ON_CREATE_AND_WRITE
    visibility: StateVisibility = StateVisibility.NEVER_RETURN_EXPIRED

    UpdateType = UpdateType
    StateVisibility = StateVisibility

    @staticmethod
    def new_builder(ttl: Interval) -> StateTtlConfigBuilder:
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
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> StateTtlConfigBuilder:
        return self.set_update_type(UpdateType.ON_CREATE_AND_WRITE)

    def update_ttl_on_read_and_write(self) -> StateTtlConfigBuilder:
        return self.set_update_type(UpdateType.ON_READ_AND_WRITE)

    def set_state_visibility(self, visibility: StateVisibility) -> StateTtlConfigBuilder:
        self._visibility = visibility
        return self

    def never_return_expired(self) -> StateTtlConfigBuilder:
        return self.set_state_visibility(StateVisibility.NEVER_RETURN_EXPIRED)

    def return_expired_if_not_cleaned_up(self) -> StateTtlConfigBuilder:
        return self.set_state_visibility(StateVisibility.RETURN_EXPIRED_IF_NOT_CLEANED_UP)

    def build(self) -> StateTtlConfig:
        return StateTtlConfig(self._ttl_ms, self._update_type, self._visibility)


class StateDescriptor:
    """Name, value type (for documentation and typed codecs) and time to live of one piece of state."""

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
        self.ttl = ttl_config

    def get_name(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor):
    kind = "value"


class ListStateDescriptor(StateDescriptor):
    kind = "list"


class MapStateDescriptor(StateDescriptor):
    kind = "map"

    def __init__(self, name: str, key_type_info: Any = None, value_type_info: Any = None) -> None:
        super().__init__(name, (key_type_info, value_type_info))


class ReducingStateDescriptor(StateDescriptor):
    kind = "reducing"

    def __init__(self, name: str, reduce_function: Any, type_info: Any = None) -> None:
        super().__init__(name, type_info)
        self.reduce: Callable[[Any, Any], Any] = getattr(reduce_function, "reduce", reduce_function)


class AggregatingStateDescriptor(StateDescriptor):
    kind = "aggregating"

    def __init__(self, name: str, agg_function: Any, state_type_info: Any = None) -> None:
        super().__init__(name, state_type_info)
        self.aggregate = agg_function
