"""The two kinds of local tasks. Both are plain coroutines on the job's event loop: between two `await`s they run without
interruption."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from emberflow.connectors.source import Chunk, Source, read_safely
from emberflow.engines.job.call_service import LoopCalls
from emberflow.engines.local.aligned_sources import AlignedReader
from emberflow.engines.local.exits import ExchangeExit
from emberflow.engines.local.queues import Inbox
from emberflow.engines.local.sinks import SinkExit
from emberflow.event_time.clock import Clock
from emberflow.events.batch import Batch
from emberflow.operators.scope import Scope
from emberflow.operators.stage import StageTask
from emberflow.plan.job_contract import JobMetrics

CHUNK_RECORDS = 1_000
_CLEANED_KEYS = 1_000
"""Keys whose expired state is removed at a time while there is no input."""
_IDLE_S = 0.05
_SHORTEST_PAUSE_S = 0.001


class Task:
    """What the job sees of a task: its exits, and whether it is at rest."""

    def __init__(self, name: str, stage: StageTask, exits: list[ExchangeExit], sinks: list[SinkExit]) -> None:
        self.name = name
        self.stage = stage
        self.exits = exits
        self.sinks = sinks
        self.downstream: list[Inbox] = []
        self.calls: LoopCalls
        self.gate: asyncio.Event
        """Closed while the job comes to rest."""
        self.busy = False
        self.failure: BaseException | None = None

    async def run(self) -> None:
        """Runs until the task's input has ended."""
        try:
            await self.work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # Code that waits for the job to come to rest must see it too.
            self.failure = error
            raise

    async def work(self) -> None:
        raise NotImplementedError(type(self).__name__)

    async def room(self) -> None:
        """Waits until every downstream task, and the task's own asynchronous steps, can accept more."""
        for inbox in self.downstream:
            if inbox.full:
                await inbox.room()
                self.waited()
        if self.must_wait():
            await self.calls.wait_while(self._still_waits)

    def _still_waits(self) -> bool:
        self.waited()
        return self.must_wait()

    def waited(self) -> None:
        """Called after the task has waited for downstream tasks to have room."""

    def held(self) -> bool:
        """Whether this task or one downstream of it has reached its limit of calls in flight."""
        return self.stage.full or any(inbox.held() for inbox in self.downstream)

    def must_wait(self) -> bool:
        return self.held()


class SourceTask(Task):
    """Reads one channel of a source."""

    def __init__(
        self,
        *args: Any,
        source: Source[Any],
        channel: int,
        gate: asyncio.Event,
        metrics: JobMetrics,
        clock: Clock,
        position: Any,
        ended: bool,
    ) -> None:
        super().__init__(*args)
        self._source = source
        self._channel = channel
        self.gate = gate
        self._metrics = metrics
        self._clock = clock
        self._last_ms = clock.now_ms()
        self._started_ms = self._last_ms - source.due_ms(channel, position)
        self.position: Any = position
        self.ended = ended
        self.aligned: AlignedReader | None = None
        """Its place among the sources that it stays together with in event time."""
        self._since_s = time.monotonic()

    def waited(self) -> None:
        if self.aligned is not None:
            self.aligned.stay_active()
        self._metrics.source_back_pressured_ms += self._passed_ms()

    def _passed_ms(self) -> float:
        since_s, self._since_s = self._since_s, time.monotonic()
        return (self._since_s - since_s) * 1000

    async def work(self) -> None:
        while not self.ended:
            moved = await self._read_round()
            for item in self.exits:
                item.release()
            if not moved and not self.ended:
                if self.aligned is not None:
                    self.aligned.rest()
                self._metrics.source_busy_ms += self._passed_ms()
                await asyncio.sleep(self._pause_s())
                self._metrics.source_idle_ms += self._passed_ms()

    async def _read_round(self) -> bool:
        """Reads until the source has no more records for now."""
        limit = self._limit()
        if limit == 0:
            return False
        moved, at_most = False, 0
        chunks: Iterator[Chunk[Any]] = iter(())
        while True:
            allowed = limit if self.aligned is None else await self._turn(self.aligned, limit)
            if not at_most <= allowed < at_most * 2:
                at_most = allowed
                chunks = read_safely(self._source, self._channel, self.position, allowed)
            await self.gate.wait()
            self.busy = True
            chunk = next(chunks, None)
            if chunk is None:
                self.busy = False
                return moved
            moved = True
            self._metrics.records_in += len(chunk.values)
            self._metrics.batches += 1
            if chunk.values:
                self.stage.feed(Batch(chunk.values, chunk.timestamps))
            self.position = chunk.position
            if self.aligned is not None:
                self.aligned.has_read(len(chunk.values), ended=chunk.end)
            if chunk.end:
                self.ended = True
                self.stage.end_channel()
            self.busy = False
            self._metrics.source_busy_ms += self._passed_ms()
            if chunk.end:
                return True
            await self.room()
            # Let downstream tasks run: the loop runs ready tasks in turn.
            await asyncio.sleep(0)
            if self._source_is_paced():
                return True

    async def _turn(self, aligned: AlignedReader, limit: int) -> int:
        """How many records may be read now. Waits while the source is too far ahead of its group; the task is at rest then,
        so checkpoints are taken, and downstream of it the channel does not become idle."""
        while any(item.unread for item in self.exits):
            await aligned.changed()
        while True:
            allowed = aligned.room(limit)
            if allowed:
                # Reading again from a position may end a round early, and with it an unordered source's hold on watermarks.
                return allowed if self._source.ordered else limit
            if self.gate.is_set():
                for item in self.exits:
                    item.stay_active()
            self._metrics.source_busy_ms += self._passed_ms()
            await aligned.changed()
            self._metrics.source_idle_ms += self._passed_ms()

    def _pause_s(self) -> float:
        """How long the source will have nothing to read, if it knows."""
        if not self._source_is_paced():
            return _IDLE_S
        due_ms = self._source.due_ms(self._channel, self.position) - self._elapsed_ms()
        return min(max(due_ms / 1000, _SHORTEST_PAUSE_S), _IDLE_S)

    def _source_is_paced(self) -> bool:
        return self._source.available(self._channel, self.position, self._elapsed_ms()) is not None

    def _elapsed_ms(self) -> int:
        """Milliseconds since the channel's start. Setting the clock back must not stop the source until it has caught up."""
        now_ms = self._clock.now_ms()
        if now_ms < self._last_ms:
            self._started_ms -= self._last_ms - now_ms
        self._last_ms = now_ms
        return now_ms - self._started_ms

    def _limit(self) -> int:
        due = self._source.available(self._channel, self.position, self._elapsed_ms())
        return CHUNK_RECORDS if due is None else min(due, CHUNK_RECORDS)


