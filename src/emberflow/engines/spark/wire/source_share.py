"""What one Spark task reads of a source. Created by the offset planner on the driver, read by a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emberflow.connectors.source import Chunk


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads: a channel from one position to another. `chunks` is set if the driver had to read them."""

    channel: int
    start: Any
    stop: Any
    ends: bool
    limit: int
    chunks: tuple[Chunk[Any], ...] | None = None
