"""Batches: consecutive records of one channel, stored in columns.

Operators pass batches instead of single records, so that a chain of maps costs one list comprehension per step. A batch
is never changed after it was passed on: steps share its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MIN_WATERMARK = -(2**63)
"""Event time is not known yet."""
MAX_WATERMARK = 2**63 - 1
"""+∞: the input has ended."""


class Batch:
    """Columns of equal length.

    `timestamps` is None if no record has an event time. `watermarks[i]` is the watermark in force *before* record i, so
    that the result does not depend on where a stream is split into batches; None if the watermark does not change within
    the batch. `keys` is set after key_by().
    """

    __slots__ = ("keys", "timestamps", "values", "watermarks")

    def __init__(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None = None,
        watermarks: Sequence[int] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> None:
        self.values = values
        self.timestamps = timestamps
        self.watermarks = watermarks
        self.keys = keys

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return (
            f"Batch(values={self.values!r}, timestamps={self.timestamps!r}, watermarks={self.watermarks!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return (list(self.values), self.timestamps, self.watermarks, self.keys) == (
            list(other.values),
            other.timestamps,
            other.watermarks,
            other.keys,
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]