class KeyedTask(Task):
    """Processes a share of the keys of a keyed stage."""

    def __init__(self, *args: Any, scope: Scope, metrics: JobMetrics, idle_check_s: float | None) -> None:
        super().__init__(*args)
        self._wake = asyncio.Event()
        self.inbox = Inbox(self._wake.set)
        self.inbox.held = self.held
        self.scope = scope
        self._metrics = metrics
        self._idle_check_s = idle_check_s
        assert self.stage.head is not None
        self._head = self.stage.head
        self._head.enter(scope)
        # The end may come while the task sleeps, with the last call of an agent.
        self._head.on_ended = self._head.on_timer_set = self._wake.set

    def wake(self) -> None:
        self._wake.set()

    def interruptible(self, check_canceled: Callable[[], None]) -> None:
        """`check_canceled` raises when a task that keeps the event loop is to end."""
        self._head.check_canceled = check_canceled

    def must_wait(self) -> bool:
        # While a checkpoint drains the queues, their contents go into state: calls may take long, a checkpoint must not.
        # Sources are paused at that time, so this does not bypass the limit.
        return self.gate.is_set() and self.held()

    def before_save(self) -> None:
        self._head.before_save()

    def after_save(self) -> None:
        self._head.after_save()

    async def work(self) -> None:
        # After a restart, event time may already be ahead of what upstream has sent: no upstream task would send it again.
        self._head.merge_watermarks()
        self._head.resume()
        while not self.scope.ended:
            await self._until_work()
            if self.scope.ended:
                return
            self.busy = True
            item = self.inbox.take()
            if item is not None:
                self._head.receive(item.input_index, item.channel, item.batch, item.watermark)
                self._metrics.watermark = self.scope.watermark
                self._metrics.late_records_dropped += self._head.take_late()
            self._head.fire_processing_timers()
            # Every key that expires had a record before, so two keys a record keep up with them.
            self._head.remove_expired(_CLEANED_KEYS if item is None else 2 * len(item.batch))
            self.busy = False
            await self.room()
            await asyncio.sleep(0)

    async def _until_work(self) -> None:
        while not len(self.inbox) and not self.scope.ended:
            self._wake.clear()
            due = self.scope.next_wake_up()
            wait_s = None
            if due is not None:
                wait_s = (due - self.scope.clock.now_ms()) / 1000
                if wait_s <= 0:
                    return
                wait_s = min(wait_s, 1.0)
            elif self._idle_check_s is not None:
                wait_s = self._idle_check_s
            try:
                # Not wait_for(), which in Python 3.11 ignores a cancellation that comes at the same time as the event.
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                if not len(
                    self.inbox
                ):  # Otherwise the channel that is about to become idle may have sent something.
                    self._head.merge_watermarks()
