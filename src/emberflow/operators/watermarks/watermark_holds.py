"""Watermarks that are held back by inputs in flight.

Inputs between two watermarks form a segment. A watermark is released when every segment before it is finished; inputs of
later segments are processed in the meantime.
"""

from __future__ import annotations

from collections import deque

from emberflow.events.batch import MIN_WATERMARK


class Segment:
    """Unfinished inputs, and the watermark that came after them."""

    __slots__ = ("unfinished", "watermark")

    def __init__(self) -> None:
        self.unfinished = 0
        self.watermark: int | None = None


class WatermarkHolds:
    __slots__ = ("_closed", "_last", "current")

    def __init__(self) -> None:
        self._closed: deque[Segment] = deque()
        self._last = MIN_WATERMARK
        self.current = Segment()

    @property
    def empty(self) -> bool:
        """Whether a watermark that arrives now need not be held back."""
        return not self._closed and not self.current.unfinished

    def hold(self, watermark: int) -> None:
        """A watermark arrived while inputs before it are unfinished."""
        if watermark <= self._last:
            return
        self._last = watermark
        if not self.current.unfinished and self._closed:
            self._closed[-1].watermark = watermark
            return
        self.current.watermark = watermark
        self._closed.append(self.current)
        self.current = Segment()

    def hold_again(self, watermark: int) -> None:
        """A watermark that was about to be released when further inputs arrived."""
        self._last = MIN_WATERMARK
        self.hold(watermark)

    def start(self) -> Segment:
        """An input of the current segment is in flight."""
        self.current.unfinished += 1
        return self.current

    def finish(self, segment: Segment) -> int | None:
        """An input is finished; returns the watermark that is released now, if any."""
        segment.unfinished -= 1
        passed: int | None = None
        closed = self._closed
        while closed and not closed[0].unfinished:
            passed = closed.popleft().watermark
        return passed
