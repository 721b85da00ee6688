"""The context of a `ProcessWindowFunction`, and the state that belongs to one window."""

from __future__ import annotations

import copy
from typing import Any, Generic, Protocol, TypeVar

from emberflow.errors import InvalidArgument
from emberflow.operators.keyed import KeyedOperator
from emberflow.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from emberflow.state.entry import Cursor
from emberflow.state.handles import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    make_handle,
)
from emberflow.windowing.windows import window_name

W = TypeVar("W", covariant=True)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
OUT = TypeVar("OUT")

WINDOW_STATE = "$window/"
"""Prefix of the names under which functions' state of a window is stored."""
TRIGGER_STATE = "$trigger/"
"""The same for triggers."""


class KeyedStateStore(Protocol):
    """Where a window function finds state, by its descriptor."""

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value."""
        ...

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list."""
        ...

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """A dictionary."""
        ...

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A running value."""
        ...

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[T, V, OUT]
    ) -> AggregatingState[T, OUT]:
        """A running aggregate."""
        ...


class WindowStateStore:
    """State of one window of the current key: stored with the key's other state, under names of its own."""

    def __init__(self, cursor: Cursor, prefix: str) -> None:
        self._cursor = cursor
        self._prefix = prefix

    def handle(self, descriptor: StateDescriptor, window: Any) -> Any:
        self._cursor.forms.declare(f"{self._prefix}{descriptor.name}", descriptor)
        own = copy.copy(descriptor)
        own.name = f"{self._prefix}{window_name(window)}/{descriptor.name}"
        return make_handle(own, self._cursor, lasting=False)

    def forget(self, window: Any) -> None:
        """Removes what is left of the window's state."""
        entry = self._cursor.entry
        begin = f"{self._prefix}{window_name(window)}/"
        for name in [name for name in entry if name.startswith(begin)]:
            del entry[name]
            entry.dirty = True


class _OfWindow:
    """A `KeyedStateStore` for one window."""

    def __init__(self, store: WindowStateStore, window: Any) -> None:
        self._store = store
        self._window = window

    def get_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._store.handle(state_descriptor, self._window)

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


class WindowContext(Generic[W]):
    """The window that fires, the times, and state: of the window, and of the key across its windows.

    One object serves all windows of a step, so do not keep it.
    """

    __slots__ = ("_merging", "_operator", "_runtime_context", "_states", "_used", "_window")

    def __init__(self, operator: KeyedOperator, *, merging: bool = False) -> None:
        self._operator = operator
        self._merging = merging
        self._states = WindowStateStore(operator.cursor, WINDOW_STATE)
        self._used = False
        self._window: Any = None
        self._runtime_context: Any = None

    def window(self) -> W:
        """The window that fired."""
        return self._window

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds since the epoch."""
        return self._operator.scope.watermark

    def current_processing_time(self) -> int:
        """Milliseconds since the epoch."""
        return self._operator.scope.clock.now_ms()

    def window_state(self) -> KeyedStateStore:
        """State of this window of this key: kept while the window may fire again, removed with it.

        Windows that merge have none: `InvalidArgument`.
        """
        if self._merging:
            raise InvalidArgument(
                "windows that merge have no state of their own", way_out="use context.global_state()"
            )
        self._used = True
        found: Any = _OfWindow(self._states, self._window)
        return found

    def global_state(self) -> KeyedStateStore:
        """State of this key, the same for all of its windows."""
        return self._runtime_context

    def _forget(self, window: Any) -> None:
        """The window is gone."""
        if self._used:
            self._states.forget(window)
