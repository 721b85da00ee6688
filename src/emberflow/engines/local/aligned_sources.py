"""Watermark alignment of local sources: tells a source task how far it may read, and wakes it when others have caught up.

The rule is in `operators/watermarks/watermark_alignment.py`. All tasks share one event loop, so what a task reads is compared with the
others before each read, without an interval in between.
"""

from __future__ import annotations

import asyncio
import contextlib

from emberflow.event_time.clock import Clock
from emberflow.operators.stage import StageTask
from emberflow.operators.watermarks.watermark_alignment import AlignedChannel, AlignmentGroup
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.graphs.alignment import AlignedSource, aligned_sources
from emberflow.plan.graphs.job_graph import JobGraph, idle_timeouts

_CHECK_S = 0.05
_NEVER_MS = 10**9


class _Group:
    """A group of the rule, and the tasks that wait in it."""

    def __init__(self, max_drift_ms: int) -> None:
        self.rule = AlignmentGroup(max_drift_ms)
        self.waiting: dict[AlignedChannel, asyncio.Event] = {}

    def moved(self, now_ms: int) -> None:
        """A channel has advanced or ended: wakes those that may be read now."""
        if self.waiting:
            allowed = self.rule.highest_allowed(now_ms)
            for channel, event in self.waiting.items():
                if channel.watermark <= allowed:
                    event.set()


class AlignedReader:
    """A channel of an aligned source, for the task that reads it."""

    def __init__(self, group: _Group, idle_ms: int | None, clock: Clock, check_s: float) -> None:
        self._group = group
        self._check_s = check_s
        self._clock = clock
        self._channel = AlignedChannel(idle_ms, clock.now_ms())
        group.rule.join(self._channel)

    def room(self, at_most: int) -> int:
        """How many records may be read now; 0 while the channel is too far ahead."""
        room = self._group.rule.room(self._channel, self._clock.now_ms(), at_most)
        if not room:
            self.stay_active()
        return room

    async def changed(self) -> None:
        """Waits until others may have caught up, or the channel has advanced. Not for long: others may become idle, and the
        task must say in time that it is not."""
        changed = self._group.waiting[self._channel] = asyncio.Event()
        try:
            with contextlib.suppress(TimeoutError):
                # Not wait_for(), which in Python 3.11 ignores a cancellation that comes at the same time as the event.
                async with asyncio.timeout(self._check_s):
                    await changed.wait()
        finally:
            del self._group.waiting[self._channel]

    def advance(self, watermark: int) -> None:
        """Records have passed the source's watermark strategy."""
        now_ms = self._clock.now_ms()
        self._channel.advance(watermark, now_ms)
        waits = self._group.waiting.get(self._channel)
        if waits is not None:
            waits.set()
        self._group.moved(now_ms)

    def has_read(self, records: int, *, ended: bool) -> None:
        self._channel.has_read(records)
        if ended:
            self.leave()

    def leave(self) -> None:
        """The channel has ended: it holds nobody back."""
        self._group.rule.leave(self._channel)
        self._group.moved(self._clock.now_ms())

    def stay_active(self) -> None:
        """The task waits, for its group or for downstream tasks."""
        self._channel.stay_active(self._clock.now_ms())

    def rest(self) -> None:
        """There is nothing to read: the channel becomes idle if that lasts."""
        self._channel.resting = True


class Alignment:
    """The groups of one job."""

    def __init__(self, channels: dict[int, int], graph: JobGraph, clock: Clock) -> None:
        """`channels` has the number of channels of each stage; none in batch mode, where nothing is aligned."""
        groups: dict[str, _Group] = {}
        check_s = min(_CHECK_S, min(idle_timeouts(graph).values(), default=_NEVER_MS) / 4_000)
        self._sources: dict[int, AlignedSource] = {}
        self._readers: dict[tuple[int, int], AlignedReader] = {}
        self._exchanges = {item.id: item.source_stage for item in graph.exchanges}
        for source in aligned_sources(graph) if channels else ():
            self._sources[source.stage] = source
            group = groups.setdefault(source.alignment.group, _Group(source.alignment.max_drift_ms))
            for channel in range(channels[source.stage]):
                self._readers[source.stage, channel] = AlignedReader(group, source.idle_ms, clock, check_s)

    def reader(self, stage: int, channel: int, part: StageTask, *, ended: bool) -> AlignedReader | None:
        """For the task that reads this channel; None if its source is not aligned."""
        reader = self._readers.get((stage, channel))
        if reader is None:
            return None
        if ended:
            reader.leave()
        source = self._sources[stage]
        if source.step_stage == stage:
            part.report_event_time(source.step, lambda _, watermark: reader.advance(watermark))
        return reader

    def listen(self, stage: int, part: StageTask) -> None:
        """A task with a custom generator: it reports the channels of the sources before it."""
        for source in self._sources.values():
            if source.step_stage == stage:
                part.report_event_time(source.step, self._advance)

    def _advance(self, channel: ChannelId | None, watermark: int) -> None:
        assert channel is not None, "a custom generator names the channel"
        reader = self._readers.get((self._exchanges[channel[0]], channel[1]))
        if reader is not None:
            reader.advance(watermark)
