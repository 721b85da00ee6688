"""Batches: consecutive records of one channel, stored in columns.

Operators pass batches instead of single records, so that a chain of maps costs one list comprehension per step. A batch
is never changed after it was passed on: steps share its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from emberflow.errors import EngineFailed

MIN_WATERMARK = -(2**63)
"""Event time is not known yet."""
MAX_WATERMARK = 2**63 - 1
"""+∞: the input has ended."""

Origin = tuple[str, str]
"""The agent and the id of the output event that a record comes from."""


def marks_of(watermarks: Sequence[int] | None, batch: Batch) -> Iterable[int]:
    """The watermark before each record of a batch; `MIN_WATERMARK` where it does not change."""
    return repeat(MIN_WATERMARK, len(batch.values)) if watermarks is None else watermarks


class Batch:
    """Columns of equal length; columns that are not raise `EngineFailed`, since a record would be lost or get another's
    timestamp.

    `timestamps` is None if no record has an event time. `watermarks[i]` is the watermark in force *before* record i, so
    that the result does not depend on where a stream is split into batches; None if the watermark does not change within
    the batch. `keys` is set after key_by(). `origins` is set for the outputs of agents that log their events, and for what
    steps without state make of them one by one; the log of a later agent refers to it.
    """

    __slots__ = ("keys", "origins", "timestamps", "values", "watermarks")

    def __init__(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None = None,
        watermarks: Sequence[int] | None = None,
        keys: Sequence[Any] | None = None,
        origins: Sequence[Origin | None] | None = None,
    ) -> None:
        self.values = values
        self.timestamps = timestamps
        self.watermarks = watermarks
        self.keys = keys
        self.origins = origins
        count = len(values)
        if (
            (timestamps is not None and len(timestamps) != count)
            or (watermarks is not None and len(watermarks) != count)
            or (keys is not None and len(keys) != count)
            or (origins is not None and len(origins) != count)
        ):
            raise self._misaligned()

    def stamps(self) -> Iterable[int | None]:
        """The timestamp of each record; None where it has no event time."""
        return repeat(None, len(self.values)) if self.timestamps is None else self.timestamps

    def _misaligned(self) -> EngineFailed:
        sizes = ", ".join(
            f"{len(column)} {name}"
            for name in ("values", "timestamps", "watermarks", "keys", "origins")
            if (column := getattr(self, name)) is not None
        )
        return EngineFailed(
            f"a batch has columns of different lengths: {sizes}",
            way_out="report this as a bug of emberflow",
            committed="what was processed since the last checkpoint is not committed",
        )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return (
            f"Batch(values={self.values!r}, timestamps={self.timestamps!r}, watermarks={self.watermarks!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return (list(self.values), self.timestamps, self.watermarks, self.keys, self.origins) == (
            list(other.values),
            other.timestamps,
            other.watermarks,
            other.keys,
            other.origins,
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]
