"""Builds local tasks from a job graph, new or restored from a checkpoint."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from emberflow.approvals.asking import approvals_in
from emberflow.engines.job.call_service import LoopCalls
from emberflow.engines.local.aligned_sources import Alignment
from emberflow.engines.local.checkpointing.checkpoints import Checkpoint, CheckpointStore, SourceState
from emberflow.engines.local.checkpointing.stored_scopes import owned, share, task_entries
from emberflow.engines.local.exits import ExchangeExit, Hold
from emberflow.engines.local.sinks import SinkExit
from emberflow.engines.local.tasks import KeyedTask, SourceTask, Task
from emberflow.event_time.clock import Clock
from emberflow.events.fence import NO_FENCE, Fence
from emberflow.events.key_groups import KeyGroups
from emberflow.operators.admission.gate import MemoryLedgers
from emberflow.operators.agents.calls.durable_calls import CallLog
from emberflow.operators.host_services import HostServices
from emberflow.operators.operator import Receiver
from emberflow.operators.scope import SavedScope, Scope, gather_timers
from emberflow.operators.stage import StageTask
from emberflow.operators.watermarks.watermark_merge import ChannelId
from emberflow.plan.capabilities import resolve_mode
from emberflow.plan.graphs.job_graph import Exchange, JobGraph, Stage, StageKind, idle_timeouts, source_of
from emberflow.plan.graphs.stage_channels import new_sources, stage_channels
from emberflow.plan.graphs.stream_graph import StreamNode
from emberflow.plan.job_contract import CheckpointingMode, JobConfig, JobMetrics, RuntimeExecutionMode
from emberflow.plan.operator_state import keeps_operator_state
from emberflow.savepoints.restore import SavepointStart
from emberflow.state.entry import Entry

TIMERS_IN_MEMORY = 16_384
"""About so many timers of a kind are stored with each checkpoint, where the store has pages for the others."""


class JobTasks:
    """All tasks of a job."""

    def __init__(self) -> None:
        self.sources: dict[str, list[SourceTask]] = {}
        self.keyed: dict[str, list[KeyedTask]] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def all(self) -> list[Task]:
        groups: list[list[Any]] = [*self.sources.values(), *self.keyed.values()]
        return [task for tasks in groups for task in tasks]

    @property
    def at_rest(self) -> bool:
        inboxes = (len(task.inbox) for tasks in self.keyed.values() for task in tasks)
        return not any(inboxes) and not any(task.busy for task in self.all)

    @property
    def calls_to_drain(self) -> int:
        return sum(task.stage.calls_to_drain for task in self.all)

    @property
    def waits_for_calls(self) -> bool:
        """Whether the job can make progress only when a call completes."""
        return bool(self.calls_to_drain) or any(task.stage.full for task in self.all)

    @contextlib.contextmanager
    def saving(self) -> Generator[None]:
        """Keyed state may be stored inside this block, including runs in flight."""
        keyed = [task for tasks in self.keyed.values() for task in tasks]
        for task in keyed:
            task.before_save()
        try:
            yield
        finally:
            for task in keyed:
                task.after_save()

    def failed(self) -> list[BaseException]:
        return [task.failure for task in self.all if task.failure is not None]

    def interruptible(self, check_canceled: Callable[[], None]) -> None:
        for task in (task for tasks in self.keyed.values() for task in tasks):
            task.interruptible(check_canceled)

    def wake(self) -> None:
        for tasks in self.keyed.values():
            for task in tasks:
                task.wake()

    def scopes(self) -> dict[str, list[Scope]]:
        return {uid: [task.scope for task in tasks] for uid, tasks in self.keyed.items()}

    def saved_scopes(self) -> dict[str, list[SavedScope]]:
        return {uid: [task.scope.saved() for task in tasks] for uid, tasks in self.keyed.items()}

    def source_states(self) -> dict[str, SourceState]:
        return {
            uid: SourceState(
                positions=[task.position for task in tasks],
                ended=[task.ended for task in tasks],
            )
            for uid, tasks in self.sources.items()
        }

    def sinks_by_uid(self) -> dict[str, list[SinkExit]]:
        found: dict[str, list[SinkExit]] = {}
        for task in self.all:
            for sink in task.sinks:
                found.setdefault(sink.uid, []).append(sink)
        return found

    def prepare_sinks(self) -> dict[str, list[Any]]:
        prepared = {uid: [sink.prepare() for sink in sinks] for uid, sinks in self.sinks_by_uid().items()}
        return {uid: [part for part in parts if part is not None] for uid, parts in prepared.items()}

    def set_epoch(self, epoch: int) -> None:
        for task in self.all:
            for sink in task.sinks:
                sink.epoch = epoch

    def abort(self) -> None:
        for task in self.all:
            for sink in task.sinks:
                sink.abort()

    def close(self) -> None:
        """Closes everything, then raises the first error."""
        failures: list[Exception] = []
        for task in self.all:
            try:
                task.stage.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]


class _Exits:
    """Collects the exits of one task while its stage is wired."""

    def __init__(
        self,
        channel: int,
        make_exchange: Callable[[Exchange, int], ExchangeExit],
        make_sink: Callable[[StreamNode], SinkExit],
    ) -> None:
        self._channel = channel
        self._make_exchange = make_exchange
        self._make_sink = make_sink
        self.exchanges: list[ExchangeExit] = []
        self.sinks: list[SinkExit] = []

    def exchange(self, exchange: Exchange) -> Receiver:
        made = self._make_exchange(exchange, self._channel)
        self.exchanges.append(made)
        return made

    def sink(self, node: StreamNode) -> Receiver:
        made = self._make_sink(node)
        self.sinks.append(made)
        return made


class TaskBuilder:
    """Wires the stages of one job, from last to first."""

    def __init__(
        self,
        graph: JobGraph,
        config: JobConfig,
        job_id: str,
        clock: Clock,
        calls: LoopCalls,
        log: CallLog | None,
        metrics: JobMetrics,
        store: CheckpointStore,
        restored: Checkpoint | None,
        start: SavepointStart | None = None,
        fence: Fence = NO_FENCE,
    ) -> None:
        self._graph = graph
        self._fence = fence
        self._config = config
        self._job_id = job_id
        self._clock = clock
        self._calls = calls
        self._batch = resolve_mode(graph, config) is RuntimeExecutionMode.BATCH
        self._host = HostServices(
            clock=clock,
            batch=self._batch,
            calls=calls,
            log=log,
            approvals=approvals_in(config.checkpoint_dir, fence),
            ledgers=MemoryLedgers(),
        )
        self._metrics = metrics
        self._store = store
        self._restored = restored
        self._start = start
        self._groups = KeyGroups(config.max_parallelism)
        self._idle = idle_timeouts(graph)
        self._inboxes: dict[int, list[Any]] = {}
        self._channels: dict[int, int] = {}
        self._sources: dict[str, SourceState] = {}
        """uid -> where the source continues."""
        self._sink_writers: dict[int, int] = {}
        without_checkpoints = config.checkpoint_dir is None and config.checkpoint_interval_ms is None
        self._immediate = without_checkpoints or config.checkpointing_mode is CheckpointingMode.AT_LEAST_ONCE
        self.tasks = JobTasks()

    def build(self) -> JobTasks:
        graph = self._graph
        self._sources = {} if self._restored is None else dict(self._restored.sources)
        for uid, begins in new_sources(graph, self._config.parallelism, self._sources).items():
            self._sources[uid] = SourceState(positions=begins, ended=[False] * len(begins))
        self._channels = stage_channels(
            graph,
            {uid: len(source.positions) for uid, source in self._sources.items()},
            lambda node: node.parallelism or self._config.parallelism,
        )
        self._alignment = Alignment({} if self._batch else self._channels, graph, self._clock)
        # From last to first, so that a stage's targets have inboxes when it is wired.
        for stage in sorted(graph.stages, key=lambda item: -item.level):
            if stage.kind is not StageKind.SOURCE:
                self._keyed(stage)
        for stage in graph.stages:
            if stage.kind is StageKind.SOURCE:
                self._source(stage)
        return self.tasks

    def _task_parts(self, stage: Stage, subtask: int, count: int, hold: Hold) -> tuple[StageTask, _Exits]:
        def make_exchange(exchange: Exchange, channel: int) -> ExchangeExit:
            inboxes = self._inboxes[exchange.target_stage]
            return ExchangeExit(
                exchange,
                channel,
                self._channels[stage.id],
                inboxes,
                self._groups,
                Hold.UNTIL_END if self._batch else hold,
            )

        def make_sink(node: StreamNode) -> SinkExit:
            # Several stages may feed one sink, so its writers are numbered across all stages.
            number = self._sink_writers[node.id] = self._sink_writers.get(node.id, -1) + 1
            return SinkExit(
                node, number, self._job_id, self._metrics, self._fence.epoch, immediate=self._immediate
            )

        exits = _Exits(subtask, make_exchange, make_sink)
        made = StageTask(self._graph, stage.id, exits, self._host)
        made.open(subtask, count, self._config.parameters)
        return made, exits

    def _source(self, stage: Stage) -> None:
        source = source_of(self._graph, stage).source
        node = self._graph.stream_graph.node(stage.head)
        stored = self._sources[node.uid]
        count = self._channels[stage.id]
        made: list[SourceTask] = []
        for channel in range(count):
            hold = Hold.NOT if source.ordered else Hold.UNTIL_RELEASE
            part, exits = self._task_parts(stage, channel, count, hold)
            task = SourceTask(
                f"{node.name}#{channel}",
                part,
                exits.exchanges,
                exits.sinks,
                source=source,
                channel=channel,
                gate=self.tasks.gate,
                metrics=self._metrics,
                clock=self._clock,
                position=stored.positions[channel],
                ended=stored.ended[channel],
            )
            task.downstream = self._downstream(stage)
            task.calls = self._calls
            task.gate = self.tasks.gate
            task.aligned = self._alignment.reader(stage.id, channel, part, ended=task.ended)
            made.append(task)
        self.tasks.sources[node.uid] = made

    def _keyed(self, stage: Stage) -> None:
        node = self._graph.stream_graph.node(stage.head)
        count = node.parallelism or self._config.parallelism
        channels = [
            (item.id, channel)
            for item in self._graph.inputs_of(stage.id)
            for channel in range(self._channels[item.source_stage])
        ]
        idle = {
            item.id: self._idle[item.id] for item in self._graph.inputs_of(stage.id) if item.id in self._idle
        }
        scopes = self._scopes(stage, count, channels, idle)
        made: list[KeyedTask] = []
        for subtask in range(count):
            part, exits = self._task_parts(stage, subtask, count, Hold.NOT)
            numbers = {channel: number for number, channel in enumerate(channels)}

            def select(
                channel: ChannelId, exits: _Exits = exits, numbers: dict[ChannelId, int] = numbers
            ) -> None:
                for item in exits.exchanges:
                    item.select_channel(numbers[channel])

            part.on_channel_selected(select)
            self._alignment.listen(stage.id, part)
            task = KeyedTask(
                f"{node.name}#{subtask}",
                part,
                exits.exchanges,
                exits.sinks,
                scope=scopes[subtask],
                metrics=self._metrics,
                idle_check_s=min(idle.values()) / 1000 if idle else None,
            )
            task.downstream = self._downstream(stage)
            task.calls = self._calls
            task.gate = self.tasks.gate
            made.append(task)
        self._inboxes[stage.id] = [task.inbox for task in made]
        self.tasks.keyed[node.uid] = made

    def _downstream(self, stage: Stage) -> list[Any]:
        return [
            inbox for item in self._graph.outputs_of(stage.id) for inbox in self._inboxes[item.target_stage]
        ]

    def _task_entries(
        self, uid: str, entries: dict[Any, Entry], before: int, count: int
    ) -> tuple[dict[Any, Entry], list[Any]]:
        start = self._start
        if start is None:
            return task_entries(entries, self._store.loader(uid), before, count)
        # A savepoint does not tell how many tasks there were.
        return task_entries(dict(start.entries(uid)) if uid in start.steps else {}, None, None, count)

    def _scopes(
        self, stage: Stage, count: int, channels: list[ChannelId], idle: dict[int, int]
    ) -> list[Scope]:
        node, keyed = self._graph.stream_graph.node(stage.head), stage.kind is StageKind.KEYED
        stored = self._restored.scopes.get(node.uid) if self._restored else None
        if self._start is not None:
            stored = [self._start.scope(node.uid, channels)]
        entries, pages = self._store.entries(node.uid), self._store.pages()
        leftovers: list[Any] = []
        if stored is not None and len(stored) != count:
            # Timers in pages belong to one subtask: with another number of them, all are distributed again.
            stored = [gather_timers(scope, pages, leftovers) for scope in stored]
        gone: list[Any] = []
        if stored is not None and keeps_operator_state(self._graph, stage):
            entries, gone = self._task_entries(node.uid, entries, len(stored), count)
        made: list[Scope] = []
        for subtask in range(count):

            def owns(key: Any, subtask: int = subtask) -> bool:
                if not keyed:
                    return key == subtask
                return self._groups[key] * count // self._config.max_parallelism == subtask

            numbered = None if keyed else (subtask, count)
            saved = share(stored, owns, set(channels), numbered) if stored else None
            if saved is not None and stored is not None and len(stored) == count:
                saved = replace(
                    saved,
                    far_event_timers=stored[subtask].far_event_timers,
                    far_processing_timers=stored[subtask].far_processing_timers,
                    far_cleanup=stored[subtask].far_cleanup,
                )
            made.append(
                Scope(
                    channels=channels,
                    idle_ms=idle,
                    clock=self._clock,
                    saved=saved,
                    entries=entries if count == 1 and keyed else owned(entries, owns),
                    loader=self._store.loader(node.uid),
                    pages=pages,
                    owns=owns,
                    timer_limit=TIMERS_IN_MEMORY,
                )
            )
        made[0].dropped.extend(leftovers)
        made[0].removed.update(gone)
        return made
