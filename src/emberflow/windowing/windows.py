"""Kinds of windows. A window is a value: equal windows of a key are the same window."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from emberflow.events.batch import MAX_WATERMARK
from emberflow.events.stored_types import stored_type


class Window(ABC):
    """Base of windows of your own; they must be hashable, comparable with == and picklable."""

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last millisecond that belongs to the window."""


@stored_type(write=tuple, read=lambda _, bounds: TimeWindow(*bounds))
class TimeWindow(NamedTuple):
    """[start, end) in milliseconds."""

    start: int
    end: int

    def max_timestamp(self) -> int:
        """The last millisecond that belongs to the window."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window of a timestamp, where windows of this size follow each other from `offset` on."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: Any) -> None:
        """Calls `callback.merge(windows, result)` for each group of windows that overlap or touch."""
        merge_touching(windows, callback.merge)


def merge_touching(
    windows: Iterable[TimeWindow], merge: Callable[[set[TimeWindow], TimeWindow], object]
) -> None:
    """Calls `merge(group, covering window)` for each group of two or more different windows that overlap or touch."""
    covering: TimeWindow | None = None
    group: set[TimeWindow] = set()
    for window in sorted(windows):
        if covering is not None and covering.intersects(window):
            covering = covering.cover(window)
            group.add(window)
            continue
        if covering is not None and len(group) > 1:
            merge(group, covering)
        covering, group = window, {window}
    if covering is not None and len(group) > 1:
        merge(group, covering)


@stored_type(write=tuple, read=lambda _, fields: CountWindow(*fields))
class CountWindow(NamedTuple):
    """A window of `count_window()`; the windows of a key are numbered from 0."""

    id: int

    def max_timestamp(self) -> int:
        """The end of time: event time does not end the window."""
        return MAX_WATERMARK


@stored_type(write=lambda _: (), read=lambda _, fields: GlobalWindow())
class GlobalWindow(Window):
    """The only window of `GlobalWindows`."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """The window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """The end of time: event time does not end the window."""
        return MAX_WATERMARK

    def __eq__(self, other: object) -> bool:
        return other.__class__ is GlobalWindow

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"


Window.register(TimeWindow)
Window.register(CountWindow)


def window_name(window: Any) -> str:
    """A name that is the same for equal windows in every process, under which state of the window is stored."""
    kind: type[Any] = window.__class__
    if kind is TimeWindow:
        return f"{window[0]}:{window[1]}"
    if kind is CountWindow:
        return str(window[0])
    if kind is GlobalWindow:
        return ""
    return _stable(window)


def _stable(value: Any) -> str:
    """Shows all fields of a value, whatever its repr shows, and always in the same order."""
    kind: type[Any] = value.__class__
    if issubclass(kind, set | frozenset):
        return f"{kind.__qualname__}{sorted(map(_stable, value))}"
    if issubclass(kind, tuple | list):
        return f"{kind.__qualname__}[{', '.join(map(_stable, value))}]"
    if kind.__module__ == "builtins" or isinstance(value, Enum):
        return repr(value)
    fields = _fields(value)
    if not fields and kind.__repr__ is not object.__repr__:
        return repr(value)
    return f"{kind.__qualname__}({', '.join(f'{name}={_stable(fields[name])}' for name in sorted(fields))})"


def _fields(value: Any) -> dict[str, Any]:
    """The attributes of an object; of a dataclass, those that are compared."""
    kind: type[Any] = value.__class__
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(kind) if field.compare}
    names: set[str] = set(getattr(value, "__dict__", ()))
    for base in kind.__mro__:
        slots: Any = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            hidden = name.startswith("__") and not name.endswith("__")
            names.add(f"_{base.__name__.lstrip('_')}{name}" if hidden else name)
    return {name: getattr(value, name) for name in names if hasattr(value, name)}
