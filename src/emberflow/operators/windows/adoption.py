"""State that was stored by another way to run windows, and is continued by this one: the program was changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emberflow.operators.windows.contents import Held, WindowContents, own_copy
from emberflow.operators.windows.window_operator import NEXT_WINDOW, PANES, WINDOW_TIMERS, WINDOWS
from emberflow.state.entry import Entry
from emberflow.windowing.windows import TimeWindow


def windows_without_timers(entry: Entry) -> list[TimeWindow]:
    """Windows of time that have no timer, which a window with a trigger always has."""
    if WINDOW_TIMERS in entry or WINDOWS not in entry:
        return []
    return [window for window in entry[WINDOWS] if window.__class__ is TimeWindow]


def panes_as_windows(
    entry: Entry, assign: Callable[[int], Sequence[TimeWindow]], contents: WindowContents, watermark: int
) -> list[TimeWindow]:
    """Turns panes that windows shared into windows of their own that have not fired; returns those that are new."""
    panes: dict[int, Held] = entry.pop(PANES)
    entry.pop(NEXT_WINDOW, None)
    entry.dirty = True
    windows: dict[TimeWindow, Held] = entry.setdefault(WINDOWS, {})
    new: list[TimeWindow] = []
    for start, held in panes.items():
        for window in assign(start):
            if window[1] - 1 <= watermark:
                continue
            if window not in windows:
                new.append(window)
            windows[window] = contents.merge(windows.get(window), own_copy(held))
    if not windows:
        del entry[WINDOWS]
    return new


def forget_fired(entry: Entry, watermark: int) -> None:
    """Removes windows that had a trigger and were only kept for late records: without the lateness they are over."""
    del entry[WINDOW_TIMERS]
    entry.dirty = True
    windows: dict[TimeWindow, Held] = entry.get(WINDOWS, {})
    for window in list(windows):
        if window.__class__ is TimeWindow and window[1] - 1 <= watermark:
            del windows[window]
    if not windows:
        entry.pop(WINDOWS, None)
