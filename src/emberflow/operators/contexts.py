"""The contexts that user functions receive: the runtime context in `open()`, the element context in `process_element()`."""

from __future__ import annotations

from enum import Enum
from typing import Any, Generic, TypeVar

from emberflow.errors import InvalidArgument, NotKeyed, UnknownState, did_you_mean
from emberflow.event_time.timestamps import to_timestamp
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK
from emberflow.observability.metric_group import MetricGroup
from emberflow.operators.keyed import KeyedOperator
from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from emberflow.state.handles import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    make_handle,
)

T = TypeVar("T")
V = TypeVar("V")
OUT = TypeVar("OUT")
K = TypeVar("K", covariant=True)


class TimeDomain(Enum):
    """The time domain of a timer."""

    EVENT_TIME = "event_time"
    PROCESSING_TIME = "processing_time"


class RuntimeContext:
    """Passed to `open()`: identifies the function's task, and gives access to its keyed state."""

    def __init__(
        self,
        step_name: str,
        operator: KeyedOperator | None = None,
        subtask: int = 0,
        parallelism: int = 1,
        parameters: dict[str, str] | None = None,
    ) -> None:
        self._step_name = step_name
        self._operator = operator
        self._subtask = subtask
        self._parallelism = parallelism
        self._parameters = parameters or {}
        self._handles: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self._metrics: MetricGroup | None = None

    def get_task_name(self) -> str:
        """The name of the step."""
        return self._step_name

    def get_index_of_this_subtask(self) -> int:
        """The number of this parallel task, from 0."""
        return self._subtask

    def get_number_of_parallel_subtasks(self) -> int:
        """How many tasks run the step."""
        return self._parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many tasks could run the step: as many as there are."""
        return self._parallelism

    def get_task_name_with_subtasks(self) -> str:
        """`name (2/4)`: the step's name, the number of this task from 1, and how many there are."""
        return f"{self._step_name} ({self._subtask + 1}/{self._parallelism})"

    def get_attempt_number(self) -> int:
        """Always 0: a restarted job opens its functions again, but does not count how often."""
        return 0

    def get_job_parameter(self, key: str, default_value: str | None = None) -> str | None:
        """The value that was passed to `env.set_job_parameters` under this name."""
        return self._parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Counters, gauges, meters and distributions of this task's function, in the memory of its process."""
        if self._metrics is None:
            self._metrics = MetricGroup(self._step_name)
        return self._metrics

    def get_state(self, state_descriptor: ValueStateDescriptor[T] | str) -> ValueState[T]:
        """The handle of a state, by its descriptor or, once it is registered, by its name.

        Raises `NotKeyed` on a stream without keys, `UnknownState` for a name that was not registered.
        """
        return self._handle(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor[T] | str) -> ListState[T]:
        """A list per key; raises as `get_state`."""
        return self._handle(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor[T, V] | str) -> MapState[T, V]:
        """A dictionary per key; raises as `get_state`."""
        return self._handle(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T] | str) -> ReducingState[T]:
        """A running value per key; raises as `get_state`."""
        return self._handle(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[T, V, OUT] | str
    ) -> AggregatingState[T, OUT]:
        """A running aggregate per key; raises as `get_state`."""
        return self._handle(state_descriptor)

    def _handle(self, descriptor: StateDescriptor | str) -> Any:
        if self._operator is None:
            name = descriptor if isinstance(descriptor, str) else descriptor.name
            raise NotKeyed(
                f"step {self._step_name!r} uses the state {name!r}, but its stream has no keys",
                way_out="call key_by() before the step",
            )
        if isinstance(descriptor, str):
            found = self._handles.get(descriptor)
            if found is None:
                raise self._unknown(descriptor)
            return found
        handle = self._handles.get(descriptor.name)
        kind = self._kinds.setdefault(descriptor.name, descriptor.kind)
        if kind != descriptor.kind:
            raise InvalidArgument(
                f"step {self._step_name!r} has two states named {descriptor.name!r}, of the kinds {kind} and {descriptor.kind}",
                way_out="give one of them another name",
            )
        if handle is None:
            handle = self._handles[descriptor.name] = make_handle(descriptor, self._operator.cursor)
        return handle

    def _unknown(self, name: str) -> UnknownState:
        hint = did_you_mean(name, self._handles)
        known = ", ".join(map(repr, self._handles)) or "none"
        return UnknownState(
            f"step {self._step_name!r} has no state named {name!r}{hint}",
            cause=f"registered so far: {known}",
            way_out="register it with a descriptor first, e.g. get_state(ValueStateDescriptor('name'))",
        )


