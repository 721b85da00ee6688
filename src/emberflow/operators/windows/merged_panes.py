"""What windows that fire one after another have in common, merged once.

Two running results, as in a queue made of two stacks: `front` has, for each pane of an older part, the merge of all
panes from it to the end of that part; `back` is the merge of all panes after it. A window is one of the first merged with
the second, so it costs the same number of merges, on average three, however many panes it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from emberflow.operators.windows.contents import Held, own_copy
from emberflow.windowing.windows import TimeWindow

Panes = dict[int, Held]
"""Start of a pane -> what it holds, in order of time."""
Merge = Callable[[Held | None, Held | None], Held]


class MergedPanes:
    """Of one key. `pure`: the merge changes neither of its arguments."""

    __slots__ = ("_back", "_front", "_merge", "_middle", "_pure", "end")

    def __init__(self, merge: Merge, *, pure: bool) -> None:
        self._pure = pure
        self._merge = merge if pure else _careful(merge)
        self._front: list[tuple[int, Held]] = []
        """Newest first, so that the oldest is taken off the end."""
        self._middle = self.end = -math.inf
        """Where the older part ends, and up to where panes were merged."""
        self._back: Held | None = None

    def over(self, window: TimeWindow, panes: Panes) -> Held | None:
        """The contents of a window that does not begin or end before the one asked for last."""
        start, end = window
        if start >= self._middle or end < self.end:
            self._rebuild(start, end, panes)
        else:
            self._extend(end, panes)
        front = self._front
        while front and front[-1][0] < start:
            front.pop()
        if front:
            return self._given(self._merge(front[-1][1], self._back))
        return None if self._back is None else self._given(self._merge(self._back, None))

    def _given(self, held: Held) -> Held:
        """What leaves: a merge that changes nothing may have returned what is kept here."""
        return own_copy(held) if self._pure else held

    def _extend(self, end: int, panes: Panes) -> None:
        newer: list[int] = []
        for pane in reversed(panes):
            if pane < self.end:
                break
            if pane < end:
                newer.append(pane)
        for pane in reversed(newer):
            self._back = self._merge(self._back, panes[pane])
        self.end = end

    def _rebuild(self, start: int, end: int, panes: Panes) -> None:
        self._front, self._back = [], None
        self._middle = self.end = end
        newer: Held | None = None
        for pane in reversed(panes):
            if start <= pane < end:
                newer = self._merge(panes[pane], newer)
                self._front.append((pane, newer))


def _careful(merge: Merge) -> Merge:
    """A function may change the values it is given, and return one of them: what is kept here must not change."""

    def merged(one: Held | None, other: Held | None) -> Held:
        if one is None or other is None:
            return own_copy(one or other or [])
        return merge(own_copy(one), own_copy(other))

    return merged
