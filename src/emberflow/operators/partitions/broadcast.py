"""Broadcast state: one input reaches every task and updates a state that the other input reads.

The state is the same in every scope, since every scope receives every record of the broadcast input: it is stored under
`SharedKey.BROADCAST`, once, and restored into every scope. On Spark a scope is a key group, so results of a broadcast
record are emitted by the groups that speak for their task only (`leads`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, TypeVar

from emberflow.errors import NotKeyed, UnknownState, did_you_mean
from emberflow.event_time.clock import Clock
from emberflow.events.batch import MAX_WATERMARK, Batch, marks_of
from emberflow.operators.contexts import ElementContext, PlainContext
from emberflow.operators.keyed import KeyedOperator
from emberflow.operators.keyed_process import KeyedProcessOperator
from emberflow.operators.operator import Step
from emberflow.operators.partitions.broadcast_state import BroadcastState, ReadOnlyBroadcastState
from emberflow.operators.partitions.partitioned import CoProcessOperator
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.state.descriptors import MapStateDescriptor
from emberflow.state.entry import Entry, SharedKey

K = TypeVar("K")
V = TypeVar("V")
KEY = TypeVar("KEY", covariant=True)

Process = Callable[[Any, Any], Any]
ELEMENTS, BROADCAST = 0, 1
"""The inputs."""


class _States:
    """The states that the stream was broadcast with, for both sides."""

    def __init__(self, operator: KeyedOperator, descriptors: Sequence[MapStateDescriptor[Any, Any]]) -> None:
        self._step = operator.step.name
        self._writable = {item.name: BroadcastState(item, operator) for item in descriptors}
        self._read_only = {item.name: ReadOnlyBroadcastState(item, operator) for item in descriptors}

    def writable(self, descriptor: MapStateDescriptor[Any, Any]) -> BroadcastState[Any, Any]:
        return self._find(self._writable, descriptor)

    def read_only(self, descriptor: MapStateDescriptor[Any, Any]) -> ReadOnlyBroadcastState[Any, Any]:
        return self._find(self._read_only, descriptor)

    def _find(self, states: dict[str, Any], descriptor: MapStateDescriptor[Any, Any]) -> Any:
        found = states.get(descriptor.name)
        if found is None:
            known = ", ".join(map(repr, states))
            raise UnknownState(
                f"step {self._step!r} has no broadcast state named {descriptor.name!r}"
                f"{did_you_mean(descriptor.name, states)}",
                cause=f"the stream was broadcast with: {known}",
                way_out="pass the descriptor to broadcast() as well",
            )
        return found


class BroadcastContext:
    """The context of `process_broadcast_element`: writable broadcast state, no key."""

    def __init__(self, operator: KeyedOperator, states: _States) -> None:
        self._operator = operator
        self._states = states
        self._element_timestamp: int | None = None

    def timestamp(self) -> int | None:
        """Event time of the record in milliseconds; None if it has none."""
        return self._element_timestamp

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self._operator.scope.clock.now_ms()

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        return self._operator.scope.watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """The state of a descriptor that was given to `broadcast()`; raises `UnknownState` for another."""
        return self._states.writable(state_descriptor)


class KeyedReadOnlyContext(ElementContext[KEY]):
    """The context of `process_element` and `on_timer` of a `KeyedBroadcastProcessFunction`."""

    __slots__ = ("_operator", "_states")

    def __init__(self, operator: KeyedOperator, states: _States) -> None:
        super().__init__(operator)
        self._operator = operator
        self._states = states

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self._operator.scope.clock.now_ms()

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        return self._operator.scope.watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        """The state of a descriptor that was given to `broadcast()`; raises `UnknownState` for another."""
        return self._states.read_only(state_descriptor)


class ReadOnlyContext(PlainContext):
    """The context of `process_element` of a `BroadcastProcessFunction`."""

    def __init__(self, step_name: str, clock: Clock, states: _States) -> None:
        super().__init__(step_name, clock)
        self._states = states

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        return self._watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        """The state of a descriptor that was given to `broadcast()`; raises `UnknownState` for another."""
        return self._states.read_only(state_descriptor)


class _NoKey(Entry):
    """In the place of a key's entry while a broadcast record is processed."""

    def _refuse(self, *args: Any) -> Any:
        raise NotKeyed(
            "process_broadcast_element() has no current key, so it has no keyed state",
            way_out="use ctx.get_broadcast_state(), or keyed state in process_element() and on_timer()",
        )

    get = pop = setdefault = __getitem__ = __setitem__ = __delitem__ = __contains__ = _refuse  # pyright: ignore[reportAssignmentType]


