"""The context of a `ProcessJoinFunction`."""

from __future__ import annotations

from emberflow.events.batch import MIN_WATERMARK


class JoinContext:
    """The times of the two records that were joined. One object serves all pairs of a step."""

    __slots__ = ("_left", "_right")

    def __init__(self) -> None:
        self._left = MIN_WATERMARK
        self._right = MIN_WATERMARK

    def get_left_timestamp(self) -> int:
        """Event time of the left record in milliseconds."""
        return self._left

    def get_right_timestamp(self) -> int:
        """Event time of the right record in milliseconds."""
        return self._right

    def get_timestamp(self) -> int:
        """Event time of the results: the later of the two."""
        return max(self._left, self._right)

    def _set(self, left: int, right: int) -> None:
        self._left = left
        self._right = right
