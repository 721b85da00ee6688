"""Where a local task's output goes: into other tasks' inboxes, or into sink writers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from emberflow.engines.local.queues import Inbox, Item
from emberflow.events.batch import MAX_WATERMARK, MIN_WATERMARK, Batch
from emberflow.events.copies import isolated
from emberflow.events.key_groups import KeyGroups
from emberflow.operators.operator import take
from emberflow.operators.partitions.routing import Router, make_router
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.graphs.job_graph import Exchange

_EMPTY = Batch([])


class Hold(Enum):
    """How long watermarks are held back at an exit. The end of the input is never held back."""

    NOT = "not"
    UNTIL_RELEASE = "until_release"
    """Unordered sources: until everything read in one round has been sent."""
    UNTIL_END = "until_end"
    """Batch mode: event time advances once."""


class ExchangeExit:
    """Partitions records over the inboxes of the next stage; broadcasts watermarks to all of them."""

    def __init__(
        self,
        exchange: Exchange,
        channel: int,
        channels: int,
        inboxes: Sequence[Inbox],
        groups: KeyGroups,
        hold: Hold,
    ) -> None:
        """`channels` is the number of tasks that send."""
        self._exchange = exchange
        self._channel: ChannelId = (exchange.id, channel)
        self._inboxes = inboxes
        self._groups = groups
        self._hold = hold
        self._held = MIN_WATERMARK
        self._channels = channels
        self._router = make_router(exchange, len(inboxes), groups)
        if self._router is not None:
            self._router.begin(channel, channels)

    def open(self, context: Any) -> None:
        """Opens the user's partitioner, if the exchange has one."""
        if self._router is not None:
            self._router.open(context)

    def close(self) -> None:
        if self._router is not None:
            self._router.close()

    def select_channel(self, channel: int) -> None:
        self._channel = (self._exchange.id, channel)
        if self._router is not None:
            self._router.begin(channel, self._channels)

    def on_batch(self, batch: Batch) -> None:
        if self._hold is not Hold.NOT and batch.watermarks is not None:
            self._held = max(self._held, batch.watermarks[-1])
            batch = Batch(batch.values, batch.timestamps, None, batch.keys, batch.origins)
        if self._router is not None:
            self._route(self._router, batch)
            return
        if len(self._inboxes) == 1:
            self._put(0, batch, None)
            return
        if self._exchange.edge.by_channel:
            self._put(self._owner(self._channel), batch, None)
            return
        groups, count, maximum = self._groups, len(self._inboxes), self._groups.max_parallelism
        positions: list[list[int]] = [[] for _ in range(count)]
        for position, key in enumerate(batch.keys or ()):
            positions[groups[key] * count // maximum].append(position)
        for subtask, chosen in enumerate(positions):
            if chosen:
                self._put(subtask, take(batch, chosen), None)

    def on_watermark(self, watermark: int) -> None:
        if self._hold is not Hold.NOT and watermark != MAX_WATERMARK:
            self._held = max(self._held, watermark)
            return
        self._held = MIN_WATERMARK
        for subtask in range(len(self._inboxes)):
            self._put(subtask, _EMPTY, watermark)

    def release(self) -> None:
        """Ends a batch of an unordered source: its watermark takes effect now."""
        if self._hold is Hold.UNTIL_RELEASE and self._held != MIN_WATERMARK:
            held, self._held = self._held, MIN_WATERMARK
            for subtask in range(len(self._inboxes)):
                self._put(subtask, _EMPTY, held)

    @property
    def unread(self) -> bool:
        """Whether a custom watermark generator has not processed everything yet."""
        return self._exchange.edge.by_channel and any(item.has_from(self._channel) for item in self._inboxes)

    def stay_active(self) -> None:
        """The sender waits although it may have records: its channel must not become idle where it is read. Nothing is sent
        where something of the channel has yet to be read."""
        for subtask, inbox in enumerate(self._inboxes):
            if not inbox.has_from(self._channel):
                self._put(subtask, _EMPTY, None)

    def _route(self, router: Router, batch: Batch) -> None:
        if router.to_all:
            # As if they had been sent to other processes: each task may change its records.
            for subtask in range(1, len(self._inboxes)):
                values = isolated(batch.values)
                part = Batch(values, batch.timestamps, batch.watermarks, batch.keys, batch.origins)
                self._put(subtask, part, None)
            self._put(0, batch, None)
            return
        for subtask, part in router.parts(batch):
            self._put(subtask, part, None)

    def _owner(self, channel: ChannelId) -> int:
        return self._groups[channel] * len(self._inboxes) // self._groups.max_parallelism

    def _put(self, subtask: int, batch: Batch, watermark: int | None) -> None:
        self._inboxes[subtask].put(Item(self._exchange.input_index, self._channel, batch, watermark))
