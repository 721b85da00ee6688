"""Bounded queues between tasks.

Operators never block, so a batch may overfill a queue; the task that caused it then waits for room before it takes its
next input. Memory is bounded by the limit plus what one input batch produces.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from emberflow.events.batch import Batch
from emberflow.operators.watermarks.watermark_merge import ChannelId

LIMIT_RECORDS = 8_000


@dataclass(frozen=True, slots=True)
class Item:
    """What one channel sends: records, followed by its watermark."""

    input_index: int
    channel: ChannelId
    batch: Batch
    watermark: int | None


class Inbox:
    """A task's input queue."""

    def __init__(self, arrived: Callable[[], None]) -> None:
        self._items: deque[Item] = deque()
        self._records = 0
        self._arrived = arrived
        self._room = asyncio.Event()
        self._room.set()
        self.held: Callable[[], bool] = lambda: False
        """Whether the task that reads this queue, or one downstream of it, waits for calls to complete."""

    def put(self, item: Item) -> None:
        self._items.append(item)
        self._records += len(item.batch)
        if self._records >= LIMIT_RECORDS:
            self._room.clear()
        self._arrived()

    def take(self) -> Item | None:
        if not self._items:
            return None
        item = self._items.popleft()
        self._records -= len(item.batch)
        if self._records < LIMIT_RECORDS:
            self._room.set()
        return item

    def has_from(self, channel: ChannelId) -> bool:
        """Whether something that this channel sent has not been taken yet."""
        return any(item.channel == channel for item in self._items)

    @property
    def full(self) -> bool:
        return not self._room.is_set()

    async def room(self) -> None:
        await self._room.wait()

    def __len__(self) -> int:
        return len(self._items)