_NO_KEY = _NoKey()


def _broadcast_first(
    operator: KeyedOperator,
    receive: Callable[[int, ChannelId, Batch, int | None], None],
    input_index: int,
    channel: ChannelId,
    batch: Batch,
    watermark: int | None,
) -> None:
    """Batch mode: the broadcast input is processed to its end before the other one begins, as in Flink. Records of the other
    one wait in the scope until then; its watermarks need not, since event time is the minimum of both."""
    scope = operator.scope
    if operator.batch_mode and not _broadcast_ended(operator):
        if input_index == ELEMENTS:
            keys = repeat(None, len(batch)) if batch.keys is None else batch.keys
            stamps = batch.stamps()
            scope.waiting.extend(zip(keys, batch.values, stamps, strict=True))
            batch = Batch([])
        elif watermark == MAX_WATERMARK:
            receive(input_index, channel, batch, None)
            batch = Batch([])
            if _broadcast_ended(operator, but=channel) and scope.waiting:
                keys, values, stamps = zip(*scope.waiting, strict=True)
                scope.waiting = []
                timed = any(stamp is not None for stamp in stamps)
                operator.process(Batch(values, stamps if timed else None, None, keys), None, ELEMENTS)
                operator.flush()
    receive(input_index, channel, batch, watermark)


def _broadcast_ended(operator: KeyedOperator, but: ChannelId | None = None) -> bool:
    return all(
        mark == MAX_WATERMARK
        for channel, mark, _ in operator.scope.channels.saved()
        if operator.input_of[channel[0]] == BROADCAST and channel != but
    )


class KeyedBroadcastOperator(KeyedProcessOperator):
    first_input = BROADCAST

    def __init__(
        self,
        step: Step,
        function: Any,
        calls: Sequence[Process],
        on_timer: Any,
        descriptors: Sequence[MapStateDescriptor[Any, Any]],
    ) -> None:
        super().__init__(step, function, calls, on_timer)
        states = _States(self, descriptors)
        self._context = KeyedReadOnlyContext(self, states)
        self._broadcast_context = BroadcastContext(self, states)

    def receive(self, input_index: int, channel: ChannelId, batch: Batch, watermark: int | None) -> None:
        _broadcast_first(self, super().receive, input_index, channel, batch, watermark)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        if input_index == ELEMENTS:
            super().process(batch, watermarks, input_index)
            return
        call, context, current = self._calls[BROADCAST], self._broadcast_context, self.scope.watermark
        stamps = batch.stamps()
        marks = marks_of(watermarks, batch)
        value: Any = None
        try:
            for value, stamp, mark in zip(batch.values, stamps, marks, strict=True):
                if mark > current:
                    self.advance(mark)
                    current = mark
                self.cursor.key, self.cursor.entry = None, _NO_KEY
                context._element_timestamp = stamp
                results = call(value, context)
                if results is not None:
                    found = list(results)
                    if self.leads:
                        self.collect(found, stamp, current)
        except BaseException as error:
            raise self.step.failed(value, error) from error
        self.scope.prune((SharedKey.BROADCAST,))


class BroadcastOperator(CoProcessOperator):
    first_input = BROADCAST

    def __init__(
        self,
        step: Step,
        function: Any,
        calls: Sequence[Process],
        descriptors: Sequence[MapStateDescriptor[Any, Any]],
        clock: Clock,
    ) -> None:
        super().__init__(step, function, calls, clock)
        states = _States(self, descriptors)
        self._contexts = (ReadOnlyContext(step.name, clock, states), BroadcastContext(self, states))

    def receive(self, input_index: int, channel: ChannelId, batch: Batch, watermark: int | None) -> None:
        _broadcast_first(self, super().receive, input_index, channel, batch, watermark)

    def process(self, batch: Batch, watermarks: Sequence[int] | None, input_index: int) -> None:
        super().process(batch, watermarks, input_index)
        self.scope.prune((SharedKey.BROADCAST,))