def _time(timestamp: Any) -> int:
    if timestamp.__class__ is int and MIN_WATERMARK <= timestamp <= MAX_WATERMARK:
        return timestamp
    return to_timestamp(timestamp, "the time of a timer")


class TimerService:
    """Timers and times of the current key."""

    __slots__ = ("_cursor", "_operator")

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator
        self._cursor = operator.cursor

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self._operator.scope.clock.now_ms()

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        return self._operator.scope.watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        """Calls `on_timer` for the current key at this time; a second timer for the same time changes nothing."""
        self._operator.scope.event_timers.register(_time(timestamp), self._cursor.key)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Calls `on_timer` for the current key at this time; a second timer for the same time changes nothing."""
        self._operator.scope.processing_timers.register(_time(timestamp), self._cursor.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Removes the current key's timer for this time, if there is one."""
        self._operator.scope.event_timers.delete(_time(timestamp), self._cursor.key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Removes the current key's timer for this time, if there is one."""
        self._operator.scope.processing_timers.delete(_time(timestamp), self._cursor.key)


class ElementContext(Generic[K]):
    """The context of `process_element` and `on_timer` on a keyed stream. One object serves all records of a step."""

    __slots__ = ("_cursor", "_domain", "_element_timestamp", "_timers")

    def __init__(self, operator: KeyedOperator) -> None:
        self._cursor = operator.cursor
        self._timers = TimerService(operator)
        self._domain = TimeDomain.EVENT_TIME
        self._element_timestamp: int | None = None

    def get_current_key(self) -> K:
        """The key of the current record or timer."""
        return self._cursor.key

    def timestamp(self) -> int | None:
        """Event time of the element, or the time the timer was set for."""
        return self._element_timestamp

    def timer_service(self) -> TimerService:
        """Timers of the current key, and the current times."""
        return self._timers

    def time_domain(self) -> TimeDomain:
        """In `on_timer`: the kind of timer that is due."""
        return self._domain

    def _set_timer(self, time_ms: int, domain: TimeDomain) -> None:
        self._element_timestamp = time_ms
        self._domain = domain


class PlainTimerService:
    """Times of a stream without keys; timers need keys."""

    __slots__ = ("_context",)

    def __init__(self, context: PlainContext) -> None:
        self._context = context

    def current_watermark(self) -> int:
        return self._context._watermark

    def current_processing_time(self) -> int:
        return self._context._clock.now_ms()

    def _refuse(self, timestamp: int) -> None:
        raise NotKeyed(
            f"step {self._context._step_name!r} registers a timer, but its stream has no keys",
            way_out="call key_by() before the step and use a KeyedProcessFunction",
        )

    register_event_time_timer = _refuse
    register_processing_time_timer = _refuse
    delete_event_time_timer = _refuse
    delete_processing_time_timer = _refuse


class PlainContext:
    """The context of a `ProcessFunction` on a stream without keys."""

    def __init__(self, step_name: str, clock: Any) -> None:
        self._step_name = step_name
        self._clock = clock
        self._element_timestamp: int | None = None
        self._watermark = MIN_WATERMARK
        self._timers = PlainTimerService(self)

    def timestamp(self) -> int | None:
        """Event time of the record in milliseconds; None if it has none."""
        return self._element_timestamp

    def timer_service(self) -> PlainTimerService:
        """The times of the stream; registering a timer raises `NotKeyed`."""
        return self._timers
